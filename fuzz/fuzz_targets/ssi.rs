//! Any bytes as an answer with commands of SSI: no panic, always progress, and the same is found however the answer is cut.
//!
//! The first byte of the input is the size of the pieces that the rest is given in.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream_server::filter::ssi::parser::{Fragment, Parser, WrittenCommand};

const LONGEST: usize = 64;

/// Text, commands in their order with their place in it, and how many were wrong.
fn parsed(bytes: &[u8], piece: usize) -> (Vec<u8>, Vec<(usize, WrittenCommand)>, usize) {
    let (mut parser, mut text, mut commands, mut wrong) = (Parser::new(LONGEST), Vec::new(), Vec::new(), 0);
    for piece in bytes.chunks(piece) {
        let mut rest = piece;
        while let Some(found) = parser.next(&mut rest) {
            match found {
                Fragment::Text(found) => text.extend_from_slice(found),
                Fragment::Wrong(_) => wrong += 1,
                Fragment::Command(written) => {
                    for (name, value) in &written.parameters {
                        assert!(name.len() <= 16 && value.len() <= LONGEST);
                    }
                    assert!(written.name.len() <= 16 && written.parameters.len() <= 16);
                    commands.push((text.len(), written));
                }
            }
        }
        assert!(rest.is_empty());
    }
    text.extend_from_slice(parser.end());
    assert!(text.len() <= bytes.len());
    (text, commands, wrong)
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, bytes)) = input.split_first() else { return };
    let whole = parsed(bytes, bytes.len().max(1));
    assert_eq!(parsed(bytes, usize::from(size).max(1)), whole);
});
