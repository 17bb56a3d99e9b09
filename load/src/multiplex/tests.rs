//! The state machine on bytes, without sockets.

use super::*;
use crate::exchange::{Answer, Fault};
use crate::report::samples;
use millstream_wire::h2::frame::Frame;
use millstream_wire::h2::read::read;
use std::sync::Arc;

/// A request with a body, whose answer is to be "abc".
fn asked(body: &str) -> Target {
    let length = body.len();
    let text = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}");
    let request = Http2Request::of(&Arc::from(text.as_bytes()), false).expect("it is a request");
    let mut target = samples::plan().targets.remove(0);
    (target.http2, target.expect.body) = (Some(Arc::new(request)), Some(Arc::from(&b"abc"[..])));
    target
}

fn greeting(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    write::settings(&mut out, settings);
    out
}

/// A head with this status.
fn head(out: &mut Vec<u8>, stream: u32, status: u16, end: bool) {
    let mut block = Vec::new();
    encoder::status(&mut block, status);
    write::headers(out, stream, &block, end, 16_384);
}

fn data(out: &mut Vec<u8>, stream: u32, bytes: &[u8], end: bool) {
    write::data_head(out, stream, bytes.len() as u32, end);
    out.extend_from_slice(bytes);
}

/// The events of all bytes, which come in pieces of this size.
fn events(streams: &mut Multiplex, bytes: &[u8], piece: usize, asked: &Target) -> Result<Vec<Event>, Broken> {
    let mut found = Vec::new();
    for piece in bytes.chunks(piece) {
        let mut at = 0;
        while at < piece.len() {
            let (read, event) = streams.read(&piece[at..], &|_| asked, &mut (), 7)?;
            at += read;
            found.extend(event);
        }
    }
    Ok(found)
}

/// A connection that was greeted with these settings, with so many streams, and nothing left to send.
fn with_streams(settings: &[(u16, u32)], count: usize, asked: &Target) -> Multiplex {
    let mut streams = Multiplex::default();
    assert!(!streams.greet());
    assert!(!streams.has_room(1), "the server's settings come first");
    let found = events(&mut streams, &greeting(settings), 3, asked);
    let allowed = settings.iter().find(|(name, _)| *name == settings::MAX_CONCURRENT_STREAMS);
    assert_eq!(found, Ok(vec![Event::Greeted(allowed.map_or(u32::MAX, |(_, value)| *value))]));
    assert!(streams.greet());
    (0..count).for_each(|_| streams.open(0, asked));
    let length = streams.unsent(&|_| asked, &mut ()).len();
    assert_eq!(streams.sent(length, &|_| asked), count);
    streams
}

fn answered(place: usize, status: u16, body: u64, is_body_right: bool) -> Event {
    Event::Answered(place, Answer { status, is_persistent: true, is_body_right, body, first_byte: 7 })
}

#[test]
fn answers_come_in_any_order_however_their_bytes_are_cut() {
    let asked = asked("");
    let mut bytes = Vec::new();
    head(&mut bytes, 3, 103, false);
    head(&mut bytes, 3, 200, false);
    head(&mut bytes, 1, 200, false);
    data(&mut bytes, 3, b"ab", false);
    data(&mut bytes, 1, b"abd", true);
    data(&mut bytes, 3, b"c", false);
    let mut trailers = Vec::new();
    encoder::field(&mut trailers, b"x-sum", b"1");
    write::headers(&mut bytes, 3, &trailers, true, 16_384);
    head(&mut bytes, 5, 404, true);
    let expected = vec![answered(0, 200, 3, false), answered(0, 200, 3, true), answered(0, 404, 0, false)];
    for piece in [1, 2, 5, 9, 10, 1000] {
        let mut streams = with_streams(&[], 3, &asked);
        assert_eq!(events(&mut streams, &bytes, piece, &asked), Ok(expected.clone()), "{piece}");
    }
}

#[test]
fn a_goaway_gives_the_newest_back_and_waits_for_the_others() {
    let asked = asked("");
    let mut streams = with_streams(&[], 3, &asked);
    let mut bytes = Vec::new();
    write::goaway(&mut bytes, 1, ErrorCode::NoError, b"");
    head(&mut bytes, 1, 204, true);
    let expected = vec![Event::GoneAway { unanswered: 2, is_first: true }, answered(0, 204, 0, false)];
    assert_eq!(events(&mut streams, &bytes, 4, &asked), Ok(expected));
    assert!(streams.is_ending() && !streams.has_room(9));
}

#[test]
fn no_more_streams_are_opened_than_the_server_allows() {
    let asked = asked("");
    let mut streams = with_streams(&[(settings::MAX_CONCURRENT_STREAMS, 3)], 2, &asked);
    assert!(streams.has_room(20));
    streams.open(0, &asked);
    assert!(!streams.has_room(20));
}

#[test]
fn a_body_goes_out_as_the_windows_open() {
    let asked = asked("hello");
    let mut streams = with_streams(&[(settings::INITIAL_WINDOW_SIZE, 2)], 1, &asked);
    let mut bytes = Vec::new();
    write::window_update(&mut bytes, 1, 100);
    assert_eq!(events(&mut streams, &bytes, 100, &asked), Ok(Vec::new()));
    let sent = streams.unsent(&|_| &asked, &mut ()).to_vec();
    let frame = read(&sent, 16_384).expect("it is a frame").map(|(frame, _)| frame);
    assert_eq!(frame, Some(Frame::Data { stream: 1, data: b"llo", flow: 3, end: true }));
}

#[test]
fn a_request_again_is_a_few_octets_unless_the_server_has_no_table() {
    let asked = asked("");
    for (size, is_short) in [(4096, true), (0, false)] {
        let mut streams = with_streams(&[(settings::HEADER_TABLE_SIZE, size)], 1, &asked);
        streams.open(0, &asked);
        let length = streams.unsent(&|_| &asked, &mut ()).len();
        assert_eq!(length < 9 + 8, is_short, "{length}");
    }
}

#[test]
fn what_a_server_may_not_send_is_named() {
    let asked = asked("");
    let of = |make: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        make(&mut bytes);
        events(&mut with_streams(&[], 1, &asked), &bytes, 1000, &asked)
    };
    let broken = |code, what| Err(Broken(code, what));
    assert_eq!(
        of(&|out| head(out, 3, 200, true)),
        broken(ErrorCode::ProtocolError, "a frame on a stream that is not open")
    );
    assert_eq!(
        of(&|out| out.extend_from_slice(&[0, 0, 1, 1, 5, 0, 0, 0, 1, 0xff])),
        broken(ErrorCode::CompressionError, "an invalid integer in a header block")
    );
    assert_eq!(
        of(&|out| data(out, 1, b"x", true)),
        Ok(vec![Event::Failed(0, Fault::Malformed("a body without a head"))])
    );
    assert_eq!(
        of(&|out| write::reset(out, 1, ErrorCode::RefusedStream)),
        Ok(vec![Event::Failed(0, Fault::Reset(ErrorCode::RefusedStream))])
    );
    let said = events(&mut Multiplex::default(), b"HTTP/1.1 400 Bad Request\r\n\r\n", 100, &asked);
    assert_eq!(said, broken(ErrorCode::Http11Required, "an HTTP/1 response"));
}
