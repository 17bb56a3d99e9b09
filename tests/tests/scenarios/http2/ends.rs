//! How connections end: in two steps, with nothing lost that was on its way, and in time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use millstream_tests::frames::{End, Frames};
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::process::{allow_open_files, cpu_time, resident_bytes};
use millstream_tests::server::Server;
use millstream_tests::{profile_directory, wait};
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::{settings, write};
use rustix::process::Signal;

const SITE: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { worker_connections @PLACES@; }
    http {
        access_log @DIR@/access.log; @TIMES@
        server { listen 127.0.0.1:@PORT@; http2 on; client_body_timeout 600s;
            location / { proxy_pass http://@ORIGIN@; }
            location /here { return 200 here; } }
    }";

const LARGEST: u32 = (1 << 31) - 1;

fn start(origin: &Origin, times: &str, places: &str) -> Server {
    Server::start(SITE, &[("ORIGIN", &origin.address()), ("TIMES", times), ("PLACES", places)])
}

fn gated() -> (Arc<Gate>, Origin) {
    let gate = Arc::new(Gate::default());
    let closed = Arc::clone(&gate);
    let origin = Origin::start(move |_| {
        let mut steps = vec![Step::Pass(Arc::clone(&closed))];
        steps.extend(answer(200, &[], &[b'x'; 100_000]));
        steps
    });
    (gate, origin)
}

#[test]
fn a_graceful_stop_tells_it_in_two_steps_and_finishes_what_is_under_way() {
    skip_on_nginx!();
    let (gate, origin) = gated();
    let mut server = start(&origin, "", "1024");
    let mut frames = Frames::connect(server.port());
    let mut idle = Frames::connect(server.port());
    assert_eq!(idle.whole("/here").text(), "here");
    let streams: Vec<u32> = (0..20).map(|_| frames.get("/")).collect();
    wait::until("the API is asked", || origin.count() == 20);
    // It does not answer the PING between the steps yet: its requests were on their way.
    frames.be_silent();
    server.signal(Signal::QUIT);
    frames.until("it is told", |now| !now.goaways().is_empty());
    assert_eq!(frames.goaways(), [(LARGEST, ErrorCode::NoError)]);
    // It is on a busy machine, or far away.
    frames.read_for(Duration::from_secs(1));
    let late = frames.get("/here");
    assert_eq!(frames.answer(late).text(), "here", "it was sent before the second step");
    frames.until("the second step comes without an answer to PING too", |now| now.goaways().len() == 2);
    assert_eq!(frames.goaways()[1], (late, ErrorCode::NoError));
    let lost = frames.get("/here");
    gate.open();
    for stream in streams {
        let answer = frames.answer(stream);
        assert_eq!((answer.end, answer.body.len()), (End::Whole, 100_000));
    }
    assert_eq!(frames.closes_within(Duration::from_secs(5)), Some(Some(ErrorCode::NoError)));
    assert_eq!(frames.so_far(lost).status, 0, "it was told that this one counts for nothing");
    assert_eq!(idle.closes_within(Duration::from_secs(5)), Some(Some(ErrorCode::NoError)));
    assert!(server.stop(Signal::QUIT).is_some_and(|status| status.success()));
}

#[test]
fn as_many_requests_as_may_be_end_it_without_losing_one() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let server = start(&origin, "keepalive_requests 50;", "1024");
    let mut frames = Frames::connect(server.port());
    frames.round_trip();
    let streams: Vec<u32> = (0..100).map(|n| frames.get(["/here", "/"][n % 2])).collect();
    let told = frames.closes_within(Duration::from_secs(10));
    assert_eq!(told, Some(Some(ErrorCode::NoError)));
    assert_eq!(frames.goaways()[0], (LARGEST, ErrorCode::NoError));
    let last = frames.goaways().last().expect("there are two").0;
    for stream in streams {
        let answer = frames.so_far(stream);
        match stream <= last {
            true => assert_eq!((answer.status, answer.end), (200, End::Whole), "stream {stream} of {last}"),
            false => assert_eq!(answer.status, 0, "stream {stream} of {last}"),
        }
    }
    assert!(last > 100, "{last}: all were on their way");
}

#[test]
fn idle_ones_are_told_and_closed_in_time_and_busy_ones_are_not() {
    skip_on_nginx!();
    let (gate, origin) = gated();
    let server = start(&origin, "keepalive_timeout 300ms; client_header_timeout 300ms;", "1024");
    let mut busy = Frames::connect(server.port());
    let stream = busy.get("/");
    wait::until("the API is asked", || origin.count() == 1);
    let mut idle = Frames::connect(server.port());
    assert_eq!(idle.whole("/here").text(), "here");
    let begun = Instant::now();
    // PINGs do not make it any busier.
    while !idle.is_closed() && begun.elapsed() < Duration::from_secs(10) {
        _ = idle.try_send(&millstream_tests::frames::frame(6, 0, 0, &[0; 8]));
        idle.read_for(Duration::from_millis(50));
    }
    assert!(idle.is_closed());
    assert_eq!(idle.goaways(), [(1, ErrorCode::NoError)]);
    // Who says nothing behind its preface, or only a part of it.
    for said in [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM", b"PRI * HT"] {
        let mut silent = Frames::raw(server.port());
        silent.send(said);
        let closed = match said.len() {
            // What is no preface yet may be a request of HTTP/1, which is told that it was too slow.
            8 => continue,
            _ => silent.closes_within(Duration::from_secs(10)),
        };
        assert!(closed.is_some(), "{said:?}");
    }
    gate.open();
    assert_eq!(busy.answer(stream).end, End::Whole);
}

#[test]
fn who_reads_late_gets_all_that_was_framed_and_costs_nothing_until_then() {
    skip_on_nginx!();
    for (times, signal) in [("keepalive_timeout 300ms;", None), ("", Some(Signal::QUIT))] {
        let gate = Arc::new(Gate::default());
        let closed = Arc::clone(&gate);
        let origin = Origin::start(move |request| {
            let held = (request.target() == "/held").then(|| Step::Pass(Arc::clone(&closed)));
            held.into_iter().chain(answer(200, &[], &[b'x'; 100_000])).collect()
        });
        let server = start(&origin, times, "1024");
        let mut frames = Frames::connect(server.port());
        let streams: Vec<u32> = (0..100).map(|_| frames.get("/")).collect();
        let mut other = Frames::connect(server.port());
        let held = other.get("/held");
        wait::until("the API is asked", || origin.count() == 101);
        // Nobody reads: the kernel takes some, some is framed, and no stream has any more to say.
        streams.iter().for_each(|stream| frames.give_up(*stream));
        if let Some(signal) = signal {
            server.signal(signal);
        }
        // By then its time is over, or it was told of the end; a busy machine may still have much to put away.
        other.read_for(Duration::from_millis(1500));
        wait::until("a second in which it costs nothing", || {
            let before = cpu_time(server.id());
            other.read_for(Duration::from_secs(1));
            cpu_time(server.id()) - before < Duration::from_millis(300)
        });
        assert_eq!(frames.closes_within(Duration::from_secs(10)), Some(Some(ErrorCode::NoError)), "{times}");
        gate.open();
        assert_eq!(other.answer(held).end, End::Whole);
    }
}

/// The server has closed its side, but the client's kernel has not taken all before that (RFC 9293 §3.3.2,
/// FIN-WAIT-1).
fn waits_to_be_read(server: u16, client: u16) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux has it");
    let ends = (format!(":{server:04X}"), format!(":{client:04X}"));
    table.lines().any(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        matches!(fields[..], [_, local, remote, "04", ..] if local.ends_with(&ends.0) && remote.ends_with(&ends.1))
    })
}

#[test]
fn who_speaks_again_while_it_reads_the_end_reads_it_whole() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], &[b'x'; 100_000]);
    let server = start(&origin, "keepalive_timeout 300ms;", "1024");
    let mut frames = Frames::connect(server.port());
    let streams: Vec<u32> = (0..5).map(|_| frames.get("/")).collect();
    wait::until("the server has written all", || waits_to_be_read(server.port(), frames.port()));
    frames.frame(|out| write::ping(out, false, *b"and read"));
    assert_eq!(frames.closes_within(Duration::from_secs(10)), Some(Some(ErrorCode::NoError)));
    for stream in streams {
        let answer = frames.so_far(stream);
        assert_eq!((answer.end, answer.body.len()), (End::Whole, 100_000));
    }
}

#[test]
fn a_reload_in_the_middle_of_streams_loses_none() {
    skip_on_nginx!();
    let (gate, origin) = gated();
    let server = start(&origin, "", "1024");
    let mut frames = Frames::connect(server.port());
    let streams: Vec<u32> = (0..20).map(|_| frames.get("/")).collect();
    wait::until("the API is asked", || origin.count() == 20);
    let new = SITE.replace("return 200 here", "return 200 there");
    server.rewrite(&new, &[("ORIGIN", &origin.address()), ("TIMES", ""), ("PLACES", "1024")]);
    server.signal(Signal::HUP);
    wait::until("the new configuration is in force", || server.get("/here").text() == "there");
    assert_eq!(frames.whole("/here").text(), "there", "the connection follows it");
    let without = SITE.replace("http2 on;", "");
    server.rewrite(
        &without,
        &[("ORIGIN", &origin.address()), ("TIMES", "add_header X-New 1;"), ("PLACES", "1024")],
    );
    server.signal(Signal::HUP);
    wait::until("the new configuration is in force", || server.get("/here").field("x-new").is_some());
    gate.open();
    for stream in streams {
        let answer = frames.answer(stream);
        assert_eq!((answer.end, answer.body.len()), (End::Whole, 100_000));
    }
    let misdirected = frames.get("/here");
    assert_eq!(frames.answer(misdirected).status, 421, "it is not served by HTTP/2 any more");
}

#[test]
fn what_a_connection_was_told_of_its_end_stands() {
    skip_on_nginx!();
    let (gate, origin) = gated();
    let server = start(&origin, "", "1024");
    let mut frames = Frames::connect(server.port());
    let stream = frames.get("/");
    wait::until("the API is asked", || origin.count() == 1);
    server.signal(Signal::QUIT);
    frames.until("it is told", |now| now.goaways().len() == 2);
    assert_eq!(frames.goaways()[1], (stream, ErrorCode::NoError));
    // Requests that count for nothing, and then something that ends it at once.
    frames.get("/here");
    frames.get("/here");
    frames.send(&millstream_tests::frames::frame(6, 0, 3, &[0; 8]));
    assert_eq!(frames.closes_within(Duration::from_secs(5)), Some(Some(ErrorCode::ProtocolError)));
    let told: Vec<u32> = frames.goaways().iter().map(|(last, _)| *last).collect();
    assert!(told.is_sorted_by(|earlier, later| earlier >= later), "RFC 9113 §6.8: {told:?}");
    gate.open();
}

#[test]
fn idle_connections_make_room_for_newcomers() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let server = start(&origin, "keepalive_timeout 600s; client_header_timeout 600s;", "64");
    let mut all: Vec<Frames> = (0..64)
        .map(|_| {
            let mut frames = Frames::connect(server.port());
            assert_eq!(frames.whole("/here").text(), "here");
            frames
        })
        .collect();
    assert_eq!(server.get("/here").text(), "here", "a newcomer does not wait for their timeout");
    assert_eq!(all[0].closes_within(Duration::from_secs(5)), Some(Some(ErrorCode::NoError)));
    let mut last = all.pop().expect("there are 64");
    assert_eq!(last.whole("/here").text(), "here");
}

#[test]
fn uploads_that_drip_over_it_make_room_for_newcomers_too() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let server = start(&origin, "keepalive_timeout 600s; client_header_timeout 600s;", "64");
    let all: Vec<Frames> = (0..64)
        .map(|_| {
            let mut frames = Frames::connect(server.port());
            let stream = frames.request("POST", "/", &[("content-length", "100000")], false);
            frames.data(stream, b"a", false);
            frames.round_trip();
            frames
        })
        .collect();
    assert_eq!(server.get("/here").text(), "here", "a newcomer does not wait for their timeout");
    drop(all);
}

#[test]
fn idle_connections_cost_little_more_than_their_state() {
    skip_on_nginx!();
    let count = 3_000;
    assert!(allow_open_files(count as u64 + 2_000), "ulimit -n has to allow {count} connections");
    let origin = Origin::fixed(200, &[], b"fine");
    let server = start(&origin, "keepalive_timeout 600s;", "16000");
    let open = |count: usize| -> Vec<Frames> {
        (0..count)
            .map(|_| {
                let mut frames =
                    Frames::connect_with(server.port(), &[(settings::MAX_CONCURRENT_STREAMS, 100)]);
                assert_eq!(frames.whole("/here").text(), "here");
                frames
            })
            .collect()
    };
    drop(open(100));
    let before = resident_bytes(server.id());
    let all = open(count);
    let each = resident_bytes(server.id()).saturating_sub(before) / count as u64;
    println!("{each} bytes of an idle connection of HTTP/2");
    let bound = if profile_directory().ends_with("release") { 3 * 1024 } else { 24 * 1024 };
    assert!(each <= bound, "{each} bytes each");
    drop(all);
    assert_eq!(server.get("/here").status, 200);
}
