//! Records written and undone, in whatever pieces they come.

use super::encode::{self, begin, header, pair, stream};
use super::{Kind, RecordError, Records};

fn record(kind: Kind, content: &[u8], padding: u8) -> Vec<u8> {
    let mut record = header(kind, content.len()).to_vec();
    record[6] = padding;
    record.extend_from_slice(content);
    record.resize(record.len() + usize::from(padding), 0xee);
    record
}

/// The text that results from bytes in pieces of a size, after what the buffer already has.
fn undone(bytes: &[u8], size: usize) -> (Vec<u8>, Records) {
    let (mut records, mut buffer) = (Records::default(), b"before ".to_vec());
    for piece in bytes.chunks(size) {
        let from = buffer.len();
        buffer.extend_from_slice(piece);
        records.undo(&mut buffer, from);
    }
    assert!(buffer.starts_with(b"before "));
    (buffer.split_off(7), records)
}

#[test]
fn an_answer_is_one_text_however_its_records_are_cut() {
    let answer = [
        record(Kind::Stderr, b"PHP message: ", 3),
        record(Kind::Stdout, b"Content-Type: te", 0),
        record(Kind::Stderr, b"oh", 0),
        record(Kind::Stdout, b"xt/plain\r\n\r\nhello", 255),
        record(Kind::Stdout, b"", 0),
        record(Kind::EndRequest, &[0; 8], 1),
    ]
    .concat();
    for size in [1, 2, 3, 7, 8, 9, 100, answer.len()] {
        let (text, mut records) = undone(&answer, size);
        assert_eq!(text, b"Content-Type: text/plain\r\n\r\nhello", "{size}");
        assert_eq!((records.is_ended(), records.is_at_rest()), (Ok(true), true), "{size}");
        assert_eq!(records.take_complaints(), b"PHP message: oh", "{size}");
        assert!(records.complaints().is_empty());
    }
}

#[test]
fn an_answer_is_at_rest_only_once_its_last_byte_has_come() {
    let answer = [record(Kind::Stdout, b"x", 0), record(Kind::EndRequest, &[0; 8], 2)].concat();
    for cut in 0..answer.len() {
        assert!(!undone(&answer[..cut], 5).1.is_at_rest(), "{cut}");
    }
    assert!(undone(&answer, 5).1.is_at_rest());
    let more = [&answer[..], b"\x01"].concat();
    assert!(!undone(&more, 5).1.is_at_rest(), "nobody asked for more");
}

#[test]
fn text_before_a_bad_record_is_given_and_nothing_behind_it() {
    let good = record(Kind::Stdout, b"text", 0);
    let check = |bad: &[u8], expected: RecordError| {
        let bytes = [&good[..], bad, &good].concat();
        for size in [1, 64] {
            let (text, records) = undone(&bytes, size);
            assert_eq!((&text[..], records.is_ended()), (&b"text"[..], Err(expected)));
            assert!(!records.is_at_rest());
        }
    };
    check(&[2, 6, 0, 1, 0, 0, 0, 0], RecordError::Version(2));
    check(b"HTTP/1.1", RecordError::Version(b'H'));
    check(&[1, 6, 0, 2, 0, 0, 0, 0], RecordError::Request(2));
    check(&[1, 9, 0, 1, 0, 0, 0, 0], RecordError::Kind(9));
}

#[test]
fn what_comes_after_the_end_is_dropped_and_the_answer_stands() {
    let end = record(Kind::EndRequest, &[0; 8], 0);
    let (text, closed) = (record(Kind::Stdout, b"text", 0), record(Kind::Stdout, b"", 0));
    for (answer, case) in [
        ([&text[..], &closed, &end, &text].concat(), "text after the last record"),
        ([&text[..], &closed, &text, &end].concat(), "text after its end"),
        ([&text[..], &closed, &end, b"HTTP/1.1"].concat(), "anything else after the last record"),
    ] {
        for size in [1, 5, answer.len()] {
            let (text, records) = undone(&answer, size);
            assert_eq!((&text[..], records.is_ended()), (&b"text"[..], Ok(true)), "{case}, {size}");
            assert!(!records.is_at_rest(), "{case}, {size}");
        }
    }
}

#[test]
fn what_an_application_complains_of_is_bounded() {
    let flood = record(Kind::Stderr, &[b'x'; 60_000], 0).repeat(20);
    let (text, records) = undone(&flood, 4096);
    assert!(text.is_empty() && records.complaints().len() == 8192);
    assert_eq!(records.is_ended(), Ok(false));
}

#[test]
fn parameters_have_lengths_of_one_byte_or_of_four() {
    let check = |name: usize, value: usize, lengths: &[u8]| {
        let mut out = Vec::new();
        pair(&mut out, &vec![b'n'; name], &vec![b'v'; value]);
        assert_eq!(&out[..lengths.len()], lengths);
        assert_eq!(out.len(), lengths.len() + name + value);
    };
    check(3, 0, &[3, 0]);
    check(127, 127, &[127, 127]);
    check(128, 1, &[0x80, 0, 0, 128, 1]);
    check(1, 70_000, &[1, 0x80, 1, 0x11, 0x70]);
}

#[test]
fn a_request_begins_and_its_streams_end_as_the_protocol_says() {
    let mut out = Vec::new();
    begin(&mut out, true);
    assert_eq!(out, [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]);
    out.clear();
    stream(&mut out, Kind::Params, b"");
    assert_eq!(out, [1, 4, 0, 1, 0, 0, 0, 0]);
    out.clear();
    stream(&mut out, Kind::Stdin, &vec![b'x'; encode::MOST + 1]);
    assert_eq!(out.len(), 8 + encode::MOST + 8 + 1 + 8);
    assert_eq!(&out[..6], [1, 5, 0, 1, 0xff, 0xff]);
    assert_eq!(&out[8 + encode::MOST..][..9], [1, 5, 0, 1, 0, 1, 0, 0, b'x']);
    assert_eq!(&out[out.len() - 8..], [1, 5, 0, 1, 0, 0, 0, 0]);
}
