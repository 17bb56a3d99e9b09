//! What streams and their carrier promise, without a socket: windows, turns, bounds, ends.

use super::{BadBody, Beginning, CONNECTION_WINDOW, Carrier, Http2Stream, ROOM};
use crate::outlet::Inlet;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::frame::{Frame, FrameHead, HEAD_LENGTH};
use millstream_wire::h2::priority::Priority;
use millstream_wire::h2::read;
use millstream_wire::h2::settings::PeerSettings;
use millstream_wire::h2::window::BadWindow;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

const WINDOW: u32 = 65_535;

fn carrier(initial_window_size: u32) -> Rc<Carrier> {
    Rc::new(Carrier::new(PeerSettings { initial_window_size, ..PeerSettings::default() }))
}

fn open(carrier: &Rc<Carrier>, id: u32, priority: Priority) -> Rc<Http2Stream> {
    let beginning = Beginning { preread: WINDOW, announced: None, has_ended: false, priority };
    Http2Stream::new(id, carrier.clone(), beginning)
}

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn write(stream: &Http2Stream, length: usize, is_last: bool) -> Poll<usize> {
    stream.poll_write(&mut context(), &[IoSlice::new(&vec![b'x'; length])], is_last)
}

/// Streams with the octets of their bodies and whether they end.
fn framed(carrier: &Carrier) -> Vec<(u32, usize, bool)> {
    let mut bytes = Vec::new();
    carrier.take(&mut bytes);
    let (mut rest, mut found) = (&bytes[..], Vec::new());
    while let Ok(Some((frame, length))) = read::read(rest, 16_384) {
        if let Frame::Data { stream, data, end, .. } = frame {
            found.push((stream, data.len(), end));
        }
        rest = &rest[length..];
    }
    assert!(rest.is_empty());
    found
}

#[test]
fn no_more_is_framed_than_the_client_takes_on_the_stream() {
    let carrier = carrier(100);
    let stream = open(&carrier, 1, Priority::default());
    assert_eq!(write(&stream, 150, true), Poll::Ready(100));
    assert_eq!(write(&stream, 50, true), Poll::Pending);
    assert!(stream.waits_for_peer());
    carrier.wrote(1);
    assert!(!stream.has_moved(), "what others take opens no window");
    assert_eq!(stream.widen(50), Ok(()));
    assert_eq!(write(&stream, 50, true), Poll::Ready(50));
    assert_eq!(framed(&carrier), [(1, 100, false), (1, 50, true)]);
    assert_eq!(write(&stream, 1, true), Poll::Ready(0), "it has ended");
}

#[test]
fn no_more_is_framed_than_the_client_takes_on_the_connection_or_there_is_room_for() {
    let carrier = carrier(1 << 20);
    assert_eq!(carrier.widen(1 << 20), Ok(()));
    let stream = open(&carrier, 1, Priority::default());
    assert_eq!(write(&stream, 2 * ROOM, false), Poll::Ready(ROOM));
    assert_eq!(write(&stream, ROOM, false), Poll::Pending);
    assert!(stream.has_moved());
    assert!(!stream.has_moved(), "nothing was taken meanwhile");
    carrier.wrote(1);
    assert!(stream.has_moved(), "the socket took something");
    assert_eq!(framed(&carrier).len(), ROOM / 16_384);
    assert!(carrier.grant());
    assert_eq!(write(&stream, 1, false), Poll::Ready(1));
}

#[test]
fn a_whole_answer_is_framed_at_once_where_all_of_it_may_be() {
    let carrier = carrier(10);
    assert!(!carrier.whole(1, b"\x88", &[b'x'; 11], u32::MAX), "the stream's window is smaller");
    assert!(carrier.whole(1, b"\x88", &[b'x'; 10], u32::MAX));
    assert_eq!(framed(&carrier), [(1, 10, true)]);
}

#[test]
fn a_whole_answer_that_is_sent_at_once_is_the_same_however_much_the_socket_takes() {
    let body: Vec<u8> = (0..40_000u32).map(|number| number as u8).collect();
    let ready = || {
        let carrier = carrier(1 << 20);
        assert_eq!(carrier.widen(1 << 20), Ok(()));
        carrier.frame(|out| out.extend_from_slice(b"framed before"));
        carrier
    };
    let carrier = ready();
    assert!(carrier.whole(1, b"\x88", &body, 16_384));
    let mut expected = Vec::new();
    carrier.take(&mut expected);
    for taken in [0, 1, 13, 22, 23, 24, 16_406, 16_407, 39_999, expected.len() - 1, expected.len()] {
        let (carrier, mut sent) = (ready(), Vec::new());
        let send = |parts: &[IoSlice<'_>]| {
            sent = parts.iter().flat_map(|part| part.iter().copied()).collect();
            sent.truncate(taken);
            taken
        };
        assert!(carrier.whole_through(1, b"\x88", &body, 16_384, send));
        let mut rest = Vec::new();
        carrier.take(&mut rest);
        assert_eq!([sent, rest].concat(), expected, "{taken}");
    }
    let never = |_: &[IoSlice<'_>]| unreachable!();
    assert!(!ready().whole_through(1, b"\x88", &[0; ROOM + 1], 16_384, never), "there is no room for it");
}

#[test]
fn the_urgent_come_first_and_the_incremental_share() {
    let carrier = carrier(1 << 20);
    assert_eq!(carrier.widen(1 << 20), Ok(()));
    let priority = |urgency, incremental| Priority { urgency, incremental };
    let streams = [
        open(&carrier, 1, priority(3, true)),
        open(&carrier, 3, priority(3, true)),
        open(&carrier, 5, priority(3, false)),
        open(&carrier, 7, priority(0, false)),
    ];
    assert_eq!(write(&streams[0], ROOM, false), Poll::Ready(ROOM));
    for stream in &streams {
        assert_eq!(write(stream, ROOM, true), Poll::Pending);
    }
    framed(&carrier);
    let mut order = Vec::new();
    while carrier.grant() {
        for stream in &streams {
            if let Poll::Ready(count @ 1..) = write(stream, ROOM, true) {
                order.push((stream.id(), count));
                // What it did not write it wants to write later.
                if count < ROOM {
                    assert_eq!(write(stream, ROOM - count, true), Poll::Pending);
                }
                break;
            }
        }
        framed(&carrier);
        if order.len() == 5 {
            break;
        }
    }
    assert_eq!(order, [(7, ROOM), (5, ROOM), (1, 16_384), (3, 16_384), (1, 16_384)]);
}

#[test]
fn a_stream_that_is_over_passes_its_turn_on() {
    let carrier = carrier(1 << 20);
    assert_eq!(carrier.widen(1 << 20), Ok(()));
    let (first, second) = (open(&carrier, 1, Priority::default()), open(&carrier, 3, Priority::default()));
    assert_eq!(write(&first, ROOM, false), Poll::Ready(ROOM));
    assert_eq!(write(&first, 1, false), Poll::Pending);
    assert_eq!(write(&second, 1, false), Poll::Pending);
    framed(&carrier);
    assert!(carrier.grant());
    first.close();
    assert_eq!(write(&second, 1, false), Poll::Pending, "others were before it");
    assert!(carrier.grant());
    assert_eq!(write(&second, 1, false), Poll::Ready(1));
}

#[test]
fn a_body_that_nobody_reads_is_held_up_to_its_window_and_no_further() {
    let carrier = carrier(WINDOW);
    let stream = open(&carrier, 1, Priority::default());
    let piece = [0; 16_384];
    for _ in 0..3 {
        assert_eq!(stream.receive(&piece, 16_384, false), Ok(Ok(())));
    }
    assert_eq!(stream.receive(&piece, 16_384, false), Ok(Err(BadBody::Flow)));
    assert!(window_updates(&carrier).iter().all(|(stream, _)| *stream == 0), "nobody has read any of it");
}

fn window_updates(carrier: &Carrier) -> Vec<(u32, u32)> {
    let mut bytes = Vec::new();
    carrier.take(&mut bytes);
    let (mut rest, mut found) = (&bytes[..], Vec::new());
    while let Ok(Some((frame, length))) = read::read(rest, 16_384) {
        if let Frame::WindowUpdate { stream, increment } = frame {
            found.push((stream, increment));
        }
        rest = &rest[length..];
    }
    found
}

#[test]
fn the_window_follows_its_reader_and_grows_for_one_that_keeps_up() {
    let carrier = carrier(WINDOW);
    let stream = open(&carrier, 1, Priority::default());
    let (piece, mut body, mut given) = ([0; 16_384], Vec::new(), 0);
    for _ in 0..8 {
        assert_eq!(stream.receive(&piece, 16_384, false), Ok(Ok(())));
        assert!(stream.poll_read_into(&mut context(), &mut body, usize::MAX).is_ready());
        given += window_updates(&carrier).iter().filter(|(id, _)| *id == 1).map(|(_, by)| by).sum::<u32>();
    }
    assert_eq!(body.len(), 8 * 16_384);
    assert!(given > 8 * 16_384, "{given} octets were given back");
    assert!(given <= 8 * 16_384 + 256 * 1024, "{given} octets were given back");
}

#[test]
fn who_reads_a_body_makes_room_for_it_however_little_may_come_before() {
    for preread in [0, 1, 10] {
        let carrier = carrier(WINDOW);
        let beginning =
            Beginning { preread, announced: None, has_ended: false, priority: Priority::default() };
        let stream = Http2Stream::new(1, carrier.clone(), beginning);
        let (mut body, mut room) = (Vec::new(), preread);
        for _ in 0..20 {
            assert!(stream.poll_read_into(&mut context(), &mut body, usize::MAX).is_pending());
            room += window_updates(&carrier).iter().filter(|(id, _)| *id == 1).map(|(_, by)| by).sum::<u32>();
            let piece = vec![0; room.min(16_384) as usize];
            assert!(!piece.is_empty(), "{preread}: {} octets were all", body.len());
            assert_eq!(stream.receive(&piece, piece.len() as u32, false), Ok(Ok(())));
            room -= piece.len() as u32;
            assert!(stream.poll_read_into(&mut context(), &mut body, usize::MAX).is_ready());
        }
        assert_eq!(body.len(), 20 * 16_384);
    }
}

#[test]
fn more_than_the_connections_window_ends_the_connection() {
    let carrier = carrier(WINDOW);
    let pieces = CONNECTION_WINDOW / 16_384;
    let streams: Vec<_> = (0..=pieces).map(|n| open(&carrier, 2 * n + 1, Priority::default())).collect();
    // Nothing is given back before half of it was used, which the client would have to be told of first.
    let outcomes: Vec<_> = streams.iter().map(|stream| stream.receive(&[0; 16_384], 16_384, false)).collect();
    assert!(outcomes.iter().all(|outcome| *outcome == Ok(Ok(()))));
    assert_eq!(carrier.received(CONNECTION_WINDOW + 1, 0), Err(BadWindow));
}

#[test]
fn a_body_that_is_not_as_long_as_announced_is_refused() {
    let carrier = carrier(WINDOW);
    let announced = |length| {
        let priority = Priority::default();
        let beginning = Beginning { preread: WINDOW, announced: Some(length), has_ended: false, priority };
        Http2Stream::new(1, carrier.clone(), beginning)
    };
    assert_eq!(announced(3).receive(b"abc", 3, true), Ok(Ok(())));
    assert_eq!(announced(2).receive(b"abc", 3, true), Ok(Err(BadBody::Length)));
    assert_eq!(announced(4).receive(b"abc", 3, true), Ok(Err(BadBody::Length)));
    let stream = announced(1);
    assert_eq!(stream.receive(b"a", 1, true), Ok(Ok(())));
    assert_eq!(stream.receive(b"", 0, true), Ok(Err(BadBody::Ended)));
    assert_eq!(stream.receive_end(true), Err(BadBody::Ended));
}

#[test]
fn what_comes_on_a_stream_that_is_lost_counts_for_the_connection_alone() {
    let ends: [fn(&Http2Stream); 2] =
        [|stream| stream.reset(ErrorCode::ProtocolError), |stream| stream.leave()];
    for end in ends {
        let carrier = carrier(WINDOW);
        let stream = open(&carrier, 1, Priority::default());
        assert_eq!(stream.receive(b"abc", 3, false), Ok(Ok(())));
        end(&stream);
        assert_eq!(stream.receive(b"def", 3, true), Ok(Ok(())));
        assert_eq!(stream.receive_end(true), Ok(()));
        let mut body = Vec::new();
        assert!(matches!(stream.poll_read_into(&mut context(), &mut body, 100), Poll::Ready(Ok(3))));
        let more = stream.poll_read_into(&mut context(), &mut body, 100);
        assert!(matches!(more, Poll::Ready(Err(_))) && body == b"abc", "it has no end: {more:?}");
        assert_eq!(stream.receive(b"", CONNECTION_WINDOW, false), Err(BadWindow), "they count all the same");
    }
}

#[test]
fn only_bodies_that_are_taken_give_a_waiting_stream_more_time() {
    let carrier = carrier(1 << 20);
    let [one, other] = [1, 3].map(|id| open(&carrier, id, Priority::default()));
    assert_eq!(write(&one, WINDOW as usize, false), Poll::Ready(WINDOW as usize));
    assert_eq!(write(&other, 100, false), Poll::Pending, "the connection's window is used up");
    assert!(other.has_moved(), "the other's body went out");
    let all = carrier.queued();
    carrier.wrote(1_000);
    assert!(other.has_moved() && !other.has_moved(), "what was framed is written");
    carrier.wrote(all - 1_000);
    assert!(other.has_moved());
    // Answers to PING, resets, heads.
    carrier.wrote(17);
    assert!(!other.has_moved());
}

#[test]
fn a_stream_that_is_given_up_says_so_once_and_nothing_after() {
    let carrier = carrier(WINDOW);
    let stream = open(&carrier, 1, Priority::default());
    stream.reset(ErrorCode::Cancel);
    stream.reset(ErrorCode::Cancel);
    stream.head(b"\x88", false, u32::MAX);
    stream.end(None);
    let mut bytes = Vec::new();
    carrier.take(&mut bytes);
    assert_eq!(bytes.len(), HEAD_LENGTH + 4);
    assert_eq!(FrameHead::peek(&bytes).map(|head| head.stream), Some(1));
    assert!(stream.poll_left(&mut context()).is_ready());
}

#[test]
fn padding_alone_uses_up_no_window() {
    let carrier = carrier(WINDOW);
    let stream = open(&carrier, 1, Priority::default());
    for _ in 0..100 {
        assert_eq!(stream.receive(b"", 16_000, false), Ok(Ok(())));
    }
    assert_eq!(stream.receive(b"x", 1, true), Ok(Ok(())));
}
