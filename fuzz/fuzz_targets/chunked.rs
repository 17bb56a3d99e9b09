//! Any bytes as a chunked body: no panic, always progress, and the same outcome however they are cut.
//!
//! The first byte of the input is the size of the pieces the rest is given in. A body that is accepted, written
//! anew and read again gives the same content.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream_wire::h1::chunked::{ChunkedError, Decoder, Event};
use millstream_wire::h1::encode;

struct Body {
    content: Vec<u8>,
    consumed: usize,
    ended: bool,
}

fn decode(bytes: &[u8], piece: usize) -> Result<Body, ChunkedError> {
    let mut decoder = Decoder::new(256);
    let mut body = Body { content: Vec::new(), consumed: 0, ended: false };
    for piece in bytes.chunks(piece) {
        let mut rest = piece;
        loop {
            let (consumed, event) = decoder.decode(rest)?;
            rest = &rest[consumed..];
            body.consumed += consumed;
            match event {
                Event::Data(data) => {
                    assert!(!data.is_empty());
                    body.content.extend_from_slice(data);
                }
                Event::More => {
                    assert!(rest.is_empty());
                    break;
                }
                Event::End => {
                    body.ended = true;
                    return Ok(body);
                }
            }
        }
    }
    Ok(body)
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, bytes)) = input.split_first() else { return };
    let whole = decode(bytes, bytes.len().max(1));
    let parted = decode(bytes, usize::from(size).max(1));
    let (whole, parted) = match (whole, parted) {
        (Ok(whole), Ok(parted)) => (whole, parted),
        (whole, parted) => {
            assert_eq!(whole.err(), parted.err());
            return;
        }
    };
    assert_eq!(
        (&whole.content, whole.consumed, whole.ended),
        (&parted.content, parted.consumed, parted.ended)
    );
    if !whole.ended {
        return;
    }
    let mut again = Vec::new();
    for chunk in whole.content.chunks(usize::from(size).max(1)) {
        encode::chunk_head(&mut again, chunk.len());
        again.extend_from_slice(chunk);
        again.extend_from_slice(b"\r\n");
    }
    again.extend_from_slice(encode::LAST_CHUNK);
    let again = decode(&again, 7).unwrap_or_else(|error| panic!("our own chunks are refused: {error:?}"));
    assert!(again.ended && again.content == whole.content);
});
