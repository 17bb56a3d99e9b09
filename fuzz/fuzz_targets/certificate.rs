//! Any bytes as a certificate: no panic, and what is written of it is text on one line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream_net::certificate::{Certificate, Form};

fuzz_target!(|input: &[u8]| {
    let Some(certificate) = Certificate::read(input) else { return };
    let mut out = Vec::new();
    for form in [Form::Commas, Form::Slashes] {
        certificate.write_subject(form, &mut out);
        certificate.write_issuer(form, &mut out);
    }
    certificate.write_serial(&mut out);
    certificate.write_start(&mut out);
    certificate.write_end(&mut out);
    assert!(out.iter().all(|byte| (b' '..=b'~').contains(byte)));
    let days = certificate.days_left(0);
    assert!(certificate.days_left(i64::MAX) == 0 && certificate.days_left(1) <= days);
    assert!(certificate.common_names().count() < input.len());
    certificate.has_alternative_names();
});
