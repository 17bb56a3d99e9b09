//! Work that brings its client nothing: each kind has a bound, who is past it is told to be calm and is gone, and nobody else waits.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use millstream_tests::client;
use millstream_tests::frames::{End, Frames, block, frame, headers, request};
use millstream_tests::origin::Origin;
use millstream_tests::process::{cpu_time, resident_bytes, serving};
use millstream_tests::server::Server;
use millstream_tests::{ports, wait};
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::frame::{flag, kind};
use millstream_wire::h2::{settings, write};

const SITE: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { worker_connections 1024; }
    http {
        access_log off; keepalive_requests 10000000; dashboard 127.0.0.1:@DASHBOARD@;
        server { listen 127.0.0.1:@PORT@; http2 on;
            location / { return 200 fine; }
            location /large { alias @DIR@/large; }
            location /pass { proxy_pass http://@ORIGIN@; proxy_request_buffering off; }
            location /little { proxy_pass http://@ORIGIN@; proxy_request_buffering off; client_max_body_size 1k; }
            location /grpc { grpc_pass grpc://@ORIGIN@; }
            location /regardless { proxy_pass http://@ORIGIN@; proxy_ignore_client_abort on; } }
    }";

const AT_ONCE: usize = 4;
/// Bytes after which the bound must have stopped any flood.
const MOST: usize = 64 << 20;
/// Bound on the growth of the server's private memory through all of them.
const MEMORY: u64 = 48 << 20;
/// Bound on the CPU time that the server uses before it answers another client, at the 99th percentile; 160 ms have been
/// measured. How long it waits for a core depends on the tests beside this one.
const OTHERS: Duration = Duration::from_millis(400);
/// Bound on the time that other clients wait, whatever else the machine does.
const LONGEST: Duration = Duration::from_secs(10);

struct Flood {
    name: &'static str,
    begin: fn(&mut Frames) -> Vec<u8>,
    /// Sent repeatedly: takes an unused stream number, returns the bytes of one round and the next number.
    again: fn(u32) -> (Vec<u8>, u32),
    codes: &'static [ErrorCode],
}

const CALM: &[ErrorCode] = &[ErrorCode::EnhanceYourCalm];

fn get(path: &str) -> Vec<u8> {
    request("GET", path, &[])
}

fn nothing(_: &mut Frames) -> Vec<u8> {
    Vec::new()
}

fn body(frames: &mut Frames) -> Vec<u8> {
    let stream = frames.take_number();
    frame(kind::HEADERS, flag::END_HEADERS, stream, &request("POST", "/pass", &[]))
}

fn over(frames: &mut Frames) -> Vec<u8> {
    frames.whole("/");
    Vec::new()
}

fn reset(stream: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, 8])
}

/// One long line is put into the table and then referenced as often as there is room.
fn bomb() -> Vec<u8> {
    let mut bytes = get("/");
    bytes.extend_from_slice(b"\x40\x01a\x7f\x81\x1e");
    bytes.extend_from_slice(&[b'x'; 4000]);
    bytes.resize(16_000, 0xbe);
    bytes
}

const FLOODS: &[Flood] = &[
    Flood {
        name: "requests that are given up (CVE-2023-44487)",
        begin: nothing,
        again: |next| ([headers(next, &get("/pass")), reset(next)].concat(), next + 2),
        codes: CALM,
    },
    Flood {
        name: "RST_STREAM of requests that were answered",
        begin: over,
        again: |next| (reset(1), next),
        codes: CALM,
    },
    Flood {
        name: "resets that the client provokes: a window past the largest (CVE-2025-8671)",
        begin: nothing,
        again: |next| {
            let wide = frame(kind::WINDOW_UPDATE, 0, next, &[0x7f, 0xff, 0xff, 0xff]);
            ([headers(next, &get("/pass")), wide].concat(), next + 2)
        },
        codes: CALM,
    },
    Flood {
        name: "resets that the client provokes: a window of 0 (CVE-2025-8671)",
        begin: nothing,
        again: |next| {
            let none = frame(kind::WINDOW_UPDATE, 0, next, &[0; 4]);
            ([headers(next, &get("/pass")), none].concat(), next + 2)
        },
        codes: CALM,
    },
    Flood {
        name: "DATA behind the end (CVE-2025-8671)",
        begin: nothing,
        again: |next| ([headers(next, &get("/pass")), frame(kind::DATA, 0, next, b"x")].concat(), next + 2),
        codes: CALM,
    },
    Flood {
        name: "bodies that are longer than they are said to be",
        begin: nothing,
        again: |next| {
            let block = request("POST", "/", &[("content-length", "1")]);
            let open = frame(kind::HEADERS, flag::END_HEADERS, next, &block);
            ([open, frame(kind::DATA, 0, next, b"xx")].concat(), next + 2)
        },
        codes: CALM,
    },
    Flood {
        name: "a header block without an end (CVE-2024-27316)",
        begin: |frames| frame(kind::HEADERS, 0, frames.take_number(), &get("/")),
        again: |next| (frame(kind::CONTINUATION, 0, 1, &block(&[("x-a", &"x".repeat(1000))])), next),
        codes: CALM,
    },
    Flood {
        name: "CONTINUATION with nothing in it (CVE-2019-9518)",
        begin: |frames| frame(kind::HEADERS, 0, frames.take_number(), &get("/")),
        again: |next| (frame(kind::CONTINUATION, 0, 1, b""), next),
        codes: CALM,
    },
    Flood {
        name: "DATA with nothing in it (CVE-2019-9518)",
        begin: body,
        again: |next| (frame(kind::DATA, 0, 1, b""), next),
        codes: CALM,
    },
    Flood {
        name: "HEADERS with nothing in it (CVE-2019-9518)",
        begin: nothing,
        again: |next| (frame(kind::HEADERS, flag::END_HEADERS, next, b""), next + 2),
        codes: CALM,
    },
    Flood {
        name: "DATA of one octet (CVE-2019-9517)",
        begin: body,
        again: |next| (frame(kind::DATA, 0, 1, b"x"), next),
        // The window is the sooner bound where nobody reads.
        codes: &[ErrorCode::EnhanceYourCalm, ErrorCode::FlowControlError],
    },
    Flood {
        name: "DATA that is padding",
        begin: body,
        again: |next| (frame(kind::DATA, flag::PADDED, 1, &[8, 0, 0, 0, 0, 0, 0, 0, 0]), next),
        codes: &[ErrorCode::EnhanceYourCalm, ErrorCode::FlowControlError],
    },
    Flood {
        name: "DATA for a request that is over",
        begin: over,
        again: |next| (frame(kind::DATA, 0, 1, b"x"), next),
        codes: &[ErrorCode::EnhanceYourCalm, ErrorCode::FlowControlError],
    },
    Flood {
        name: "SETTINGS (CVE-2019-9515)",
        begin: nothing,
        again: |next| (frame(kind::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 1]), next),
        codes: CALM,
    },
    Flood {
        name: "SETTINGS that acknowledge",
        begin: nothing,
        again: |next| (frame(kind::SETTINGS, flag::ACK, 0, b""), next),
        codes: CALM,
    },
    Flood {
        name: "PING (CVE-2019-9512)",
        begin: nothing,
        again: |next| (frame(kind::PING, 0, 0, &[0; 8]), next),
        codes: CALM,
    },
    Flood {
        name: "PING that answers",
        begin: nothing,
        again: |next| (frame(kind::PING, flag::ACK, 0, &[0; 8]), next),
        codes: CALM,
    },
    Flood {
        name: "PRIORITY (CVE-2019-9513)",
        begin: nothing,
        again: |next| (frame(kind::PRIORITY, 0, 1, &[0, 0, 0, 3, 9]), next),
        codes: CALM,
    },
    Flood {
        name: "PRIORITY_UPDATE",
        begin: nothing,
        again: |next| (frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=0"), next),
        codes: CALM,
    },
    Flood {
        name: "GOAWAY",
        begin: |frames| {
            // A connection with nothing under way would simply end.
            [body(frames), frame(kind::DATA, 0, 1, b"x")].concat()
        },
        again: |next| (frame(kind::GOAWAY, 0, 0, &[0; 8]), next),
        codes: CALM,
    },
    Flood {
        name: "frames of unknown kinds",
        begin: nothing,
        again: |next| (frame(99, 0, 0, b"x"), next),
        codes: CALM,
    },
    Flood {
        name: "WINDOW_UPDATE of 1",
        begin: nothing,
        again: |next| (frame(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]), next),
        codes: CALM,
    },
    Flood {
        name: "WINDOW_UPDATE of requests that are over",
        begin: over,
        again: |next| (frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 1, 0]), next),
        codes: CALM,
    },
    Flood {
        name: "header blocks that unpack to a thousand times their size (CVE-2016-6581)",
        begin: nothing,
        again: |next| (headers(next, &bomb()), next + 2),
        codes: CALM,
    },
    Flood {
        name: "such blocks behind a body",
        begin: nothing,
        again: |next| {
            let open = frame(kind::HEADERS, flag::END_HEADERS, next, &request("POST", "/pass", &[]));
            ([open, headers(next, &bomb())].concat(), next + 2)
        },
        codes: CALM,
    },
    Flood {
        name: "more streams than there may be",
        begin: |frames| {
            let all = (0..128).map(|_| frames.take_number());
            all.flat_map(|number| {
                frame(kind::HEADERS, flag::END_HEADERS, number, &request("POST", "/pass", &[]))
            })
            .collect()
        },
        again: |next| (headers(next.max(301), &get("/pass")), next.max(301) + 2),
        codes: CALM,
    },
];

/// Until the server closes; returns why, and how many bytes and how long it took.
fn flood(port: u16, kind: &Flood) -> (Option<Option<ErrorCode>>, usize, Duration) {
    let mut frames = Frames::connect(port);
    let begin = (kind.begin)(&mut frames);
    frames.round_trip();
    let started = Instant::now();
    let mut sent = 0;
    let mut next = frames.take_number();
    _ = frames.try_send(&begin);
    while sent < MOST
        && !frames.is_closed()
        && frames.goaways().is_empty()
        && started.elapsed() < Duration::from_secs(20)
    {
        let mut chunk = Vec::new();
        while chunk.len() < 8 * 1024 {
            let (bytes, then) = (kind.again)(next);
            chunk.extend_from_slice(&bytes);
            next = then;
        }
        sent += chunk.len();
        if frames.try_send(&chunk).is_err() {
            break;
        }
        frames.read_for(Duration::from_millis(1));
    }
    (frames.closes_within(Duration::from_secs(5)), sent, started.elapsed())
}

fn floods_counted(dashboard: u16) -> u64 {
    let text = client::get(dashboard, "/metrics").text();
    let name = "millstream_client_http2_connection_errors_total{reason=\"flood\"} ";
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
}

#[test]
fn who_makes_work_for_nothing_is_told_to_be_calm_and_nobody_else_waits() {
    skip_on_nginx!();
    // It takes a request and says nothing.
    let origin = millstream_tests::endless::Endless::start(b"");
    let dashboard = ports::free();
    let values = [("ORIGIN", origin.address()), ("DASHBOARD", dashboard.to_string())];
    let server = Server::start(SITE, &values.each_ref().map(|(name, value)| (*name, value.as_str())));
    let before = resident_bytes(server.id());
    let worker = serving(server.id());
    let mut expected = 0;
    for kind in FLOODS {
        let port = server.port();
        let floods: Vec<_> = (0..AT_ONCE).map(|_| thread::spawn(move || flood(port, kind))).collect();
        let mut other = server.client();
        let mut times: Vec<Duration> = Vec::new();
        while times.len() < 50 || !floods.iter().all(|flood| flood.is_finished()) {
            let (asked, worked) = (Instant::now(), cpu_time(worker));
            assert_eq!(other.get("/").expect("others are answered").status, 200);
            times.push(cpu_time(worker).saturating_sub(worked));
            assert!(asked.elapsed() < LONGEST, "{}: another client waited {:?}", kind.name, asked.elapsed());
        }
        times.sort();
        let p99 = times[times.len() * 99 / 100];
        let mut longest = Duration::ZERO;
        for flood in floods {
            let (closed, sent, took) = flood.join().expect("it floods");
            let code = closed.unwrap_or_else(|| panic!("{}: it goes on after {sent} bytes", kind.name));
            // Who is reset while it sends may not get to read why.
            assert!(code.is_none_or(|code| kind.codes.contains(&code)), "{}: {code:?}", kind.name);
            expected += u64::from(kind.codes == CALM);
            longest = longest.max(took);
        }
        println!("{}: gone after {longest:.0?}, CPU before others' answers, p99 {p99:.0?}", kind.name);
        assert!(longest < Duration::from_secs(10), "{}: {longest:?}", kind.name);
        assert!(p99 < OTHERS, "{}: CPU before others' answers, p99 {p99:?}", kind.name);
    }
    wait::until("the metric counts them", || floods_counted(dashboard) >= expected);
    let grown = resident_bytes(server.id()).saturating_sub(before);
    println!("private memory has grown by {} KiB", grown >> 10);
    assert!(grown < MEMORY, "{grown} bytes");
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn who_takes_nothing_of_what_it_asks_for_is_let_go_and_holds_little() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let values = [("ORIGIN", origin.address()), ("DASHBOARD", ports::free().to_string())];
    let site = SITE.replace("access_log off;", "access_log off; send_timeout 1s;");
    let server = Server::start(&site, &values.each_ref().map(|(name, value)| (*name, value.as_str())));
    std::fs::write(server.prefix().join("large"), vec![b'x'; 5 << 20]).expect("own directory");
    server.get("/large");
    let before = resident_bytes(server.id());
    // Windows of 0 on all streams that there may be, four times.
    let mut stalled: Vec<Frames> = (0..AT_ONCE)
        .map(|_| {
            let mut frames = Frames::connect_with(server.port(), &[(settings::INITIAL_WINDOW_SIZE, 0)]);
            frames.round_trip();
            for _ in 0..128 {
                frames.get("/large");
            }
            frames.round_trip();
            frames
        })
        .collect();
    let grown = resident_bytes(server.id()).saturating_sub(before);
    println!("512 stalled streams hold {} KiB each", (grown / 512) >> 10);
    assert!(grown < 512 * (24 << 10), "{grown} bytes");
    let mut other = server.client();
    assert_eq!(other.get("/").expect("an answer").text(), "fine");
    for frames in &mut stalled {
        for stream in (1..256).step_by(2) {
            assert_eq!(frames.answer(stream).end, End::Reset(ErrorCode::InternalError));
            assert!(frames.so_far(stream).body.is_empty());
        }
        frames.frame(|out| write::settings(out, &[(settings::INITIAL_WINDOW_SIZE, 1000)]));
        assert_eq!(frames.whole("/").status, 200, "the connection goes on");
    }
    // Who does not even read what its PINGs make us say.
    let mut deaf = Frames::connect(server.port());
    deaf.be_silent();
    let pings: Vec<u8> = (0..990).flat_map(|_| frame(kind::PING, 0, 0, &[0; 8])).collect();
    deaf.send(&pings);
    deaf.round_trip();
    assert!(!deaf.is_closed(), "so many at once are allowed");
}

#[test]
fn honest_clients_near_the_bounds_are_not_cut() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], &[b'x'; 50_000]);
    let dashboard = ports::free();
    let values = [("ORIGIN", origin.address()), ("DASHBOARD", dashboard.to_string())];
    let server = Server::start(SITE, &values.each_ref().map(|(name, value)| (*name, value.as_str())));
    // A page that is left before its hundred images are there, and opened again.
    let mut browser = Frames::connect(server.port());
    for _ in 0..2 {
        let images: Vec<u32> = (0..100).map(|_| browser.get("/pass")).collect();
        images.iter().for_each(|image| browser.give_up(*image));
        for _ in 0..60 {
            browser.whole("/");
        }
    }
    // Small messages, as gRPC has them, with a window for each.
    let mut messages = Frames::connect(server.port());
    let stream = messages.request("POST", "/pass", &[], false);
    for _ in 0..2_000 {
        messages.data(stream, b"\0\0\0\0\x0ba message..", false);
        messages.frame(|out| write::window_update(out, 0, 16));
    }
    messages.data(stream, b"", true);
    assert_eq!(messages.answer(stream).status, 200);
    // A probe of round trips, and priorities told again and again.
    for _ in 0..300 {
        messages.round_trip();
        messages.send(&frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1"));
    }
    assert_eq!(floods_counted(dashboard), 0, "{}", server.log());
}

/// A request given up after the upstream was asked: path, the announced length of its body if any, of which a
/// part is sent, and the frame that ends it.
struct GivingUp(&'static str, &'static str, Option<&'static str>, fn(u32) -> Vec<u8>);

const GIVEN_UP: &[GivingUp] = &[
    GivingUp("a reset", "/pass", None, reset),
    GivingUp("a window of 0 (CVE-2025-8671)", "/pass", None, |stream| {
        frame(kind::WINDOW_UPDATE, 0, stream, &[0; 4])
    }),
    GivingUp("a window past the largest (CVE-2025-8671)", "/pass", None, |stream| {
        frame(kind::WINDOW_UPDATE, 0, stream, &[0x7f, 0xff, 0xff, 0xff])
    }),
    GivingUp("more than Content-Length", "/pass", Some("100"), |stream| {
        frame(kind::DATA, 0, stream, &[b'x'; 61])
    }),
    GivingUp("less than Content-Length", "/pass", Some("100"), |stream| {
        frame(kind::DATA, flag::END_STREAM, stream, b"")
    }),
    GivingUp("trailers with a pseudo-header", "/pass", None, |stream| {
        headers(stream, &block(&[(":path", "/")]))
    }),
    GivingUp("trailers that end nothing", "/pass", None, |stream| {
        frame(kind::HEADERS, flag::END_HEADERS, stream, &block(&[("x-a", "1")]))
    }),
    GivingUp("more than client_max_body_size", "/little", None, |stream| {
        frame(kind::DATA, 0, stream, &[b'x'; 1100])
    }),
    GivingUp("more than Content-Length, of gRPC", "/grpc", Some("100"), |stream| {
        frame(kind::DATA, 0, stream, &[b'x'; 61])
    }),
];

#[test]
fn hits_do_not_pay_for_what_upstreams_did_in_vain() {
    skip_on_nginx!();
    let origin = millstream_tests::endless::Endless::start(b"");
    let values = [("ORIGIN", origin.address()), ("DASHBOARD", ports::free().to_string())];
    let server = Server::start(SITE, &values.each_ref().map(|(name, value)| (*name, value.as_str())));
    for GivingUp(name, path, length, give_up) in GIVEN_UP {
        let mut frames = Frames::connect(server.port());
        let (mut given_up, asked) = (0, origin.asked());
        while frames.goaways().is_empty() && !frames.is_closed() {
            assert!(given_up < 1_000, "{name}: {given_up} were given up, and more may be");
            let stream = frames.take_number();
            let fields: Vec<_> = length.iter().map(|length| ("content-length", *length)).collect();
            let open = frame(kind::HEADERS, flag::END_HEADERS, stream, &request("POST", path, &fields));
            let (begin, ping) = (frame(kind::DATA, 0, stream, &[b'x'; 40]), frame(kind::PING, 0, 0, &[0; 8]));
            if frames.try_send(&[open, begin, ping].concat()).is_err() {
                break;
            }
            frames.read_for(Duration::from_millis(1));
            let hits = [frames.take_number(), frames.take_number()].map(|hit| headers(hit, &get("/")));
            given_up += 1;
            if frames.try_send(&[give_up(stream), hits.concat()].concat()).is_err() {
                break;
            }
            frames.read_for(Duration::from_millis(1));
        }
        let code = frames.closes_within(Duration::from_secs(5)).expect(name);
        assert!(code.is_none_or(|code| CALM.contains(&code)), "{name}: {code:?}");
        assert!(given_up >= 100, "{name}: {given_up} are few");
        assert!(origin.asked() > asked, "{name}: no upstream was asked");
    }
}

#[test]
fn a_request_that_is_given_up_in_the_same_breath_asks_no_upstream() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let values = [("ORIGIN", origin.address()), ("DASHBOARD", ports::free().to_string())];
    let server = Server::start(SITE, &values.each_ref().map(|(name, value)| (*name, value.as_str())));
    let mut frames = Frames::connect(server.port());
    frames.round_trip();
    let mut bytes = Vec::new();
    for _ in 0..30 {
        let stream = frames.take_number();
        bytes.extend_from_slice(&headers(stream, &get("/pass")));
        bytes.extend_from_slice(&reset(stream));
    }
    frames.send(&bytes);
    frames.round_trip();
    assert_eq!(frames.whole("/pass").status, 200);
    // A turn ends after a millisecond, which on a busy machine may be between a request and its end.
    let (asked, opened) = (origin.count(), origin.connections());
    assert!(
        opened <= 3 && asked <= opened,
        "of 30 that were given up {opened} got there, with the whole one"
    );
    let stream = frames.take_number();
    frames.send(&[headers(stream, &get("/regardless")), reset(stream)].concat());
    wait::until("what is asked for regardless of its client gets there", || origin.count() > asked);
}

#[test]
fn what_is_abandoned_at_an_upstream_is_reset_and_what_has_ended_is_closed() {
    skip_on_nginx!();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let values = [("ORIGIN", address.as_str()), ("DASHBOARD", &ports::free().to_string())];
    let server = Server::start(SITE, &values);
    let accept = || {
        let (mut stream, _) = listener.accept().expect("it is asked");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            assert_eq!(stream.read(&mut byte).expect("a head"), 1);
            head.push(byte[0]);
        }
        stream
    };
    let end = |mut stream: std::net::TcpStream| stream.read(&mut [0; 64]).map_err(|error| error.kind());
    let mut frames = Frames::connect(server.port());
    for begin in
        [&b""[..], b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun", b"HTTP/1.1 200 OK\r\n\r\nbegun"]
    {
        let stream = frames.get("/pass");
        let mut upstream = accept();
        upstream.write_all(begin).expect("taken");
        frames.until("the head is there", |frames| begin.is_empty() || frames.so_far(stream).status == 200);
        frames.give_up(stream);
        assert_eq!(end(upstream), Err(std::io::ErrorKind::ConnectionReset), "over HTTP/2");
        let mut client = server.client();
        client.send("GET /pass HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        let mut upstream = accept();
        upstream.write_all(begin).expect("taken");
        if !begin.is_empty() {
            assert_eq!(client.head().expect("a head").status, 200);
        }
        drop(client);
        assert_eq!(end(upstream), Err(std::io::ErrorKind::ConnectionReset), "over HTTP/1.1");
    }
    let stream = frames.get("/pass");
    let mut upstream = accept();
    upstream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfine")
        .expect("taken");
    assert_eq!(frames.answer(stream).text(), "fine");
    assert_eq!(end(upstream), Ok(0), "in order");
}
