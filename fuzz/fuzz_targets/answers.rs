//! Any bytes as answers on a connection of the load generator: no panic, always progress, and the same answers however
//! the bytes are cut and whatever head the thread remembers.
//!
//! The first byte of the input is the size of the pieces; its lowest bit says whether the requests were HEAD.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream_load::exchange::{Broken, Event, Exchange};
use millstream_load::pipeline::{LastHead, Pipeline};
use millstream_load::plan::{Expect, Target, Way};

fn read(bytes: &[u8], piece: usize, is_head: bool, last: &mut LastHead) -> (Vec<Event>, Option<Broken>) {
    let target = Target {
        url: String::new(),
        addresses: Vec::new(),
        tls: None,
        way: Way::default(),
        request: b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"[..].into(),
        http2: None,
        is_head,
        expect: Expect { body: Some(b"abc"[..].into()), ..Expect::default() },
    };
    let (mut pipeline, mut events, asked) = (Pipeline::default(), Vec::new(), |_| &target);
    // More requests than are answered, all of which have gone out.
    (0..=bytes.len()).for_each(|_| pipeline.open(0, &target));
    while pipeline.is_held_up() {
        let length = pipeline.unsent(&asked, last).len();
        pipeline.sent(length, &asked);
    }
    for piece in bytes.chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            match pipeline.read(rest, &asked, last, 1) {
                Ok((consumed, event)) => {
                    assert!(consumed > 0 && (event.is_some() || consumed == rest.len()));
                    rest = &rest[consumed..];
                    events.extend(event);
                }
                Err(broken) => return (events, Some(broken)),
            }
        }
    }
    events.extend(pipeline.end().map(|answer| Event::Answered(0, answer)));
    (events, None)
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, bytes)) = input.split_first() else { return };
    let is_head = size & 1 == 1;
    let mut last = LastHead::default();
    let whole = read(bytes, bytes.len().max(1), is_head, &mut last);
    let parted = read(bytes, usize::from(size).max(1), is_head, &mut last);
    assert_eq!(whole, parted);
    assert_eq!(whole, read(bytes, bytes.len().max(1), is_head, &mut last));
});
