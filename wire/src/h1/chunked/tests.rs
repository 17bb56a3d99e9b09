//! Chunked bodies: good, bad, oversized, and cut anywhere.

use proptest::prelude::*;

use super::*;
use crate::FieldId;
use crate::h1::encode;

/// Content, and how many bytes the body took, or `None` if it has not ended.
type Decoded = Result<(Vec<u8>, Option<usize>), ChunkedError>;

fn decode_with(decoder: &mut Decoder, pieces: &[&[u8]]) -> Decoded {
    let (mut content, mut total) = (Vec::new(), 0);
    for piece in pieces {
        let mut rest = *piece;
        loop {
            let (consumed, event) = decoder.decode(rest)?;
            rest = &rest[consumed..];
            total += consumed;
            match event {
                Event::Data(data) => content.extend_from_slice(data),
                Event::More => break,
                Event::End => return Ok((content, Some(total))),
            }
        }
    }
    Ok((content, None))
}

fn decode(pieces: &[&[u8]]) -> Decoded {
    decode_with(&mut Decoder::new(64), pieces)
}

fn check(body: &str, expected: Decoded) {
    let bytes = body.as_bytes();
    assert_eq!(decode(&[bytes]), expected, "{body:?}");
    for at in 0..=bytes.len() {
        assert_eq!(decode(&[&bytes[..at], &bytes[at..]]), expected, "{body:?} cut at {at}");
    }
    assert_eq!(decode(&bytes.chunks(1).collect::<Vec<_>>()), expected, "{body:?} byte by byte");
}

#[test]
fn good_bodies_are_taken_apart_and_what_follows_is_left() {
    let hello = |length| Ok((b"hello".to_vec(), Some(length)));
    check("5\r\nhello\r\n0\r\n\r\n", hello(15));
    check("5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1", hello(15));
    check("0005\r\nhello\r\n0000\r\n\r\n", hello(21));
    check("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", hello(20));
    check("5;a=b;c=\"d;\\\"\";e\r\nhello\r\n0;x\r\n\r\n", hello(32));
    check("5 ; a = b\r\nhello\r\n0\r\n\r\n", hello(23));
    check("A\r\n0123456789\r\n0\r\nX: y\r\n\r\n", Ok((b"0123456789".to_vec(), Some(26))));
    check("0\r\n\r\n", Ok((Vec::new(), Some(5))));
    check("7fffffffffffffff\r\nhello", Ok((b"hello".to_vec(), None)));
    check("5\r\nhello\r\n0\r\n", Ok((b"hello".to_vec(), None)));
}

#[test]
fn bad_bodies_are_refused_at_any_cut() {
    use ChunkedError::*;
    for (body, error) in [
        ("\r\n", BadSize),
        (" 5\r\nhello\r\n", BadSize),
        ("+5\r\nhello\r\n", BadSize),
        ("0x5\r\nhello\r\n", BadSize),
        ("5,a\r\nhello\r\n", BadSize),
        ("5 5\r\nhello\r\n", BadSize),
        ("g", BadSize),
        (";a\r\n", BadSize),
        ("8000000000000000\r\n", SizeTooLarge),
        ("10000000000000000\r\n", SizeTooLarge),
        ("00000000000000005\r\n", SizeTooLarge),
        ("5\nhello", BadLineEnd),
        ("5\rhello", BadLineEnd),
        ("5\r\nhello\n0\r\n\r\n", BadLineEnd),
        ("5\r\nhello0\r\n\r\n", BadLineEnd),
        ("5\r\nhello\r0", BadLineEnd),
        ("5\r\nhello\n\r", BadLineEnd),
        ("5\r\nhello\r\n\r\n0\r\n", BadSize),
        ("0\r\n\n", BadLineEnd),
        ("0\r\nX: y\n\n", BadLineEnd),
        ("5;a=\rb\r\n", BadLineEnd),
        ("5;a\n", BadExtension),
        ("5;a=\"\r\n\"\r\nhello", BadExtension),
        ("5;a\0\r\n", BadExtension),
        ("0\r\nX : y\r\n\r\n", BadTrailer),
        ("0\r\n folded\r\n\r\n", BadTrailer),
        ("0\r\nX: \0\r\n\r\n", BadTrailer),
        ("0\r\n;\n", BadTrailer),
        (
            "0\r\nX: 01234567890123456789012345678901234567890123456789012345678901234567890123\0\r\n",
            TrailersTooLarge,
        ),
        (
            "0\r\nX: 0123456789012345678901234567890123456789012345678901234567890123\r\n\r\n",
            TrailersTooLarge,
        ),
    ] {
        check(body, Err(error));
    }
}

#[test]
fn trailers_are_kept_but_for_those_that_must_not_be() {
    let mut decoder = Decoder::new(1024);
    let body = b"0\r\nX-Sum: 1\r\nHost: evil\r\nTransfer-Encoding: chunked\r\nX-Forwarded-For: 6.6.6.6\r\netag: \"a\"\r\n\r\n";
    assert!(decoder.trailers().is_empty());
    assert_eq!(decode_with(&mut decoder, &[body]), Ok((Vec::new(), Some(body.len()))));
    let trailers = decoder.trailers();
    assert_eq!((trailers.len(), trailers.named(b"x-sum")), (2, Some(&b"1"[..])));
    assert_eq!(trailers.get(FieldId::ETag), Some(&b"\"a\""[..]));
    assert_eq!(decoder.decode(b"more"), Ok((0, Event::End)));
}

#[test]
fn extensions_are_bounded_by_what_the_content_pays_for() {
    let long = format!("1;a={}\r\nx\r\n", "b".repeat(17 * 1024));
    assert_eq!(decode(&[long.as_bytes()]), Err(ChunkedError::ExtensionsTooLarge));
    let thin = "1;abcdefghijklmnopqrstuvwxyz0123456789\r\nx\r\n".repeat(2000);
    assert_eq!(decode(&[thin.as_bytes()]), Err(ChunkedError::ExtensionsTooLarge));
    let signed =
        format!("3e8;signature=0123456789012345678901234567890123456789\r\n{}\r\n", "x".repeat(1000));
    let many = signed.repeat(2000);
    assert_eq!(decode(&[many.as_bytes()]).map(|(content, _)| content.len()), Ok(2_000_000));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_content_comes_back_however_it_is_chunked_and_cut(
        content in prop::collection::vec(any::<u8>(), 0..300),
        chunk in 1usize..80,
        piece in 1usize..40,
    ) {
        let mut body = Vec::new();
        for chunk in content.chunks(chunk) {
            encode::chunk_head(&mut body, chunk.len());
            body.extend_from_slice(chunk);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(encode::LAST_CHUNK);
        let pieces: Vec<_> = body.chunks(piece).collect();
        prop_assert_eq!(decode(&pieces), Ok((content, Some(body.len()))));
    }

    #[test]
    fn random_bytes_come_to_the_same_end_wherever_they_are_cut(
        pieces in prop::collection::vec(prop::sample::select(
            vec!["0", "5", "a", "\r\n", "\r", "\n", ";", "\"", "\\", " ", "hello", "X: y", "\0", "ffff"]), 0..12),
    ) {
        let body = pieces.concat();
        let whole = decode(&[body.as_bytes()]);
        for at in 0..=body.len() {
            let (first, second) = body.as_bytes().split_at(at);
            prop_assert_eq!(&decode(&[first, second]), &whole, "cut at {}", at);
        }
    }
}
