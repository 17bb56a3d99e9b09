//! Chains made on the spot, each with what is to be found of it; and handshakes in which certificates are shown.

use super::*;
use crate::certificate::extension::SUBJECT_KEY;
use crate::certificate::tests::{Made, extensions};
use crate::element::{self, Element};
use crate::tls::pem;
use crate::tls::tests::{Files, VERSION_1, VERSION_1_KEY, handshake, on_runtime, tls};
use crate::tls::{ServerTls, TlsInfo, clients};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use millstream_conf::model::{Tls, TlsVersion};
use millstream_conf::source::Span;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams,
    SerialNumber, SigningKey, date_time_ymd,
};
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn key() -> KeyPair {
    KeyPair::generate().expect("a key")
}

fn leaf(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2100, 1, 1);
    params
}

fn authority(name: &str) -> CertificateParams {
    let mut params = leaf(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// An authority that nobody issued.
fn root(name: &str) -> (Certificate, Issuer<'static, KeyPair>) {
    let (params, key) = (authority(name), key());
    let certificate = params.self_signed(&key).expect("a certificate");
    (certificate, Issuer::new(params, key))
}

fn issued(params: &CertificateParams, by: &Issuer<'_, KeyPair>) -> CertificateDer<'static> {
    params.signed_by(&key(), by).expect("a certificate").der().clone()
}

fn settings(folder: &tempfile::TempDir, told: &str, revoked: Option<String>) -> ClientCertificates {
    let file = |name: &str, text: &str| -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path
    };
    ClientCertificates {
        verify: VerifyClient::On,
        authorities: Some(file("authorities.pem", told)),
        trusted: None,
        revoked: revoked.map(|text| file("revoked.pem", &text)),
        depth: 1,
        span: Span::default(),
    }
}

fn known(told: &str, revoked: Option<String>) -> Arc<Clients> {
    let folder = tempfile::tempdir().expect("a folder");
    clients(&settings(&folder, told, revoked)).expect("whole").expect("they are asked for")
}

#[test]
fn a_chain_is_judged_as_openssl_judges_it() {
    let (top, by_top) = root("top");
    let (_, by_stranger) = root("stranger");
    let between = |name: &str, by: &Issuer<'_, KeyPair>| {
        let (params, key) = (authority(name), key());
        let certificate = params.signed_by(&key, by).expect("a certificate").der().clone();
        (certificate, Issuer::new(params, key))
    };
    let (first, by_first) = between("first", &by_top);
    let (second, by_second) = between("second", &by_first);
    let mut old = leaf("old");
    old.not_after = date_time_ymd(2021, 1, 1);
    let mut young = leaf("young");
    young.not_before = date_time_ymd(2099, 1, 1);
    let mut of_servers = leaf("server");
    of_servers.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let mut of_clients = leaf("client");
    of_clients.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let mut as_authority = authority("authority");
    as_authority.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let mut old_authority = as_authority.clone();
    old_authority.not_after = date_time_ymd(2021, 1, 1);
    let alone = leaf("alone").self_signed(&key()).expect("a certificate").der().clone();
    let mut forged = issued(&as_authority, &by_top).to_vec();
    *forged.last_mut().expect("not empty") ^= 1;
    let clients = known(&top.pem(), None);
    for (chain, expected) in [
        (vec![issued(&leaf("me"), &by_top)], Ok(())),
        (vec![issued(&of_clients, &by_top)], Ok(())),
        (vec![issued(&leaf("me"), &by_first), first.clone()], Ok(())),
        (vec![issued(&leaf("me"), &by_second), second, first], Err(Unverified::ChainTooLong)),
        (vec![issued(&leaf("me"), &by_first)], Err(Unverified::UnknownIssuerOfLeaf)),
        (vec![issued(&leaf("me"), &by_stranger)], Err(Unverified::UnknownIssuerOfLeaf)),
        (vec![issued(&leaf("me"), &by_stranger), top.der().clone()], Err(Unverified::SelfSignedInChain)),
        (vec![alone], Err(Unverified::SelfSigned)),
        (vec![issued(&old, &by_top)], Err(Unverified::Expired)),
        (vec![issued(&young, &by_top)], Err(Unverified::NotYetValid)),
        (vec![issued(&of_servers, &by_top)], Err(Unverified::Purpose)),
        // Authorities as clients, which go another way.
        (vec![top.der().clone()], Err(Unverified::Purpose)),
        (vec![issued(&as_authority, &by_top)], Ok(())),
        (vec![issued(&authority("a"), &by_top)], Err(Unverified::Purpose)),
        (vec![issued(&old_authority, &by_top)], Err(Unverified::Expired)),
        (vec![issued(&as_authority, &by_stranger)], Err(Unverified::UnknownIssuerOfLeaf)),
        (vec![CertificateDer::from(forged)], Err(Unverified::Signature)),
        (vec![CertificateDer::from(vec![0x30, 0x00])], Err(Unverified::Malformed)),
        (vec![], Err(Unverified::Malformed)),
    ] {
        let names: Vec<_> =
            chain.iter().filter_map(|one| crate::certificate::Certificate::read(one)).collect();
        assert_eq!(clients.judge(&chain), expected, "{names:?}");
    }
}

#[test]
fn an_authority_signs_only_while_it_is_good_and_with_a_key_that_may() {
    let between = |params: CertificateParams, by: &Issuer<'_, KeyPair>| {
        let key = key();
        let certificate = params.signed_by(&key, by).expect("a certificate").der().clone();
        (certificate, Issuer::new(params, key))
    };
    let (top, by_top) = root("top");
    let mut cannot_sign = authority("between");
    cannot_sign.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let (middle, by_middle) = between(cannot_sign.clone(), &by_top);
    let mut signs_only = leaf("me");
    signs_only.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let mut seals_only = leaf("me");
    seals_only.key_usages = vec![KeyUsagePurpose::KeyEncipherment];
    for (chain, expected) in [
        (vec![issued(&leaf("me"), &by_middle), middle], Err(Unverified::Authority)),
        (vec![issued(&signs_only, &by_top)], Err(Unverified::Purpose)),
        (vec![issued(&seals_only, &by_top)], Err(Unverified::Purpose)),
    ] {
        assert_eq!(known(&top.pem(), None).judge(&chain), expected);
    }
    for (first, last, expected) in [
        (2020, 2021, Err(Unverified::Expired)),
        (2099, 2100, Err(Unverified::NotYetValid)),
        (2020, 2100, Ok(())),
    ] {
        let (mut params, key) = (authority("top"), key());
        (params.not_before, params.not_after) = (date_time_ymd(first, 1, 1), date_time_ymd(last, 1, 1));
        let own = params.self_signed(&key).expect("a certificate");
        let by_own = Issuer::new(params, key);
        let mut as_authority = authority("me");
        as_authority.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // The second goes another way.
        for of in [leaf("me"), as_authority] {
            assert_eq!(known(&own.pem(), None).judge(&[issued(&of, &by_own)]), expected, "{first} to {last}");
        }
    }
    let key = key();
    let weak = cannot_sign.self_signed(&key).expect("a certificate");
    let by_weak = Issuer::new(cannot_sign, key);
    assert_eq!(
        known(&weak.pem(), None).judge(&[issued(&leaf("me"), &by_weak)]),
        Err(Unverified::UnknownIssuerOfLeaf)
    );
}

#[test]
fn a_certificate_of_version_1_is_judged_too() {
    let (top, _) = root("top");
    let own: CertificateDer<'static> =
        rustls_pki_types::pem::PemObject::from_pem_slice(VERSION_1.as_bytes()).expect("a certificate");
    assert_eq!(known(VERSION_1, None).judge(std::slice::from_ref(&own)), Ok(()));
    assert_eq!(known(&top.pem(), None).judge(&[own]), Err(Unverified::SelfSigned));
}

/// As OpenSSL does, which looks at these too.
#[test]
fn what_the_library_does_not_look_at_is_judged_by_what_it_says_however_it_is_encoded() {
    const SIGNS: &[u8] = &[3, 2, 7, 0x80];
    const IS_CRITICAL: &[u8] = &[1, 1, 0xff];
    let (top, by_top) = root("top");
    let issuer = crate::certificate::Certificate::read(top.der()).expect("a certificate");
    let (issuer, key) = (issuer.issuer.element.whole.to_vec(), issuer.key().to_vec());
    let made = || Made { issuer: issuer.clone(), key: key.clone(), ..Made::default() };
    let says = |all: &[(u8, &[u8], &[u8])]| Made { rest: extensions(all), ..made() };
    let long: Vec<u8> = (1..=30).collect();
    let name = |tag: u8, text: &[u8]| {
        let member = sequence(&[&[6, 3, 0x55, 4, 3][..], &element::write(tag, text)].concat());
        sequence(&element::write(element::SET, &member))
    };
    let purpose = Err(Unverified::Purpose);
    for (made, expected) in [
        (made(), Ok(())),
        (Made { serial: element::write(2, &[0xff]), ..made() }, Ok(())),
        (Made { serial: element::write(2, &long), ..made() }, Ok(())),
        (Made { subject: sequence(b""), ..made() }, Ok(())),
        (Made { subject: name(0x1c, &[0, 0, 0, b'm']), ..made() }, Ok(())),
        (Made { subject: name(0x14, b"\xe9"), ..made() }, Ok(())),
        (Made { start: element::write(0x17, b"500101000000Z"), ..made() }, Ok(())),
        (Made { end: element::write(0x18, b"20210101000000Z"), ..made() }, Err(Unverified::Expired)),
        (Made { start: element::write(0x17, b"2001010000ZZZ"), ..made() }, Err(Unverified::Malformed)),
        (says(&[(15, &[], SIGNS)]), Ok(())),
        (says(&[(15, &[], &[3, 5, 0, 0x80, 0, 0, 0])]), Ok(())),
        (says(&[(15, IS_CRITICAL, SIGNS), (99, &[], b"")]), Ok(())),
        (says(&[(15, &[], &[3, 2, 1, 6])]), purpose),
        // A bit that is beyond the last.
        (says(&[(15, &[], &[3, 2, 8, 0x80])]), purpose),
        (says(&[(15, &[], &[3, 1, 0])]), purpose),
        (says(&[(15, &[], &[4, 1, 0x80])]), purpose),
        (says(&[(15, &[], SIGNS), (15, &[], &[3, 2, 1, 6])]), purpose),
        (says(&[(37, &[], &sequence(&[6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 2]))]), Ok(())),
        (says(&[(37, &[], &sequence(&[6, 4, 0x55, 0x1d, 0x25, 0]))]), Ok(())),
        (says(&[(37, &[], &sequence(&[6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 1]))]), purpose),
        (says(&[(37, &[], &sequence(b""))]), purpose),
        (says(&[(37, &[], b"")]), purpose),
        (says(&[(17, IS_CRITICAL, &sequence(&[0x82, 1, b'a']))]), Ok(())),
        (says(&[(17, IS_CRITICAL, &[0x30, 9])]), purpose),
        (says(&[(99, IS_CRITICAL, b"")]), purpose),
        // The same, as a number that is not zero.
        (says(&[(99, &[1, 1, 1], b"")]), purpose),
    ] {
        let signed = made.signed(|told| by_top.key().sign(told).expect("a signature"));
        let judged = known(&top.pem(), None).judge(&[CertificateDer::from(signed.clone())]);
        assert_eq!(judged, expected, "{}", signed.escape_ascii());
        let followed = CertificateDer::from([&signed[..], &[0]].concat());
        assert_eq!(known(&top.pem(), None).judge(&[followed]), Err(Unverified::Malformed));
    }
}

#[test]
fn what_an_authority_has_revoked_is_refused_and_so_is_what_it_has_no_list_for() {
    let (top, by_top) = root("top");
    let list = |until: i32, number: u64| {
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from(1u64),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from(number),
                revocation_time: date_time_ymd(2020, 1, 1),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&by_top).and_then(|list| list.pem()).expect("a list")
    };
    let numbered = |mut params: CertificateParams, number: u64| {
        params.serial_number = Some(SerialNumber::from(number));
        issued(&params, &by_top)
    };
    let mut as_authority = authority("authority");
    as_authority.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let (_, by_other) = root("other");
    let of_other = CertificateRevocationListParams {
        this_update: date_time_ymd(2020, 1, 1),
        next_update: date_time_ymd(2100, 1, 1),
        crl_number: SerialNumber::from(1u64),
        issuing_distribution_point: None,
        revoked_certs: Vec::new(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let of_other = of_other.signed_by(&by_other).and_then(|list| list.pem()).expect("a list");
    let old = |until: i32, number: u8| old_list(&top, by_top.key(), until, number);
    for params in [leaf("me"), as_authority] {
        for (list, number, expected) in [
            (list(2100, 7), 7, Err(Unverified::Revoked)),
            (list(2100, 7), 8, Ok(())),
            (list(2021, 7), 8, Err(Unverified::RevocationListExpired)),
            (of_other.clone(), 8, Err(Unverified::NoRevocationList)),
            (old(2100, 7), 7, Err(Unverified::Revoked)),
            (old(2100, 7), 8, Ok(())),
            (old(2060, 7) + &of_other, 7, Err(Unverified::Revoked)),
            (old(2019, 7), 8, Err(Unverified::RevocationListExpired)),
            (old(2019, 7) + &list(2100, 9), 8, Ok(())),
            (old_list(&top, &key(), 2100, 7), 8, Err(Unverified::RevocationListSignature)),
        ] {
            let clients = known(&top.pem(), Some(list));
            assert_eq!(clients.judge(&[numbered(params.clone(), number)]), expected);
        }
    }
}

#[test]
fn each_certificate_of_a_chain_needs_a_list_of_its_issuer_of_whatever_version() {
    let (top, by_top) = root("top");
    let (mut params, between_key) = (authority("between"), key());
    params.serial_number = Some(SerialNumber::from(5u64));
    let between = params.signed_by(&between_key, &by_top).expect("a certificate");
    let by_between = Issuer::new(params, between_key);
    let mut me = leaf("me");
    me.serial_number = Some(SerialNumber::from(8u64));
    let chain = [issued(&me, &by_between), between.der().clone()];
    let of_top = |number| old_list(&top, by_top.key(), 2100, number);
    let of_between = |number| old_list(&between, by_between.key(), 2100, number);
    let new = |number| Listed { from: 2020, ..V2 }.of(&[number]);
    let newer = |number| new(number).signed(&top, by_top.key());
    let newer_of_between = |number| new(number).signed(&between, by_between.key());
    let of_authorities = |number| new(number).scope(&[0x82, 1, 0xff]).signed(&top, by_top.key());
    for (lists, expected) in [
        (of_top(1) + &of_between(1), Ok(())),
        (of_top(5) + &of_between(1), Err(Unverified::Revoked)),
        (of_top(1) + &of_between(8), Err(Unverified::Revoked)),
        (of_top(1) + &newer(5) + &of_between(1), Err(Unverified::Revoked)),
        (newer(5) + &of_top(1) + &of_between(1), Err(Unverified::Revoked)),
        (of_top(5) + &newer(1) + &of_between(1), Ok(())),
        (of_top(1) + &of_between(1) + &newer_of_between(8), Err(Unverified::Revoked)),
        (newer_of_between(8) + &of_top(1) + &of_between(1), Err(Unverified::Revoked)),
        (of_authorities(5) + &of_between(1), Err(Unverified::Revoked)),
        (of_authorities(8) + &of_between(1), Ok(())),
        (of_top(1), Err(Unverified::NoRevocationList)),
        (of_between(1), Err(Unverified::NoRevocationList)),
    ] {
        assert_eq!(known(&top.pem(), Some(lists)).judge(&chain), expected);
    }
}

#[test]
fn an_authority_that_is_known_with_its_own_is_judged_as_if_it_had_been_shown() {
    let (top, by_top) = root("top");
    let (mut params, between_key) = (authority("between"), key());
    params.serial_number = Some(SerialNumber::from(5u64));
    let between = params.signed_by(&between_key, &by_top).expect("a certificate");
    let by_between = Issuer::new(params, between_key);
    let mut old_top = authority("old");
    old_top.not_after = date_time_ymd(2021, 1, 1);
    let old_key = key();
    let old = old_top.self_signed(&old_key).expect("a certificate");
    let (by_old, second_key) = (Issuer::new(old_top, old_key), key());
    let second_params = authority("second");
    let second = second_params.signed_by(&second_key, &by_old).expect("a certificate");
    let by_second = Issuer::new(second_params, second_key);
    let numbered = |mut params: CertificateParams, by: &Issuer<'_, KeyPair>| {
        params.serial_number = Some(SerialNumber::from(8u64));
        issued(&params, by)
    };
    let mut as_authority = authority("authority");
    as_authority.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let of_top = |number| old_list(&top, by_top.key(), 2100, number);
    let of_between = |number| old_list(&between, by_between.key(), 2100, number);
    let (both, alone) = (top.pem() + &between.pem(), between.pem());
    for params in [leaf("me"), as_authority] {
        for (told, lists, depth, expected) in [
            (&both, None, 1, Ok(())),
            (&both, None, 0, Err(Unverified::ChainTooLong)),
            (&alone, None, 0, Ok(())),
            (&both, Some(of_top(1) + &of_between(1)), 1, Ok(())),
            (&both, Some(of_top(5) + &of_between(1)), 1, Err(Unverified::Revoked)),
            (&both, Some(of_between(1)), 1, Err(Unverified::NoRevocationList)),
            (&both, Some(of_top(1)), 1, Err(Unverified::NoRevocationList)),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let settings = ClientCertificates { depth, ..settings(&folder, told, lists) };
            let clients = clients(&settings).expect("whole").expect("they are asked for");
            assert_eq!(clients.judge(&[numbered(params.clone(), &by_between)]), expected, "{depth}");
        }
        let expired = known(&(old.pem() + &second.pem()), None);
        assert_eq!(expired.judge(&[numbered(params, &by_second)]), Err(Unverified::Expired));
    }
}

/// A list of version 1 with one number in it, signed by this key.
fn old_list(of: &Certificate, by: &KeyPair, until: i32, number: u8) -> String {
    Listed { version: 1, until, ..V2 }.of(&[number]).signed(of, by)
}

/// A list to be made.
#[derive(Clone)]
struct Listed {
    version: u8,
    /// Years.
    from: i32,
    until: i32,
    numbers: Vec<u8>,
    /// Why each of them is in it, where it says so.
    reason: Option<u8>,
    extensions: Vec<(u8, bool, Vec<u8>)>,
}

const V2: Listed =
    Listed { version: 2, from: 2018, until: 2100, numbers: Vec::new(), reason: None, extensions: Vec::new() };
const V1: Listed =
    Listed { version: 1, from: 2018, until: 2100, numbers: Vec::new(), reason: None, extensions: Vec::new() };

impl Listed {
    fn of(self, numbers: &[u8]) -> Self {
        Listed { numbers: numbers.to_vec(), ..self }
    }

    fn with(mut self, extension: u8, is_critical: bool, value: &[u8]) -> Self {
        self.extensions.push((extension, is_critical, value.to_vec()));
        self
    }

    /// With an issuing distribution point.
    fn scope(self, point: &[u8]) -> Self {
        self.with(28, true, &sequence(point))
    }

    fn signed(&self, of: &Certificate, by: &KeyPair) -> String {
        let parsed = crate::certificate::Certificate::read(of.der()).expect("a certificate");
        // ecdsa-with-SHA256.
        let algorithm = sequence(&[0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]);
        let time = |year: i32| [&[0x18, 15][..], format!("{year}0101000000Z").as_bytes()].concat();
        let reason = self.reason.map(|reason| extension(21, false, &[0x0a, 1, reason]));
        let reason = reason.map(|reason| sequence(&reason)).unwrap_or_default();
        let entry = |number: &u8| sequence(&[&[0x02, 1, *number][..], &time(2018), &reason].concat());
        let revoked = match self.numbers.is_empty() {
            true => Vec::new(),
            false => sequence(&self.numbers.iter().flat_map(entry).collect::<Vec<u8>>()),
        };
        let one =
            |(number, is_critical, value): &(u8, bool, Vec<u8>)| extension(*number, *is_critical, value);
        let (version, extensions) = match self.version {
            1 => (&[][..], Vec::new()),
            _ => {
                let own =
                    [extension(20, false, &[0x02, 1, 1])].into_iter().chain(self.extensions.iter().map(one));
                (&[0x02, 1, 1][..], element::write(0xa0, &sequence(&own.flatten().collect::<Vec<u8>>())))
            }
        };
        let subject = parsed.subject.element.whole;
        let (from, until) = (time(self.from), if self.until == 0 { Vec::new() } else { time(self.until) });
        let told = [version, &algorithm, subject, &from, &until, &revoked, &extensions].concat();
        let told = sequence(&told);
        let signature = by.sign(&told).expect("a signature");
        let signed = element::write(0x03, &[&[0][..], &signature].concat());
        let list = sequence(&[told, algorithm, signed].concat());
        format!("-----BEGIN X509 CRL-----\n{}\n-----END X509 CRL-----\n", STANDARD.encode(list))
    }
}

fn sequence(content: &[u8]) -> Vec<u8> {
    element::write(element::SEQUENCE, content)
}

/// An extension 2.5.29.N.
fn extension(number: u8, is_critical: bool, value: &[u8]) -> Vec<u8> {
    let critical: &[u8] = if is_critical { &[0x01, 1, 0xff] } else { &[] };
    sequence(&[&[0x06, 3, 0x55, 0x1d, number][..], critical, &element::write(0x04, value)].concat())
}

/// The name of a distribution point that is at this URL.
fn point(url: &str) -> Vec<u8> {
    element::write(0xa0, &element::write(0xa0, &element::write(0x86, url.as_bytes())))
}

const REVOKED: Result<(), Unverified> = Err(Unverified::Revoked);
const NONE: Result<(), Unverified> = Err(Unverified::NoRevocationList);
const EXPIRED: Result<(), Unverified> = Err(Unverified::RevocationListExpired);
const NOT_YET: Result<(), Unverified> = Err(Unverified::RevocationListNotYetValid);

/// What is to be found of a certificate of an authority that has lists, wherever each stands in the file: of the one with
/// number 7, of the one with number 8, and of those with the same numbers that name a distribution point. Each is judged as a client and as
/// a server, and the third as an authority between too.
#[track_caller]
fn assert_found(lists: &[Listed], expected: [Result<(), Unverified>; 4]) {
    let (top, by_top) = root("top");
    let mut listed: Vec<String> = lists.iter().map(|list| list.signed(&top, by_top.key())).collect();
    for _ in 0..2 {
        listed.reverse();
        for (index, number) in [7, 8, 7, 8].into_iter().enumerate() {
            let mut params = leaf("me");
            params.serial_number = Some(SerialNumber::from(number));
            if index > 1 {
                let uris = vec!["http://a/1".to_owned()];
                params.crl_distribution_points = vec![rcgen::CrlDistributionPoint { uris }];
            }
            let found = found(&top.pem(), &listed.concat(), &[issued(&params, &by_top)]);
            assert_eq!(found, [expected[index]; 2], "{number} {index}");
        }
    }
}

/// What is found of a chain as a client's and as a server's.
fn found(told: &str, lists: &str, chain: &[CertificateDer<'_>]) -> [Result<(), Unverified>; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = settings(&folder, told, Some(lists.to_owned()));
    let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
    let mut authorities = Authorities::new(1, algorithms);
    authorities.know(&settings.authorities.expect("told")).expect("whole");
    authorities.revoke(&settings.revoked.expect("told")).expect("whole");
    [Purpose::Client, Purpose::Server].map(|purpose| authorities.judge(chain, purpose))
}

#[test]
fn of_several_lists_of_an_authority_the_newest_that_is_in_force_counts_wherever_it_stands() {
    let all = |result| [result; 4];
    let is_revoked = [REVOKED, Ok(()), REVOKED, Ok(())];
    for (old, new) in [(V1, V1), (V1, V2), (V2, V1), (V2, V2)] {
        let new = Listed { from: 2020, ..new };
        let (revokes, expired) = (new.clone().of(&[7]), Listed { until: 2021, ..new.clone() });
        let future = Listed { from: 2099, ..new.clone() };
        for (lists, expected) in [
            (vec![old.clone(), revokes.clone()], is_revoked),
            (vec![old.clone().of(&[7]), new.clone()], all(Ok(()))),
            // Of the same time: nothing says which is newer.
            (vec![Listed { from: 2020, ..old.clone() }, revokes.clone()], is_revoked),
            (vec![Listed { until: 2019, ..old.clone() }, revokes.clone()], is_revoked),
            (vec![Listed { until: 2019, ..old.clone() }.of(&[7]), new.clone()], all(Ok(()))),
            (vec![old.clone(), expired.clone().of(&[7])], all(Ok(()))),
            (vec![old.clone().of(&[7]), expired.clone()], is_revoked),
            (vec![old.clone(), future.clone().of(&[7])], all(Ok(()))),
            (vec![old.clone().of(&[7]), future.clone()], is_revoked),
            (vec![Listed { until: 2019, ..old.clone() }, future.clone()], all(NOT_YET)),
            (vec![future], all(NOT_YET)),
            (vec![expired], all(EXPIRED)),
            // It says nothing of when the next one comes.
            (vec![Listed { until: 0, ..revokes.clone() }], is_revoked),
            (vec![old.clone(), old.clone(), revokes.clone(), old], is_revoked),
            (vec![Listed { reason: Some(6), ..revokes.clone() }], is_revoked),
            // removeFromCRL.
            (vec![Listed { reason: Some(8), ..revokes }], all(Ok(()))),
        ] {
            assert_found(&lists, expected);
        }
    }
}

#[test]
fn a_list_of_a_part_of_the_certificates_counts_for_those_alone() {
    const USERS: &[u8] = &[0x81, 1, 0xff];
    const AUTHORITIES: &[u8] = &[0x82, 1, 0xff];
    let (here, there) = (point("http://a/1"), point("http://a/2"));
    let own = element::write(0xa0, &element::write(0xa1, b""));
    let named = [&here[..], USERS].concat();
    let two = element::write(
        0xa0,
        &element::write(
            0xa0,
            &[element::write(0x86, b"http://a/2"), element::write(0x86, b"http://a/1")].concat(),
        ),
    );
    let is_revoked = [REVOKED, Ok(()), REVOKED, Ok(())];
    let old = |list: Listed| Listed { from: 2017, ..list };
    let full = || [V1, V2];
    let here_only = |found| [Ok(()), Ok(()), found, Ok(())];
    for full in full() {
        for (part, of_new, of_clean, of_older) in [
            // A part that revokes, then the whole; a part that does not, and the whole that revokes; an older part.
            (USERS, is_revoked, [Ok(()); 4], is_revoked),
            (&here, here_only(REVOKED), [REVOKED, Ok(()), Ok(()), Ok(())], is_revoked),
            (&two, here_only(REVOKED), [REVOKED, Ok(()), Ok(()), Ok(())], is_revoked),
            (&named, here_only(REVOKED), [REVOKED, Ok(()), Ok(()), Ok(())], is_revoked),
            (&there, [Ok(()); 4], is_revoked, is_revoked),
            (&own, [Ok(()); 4], is_revoked, is_revoked),
            (AUTHORITIES, [Ok(()); 4], is_revoked, is_revoked),
            // Indirect; of attributes; of users and of authorities, which is nobody; unknown.
            (&[0x84, 1, 0xff], [Ok(()); 4], is_revoked, is_revoked),
            (&[0x85, 1, 0xff], [Ok(()); 4], is_revoked, is_revoked),
            (&[0x81, 1, 0xff, 0x82, 1, 0xff], [Ok(()); 4], is_revoked, is_revoked),
            (&[0x86, 1, 0xff], [Ok(()); 4], is_revoked, is_revoked),
            (&[0x81, 1, 1], [Ok(()); 4], is_revoked, is_revoked),
            // For some reasons: it says that one is revoked, and of none that it is not.
            (&[0x83, 2, 6, 0x40], is_revoked, is_revoked, is_revoked),
        ] {
            let part = V2.scope(part);
            assert_found(&[part.clone().of(&[7]), old(full.clone())], of_new);
            assert_found(&[part.clone(), old(full.clone()).of(&[7])], of_clean);
            assert_found(&[old(part.clone()).of(&[7]), full.clone()], [Ok(()); 4]);
            assert_found(&[old(part.clone()), full.clone().of(&[7])], of_older);
        }
        // What has changed since another list; and what is not known.
        for (extension, revokes) in [(27, is_revoked), (99, [Ok(()); 4])] {
            let part = V2.with(extension, true, &[0x02, 1, 1]);
            assert_found(&[part.clone().of(&[7]), old(full.clone())], revokes);
            assert_found(&[part.clone(), old(full.clone()).of(&[7])], is_revoked);
            assert_found(&[part.clone().of(&[7])], [NONE; 4]);
        }
        assert_found(&[full.of(&[7]).with(99, false, b"")], is_revoked);
    }
    // OpenSSL asks for a list of the authority that issued itself too.
    for part in [USERS, AUTHORITIES, &here, &there, &[0x83, 2, 6, 0x40]] {
        assert_found(&[V2.scope(part).of(&[9])], [NONE; 4]);
    }
    assert_found(&[V2.scope(USERS).of(&[7]), V2.scope(AUTHORITIES)], is_revoked);
    assert_found(&[V2.scope(USERS), V2.scope(AUTHORITIES).of(&[7])], [Ok(()); 4]);
}

#[test]
fn a_list_that_another_key_signed_does_not_count_and_none_does_of_a_key_that_may_not_sign_them() {
    let (top, by_top) = root("top");
    let (other, by_other) = root("top");
    let mut me = leaf("me");
    me.serial_number = Some(SerialNumber::from(7u64));
    let chain = [issued(&me, &by_top)];
    let key_of = |of: &Certificate| {
        let parsed = crate::certificate::Certificate::read(of.der()).expect("a certificate");
        let key = parsed.all(&SUBJECT_KEY).next().expect("it says which key it has");
        Element::read(key.value).expect("an element").content.to_vec()
    };
    let naming =
        |list: Listed, of: &Certificate| list.with(35, false, &sequence(&element::write(0x80, &key_of(of))));
    let new = Listed { from: 2020, ..V2 };
    let forged = Err(Unverified::RevocationListSignature);
    for (lists, expected) in [
        (
            [
                naming(V2, &top).of(&[7]).signed(&top, by_top.key()),
                naming(new.clone(), &other).signed(&other, by_other.key()),
            ],
            REVOKED,
        ),
        ([V2.of(&[7]).signed(&top, by_top.key()), new.clone().signed(&other, by_other.key())], forged),
        ([V2.signed(&top, by_top.key()), naming(new.clone(), &top).signed(&top, by_other.key())], forged),
        ([new.clone().signed(&top, by_top.key()), V2.of(&[7]).signed(&other, by_other.key())], Ok(())),
    ] {
        let [first, second] = &lists;
        assert_eq!(found(&top.pem(), &(first.clone() + second), &chain), [expected; 2]);
        assert_eq!(found(&top.pem(), &(second.clone() + first), &chain), [expected; 2]);
    }
    let (mut params, key) = (authority("top"), key());
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let (top, by_top) = (params.self_signed(&key).expect("a certificate"), Issuer::new(params, key));
    for list in [V1, V2] {
        let list = list.signed(&top, by_top.key());
        assert_eq!(found(&top.pem(), &list, &[issued(&me, &by_top)]), [NONE; 2]);
    }
}

#[test]
fn a_file_without_a_list_or_with_one_of_another_version_is_an_error() {
    let (top, by_top) = root("top");
    let folder = tempfile::tempdir().expect("a folder");
    for lists in ["\n".to_owned(), top.pem()] {
        let read = clients(&settings(&folder, &top.pem(), Some(lists)));
        assert!(matches!(read, Err(crate::tls::TlsError::BadRevocationList(..))));
    }
    assert!(clients(&settings(&folder, &top.pem(), Some(V2.signed(&top, by_top.key())))).is_ok());
}

/// A client that shows the certificate of a pair of files.
fn showing(files: &Files, pair: &(PathBuf, PathBuf)) -> Arc<ClientConfig> {
    let own = pem::pair(&pair.0.clone().into(), &pair.1.clone().into(), &[], &aws_lc_rs::default_provider())
        .expect("whole");
    let mut config = Arc::unwrap_or_clone(files.client(&[]));
    config.client_auth_cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(own));
    Arc::new(config)
}

#[test]
fn a_handshake_asks_for_a_certificate_tells_the_authorities_and_remembers_what_was_shown() {
    on_runtime(async {
        let folder = tempfile::tempdir().expect("a folder");
        let mut files = Files::new();
        let (own, rsa) = (files.ecdsa(), files.rsa());
        let old = (files.write("v1.crt", VERSION_1), files.write("v1.key", VERSION_1_KEY));
        let told = fs::read_to_string(&own.0).expect("a file").repeat(2);
        let clients = clients(&settings(&folder, &told, None)).expect("whole").expect("asked for");
        assert_eq!(clients.root_hint_subjects().len(), 1);
        let server = ServerTls::read(&tls(vec![own.clone()]), Some(clients.clone())).expect("whole");
        for pair in [&own, &rsa, &old] {
            let client = showing(&files, pair);
            for resumed in [false, true] {
                let (stream, peer) = handshake(&server, &client).await;
                let (mut stream, mut peer) = (stream.expect("agreed"), peer.expect("agreed"));
                let info: TlsInfo = stream.tls().expect("encrypted").clone();
                assert_eq!(info.resumed, resumed);
                let shown = info.certificates.expect("it was shown");
                let shown = clients.judge(&shown);
                assert_eq!(shown.is_ok(), pair == &own, "{shown:?}");
                // Tickets come after the handshake.
                stream.write_all(b"x").await.expect("room");
                stream.flush().await.expect("room");
                peer.read_exact(&mut [0]).await.expect("a byte");
            }
        }
        let (stream, _) = handshake(&server, &files.client(&[])).await;
        let stream = stream.expect("none is needed");
        assert_eq!(stream.tls().expect("encrypted").certificates, None);
    });
}

#[test]
fn whoever_has_not_the_key_of_the_certificate_that_he_shows_is_refused() {
    on_runtime(async {
        let folder = tempfile::tempdir().expect("a folder");
        let mut files = Files::new();
        let (own, other) = (files.ecdsa(), files.pair("other", key()));
        let told = fs::read_to_string(&own.0).expect("a file");
        let clients = clients(&settings(&folder, &told, None)).expect("whole").expect("asked for");
        let server = ServerTls::read(&tls(vec![own.clone()]), Some(clients)).expect("whole");
        let provider = aws_lc_rs::default_provider();
        let mut shown =
            pem::pair(&own.0.clone().into(), &own.1.clone().into(), &[], &provider).expect("whole");
        shown.key =
            pem::pair(&other.0.clone().into(), &other.1.clone().into(), &[], &provider).expect("whole").key;
        for suite in ["TLS_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"] {
            let mut client = Arc::unwrap_or_clone(files.client(&[suite]));
            client.client_auth_cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(shown.clone()));
            let (stream, _) = handshake(&server, &Arc::new(client)).await;
            let refused = stream.expect_err("the signature is another's").to_string();
            assert!(refused.contains("BadSignature"), "{refused}");
        }
    });
}

#[test]
fn the_schemes_by_which_both_sides_signed_are_told_of_new_sessions_alone() {
    on_runtime(async {
        let folder = tempfile::tempdir().expect("a folder");
        let mut files = Files::new();
        let (elliptic, rsa) = (files.ecdsa(), files.rsa());
        let told = fs::read_to_string(&elliptic.0).expect("a file");
        let clients = clients(&settings(&folder, &told, None)).expect("whole").expect("asked for");
        let (by_elliptic, by_rsa) = ("ecdsa_secp256r1_sha256", "rsa_pss_rsae_sha512");
        for (own, shown, version, expected) in [
            (&elliptic, &rsa, TlsVersion::Tls13, (by_elliptic, by_rsa)),
            (&rsa, &elliptic, TlsVersion::Tls13, (by_rsa, by_elliptic)),
            (&rsa, &elliptic, TlsVersion::Tls12, (by_rsa, by_elliptic)),
        ] {
            let settings = Tls { protocols: vec![version], ..tls(vec![own.clone()]) };
            let server = ServerTls::read(&settings, Some(clients.clone())).expect("whole");
            let client = showing(&files, shown);
            for expected in [expected, ("", "")] {
                let (stream, peer) = handshake(&server, &client).await;
                let (mut stream, mut peer) = (stream.expect("agreed"), peer.expect("agreed"));
                let offered = stream.tls().and_then(|info| info.offered.clone()).expect("it is kept");
                assert_eq!((offered.scheme, offered.client_scheme), expected, "{version:?}");
                let all: Vec<&str> = offered.schemes.split(':').collect();
                assert!(all.contains(&by_elliptic) && all.contains(&by_rsa), "{all:?}");
                stream.write_all(b"x").await.expect("room");
                stream.flush().await.expect("room");
                peer.read_exact(&mut [0]).await.expect("a byte");
            }
        }
    });
}
