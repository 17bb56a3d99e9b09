//! Names of certificates made on the spot, beside what OpenSSL writes of them.

use super::*;
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
