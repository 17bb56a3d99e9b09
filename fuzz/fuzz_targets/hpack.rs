//! Any bytes as header blocks of one connection: no panic, bounded memory, and heads that HTTP/1 reads no other way.
//!
//! The bytes are cut into blocks by their own lengths. Every request that comes out is written with an empty line and the
//! version of HTTP/1 and read by its parser, which must find the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream_wire::h1::head::{HeadLimits, Progress, RequestHead};
use millstream_wire::h2::field_rules::decode_trailers;
use millstream_wire::h2::hpack::{HpackDecoder, encoder, huffman};
use millstream_wire::h2::request::decode_request;
use millstream_wire::h2::request_error::RequestError;
use millstream_wire::h2::response::decode_response;
use millstream_wire::{Headers, Version, octets};

const LIMITS: HeadLimits = HeadLimits { line: 200, total: 2000, fields: 20 };

fuzz_target!(|input: &[u8]| {
    let (mut requests, mut responses) = (HpackDecoder::default(), HpackDecoder::default());
    let (mut bytes, mut head, mut headers) = (Vec::new(), RequestHead::default(), Headers::new());
    let mut rest = input;
    while let Some((&length, behind)) = rest.split_first() {
        let (block, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        check_huffman(block);
        match decode_request(&mut requests, block, &mut bytes, &mut head, &LIMITS, true) {
            Ok(extra) if extra.protocol.is_none() => check_as_h1(&head, &bytes),
            Ok(_) => {}
            Err(RequestError::Compression(_)) => break,
            Err(error) => assert!((400..500).contains(&error.status())),
        }
        // All connections see the same blocks, so they agree on which of them can be decoded.
        let _ = decode_response(&mut responses, block, &mut headers, &LIMITS);
        assert_eq!(requests.table_size(), responses.table_size());
        assert!(requests.table_size() <= 4096 && requests.memory() < 5 * 4096);
        for (_, name, value) in headers.view().iter() {
            assert!(octets::is_lower_token(name) && octets::is_value(value));
        }
        check_encoded(&headers);
    }
});

fn check_as_h1(head: &RequestHead, bytes: &[u8]) {
    let mut text = bytes.to_vec();
    let version = head.line.end as usize - 3;
    text[version..version + 3].copy_from_slice(b"1.1");
    text.extend_from_slice(b"\r\n");
    let mut read = RequestHead::default();
    let limits = HeadLimits { total: usize::MAX, ..LIMITS };
    assert_eq!(read.parse(&text, &limits), Ok(Progress::Complete));
    assert_eq!((head.length, read.length), (bytes.len(), text.len()));
    assert_eq!((head.version, read.version), (Version::Http2, Version::Http11));
    assert_eq!((read.method, read.method_text, read.line), (head.method, head.method_text, head.line));
    assert_eq!((read.target, read.target_is_raw), (head.target, head.target_is_raw));
    assert_eq!((read.path, read.query), (head.path, head.query));
    assert_eq!((read.authority, read.host), (head.authority, head.host));
    assert_eq!(read.fields, head.fields);
}

/// What decodes is the only code of what it decodes to.
fn check_huffman(coded: &[u8]) {
    let mut text = Vec::new();
    if huffman::decode(coded, &mut text).is_ok() {
        let mut again = Vec::new();
        huffman::encode(&text, &mut again);
        assert_eq!(again, coded);
        assert_eq!(huffman::encoded_length(&text), coded.len());
    }
}

/// What is encoded decodes to the same fields.
fn check_encoded(headers: &Headers) {
    let mut block = Vec::new();
    headers.view().iter().for_each(|(_, name, value)| encoder::field(&mut block, name, value));
    let decoded = decode_trailers(&mut HpackDecoder::default(), &block, &LIMITS);
    assert_eq!(decoded.as_ref(), Ok(headers));
}
