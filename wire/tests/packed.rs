//! Packed field lines read like those they were made from, and damaged ones end the walk.

use millstream_wire::packed::{append, length};
use millstream_wire::{FieldId, Fields, Headers};

fn packed(headers: &Headers) -> Vec<u8> {
    let mut out = Vec::new();
    headers.view().iter().for_each(|(id, name, value)| append(id, name, value, &mut out));
    out
}

#[test]
fn what_is_packed_reads_like_what_it_was_made_from() {
    let mut headers = Headers::new();
    headers.push(b"Content-Type", b"text/plain");
    headers.push(b"content-type", b"written otherwise");
    headers.push(b"X-Other", b"");
    headers.push(b"ETag", &vec![b'e'; 20_000]);
    headers.push(&[b'n'; 300], b"long name");
    let bytes = packed(&headers);
    let expected: usize = headers.view().iter().map(|(id, name, value)| length(id, name, value)).sum();
    assert_eq!(bytes.len(), expected);
    let view = Fields::packed(&bytes);
    assert!(view.iter().eq(headers.view().iter()));
    assert_eq!(view.len(), 5);
    assert_eq!(view.get(FieldId::ContentType), Some(&b"text/plain"[..]));
    assert_eq!(view.all(FieldId::ContentType).count(), 2);
    assert_eq!(view.named(b"x-other"), Some(&b""[..]));
    assert!(view.has(FieldId::ETag) && !view.has(FieldId::Age) && !view.is_empty());
    assert!(Fields::packed(&[]).is_empty());
}

#[test]
fn a_usual_line_takes_three_bytes_beside_its_value() {
    let mut headers = Headers::new();
    headers.push(b"Cache-Control", b"max-age=60");
    assert_eq!(packed(&headers).len(), 3 + 10);
}

#[test]
fn no_bytes_make_the_walk_fail() {
    for bytes in [&[0xff][..], &[1, 0x80], &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], &[0, 3, 100, b'a']] {
        assert!(Fields::packed(bytes).iter().all(|(_, _, value)| value.is_empty()));
    }
}
