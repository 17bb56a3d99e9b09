//! Links with a scripted server: what its frames come to for each call, and which calls may be made.

use super::call::Call;
use super::driver::Driver;
use super::frames::{Broken, Reader};
use super::link::{Keeping, Link};
use crate::error::ExchangeError;
use millstream_conf::model::{KeepaliveSize, UpstreamKeepalive};
use millstream_net::clock;
use millstream_net::stream::Stream;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::frame::Frame;
use millstream_wire::h2::hpack::encoder;
use millstream_wire::h2::settings::MAX_CONCURRENT_STREAMS;
use millstream_wire::h2::{PREFACE, read, write};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

fn keeping(requests: u64, most_idle: usize) -> Keeping {
    let minute = Duration::from_secs(60);
    let keepalive =
        UpstreamKeepalive { size: KeepaliveSize::Fixed(most_idle), requests, time: minute, timeout: minute };
    Keeping { keepalive, most_idle, idle: Rc::default() }
}

fn link() -> Rc<Link> {
    Link::new(keeping(1000, 8))
}

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn reserved(link: &Rc<Link>) -> Option<Call> {
    reserved_for(link, 0)
}

fn reserved_for(link: &Rc<Link>, body: u64) -> Option<Call> {
    let octets = link.reserve(body, true, clock::now())?;
    Some(Call::new(link.clone(), octets))
}

fn call(link: &Rc<Link>) -> Call {
    let mut call = reserved(link).expect("a place");
    call.start(b"block", true, true).expect("a number");
    call
}

fn known_call(link: &Rc<Link>) -> Call {
    link.known();
    call(link)
}

fn block(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    lines.iter().for_each(|(name, value)| encoder::field(&mut out, name.as_bytes(), value.as_bytes()));
    out
}

/// Frames of a server, which begin with its SETTINGS.
struct Words(Vec<u8>);

impl Words {
    fn begin(settings: &[(u16, u32)]) -> Words {
        let mut out = Vec::new();
        write::settings(&mut out, settings);
        Words(out)
    }

    fn say(mut self, say: impl FnOnce(&mut Vec<u8>)) -> Words {
        say(&mut self.0);
        self
    }

    fn head(self, stream: u32, lines: &[(&str, &str)], is_last: bool) -> Words {
        self.say(|out| write::headers(out, stream, &block(lines), is_last, 16_384))
    }

    fn data(self, stream: u32, data: &[u8], is_last: bool) -> Words {
        self.say(|out| {
            write::data_head(out, stream, data.len() as u32, is_last);
            out.extend_from_slice(data);
        })
    }

    fn to(&self, link: &Link) -> Result<(), Broken> {
        Reader::default().take(&self.0, link).map(|taken| assert_eq!(taken, self.0.len()))
    }
}

fn status(call: &Call) -> Result<u16, String> {
    match call.poll_head(&context()) {
        Poll::Ready(Ok(answer)) => Ok(answer.status),
        Poll::Ready(Err(error)) => Err(error.to_string()),
        Poll::Pending => Err("nothing yet".to_owned()),
    }
}

/// The body so far, and whether it has ended; or the error.
fn body(call: &Call) -> Result<(Vec<u8>, bool), String> {
    let mut bytes = Vec::new();
    loop {
        match call.poll_read_into(&mut context(), &mut bytes, 1000) {
            Poll::Ready(Ok(0)) => return Ok((bytes, true)),
            Poll::Ready(Ok(_)) => {}
            Poll::Ready(Err(error)) => return Err(error.to_string()),
            Poll::Pending => return Ok((bytes, false)),
        }
    }
}

fn resets(link: &Link) -> Vec<(u32, ErrorCode)> {
    let (mut bytes, mut found) = (Vec::new(), Vec::new());
    link.carrier.take(&mut bytes);
    let mut rest = &bytes[..];
    while let Ok(Some((frame, length))) = read::read(rest, 16_384) {
        if let Frame::Reset { stream, code } = frame {
            found.push((stream, code));
        }
        rest = &rest[length..];
    }
    found
}

#[test]
fn each_call_gets_its_own_answer_whatever_comes_between() {
    let link = link();
    let (first, second) = (known_call(&link), call(&link));
    let words = Words::begin(&[])
        .head(3, &[(":status", "103"), ("link", "</a>")], false)
        .head(3, &[(":status", "200"), ("x", "second")], false)
        .head(1, &[(":status", "404")], false)
        .data(3, b"of ", false)
        .data(1, b"first", true)
        .data(3, b"second", false)
        .head(3, &[("grpc-status", "0")], true);
    words.to(&link).expect("sound frames");
    assert_eq!((status(&first), body(&first)), (Ok(404), Ok((b"first".to_vec(), true))));
    assert_eq!((status(&second), status(&second)), (Ok(103), Ok(200)));
    assert_eq!(body(&second), Ok((b"of second".to_vec(), true)));
    let trailers = second.take_trailers().expect("what stood behind the body");
    assert_eq!(trailers.view().named(b"grpc-status"), Some(&b"0"[..]));
    assert!(resets(&link).is_empty());
}

#[test]
fn a_server_that_sends_frames_without_anything_in_them_loses_the_link() {
    type Say = fn(Words) -> Words;
    let said: [Say; 4] = [
        |words| words.data(1, b"", false),
        |words| words.say(|out| write::settings(out, &[])),
        |words| words.say(|out| write::ping(out, false, [0; 8])),
        |words| words.say(|out| out.extend_from_slice(b"\0\0\0\xbe\0\0\0\0\0")),
    ];
    for say in said {
        let link = link();
        let _call = known_call(&link);
        let head = || Words::begin(&[]).head(1, &[(":status", "200")], false);
        let many = |words| (0..9_000).fold(words, |words, _| say(words));
        many(many(head()).data(1, b"x", false)).to(&link).expect("something came between");
        assert!(many(many(head())).to(&link).is_err());
    }
}

#[test]
fn what_is_wrong_with_one_answer_ends_that_alone() {
    type Say = fn(Words) -> Words;
    let cases: [(&str, Say); 8] = [
        ("data first", |words| words.data(1, b"x", false)),
        ("no status", |words| words.head(1, &[("x", "y")], false)),
        ("101", |words| words.head(1, &[(":status", "101")], false)),
        ("an interim end", |words| words.head(1, &[(":status", "100")], true)),
        ("two lengths", |words| {
            words.head(1, &[(":status", "200"), ("content-length", "1"), ("content-length", "2")], false)
        }),
        ("less than announced", |words| words.head(1, &[(":status", "200"), ("content-length", "1")], true)),
        ("open trailers", |words| words.head(1, &[(":status", "200")], false).head(1, &[("x", "y")], false)),
        ("a field of a connection", |words| {
            words.head(1, &[(":status", "200"), ("connection", "close")], false)
        }),
    ];
    for (name, say) in cases {
        let link = link();
        let (broken, sound) = (known_call(&link), call(&link));
        say(Words::begin(&[])).head(3, &[(":status", "204")], true).to(&link).expect(name);
        let heads = [status(&broken), status(&broken)];
        let is_refused =
            |text: &Result<u16, String>| text.as_ref().is_err_and(|text| text.contains("upstream sent"));
        assert!(heads.iter().any(is_refused), "{name}: {heads:?}");
        assert_eq!(status(&sound), Ok(204), "{name}");
        assert_eq!(resets(&link), [(1, ErrorCode::ProtocolError)], "{name}");
    }
}

#[test]
fn what_breaks_the_rules_of_the_connection_ends_it() {
    let promise = |out: &mut Vec<u8>| out.extend_from_slice(&[0, 0, 4, 5, 4, 0, 0, 0, 1, 0, 0, 0, 2]);
    for (name, words, code) in [
        ("no SETTINGS", Words(Vec::new()).data(1, b"", true), ErrorCode::ProtocolError),
        ("a promise", Words::begin(&[]).say(promise), ErrorCode::ProtocolError),
        ("a stream of nobody", Words::begin(&[]).data(9, b"x", false), ErrorCode::ProtocolError),
        ("an even stream", Words::begin(&[]).head(2, &[(":status", "200")], true), ErrorCode::ProtocolError),
        (
            "a broken block",
            Words::begin(&[]).say(|out| write::headers(out, 1, &[0xff; 9], true, 100)),
            ErrorCode::CompressionError,
        ),
        (
            "a block that is cut by another frame",
            Words::begin(&[]).say(|out| {
                out.extend_from_slice(&[0, 0, 1, 1, 0, 0, 0, 0, 1, 0x88]);
                write::ping(out, false, [0; 8]);
            }),
            ErrorCode::ProtocolError,
        ),
        (
            "a block without end",
            Words::begin(&[]).say(|out| {
                out.extend_from_slice(&[0, 0, 1, 1, 0, 0, 0, 0, 1, 0x88]);
                out.extend_from_slice(&[0, 0, 0, 9, 0, 0, 0, 0, 1]);
            }),
            ErrorCode::EnhanceYourCalm,
        ),
    ] {
        let link = link();
        let _call = call(&link);
        assert_eq!(words.to(&link).map_err(|broken| broken.0), Err(code), "{name}");
    }
}

#[test]
fn no_more_calls_are_made_at_a_time_than_the_server_takes() {
    let link = link();
    let first = call(&link);
    assert!(reserved(&link).is_none(), "nobody knows how many it takes");
    assert!(link.poll_known(&context()).is_pending());
    Words::begin(&[(MAX_CONCURRENT_STREAMS, 2)]).to(&link).expect("sound");
    assert!(link.poll_known(&context()).is_ready());
    link.hear();
    drop(first);
    assert_eq!(resets(&link), [(1, ErrorCode::Cancel)], "what is dropped is given up");
    let (first, _second) = (call(&link), reserved(&link).expect("a second place"));
    assert!(reserved(&link).is_none(), "one that is not yet begun counts too");
    link.hear();
    drop(first);
    assert!(reserved(&link).is_some());
}

#[test]
fn a_link_takes_bodies_only_as_far_as_none_can_stop_another() {
    const OPEN: u64 = u64::MAX;
    let link = link();
    link.known();
    let begun = |body| {
        let mut call = reserved_for(&link, body)?;
        call.start(b"block", body == 0, true).expect("a number");
        Some(call)
    };
    let may = |body| reserved_for(&link, body).is_some();
    let upload = begun(OPEN).expect("one that calls alone");
    assert!(may(0), "without a body there is nothing to stop");
    assert!(!may(1) && !may(OPEN), "the first may fill the connection's window");
    link.carrier.widen(100).expect("room");
    assert!(may(100) && !may(101));
    let place = reserved_for(&link, 60).expect("room for 60 of 100");
    assert!(may(40) && !may(41), "one that is not yet begun counts too");
    drop(place);
    link.carrier.widen(65_535 - 100).expect("room");
    let second = begun(OPEN).expect("windows of two streams fit in that of the connection");
    assert!(!may(1));
    link.hear();
    drop(second);
    assert!(link.reserve(OPEN, false, clock::now()).is_some_and(|octets| octets == 65_535));
    link.release(65_535);
    assert!(may(OPEN), "a body that is given up leaves its room");
    let fits = upload.stream().expect("begun").unsaid();
    assert_eq!(fits, 65_535, "nothing of it was sent");
}

#[test]
fn calls_behind_a_goaway_may_be_made_elsewhere_and_those_before_go_on() {
    let link = link();
    let (first, second, mut third) = (known_call(&link), call(&link), reserved(&link).expect("a place"));
    let words = Words::begin(&[]).say(|out| write::goaway(out, 1, ErrorCode::NoError, b"")).head(
        1,
        &[(":status", "200")],
        true,
    );
    words.to(&link).expect("sound");
    assert_eq!(status(&first), Ok(200));
    let untouched = |error: &ExchangeError| error.is_untouched() && error.is_stale();
    assert!(matches!(second.poll_head(&context()), Poll::Ready(Err(error)) if untouched(&error)));
    assert!(third.start(b"block", true, true).is_err_and(|error| untouched(&error)));
    assert!(reserved(&link).is_none());
}

#[test]
fn a_reset_says_whether_anything_was_done() {
    let link = link();
    let (refused, cancelled, answered) = (known_call(&link), call(&link), call(&link));
    let words = Words::begin(&[])
        .say(|out| write::reset(out, 1, ErrorCode::RefusedStream))
        .say(|out| write::reset(out, 3, ErrorCode::Cancel))
        .head(5, &[(":status", "413")], true)
        .say(|out| write::reset(out, 5, ErrorCode::NoError));
    words.to(&link).expect("sound");
    assert!(matches!(refused.poll_head(&context()), Poll::Ready(Err(error)) if error.is_untouched()));
    assert_eq!(status(&cancelled), Err("upstream rejected the request with CANCEL".to_owned()));
    assert_eq!((status(&answered), body(&answered)), (Ok(413), Ok((Vec::new(), true))));
}

#[test]
fn a_link_leaves_when_it_is_worn_or_one_idle_one_too_many() {
    let worn = Link::new(keeping(1, 8));
    drop(call(&worn));
    assert!(reserved(&worn).is_none());
    let unwanted = Link::new(keeping(1000, 0));
    drop(call(&unwanted));
    assert!(unwanted.is_leaving());
    let kept = link();
    let heard = call(&kept);
    kept.hear();
    drop(heard);
    assert!(!kept.is_leaving() && kept.idle_until().is_some());
}

#[test]
fn a_link_of_which_nothing_was_heard_while_a_call_waited_takes_no_more() {
    type Say = fn(Words) -> Words;
    let endless = |words: Words| {
        words.say(|out| {
            let at = out.len();
            write::headers(out, 1, &block(&[(":status", "200")]), false, 16_384);
            // END_HEADERS is taken off.
            out[at + 4] &= !4;
        })
    };
    let cases: [(&str, Say, bool); 4] = [
        ("nothing but SETTINGS", |words| words, true),
        ("a block without an end", endless, true),
        ("an answer to somebody else", |words| words.head(3, &[(":status", "200")], true), false),
        ("a PING", |words| words.say(|out| write::ping(out, false, [0; 8])), false),
    ];
    for (what, say, leaves) in cases {
        let link = link();
        let (given_up, _other) = (known_call(&link), call(&link));
        say(Words::begin(&[])).to(&link).expect("sound frames");
        drop(given_up);
        assert_eq!(link.is_leaving(), leaves, "{what}");
    }
}

#[test]
fn a_driver_says_its_preface_and_closes_when_nobody_wants_the_link() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (ours, mut theirs) = UnixStream::pair().expect("a socket pair");
        let link = link();
        let driver = Driver::new(Stream::from(ours), link.clone());
        driver.greet();
        let first = call(&link);
        let script = async {
            let mut preface = [0; PREFACE.len()];
            theirs.read_exact(&mut preface).await.expect("the preface");
            assert_eq!(&preface, PREFACE);
            let words = Words::begin(&[]).head(1, &[(":status", "200")], false).data(1, b"hi", true);
            theirs.write_all(&words.0).await.expect("the answer goes out");
            std::future::poll_fn(|context| first.poll_speaks(context)).await;
            assert_eq!((status(&first), body(&first)), (Ok(200), Ok((b"hi".to_vec(), true))));
            drop(first);
            link.leave();
            let mut rest = Vec::new();
            theirs.read_to_end(&mut rest).await.expect("it closes");
            rest
        };
        let ((), rest) = tokio::join!(driver.run(), script);
        let goaway = rest.windows(9).any(|head| head[3] == 7 && head[..3] == [0, 0, 8]);
        assert!(goaway, "it says goodbye");
        assert!(link.begin(0, true).is_err());
    });
}

#[test]
fn what_comes_behind_a_reset_or_a_fault_makes_no_answer_whole() {
    type Say = fn(Words) -> Words;
    const OK: &[(&str, &str)] = &[(":status", "200")];
    let cases: &[(&str, Say)] = &[
        ("a reset", |words| {
            let part = words.head(1, OK, false).data(1, b"part", false);
            part.say(|out| write::reset(out, 1, ErrorCode::InternalError)).data(1, b"tail", true)
        }),
        ("a second head", |words| {
            let one = words.head(1, OK, false).data(1, b"one", false);
            one.head(1, &[(":status", "500")], false).data(1, b"two", true)
        }),
        ("trailers that end nothing", |words| {
            words.head(1, OK, false).head(1, &[("x", "y")], false).data(1, b"tail", true)
        }),
        ("more than its window", |words| {
            let all = (0..5).fold(words.head(1, OK, false), |words, _| words.data(1, &[b'x'; 16_000], false));
            all.data(1, b"tail", true)
        }),
        ("a body before its head", |words| words.data(1, b"x", false).head(1, OK, false).data(1, b"y", true)),
        ("a head that is none", |words| words.head(1, &[(":status", "2x")], false).head(1, OK, true)),
    ];
    for (what, say) in cases {
        let link = link();
        let call = known_call(&link);
        say(Words::begin(&[])).to(&link).expect("it concerns one call");
        let came = status(&call).and_then(|_| body(&call));
        assert!(came.is_err(), "{what}: {came:?}");
    }
}
