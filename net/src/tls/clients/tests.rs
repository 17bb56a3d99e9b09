//! Chains made on the spot, each with what is to be found of it; and handshakes in which certificates are shown.

use super::*;
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
            (old_list(&top, &key(), 2100, 7), 8, Err(Unverified::NoRevocationList)),
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
    for (lists, expected) in [
        (of_top(1) + &of_between(1), Ok(())),
        (of_top(5) + &of_between(1), Err(Unverified::Revoked)),
        (of_top(1) + &of_between(8), Err(Unverified::Revoked)),
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
    let (_, parsed) = X509Certificate::from_der(of.der()).expect("a certificate");
    // ecdsa-with-SHA256.
    let algorithm = der::sequence(&[0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]);
    let time = |year: i32| [&[0x18, 15][..], format!("{year}0101000000Z").as_bytes()].concat();
    let revoked = der::sequence(&der::sequence(&[&[0x02, 1, number][..], &time(2018)].concat()));
    let subject = parsed.subject().as_raw();
    let told = der::sequence(&[&algorithm[..], subject, &time(2018), &time(until), &revoked].concat());
    let signature = by.sign(&told).expect("a signature");
    let signed = [&[0x03, signature.len() as u8 + 1, 0][..], &signature].concat();
    let list = der::sequence(&[told, algorithm, signed].concat());
    format!("-----BEGIN X509 CRL-----\n{}\n-----END X509 CRL-----\n", STANDARD.encode(list))
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
