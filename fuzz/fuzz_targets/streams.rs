//! Any bytes as what a server says on a connection of HTTP/2 that the load generator has: no panic, always progress, and the same
//! events however the bytes are cut.
//!
//! The first byte of the input is the size of the pieces. The server's first SETTINGS are given.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream_load::exchange::{Broken, Event, Exchange};
use millstream_load::http2_request::Http2Request;
use millstream_load::multiplex::Multiplex;
use millstream_load::plan::{Expect, Target, Way};
use std::sync::Arc;

fn events(bytes: &[u8], piece: usize, target: &Target) -> (Vec<Event>, Option<Broken>) {
    let (mut streams, mut events, asked) = (Multiplex::default(), Vec::new(), |_| target);
    streams.greet();
    let greeted = streams.read(&[0, 0, 0, 4, 0, 0, 0, 0, 0], &asked, &mut (), 0);
    assert_eq!(greeted, Ok((9, Some(Event::Greeted(u32::MAX)))));
    (0..4).for_each(|number| streams.open(number % 2, target));
    // All that is asked is out before anything comes: bodies take of their windows as they go.
    let length = streams.unsent(&asked, &mut ()).len();
    streams.sent(length, &asked);
    for piece in bytes.chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            match streams.read(rest, &asked, &mut (), 0) {
                Ok((consumed, event)) => {
                    assert!(consumed > 0 && (event.is_some() || consumed == rest.len()));
                    rest = &rest[consumed..];
                    events.extend(event);
                }
                Err(broken) => return (events, Some(broken)),
            }
            let length = streams.unsent(&asked, &mut ()).len();
            streams.sent(length, &asked);
        }
    }
    (events, None)
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, bytes)) = input.split_first() else { return };
    let request: Arc<[u8]> = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"[..].into();
    let target = Target {
        url: String::new(),
        addresses: Vec::new(),
        tls: None,
        way: Way::default(),
        http2: Some(Arc::new(Http2Request::of(&request, false).expect("it is a request"))),
        request,
        is_head: false,
        expect: Expect { body: Some(b"abc"[..].into()), ..Expect::default() },
    };
    let whole = events(bytes, bytes.len().max(1), &target);
    assert_eq!(whole, events(bytes, usize::from(size).max(1), &target));
});
