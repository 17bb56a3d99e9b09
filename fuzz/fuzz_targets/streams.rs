//! Any bytes as what a server says on a connection of HTTP/2 that the load generator has: no panic, always progress, and the same
//! events however the bytes are cut.
//!
//! The first byte of the input is the size of the pieces. The server's first SETTINGS are given.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream_load::exchange::Awaited;
use millstream_load::http2_request::Http2Request;
use millstream_load::multiplex::{AskedAlike, Broken, Event, Multiplex};
use std::sync::Arc;

fn events(bytes: &[u8], piece: usize, asked: &AskedAlike<'_>) -> (Vec<Event>, Option<Broken>) {
    let (mut streams, mut events) = (Multiplex::new(), Vec::new());
    let greeted = streams.read(&[0, 0, 0, 4, 0, 0, 0, 0, 0], asked, 0);
    assert_eq!(greeted, Ok((9, Some(Event::Greeted))));
    (0..4).for_each(|target| streams.open(target % 2, &asked.request));
    // All that is asked is out before anything comes: bodies take of their windows as they go.
    let length = streams.unsent(asked).len();
    streams.sent(length);
    for piece in bytes.chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            match streams.read(rest, asked, 0) {
                Ok((consumed, event)) => {
                    assert!(consumed > 0 && (event.is_some() || consumed == rest.len()));
                    rest = &rest[consumed..];
                    events.extend(event);
                }
                Err(broken) => return (events, Some(broken)),
            }
            let length = streams.unsent(asked).len();
            streams.sent(length);
        }
    }
    (events, None)
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, bytes)) = input.split_first() else { return };
    let text = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello";
    let request = Arc::new(Http2Request::of(&Arc::from(&text[..]), false).expect("it is a request"));
    let asked = AskedAlike { request, awaited: Awaited { is_head: false, body: Some(b"abc") } };
    let whole = events(bytes, bytes.len().max(1), &asked);
    assert_eq!(whole, events(bytes, usize::from(size).max(1), &asked));
});
