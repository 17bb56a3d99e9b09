//! Answers of OpenSSL's responder, and what is left of them when something is changed.

use super::*;
use millstream_net::clock;
use millstream_tests::responder::{Signing, WEEK, Word};
use millstream_tests::signed::SigningAuthority;
use rustls_pki_types::pem::PemObject;

#[test]
fn an_answer_counts_if_the_authority_or_its_delegate_signed_it_about_this_certificate_and_it_holds() {
    let folder = tempfile::tempdir().expect("a directory");
    let der =
        |name: &str| CertificateDer::from_pem_file(folder.path().join(format!("{name}.pem"))).expect("PEM");
    let mut authority = SigningAuthority::new(folder.path());
    authority.stand_alone("other");
    authority.issue("leaf", "ec");
    authority.issue_with("delegate", "ec", "extendedKeyUsage=OCSPSigning\n");
    authority.issue_with("plain", "ec", "extendedKeyUsage=serverAuth\n");
    let (leaf, others) = (der("leaf"), [der("other"), der("ca")]);
    assert_eq!(responder(&leaf), Some(authority.responder.url()));
    let issuer = CertificateIssuer::of(&leaf, &others).expect("there");
    assert!(CertificateIssuer::of(&leaf, &[others[0].clone(), leaf.clone()]).is_none());
    let question = OcspQuestion::about(&leaf, &issuer).expect("readable");
    let week = WEEK.arguments;
    for (word, signer, arguments, expected) in [
        (Word::Good, "ca", week, Ok(true)),
        (Word::Good, "ca", &[][..], Ok(false)),
        (Word::Good, "delegate", week, Ok(true)),
        (Word::Good, "ca", &["-ndays", "7", "-resp_key_id"], Ok(true)),
        (Word::Revoked, "ca", week, Err(OcspFailure::Revoked)),
        (Word::Unknown, "ca", week, Err(OcspFailure::Unknown)),
        (Word::Good, "plain", week, Err(OcspFailure::Unsigned)),
        (Word::Good, "other", week, Err(OcspFailure::Unsigned)),
    ] {
        let answer = authority.respond(&question.request, word, &Signing { signer, arguments });
        let now = clock::wall().seconds;
        let judged = question.judge(&answer, &issuer, now);
        assert_eq!(judged.clone().map(|until| until.is_some()), expected, "{word:?} {signer} {arguments:?}");
        let Ok(Some(until)) = judged else { continue };
        assert!((until - now - 7 * 24 * 60 * 60).abs() < 60);
        for then in [now - 3600, until + 3600] {
            // A delegate was not there an hour ago.
            let is_before = signer == "delegate" && then < now;
            let expected = if is_before { OcspFailure::Unsigned } else { OcspFailure::OutOfTime };
            assert_eq!(question.judge(&answer, &issuer, then), Err(expected));
        }
    }
    let answer = authority.respond(&question.request, Word::Good, &WEEK);
    let now = clock::wall().seconds;
    for at in 0..answer.len() {
        let mut changed = answer.clone();
        changed[at] ^= 1;
        let judged = question.judge(&changed, &issuer, now);
        // Nothing signs the certificates that come along, nor how the signature was made.
        assert!(judged.is_err() || judged == question.judge(&answer, &issuer, now), "byte {at}");
        assert!(question.judge(&answer[..at], &issuer, now).is_err(), "cut at {at}");
    }
    let about_another = OcspQuestion::about(&der("delegate"), &issuer).expect("readable");
    assert_eq!(about_another.judge(&answer, &issuer, now), Err(OcspFailure::OfAnother));
}

#[test]
fn a_certificate_whose_serial_number_is_negative_or_longer_than_the_standard_allows_is_asked_about() {
    let key = rcgen::KeyPair::generate().expect("a key");
    for serial in [[0x7f; 40], [0x90; 40]] {
        let mut parameters = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).expect("a name");
        parameters.serial_number = Some(rcgen::SerialNumber::from_slice(&serial));
        let certificate = parameters.self_signed(&key).expect("signed");
        let mut leaf = certificate.der().to_vec();
        // A number with the highest bit set has a zero before it; any other byte there makes it negative.
        let at = leaf.windows(serial.len()).position(|window| window == serial).expect("there");
        if leaf[at - 1] == 0 {
            leaf[at - 1] = 0x90;
        }
        let leaf = CertificateDer::from(leaf);
        let issuer = CertificateIssuer::of(certificate.der(), [certificate.der()]).expect("itself");
        let question = OcspQuestion::about(&leaf, &issuer).expect("readable");
        assert!(question.request.windows(serial.len()).any(|window| window == serial));
    }
}
