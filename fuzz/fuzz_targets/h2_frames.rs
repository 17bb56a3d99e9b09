//! Any bytes as frames of HTTP/2: no panic, the same frames however the bytes are cut, and nothing past a frame's end.
//!
//! The first byte of the input chooses where the bytes are cut in two. Settings and increments go into the values that
//! keep them, which must stay within their bounds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream_wire::h2::frame::{Frame, FrameHead, HEAD_LENGTH};
use millstream_wire::h2::priority::Priority;
use millstream_wire::h2::read::{FrameError, check_head, read};
use millstream_wire::h2::settings::{PeerSettings, Side};
use millstream_wire::h2::window::{LARGEST, Window};

const MAX_FRAME_SIZE: u32 = 256;

fuzz_target!(|input: &[u8]| {
    let Some((&cut, bytes)) = input.split_first() else { return };
    let cut = usize::from(cut).min(bytes.len());
    let whole = read(bytes, MAX_FRAME_SIZE);
    let part = read(&bytes[..cut], MAX_FRAME_SIZE);
    assert!(part == Ok(None) || part == whole);

    let mut peer = PeerSettings::default();
    let mut window = Window::new(peer.initial_window_size);
    let mut rest = bytes;
    loop {
        let head = FrameHead::peek(rest);
        let consumed = match read(rest, MAX_FRAME_SIZE) {
            Ok(Some((frame, consumed))) => {
                check(&frame, &mut peer, &mut window);
                consumed
            }
            Ok(None) => return,
            Err(FrameError::Stream { stream, consumed, .. }) => {
                assert!(stream != 0);
                consumed
            }
            Err(FrameError::Connection(..)) => return,
        };
        let head = head.expect("a frame has a head");
        assert_eq!(consumed, HEAD_LENGTH + head.length as usize);
        assert_eq!(check_head(&head, MAX_FRAME_SIZE), Ok(()));
        rest = &rest[consumed..];
    }
});

fn check(frame: &Frame<'_>, peer: &mut PeerSettings, window: &mut Window) {
    match *frame {
        Frame::Data { stream, data, flow, .. } => {
            assert!(stream != 0 && data.len() <= flow as usize && flow <= MAX_FRAME_SIZE);
            let before = window.octets();
            match window.consume(flow) {
                Ok(()) => assert_eq!(window.octets(), before - i64::from(flow)),
                Err(_) => assert_eq!(window.octets(), before),
            }
        }
        Frame::Settings { ack, payload } => {
            assert!(!ack || payload.count() == 0);
            if let Ok(shift) = peer.apply(payload, Side::Client) {
                let _ = window.shift(shift);
            }
            assert!(peer.initial_window_size <= LARGEST && peer.max_frame_size >= 16_384);
        }
        Frame::WindowUpdate { increment, .. } => {
            assert!((1..=LARGEST).contains(&increment));
            let _ = window.increase(increment);
        }
        Frame::PriorityUpdate { stream, value } => {
            assert!(stream != 0 && Priority::of(value).urgency <= 7);
        }
        _ => {}
    }
    assert!(window.octets() <= i64::from(LARGEST));
}
