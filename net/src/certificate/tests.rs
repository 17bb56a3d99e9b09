//! Names of certificates made on the spot, beside what OpenSSL writes of them.

use super::*;
use crate::element::{BIT_STRING, OBJECT_IDENTIFIER, SET, write};
use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair, SerialNumber};

fn certificate(parts: &[(DnType, DnValue)]) -> Vec<u8> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in parts {
        params.distinguished_name.push(kind.clone(), value.clone());
    }
    params.serial_number = Some(SerialNumber::from(vec![0x00, 0x0a, 0xbc]));
    params.not_before = rcgen::date_time_ymd(2026, 1, 9);
    params.not_after = rcgen::date_time_ymd(2026, 12, 31);
    params.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate").der().to_vec()
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).expect("only ASCII is written")
}

#[test]
fn names_are_written_as_openssl_writes_them() {
    let utf8 = |text: &str| DnValue::Utf8String(text.to_owned());
    let bytes = certificate(&[
        (DnType::CountryName, utf8("DE")),
        (DnType::OrganizationName, utf8(" a, \"b\"+c\\<d>; #é/")),
        (DnType::CommonName, utf8("#first ")),
        (DnType::CustomDnType(vec![1, 2, 840, 113549, 1, 9, 1]), utf8("me@example.com")),
        (DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 99999, 1]), utf8("odd")),
    ]);
    let read = Certificate::read(&bytes).expect("a certificate");
    let commas = "1.3.6.1.4.1.99999.1=#0C036F6464,emailAddress=me@example.com,CN=\\#first\\ ,\
                  O=\\ a\\, \\\"b\\\"\\+c\\\\\\<d\\>\\; #\\C3\\A9/,C=DE";
    assert_eq!(text(|out| read.write_subject(Form::Commas, out)), commas);
    let slashes = "/C=DE/O= a, \"b\"\\+c\\<d>; #\\xC3\\xA9\\//CN=#first /emailAddress=me@example.com\
                   /1.3.6.1.4.1.99999.1=odd";
    assert_eq!(text(|out| read.write_issuer(Form::Slashes, out)), slashes);
}

#[test]
fn numbers_and_times_are_written_as_openssl_writes_them() {
    let bytes = certificate(&[(DnType::CommonName, DnValue::Utf8String("me".into()))]);
    let read = Certificate::read(&bytes).expect("a certificate");
    assert_eq!(text(|out| read.write_serial(out)), "0ABC");
    assert_eq!(text(|out| read.write_start(out)), "Jan  9 00:00:00 2026 GMT");
    assert_eq!(text(|out| read.write_end(out)), "Dec 31 00:00:00 2026 GMT");
    // 2026-12-28T00:00:01Z, and after the end.
    assert_eq!(read.days_left(1_798_416_001), 2);
    assert_eq!(read.days_left(1_800_000_000), 0);
    assert!(!read.has_alternative_names());
    assert_eq!(read.common_names().collect::<Vec<_>>(), ["me"]);
}

#[test]
fn what_is_cut_off_anywhere_is_no_certificate() {
    let bytes =
        certificate(&[(DnType::CommonName, DnValue::BmpString("mé".try_into().expect("two characters")))]);
    let read = Certificate::read(&bytes).expect("a certificate");
    assert_eq!(text(|out| read.write_subject(Form::Commas, out)), "CN=m\\C3\\A9");
    for cut in 0..bytes.len() {
        assert!(Certificate::read(&bytes[..cut]).is_none());
    }
}

#[test]
fn whatever_is_changed_in_a_certificate_what_is_written_of_it_stays_ascii() {
    let utf8 = |text: &str| DnValue::Utf8String(text.to_owned());
    let mut bytes = certificate(&[(DnType::CountryName, utf8("DE")), (DnType::CommonName, utf8("mé/+,"))]);
    for at in 0..bytes.len() {
        let before = bytes[at];
        for other in [0x00, 0x01, 0x04, 0x1e, 0x30, 0x7f, 0x80, 0x84, 0xff, before ^ 1, before ^ 0x20] {
            bytes[at] = other;
            let Some(read) = Certificate::read(&bytes) else { continue };
            for form in [Form::Commas, Form::Slashes] {
                assert!(text(|out| read.write_subject(form, out)).is_ascii());
                assert!(text(|out| read.write_issuer(form, out)).is_ascii());
            }
            text(|out| read.write_serial(out));
            assert!(text(|out| read.write_start(out)).ends_with(" GMT"));
            assert!(text(|out| read.write_end(out)).ends_with(" GMT"));
            assert!(read.days_left(i64::MAX) == 0 && read.days_left(i64::MIN) >= read.days_left(0));
            read.has_alternative_names();
            assert!(read.common_names().count() <= 2);
        }
        bytes[at] = before;
    }
}

/// A certificate to be made by hand, each field as it is encoded.
pub(crate) struct Made {
    pub(crate) version: Vec<u8>,
    pub(crate) serial: Vec<u8>,
    pub(crate) issuer: Vec<u8>,
    pub(crate) start: Vec<u8>,
    pub(crate) end: Vec<u8>,
    pub(crate) subject: Vec<u8>,
    pub(crate) key: Vec<u8>,
    pub(crate) rest: Vec<u8>,
}

impl Default for Made {
    /// Of version 1.
    fn default() -> Self {
        let key = [ecdsa(), write(BIT_STRING, &[0, 4, 1, 2])].concat();
        Made {
            version: Vec::new(),
            serial: write(INTEGER, &[7]),
            issuer: common_name(0x0c, b"top"),
            start: write(time::UTC, b"200101000000Z"),
            end: write(time::GENERALIZED, b"21000101000000Z"),
            subject: common_name(0x0c, b"me"),
            key: write(SEQUENCE, &key),
            rest: Vec::new(),
        }
    }
}

impl Made {
    pub(crate) fn signed(&self, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let validity = write(SEQUENCE, &[&self.start[..], &self.end].concat());
        let before = [&self.version[..], &self.serial, &ecdsa(), &self.issuer].concat();
        let told = [&before[..], &validity, &self.subject, &self.key, &self.rest].concat();
        let told = write(SEQUENCE, &told);
        let signature = write(BIT_STRING, &[&[0][..], &sign(&told)].concat());
        write(SEQUENCE, &[told, ecdsa(), signature].concat())
    }
}

/// ecdsa-with-SHA256.
fn ecdsa() -> Vec<u8> {
    write(SEQUENCE, &write(OBJECT_IDENTIFIER, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]))
}

fn attribute(kind: &[u8], tag: u8, value: &[u8]) -> Vec<u8> {
    write(SEQUENCE, &[write(OBJECT_IDENTIFIER, kind), write(tag, value)].concat())
}

fn common_name(tag: u8, value: &[u8]) -> Vec<u8> {
    write(SEQUENCE, &write(SET, &attribute(&[0x55, 4, 3], tag, value)))
}

/// Extensions as a field, of 2.5.29.N each: whether it is critical, as it is encoded, and its value.
pub(crate) fn extensions(all: &[(u8, &[u8], &[u8])]) -> Vec<u8> {
    let one = |(number, critical, value): &(u8, &[u8], &[u8])| {
        let kind = write(OBJECT_IDENTIFIER, &[0x55, 0x1d, *number]);
        write(SEQUENCE, &[&kind[..], critical, &write(0x04, value)].concat())
    };
    write(0xa3, &write(SEQUENCE, &all.iter().flat_map(one).collect::<Vec<u8>>()))
}

fn unsigned(made: &Made) -> Vec<u8> {
    made.signed(|_| vec![1])
}

#[test]
fn names_of_every_kind_of_text_and_of_none_are_written_as_openssl_writes_them() {
    let uuid = [0x69, 0x83, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    let together = [attribute(&[0x55, 4, 10], 0x13, b"z"), attribute(&[0x55, 4, 3], 0x13, b"a")].concat();
    let long_form =
        [&[0x30, 0x82, 0, 14, 0x31, 0x81, 11, 0x30, 9][..], &common_name(0x0c, b"me")[6..]].concat();
    for (subject, expected) in [
        (write(SEQUENCE, b""), ""),
        (common_name(0x14, b"caf\xe9"), "CN=caf\\C3\\A9"),
        (common_name(0x1a, b"seen"), "CN=seen"),
        (common_name(0x1e, &[0, b'm', 0x20, 0xac]), "CN=m\\E2\\82\\AC"),
        (common_name(0x1c, &[0, 0, 0, b'm', 0, 1, 0xf6, 0]), "CN=m\\F0\\9F\\98\\80"),
        (common_name(0x13, b"*@_"), "CN=*@_"),
        (common_name(0x0c, b"\xff"), "CN=\\FF"),
        (common_name(0x04, b"\x01"), "CN=#040101"),
        (common_name(0x19, b"old"), "CN=#19036F6C64"),
        // As they stand, not as DER sorts them.
        (write(SEQUENCE, &write(SET, &together)), "CN=a+O=z"),
        (long_form, "CN=me"),
        (write(SEQUENCE, &write(SET, &attribute(&[0x88, 0x37], 0x13, b"a"))), "2.999=#130161"),
        (
            write(SEQUENCE, &write(SET, &attribute(&[&uuid[..], &[0x7f]].concat(), 0x13, b"a"))),
            "2.25.1267650600228229401496703205375=#130161",
        ),
    ] {
        let bytes = unsigned(&Made { subject, ..Made::default() });
        let read = Certificate::read(&bytes).expect(expected);
        assert_eq!(text(|out| read.write_subject(Form::Commas, out)), expected);
        assert_eq!(text(|out| read.write_issuer(Form::Slashes, out)), "/CN=top");
    }
}

#[test]
fn numbers_and_times_that_are_out_of_use_are_read() {
    let long: Vec<u8> = (1..=30).collect();
    for (serial, expected) in [
        (&[][..], "00"),
        (&[0], "00"),
        (&[0, 0, 9], "09"),
        (&[0xff, 0x01], "FF01"),
        (&long, "0102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E"),
    ] {
        let bytes = unsigned(&Made { serial: write(INTEGER, serial), ..Made::default() });
        let read = Certificate::read(&bytes).expect(expected);
        assert_eq!((read.raw_serial(), text(|out| read.write_serial(out)).as_str()), (serial, expected));
    }
    let (utc, generalized) = (time::UTC, time::GENERALIZED);
    for (tag, time, expected) in [
        (utc, "500101000000Z", Some("Jan  1 00:00:00 1950 GMT")),
        (utc, "491231235959Z", Some("Dec 31 23:59:59 2049 GMT")),
        (utc, "2602281200Z", Some("Feb 28 12:00:00 2026 GMT")),
        (utc, "260228120000+0130", Some("Feb 28 10:30:00 2026 GMT")),
        (utc, "260228120000-0130", Some("Feb 28 13:30:00 2026 GMT")),
        (generalized, "20260228120000Z", Some("Feb 28 12:00:00 2026 GMT")),
        (generalized, "19000301000000Z", Some("Mar  1 00:00:00 1900 GMT")),
        (generalized, "99991231235959Z", Some("Dec 31 23:59:59 9999 GMT")),
        (generalized, "20260228120000.123Z", Some("Feb 28 12:00:00 2026 GMT")),
        (generalized, "20260228120000", Some("Feb 28 12:00:00 2026 GMT")),
        (utc, "260229120000Z", None),
        (utc, "260228120060Z", None),
        (utc, "260228240000Z", None),
        (utc, "260228120000", None),
        (utc, "260228120000Z0", None),
        (utc, "260228120000+01", None),
        (utc, "26022812000 Z", None),
        (generalized, "20260228120000.Z", None),
        (generalized, "260228120000Z", None),
        (0x13, "260228120000Z", None),
    ] {
        let bytes = unsigned(&Made { start: write(tag, time.as_bytes()), ..Made::default() });
        let read = Certificate::read(&bytes).map(|read| text(|out| read.write_start(out)));
        assert_eq!(read.as_deref(), expected, "{time}");
    }
}

#[test]
fn what_has_a_field_too_many_or_too_few_or_of_another_kind_is_no_certificate() {
    let version = |octets: &[u8]| write(0xa0, &write(INTEGER, octets));
    let identifier = |tag: u8| write(tag, &[0, 1]);
    let critical = |octets: &[u8]| extensions(&[(15, &write(0x01, octets), &[3, 2, 5, 0x20])]);
    let good = Made::default;
    for (made, is_read) in [
        (good(), true),
        (Made { version: version(&[2]), ..good() }, true),
        (Made { version: version(&[0xff]), ..good() }, false),
        (Made { version: version(&[]), ..good() }, false),
        (Made { version: version(&[1, 0, 0, 0, 0]), ..good() }, false),
        (Made { version: write(0xa0, b""), ..good() }, false),
        (Made { serial: write(0x04, &[7]), ..good() }, false),
        (Made { issuer: write(SEQUENCE, &write(SET, b"")), ..good() }, false),
        (Made { issuer: write(SEQUENCE, &write(SET, &attribute(&[], 0x13, b"a"))), ..good() }, false),
        (Made { issuer: write(SEQUENCE, &write(SET, &attribute(&[0x88], 0x13, b"a"))), ..good() }, false),
        (Made { key: write(SEQUENCE, &ecdsa()), ..good() }, false),
        (Made { rest: [identifier(0x81), identifier(0x82), critical(&[0xff])].concat(), ..good() }, true),
        (Made { rest: [identifier(0x82), identifier(0x81)].concat(), ..good() }, false),
        (Made { rest: identifier(0x84), ..good() }, false),
        (Made { rest: [critical(&[0xff]), critical(&[0xff])].concat(), ..good() }, false),
        (Made { rest: critical(&[1]), ..good() }, true),
        (Made { rest: critical(&[]), ..good() }, false),
        (Made { rest: extensions(&[]), ..good() }, true),
    ] {
        let mut bytes = unsigned(&made);
        let length = bytes.len();
        bytes.extend_from_slice(b"what follows is not of it");
        let read = Certificate::read(&bytes);
        assert_eq!(read.map(|read| read.whole.len()), is_read.then_some(length), "{}", bytes.escape_ascii());
    }
}
