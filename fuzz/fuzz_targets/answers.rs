//! Any bytes as answers on a connection of the load generator: no panic, always progress, and the same answers however
//! the bytes are cut and whatever head the thread remembers.
//!
//! The first byte of the input is the size of the pieces; its lowest bit says whether the requests were HEAD.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream_load::exchange::{Answer, Awaited, End, Heads, Malformed, Reader};

fn read(bytes: &[u8], piece: usize, is_head: bool, heads: &mut Heads) -> (Vec<Answer>, Result<End, Malformed>) {
    let awaited = Awaited { is_head, body: Some(b"abc") };
    let (mut reader, mut answers) = (Reader::default(), Vec::new());
    for piece in bytes.chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            match reader.read(rest, awaited, heads) {
                Ok((consumed, answer)) => {
                    assert!(consumed > 0 && (answer.is_some() || consumed == rest.len()));
                    rest = &rest[consumed..];
                    answers.extend(answer);
                }
                Err(malformed) => return (answers, Err(malformed)),
            }
        }
    }
    (answers, Ok(reader.end(awaited)))
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, bytes)) = input.split_first() else { return };
    let is_head = size & 1 == 1;
    let mut heads = Heads::default();
    let whole = read(bytes, bytes.len().max(1), is_head, &mut heads);
    let parted = read(bytes, usize::from(size).max(1), is_head, &mut heads);
    assert_eq!(whole, parted);
    assert_eq!(whole, read(bytes, bytes.len().max(1), is_head, &mut heads));
});
