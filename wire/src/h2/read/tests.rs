//! Frames from bytes: a table of those that are wrong, by section, and what is right.

use super::*;
use crate::h2::settings;
use crate::h2::write;
use proptest::prelude::*;

fn framed(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write::frame_head(&mut out, FrameHead { length: payload.len() as u32, kind, flags, stream });
    out.extend_from_slice(payload);
    out
}

fn outcome(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    read(bytes, settings::DEFAULT_MAX_FRAME_SIZE)
}

const ALL: u8 = flag::PADDED | flag::PRIORITY;

#[test]
fn a_frame_that_breaks_a_rule_of_its_own_ends_the_connection() {
    for (section, kind, flags, stream, payload, code) in [
        ("§6.1", kind::DATA, 0, 0, &b"x"[..], ProtocolError),
        ("§6.1", kind::DATA, flag::PADDED, 1, b"", FrameSizeError),
        ("§6.1", kind::DATA, flag::PADDED, 1, b"\x01", ProtocolError),
        ("§6.1", kind::DATA, flag::PADDED, 1, b"\x03ab", ProtocolError),
        ("§6.2", kind::HEADERS, 0, 0, b"\x82", ProtocolError),
        ("§6.2", kind::HEADERS, flag::PADDED, 1, b"", FrameSizeError),
        ("§6.2", kind::HEADERS, flag::PADDED, 1, b"\x02\x82", ProtocolError),
        ("§6.2", kind::HEADERS, flag::PRIORITY, 1, b"\0\0\0\0", FrameSizeError),
        ("§6.2", kind::HEADERS, ALL, 1, b"\0\0\0\0\0", FrameSizeError),
        ("§6.2", kind::HEADERS, ALL, 1, b"\x01\0\0\0\0\0", ProtocolError),
        ("§6.3", kind::PRIORITY, 0, 0, b"\0\0\0\x03\0", ProtocolError),
        ("§6.4", kind::RST_STREAM, 0, 0, b"\0\0\0\x08", ProtocolError),
        ("§6.4", kind::RST_STREAM, 0, 1, b"\0\0\x08", FrameSizeError),
        ("§6.4", kind::RST_STREAM, 0, 1, b"\0\0\0\0\x08", FrameSizeError),
        ("§6.5", kind::SETTINGS, 0, 1, b"", ProtocolError),
        ("§6.5", kind::SETTINGS, flag::ACK, 0, b"\0\x02\0\0\0\0", FrameSizeError),
        ("§6.5", kind::SETTINGS, 0, 0, b"\0\x02\0\0\0", FrameSizeError),
        ("§6.6", kind::PUSH_PROMISE, 0, 0, b"\0\0\0\x02", ProtocolError),
        ("§6.6", kind::PUSH_PROMISE, 0, 1, b"\0\0\0", FrameSizeError),
        ("§6.6", kind::PUSH_PROMISE, flag::PADDED, 1, b"\x01\0\0\0\x02", ProtocolError),
        ("§6.7", kind::PING, 0, 1, b"12345678", ProtocolError),
        ("§6.7", kind::PING, 0, 0, b"1234567", FrameSizeError),
        ("§6.7", kind::PING, flag::ACK, 0, b"123456789", FrameSizeError),
        ("§6.8", kind::GOAWAY, 0, 1, b"\0\0\0\0\0\0\0\0", ProtocolError),
        ("§6.8", kind::GOAWAY, 0, 0, b"\0\0\0\0\0\0\0", FrameSizeError),
        ("§6.9", kind::WINDOW_UPDATE, 0, 0, b"\0\0\0\0", ProtocolError),
        ("§6.9", kind::WINDOW_UPDATE, 0, 0, b"\x80\0\0\0", ProtocolError),
        ("§6.9", kind::WINDOW_UPDATE, 0, 1, b"\0\0\x01", FrameSizeError),
        ("§6.10", kind::CONTINUATION, 0, 0, b"", ProtocolError),
        ("RFC 9218 §7.1", kind::PRIORITY_UPDATE, 0, 1, b"\0\0\0\x01u=1", ProtocolError),
        ("RFC 9218 §7.1", kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0", FrameSizeError),
        ("RFC 9218 §7.1", kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\0u=1", ProtocolError),
    ] {
        let bytes = framed(kind, flags, stream, payload);
        match outcome(&bytes) {
            Err(FrameError::Connection(found, _)) => assert_eq!(found, code, "{section} {bytes:x?}"),
            other => panic!("{section} {bytes:x?}: {other:?}"),
        }
    }
}

#[test]
fn an_error_of_one_stream_says_which_and_how_much_to_go_past() {
    for (section, kind, payload, code) in [
        ("§6.3", kind::PRIORITY, &b"\0\0\0\0"[..], FrameSizeError),
        ("§6.3", kind::PRIORITY, b"\0\0\0\0\0\0", FrameSizeError),
        ("RFC 7540 §5.3.1", kind::PRIORITY, b"\0\0\0\x07\0", ProtocolError),
        ("RFC 7540 §5.3.1", kind::PRIORITY, b"\x80\0\0\x07\0", ProtocolError),
        ("§6.9", kind::WINDOW_UPDATE, b"\x80\0\0\0", ProtocolError),
    ] {
        let mut bytes = framed(kind, 0, 7, payload);
        let length = bytes.len();
        bytes.extend_from_slice(b"the next frame");
        assert_eq!(outcome(&bytes[..length - 1]), Ok(None), "{section}");
        match outcome(&bytes) {
            Err(FrameError::Stream { stream: 7, code: found, consumed, .. }) => {
                assert_eq!((found, consumed), (code, length), "{section}");
            }
            other => panic!("{section}: {other:?}"),
        }
    }
}

#[test]
fn a_frame_that_is_too_large_is_refused_before_its_payload_comes() {
    let head = |length| {
        let mut out = Vec::new();
        write::data_head(&mut out, 1, length, false);
        out
    };
    assert_eq!(outcome(&head(16_384)), Ok(None));
    assert!(matches!(outcome(&head(16_385)), Err(FrameError::Connection(FrameSizeError, _))));
    assert_eq!(outcome(&head(16_385)[..8]), Ok(None));
    assert_eq!(read(&head(16_385), 1 << 20), Ok(None));
}

#[test]
fn what_is_written_is_read() {
    let mut out = Vec::new();
    write::settings(&mut out, &[(settings::ENABLE_PUSH, 0), (settings::INITIAL_WINDOW_SIZE, 1 << 20)]);
    write::settings_ack(&mut out);
    write::ping(&mut out, true, *b"12345678");
    write::goaway(&mut out, 9, ErrorCode::EnhanceYourCalm, b"too much");
    write::reset(&mut out, 5, ErrorCode::Cancel);
    write::window_update(&mut out, 0, 0x7fff_ffff);
    write::data_head(&mut out, 3, 2, true);
    out.extend_from_slice(b"ab");
    write::headers(&mut out, 3, b"0123456789", true, 4);
    write::headers(&mut out, 5, b"", false, 16_384);
    let mut frames = Vec::new();
    let mut rest = &out[..];
    while let Some((frame, consumed)) = outcome(rest).expect("a sound frame") {
        frames.push(frame);
        rest = &rest[consumed..];
    }
    assert!(rest.is_empty());
    let Frame::Settings { ack: false, payload } = frames[0] else { panic!("{:?}", frames[0]) };
    assert_eq!(
        payload.collect::<Vec<_>>(),
        [(settings::ENABLE_PUSH, 0), (settings::INITIAL_WINDOW_SIZE, 1 << 20)]
    );
    let block = |fragment, end_headers| Frame::Continuation { stream: 3, fragment, end_headers };
    let head = |stream, fragment, end_headers, end| Frame::Headers {
        stream,
        fragment,
        end_headers,
        end,
        depends_on_itself: false,
    };
    assert_eq!(
        frames[1..],
        [
            Frame::Settings { ack: true, payload: SettingsPayload::new(b"") },
            Frame::Ping { ack: true, payload: *b"12345678" },
            Frame::GoAway { last: 9, code: ErrorCode::EnhanceYourCalm, debug: b"too much" },
            Frame::Reset { stream: 5, code: ErrorCode::Cancel },
            Frame::WindowUpdate { stream: 0, increment: 0x7fff_ffff },
            Frame::Data { stream: 3, data: b"ab", flow: 2, end: true },
            head(3, &b"0123"[..], false, true),
            block(b"4567", false),
            block(b"89", true),
            head(5, &b""[..], true, false),
        ]
    );
}

#[test]
fn padding_and_priorities_are_taken_off_and_reserved_bits_ignored() {
    for (bytes, expected) in [
        (
            framed(kind::DATA, flag::PADDED | flag::END_STREAM, 1, b"\x02ab\0\0"),
            Frame::Data { stream: 1, data: b"ab", flow: 5, end: true },
        ),
        (
            framed(kind::DATA, flag::PADDED, 1, b"\x02\0\0"),
            Frame::Data { stream: 1, data: b"", flow: 3, end: false },
        ),
        (
            framed(kind::HEADERS, ALL | flag::END_HEADERS, 1, b"\x01\x80\0\0\x03\x10\x82\0"),
            Frame::Headers {
                stream: 1,
                fragment: b"\x82",
                end_headers: true,
                end: false,
                depends_on_itself: false,
            },
        ),
        (
            framed(kind::HEADERS, flag::PRIORITY, 3, b"\x80\0\0\x03\x10"),
            Frame::Headers {
                stream: 3,
                fragment: b"",
                end_headers: false,
                end: false,
                depends_on_itself: true,
            },
        ),
        (
            framed(kind::PUSH_PROMISE, flag::END_HEADERS, 1, b"\x80\0\0\x02\x82"),
            Frame::PushPromise { stream: 1, promised: 2, fragment: b"\x82", end_headers: true },
        ),
        (framed(kind::PRIORITY, 0, 3, b"\0\0\0\x01\x10"), Frame::Priority { stream: 3 }),
        (
            framed(kind::PRIORITY_UPDATE, 0, 0, b"\x80\0\0\x03u=1"),
            Frame::PriorityUpdate { stream: 3, value: b"u=1" },
        ),
        (framed(0xbe, 0xff, 0, b"anything"), Frame::Unknown { kind: 0xbe }),
        (
            framed(kind::RST_STREAM, 0, 0x8000_0001, b"\0\0\x01\0"),
            Frame::Reset { stream: 1, code: ErrorCode::Unknown(256) },
        ),
    ] {
        assert_eq!(outcome(&bytes), Ok(Some((expected, bytes.len()))));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_frame_or_an_error_and_more_of_them_change_nothing(
        kind in 0u8..0x12, flags in any::<u8>(), stream in 0u32..3, payload in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let bytes = framed(kind, flags, stream, &payload);
        let whole = outcome(&bytes);
        for cut in 0..bytes.len() {
            let part = outcome(&bytes[..cut]);
            // A connection error of the head may come early, nothing else.
            prop_assert!(part == Ok(None) || part == whole);
        }
        if let Ok(found) = whole {
            prop_assert_eq!(found.map(|(_, consumed)| consumed), Some(bytes.len()));
        }
    }
}
