//! Any bytes as the head of a request or an answer: no panic, and the same outcome however they are cut.
//!
//! The first byte of the input chooses where the bytes are cut in two. What is accepted must keep its promises:
//! spans lie within the head, names are tokens, values have no control bytes, the host is valid.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream_wire::h1::framing;
use millstream_wire::h1::head::{HeadLimits, Progress, RequestHead, ResponseHead};
use millstream_wire::{Method, host, octets, target};

const LIMITS: HeadLimits = HeadLimits { line: 64, total: 200, fields: 6 };

fuzz_target!(|input: &[u8]| {
    let Some((&cut, bytes)) = input.split_first() else { return };
    let cut = usize::from(cut).min(bytes.len());

    let mut whole = RequestHead::default();
    let outcome = whole.parse(bytes, &LIMITS);
    let mut parted = RequestHead::default();
    let outcome_parted = match parted.parse(&bytes[..cut], &LIMITS) {
        Ok(Progress::Partial) => parted.parse(bytes, &LIMITS),
        earlier => earlier,
    };
    assert_eq!(outcome, outcome_parted);
    if outcome == Ok(Progress::Complete) {
        check_request(&whole, bytes);
        assert_eq!((whole.length, &whole.fields), (parted.length, &parted.fields));
    }

    let mut whole = ResponseHead::default();
    let outcome = whole.parse(bytes, &LIMITS);
    let mut parted = ResponseHead::default();
    let outcome_parted = match parted.parse(&bytes[..cut], &LIMITS) {
        Ok(Progress::Partial) => parted.parse(bytes, &LIMITS),
        earlier => earlier,
    };
    assert_eq!(outcome, outcome_parted);
    if outcome == Ok(Progress::Complete) {
        assert!((100..=999).contains(&whole.status));
        let _ = framing::response(Method::Get, whole.version, whole.status, whole.view(bytes));
    }
});

fn check_request(head: &RequestHead, bytes: &[u8]) {
    assert!(head.length <= bytes.len());
    assert!(octets::is_token(head.method_text.of(bytes)));
    for (_, name, value) in head.view(&bytes[..head.length]).iter() {
        assert!(octets::is_token(name));
        assert!(octets::is_value(value));
    }
    if let Some(text) = head.host_text(bytes) {
        assert!(host::validate(text).is_ok());
    }
    let mut origin = Vec::new();
    head.write_origin_form(bytes, &mut origin);
    assert!(origin.iter().all(|&byte| byte.is_ascii_graphic() && byte != b'#'));
    let mut normal = Vec::new();
    let _ = target::normalise(head.path.of(bytes), true, &mut normal);
    let _ = framing::request(head.version, head.view(bytes));
}
