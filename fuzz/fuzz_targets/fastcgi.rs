//! Any bytes as an application's records, and as the head of its answer: no panic, and the same text, end and error however
//! they are cut.
//!
//! The first byte of the input is the size of the pieces the rest is given in.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream_wire::fastcgi::Records;
use millstream_wire::h1::head::{HeadLimits, Progress, ResponseHead};

fn undone(bytes: &[u8], size: usize) -> (Vec<u8>, Records) {
    let (mut records, mut text) = (Records::default(), Vec::new());
    for piece in bytes.chunks(size) {
        let from = text.len();
        text.extend_from_slice(piece);
        records.undo(&mut text, from);
    }
    (text, records)
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, bytes)) = input.split_first() else { return };
    let (whole, one) = undone(bytes, bytes.len().max(1));
    let (parted, other) = undone(bytes, usize::from(size).max(1));
    assert_eq!(whole, parted);
    assert_eq!(one.is_ended(), other.is_ended());
    assert_eq!((one.is_at_rest(), one.complaints()), (other.is_at_rest(), other.complaints()));
    assert!(whole.len() + one.complaints().len() <= bytes.len());
    for text in [&whole[..], bytes] {
        let limits = HeadLimits { line: 4096, total: 4096, fields: 100 };
        let mut head = ResponseHead::default();
        if let Ok(Progress::Complete) = head.parse_cgi(text, &limits) {
            assert!((200..1000).contains(&head.status) && head.length <= text.len());
        }
        // With a status line or without one, in one piece or byte by byte.
        let (mut whole, mut parted) = (ResponseHead::default(), ResponseHead::default());
        let expected = whole.parse_application(text, &limits);
        let mut ends = (1..=text.len()).take(5000).map(|end| parted.parse_application(&text[..end], &limits));
        let ended = ends.find(|outcome| !matches!(outcome, Ok(Progress::Partial)));
        match ended {
            Some(Ok(Progress::Complete)) => {
                assert_eq!(expected, Ok(Progress::Complete));
                assert_eq!((whole.status, whole.length), (parted.status, parted.length));
            }
            Some(outcome) => assert!(outcome.is_err() && expected.is_err()),
            None => assert!(expected == Ok(Progress::Partial) || text.len() > 5000),
        }
    }
});
