//! Clients that keep to the rules in ways that few do, and races that the rules allow.

use std::sync::Arc;
use std::time::Duration;

use millstream_tests::frames::{End, Frames, frame, headers, request};
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::frame::{flag, kind};
use millstream_wire::h2::settings;
use millstream_wire::h2::write;

const SITE: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
    http {
        access_log @DIR@/access.log; proxy_cache_path memory keys_zone=z:1m; proxy_http_version 1.1; client_header_timeout @HEADER@; keepalive_requests 100000;
        server { listen 127.0.0.1:@PORT@; http2 on; http2_body_preread_size 64k;
            location / { proxy_pass http://@ORIGIN@; }
            location /large-head { add_header X-Large \"@LARGE@\"; proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_valid 200 1h; }
            location /small { return 200 small; }
            location /status { stub_status; }
            location /guarded { auth_request /guard; proxy_pass http://@ORIGIN@; client_max_body_size 10m; }
            location = /guard { proxy_pass http://@ORIGIN@; proxy_pass_request_body off; proxy_set_header Content-Length \"\"; } }
    }";

fn start(origin: &Origin, header_timeout: &str) -> Server {
    start_with(SITE, origin, header_timeout)
}

fn start_with(site: &str, origin: &Origin, header_timeout: &str) -> Server {
    let large = "x".repeat(4000);
    let values = [("ORIGIN", origin.address()), ("HEADER", header_timeout.to_owned()), ("LARGE", large)];
    Server::start(site, &values.each_ref().map(|(name, value)| (*name, value.as_str())))
}

#[test]
fn requests_that_come_together_are_all_answered_however_large_their_answers_heads_are() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let server = start(&origin, "60s");
    let mut frames = Frames::connect(server.port());
    assert_eq!(frames.whole("/large-head").status, 200);
    let block = request("HEAD", "/large-head", &[]);
    // The more the kernel takes at once the more is left to be read of what has come.
    for _ in 0..30 {
        let numbers: Vec<u32> = (0..100).map(|_| frames.take_number()).collect();
        let all: Vec<u8> = numbers.iter().flat_map(|number| headers(*number, &block)).collect();
        assert!(all.len() < 16_384, "they come by one read");
        frames.send(&all);
        frames.until("all are answered", |now| numbers.iter().all(|number| now.has_ended(*number)));
    }
}

#[test]
fn a_request_that_comes_in_pieces_after_a_pause_has_the_time_of_any_other() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let server = start(&origin, "400ms");
    let mut frames = Frames::connect(server.port());
    assert_eq!(frames.whole("/small").status, 200);
    // `keepalive_timeout` is what an idle connection may take.
    frames.read_for(Duration::from_millis(600));
    assert!(!frames.is_closed(), "{:?}", frames.goaways());
    let number = frames.take_number();
    let bytes = headers(number, &request("GET", "/small", &[]));
    frames.send(&bytes[..20]);
    frames.read_for(Duration::from_millis(50));
    assert!(!frames.is_closed(), "it was cut in the middle of its request: {:?}", frames.goaways());
    frames.send(&bytes[20..]);
    assert_eq!(frames.answer(number).status, 200);
    // Who stops in the middle has no more time than that.
    frames.send(&bytes[..20]);
    assert!(frames.closes_within(Duration::from_secs(10)).is_some());
}

#[test]
fn more_than_a_connections_window_ends_it_and_nothing_else() {
    skip_on_nginx!();
    let gate = Arc::new(Gate::default());
    let closed = Arc::clone(&gate);
    let origin = Origin::start(move |request| {
        let mut steps = vec![];
        if request.target() == "/guard" {
            steps.push(Step::Pass(Arc::clone(&closed)));
        }
        steps.extend(answer(200, &[], b"fine"));
        steps
    });
    let server = start(&origin, "60s");
    let mut other = Frames::connect(server.port());
    let mut frames = Frames::connect(server.port());
    frames.round_trip();
    let piece = [0; 16_000];
    // Bodies that nobody reads before the guard has said so; the connection's window is closed after 2 MB of them.
    for _ in 0..60 {
        let stream = frames.request("POST", "/guarded", &[], false);
        for _ in 0..4 {
            if frames.try_send(&frame(kind::DATA, 0, stream, &piece)).is_err() {
                break;
            }
        }
    }
    let end = frames.closes_within(Duration::from_secs(10));
    assert_eq!(end, Some(Some(ErrorCode::FlowControlError)));
    gate.open();
    assert_eq!(other.whole("/small").text(), "small");
    let streams = (frames.goaways()[0].0 as usize).div_ceil(2);
    assert!(streams > 30, "{streams} were enough");
    wait::until("all of its streams are over", || {
        server.prefix().read("access.log").matches("POST /guarded HTTP/2.0").count() == streams
    });
    assert_eq!(other.whole("/").status, 200);
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn windows_may_turn_negative_and_open_again() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], &vec![b'x'; 200_000]);
    let server = start(&origin, "60s");
    let mut frames = Frames::connect_with(server.port(), &[(settings::INITIAL_WINDOW_SIZE, 50_000)]);
    frames.widen(0, 1 << 20);
    let stream = frames.get("/");
    frames.until("the window is used up", |now| now.so_far(stream).body.len() == 50_000);
    frames.frame(|out| write::settings(out, &[(settings::INITIAL_WINDOW_SIZE, 0)]));
    frames.widen(stream, 40_000);
    frames.round_trip();
    assert_eq!(frames.so_far(stream).body.len(), 50_000, "the window is at -10,000");
    frames.widen(stream, 10_001);
    frames.until("one more octet comes", |now| now.so_far(stream).body.len() == 50_001);
    frames.frame(|out| write::settings(out, &[(settings::INITIAL_WINDOW_SIZE, 1 << 20)]));
    let answer = frames.answer(stream);
    assert_eq!((answer.end, answer.body.len()), (End::Whole, 200_000));
    // One that is past the largest with the new setting ends the connection.
    let stream = frames.get("/");
    frames.widen(stream, (1 << 31) - 1 - (1 << 20));
    frames.frame(|out| write::settings(out, &[(settings::INITIAL_WINDOW_SIZE, (1 << 31) - 1)]));
    frames.read_for(Duration::from_millis(500));
    let broken = frames.goaways().last().map(|(_, code)| *code);
    assert!(broken.is_none() || broken == Some(ErrorCode::FlowControlError));
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn what_crosses_the_end_of_a_stream_hurts_nobody() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let server = start(&origin, "60s");
    let mut frames = Frames::connect(server.port());
    for _ in 0..40 {
        let stream = frames.get("/small");
        frames.widen(stream, 1000);
        frames.give_up(stream);
        frames.widen(stream, 1000);
        let given_up = frames.get("/");
        frames.give_up(given_up);
        frames.give_up(given_up);
        frames.send(&frame(kind::PRIORITY, 0, stream, &[0, 0, 0, 0, 16]));
    }
    // A body that comes on a stream that was answered early.
    let early = frames.request("POST", "/small", &[], false);
    let answer = frames.answer(early);
    assert_eq!(answer.text(), "small");
    frames.data(early, b"late", false);
    frames.data(early, b"later", true);
    assert_eq!(frames.whole("/small").text(), "small");
    // DATA behind the end of a body is that stream's fault alone.
    let twice = frames.request("POST", "/", &[], false);
    frames.data(twice, b"body", true);
    frames.data(twice, b"more", true);
    frames.until("it ends", |now| now.has_ended(twice));
    assert_eq!(frames.whole("/small").text(), "small");
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn blocks_in_pieces_padding_and_old_priorities_are_read_as_they_are() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let server = start(&origin, "60s");
    let mut frames = Frames::connect(server.port());
    let block = request("GET", "/small", &[("x-a", "1")]);
    let number = frames.take_number();
    frames.send(&frame(kind::HEADERS, flag::END_STREAM, number, &block[..1]));
    for byte in &block[1..block.len() - 1] {
        frames.send(&frame(kind::CONTINUATION, 0, number, &[*byte]));
    }
    frames.send(&frame(kind::CONTINUATION, flag::END_HEADERS, number, &block[block.len() - 1..]));
    assert_eq!(frames.answer(number).text(), "small");
    let number = frames.take_number();
    let padded = [&[3][..], &[0, 0, 0, 0, 16], &block, &[0, 0, 0]].concat();
    let flags = flag::END_STREAM | flag::END_HEADERS | flag::PADDED | flag::PRIORITY;
    frames.send(&frame(kind::HEADERS, flags, number, &padded));
    assert_eq!(frames.answer(number).text(), "small");
    let number = frames.request("POST", "/", &[("content-length", "4")], false);
    frames.send(&frame(kind::DATA, flag::PADDED | flag::END_STREAM, number, b"\x05body\0\0\0\0\0"));
    assert_eq!(frames.answer(number).text(), "fine");
    assert_eq!(origin.requests()[0].body, b"body");
}

#[test]
fn a_table_that_the_client_does_not_keep_is_not_used() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let server = start(&origin, "60s");
    let mut frames = Frames::connect_with(server.port(), &[(settings::HEADER_TABLE_SIZE, 0)]);
    assert_eq!(frames.whole("/small").text(), "small");
    frames.frame(|out| write::settings(out, &[(settings::HEADER_TABLE_SIZE, 100)]));
    frames.frame(|out| {
        write::settings(out, &[(settings::HEADER_TABLE_SIZE, 0), (settings::MAX_FRAME_SIZE, 1 << 20)])
    });
    frames.until("both are acknowledged", |now| now.acknowledged() == 3);
    assert_eq!(frames.whole("/").text(), "fine");
}

/// A pseudorandom number (xorshift).
fn any(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % below
}

/// A frame that may or may not be allowed.
fn any_frame(state: &mut u64, next: &mut u32) -> Vec<u8> {
    let stream = next.saturating_sub(any(state, 12) as u32);
    let path = ["/", "/small", "/large-head", "/guarded", "/missing"][any(state, 5) as usize];
    let method = ["GET", "POST", "HEAD"][any(state, 3) as usize];
    let length = any(state, 20).to_string();
    let fields = [("content-length", length.as_str()), ("priority", "u=1, i"), ("expect", "100-continue")];
    let block = request(method, path, &fields[..any(state, 4) as usize]);
    let flags = any(state, 256) as u8;
    let sound = flag::END_HEADERS | any(state, 2) as u8;
    let number = [0, 1, 100, 65_536, u32::MAX >> 1][any(state, 5) as usize];
    match any(state, 100) {
        0..=39 => {
            *next += 2;
            frame(kind::HEADERS, sound, *next - 2, &block)
        }
        40..=69 => frame(kind::DATA, any(state, 2) as u8, stream | 1, &vec![b'x'; any(state, 40) as usize]),
        70..=77 => frame(kind::RST_STREAM, 0, stream | 1, &[0, 0, 0, 8]),
        78..=85 => frame(kind::WINDOW_UPDATE, 0, stream, &(number & 0xffff).max(1).to_be_bytes()),
        86..=90 => frame(kind::SETTINGS, 0, 0, &[&[0, 4][..], &number.to_be_bytes()].concat()),
        91..=93 => frame(kind::PRIORITY_UPDATE, 0, 0, &[&(stream | 1).to_be_bytes()[..], b"u=0"].concat()),
        94..=96 => frame(kind::PING, 0, 0, b"12345678"),
        97 => frame(kind::HEADERS, flags, stream, &block),
        98 => frame(kind::CONTINUATION, flags, stream, &block[..block.len() / 2]),
        _ => frame(any(state, 20) as u8, flags, stream, &vec![7; any(state, 20) as usize]),
    }
}

#[test]
fn whatever_frames_come_nobody_panics_nobody_hangs_and_others_are_served() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], &[b'x'; 3000]);
    let server = start(&origin, "2s");
    let mut other = server.client();
    for seed in 1..=400_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut frames = Frames::raw(server.port());
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
        let mut next = 1;
        for _ in 0..any(&mut state, 60) {
            bytes.extend(any_frame(&mut state, &mut next));
        }
        // All of them at once, or in pieces that end anywhere.
        let piece = [usize::MAX, 1000, 100][any(&mut state, 3) as usize];
        for piece in bytes.chunks(piece.min(bytes.len())) {
            if frames.try_send(piece).is_err() {
                break;
            }
        }
        // What is closed with answers unread may be lost whole; and what is answered is judged.
        frames.read_for(Duration::from_millis(4));
        drop(frames);
        if seed % 40 == 0 {
            assert_eq!(other.get("/small").expect("others are served").text(), "small", "seed {seed}");
        }
    }
    wait::until("all of them are over", || {
        let status = server.get("/status").text();
        status.lines().next().is_some_and(|line| line.trim_end().ends_with(": 2"))
    });
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn streams_that_are_over_leave_room_for_others_that_come_by_the_same_read() {
    skip_on_nginx!();
    let gate = Arc::new(Gate::default());
    let closed = Arc::clone(&gate);
    let origin =
        Origin::start(move |_| [vec![Step::Pass(Arc::clone(&closed))], answer(200, &[], b"late")].concat());
    let site =
        SITE.replace("http2 on;", "http2 on; http2_max_concurrent_streams 4; location /none { return 404; }");
    let server = start_with(&site, &origin, "60s");
    let mut frames = Frames::connect(server.port());
    let left: Vec<u32> = (0..4).map(|_| frames.get("/slow")).collect();
    frames.round_trip();
    let mut all = Vec::new();
    left.iter().for_each(|stream| write::reset(&mut all, *stream, ErrorCode::Cancel));
    let next = frames.take_number();
    write::headers(&mut all, next, &request("GET", "/small", &[]), true, 16_384);
    frames.send(&all);
    assert_eq!(frames.answer(next).text(), "small");
    // One that has been answered ends with the last of its upload.
    let uploads: Vec<u32> = (0..4).map(|_| frames.request("POST", "/none", &[], false)).collect();
    frames.until("all are answered", |now| uploads.iter().all(|stream| now.has_ended(*stream)));
    let mut all = Vec::new();
    write::data_head(&mut all, uploads[0], 0, true);
    let next = frames.take_number();
    write::headers(&mut all, next, &request("GET", "/small", &[]), true, 16_384);
    frames.send(&all);
    assert_eq!(frames.answer(next).text(), "small");
    gate.open();
}

#[test]
fn trailers_of_any_upload_that_was_given_up_are_no_harm() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let site = SITE.replace("http2 on;", "http2 on; lingering_close off;");
    let server = start_with(&site, &origin, "60s");
    let mut frames = Frames::connect(server.port());
    let uploads: Vec<u32> = (0..100).map(|_| frames.request("POST", "/small", &[], false)).collect();
    frames.until("all are answered", |now| uploads.iter().all(|stream| now.has_ended(*stream)));
    frames.round_trip();
    let trailers = millstream_tests::frames::block(&[("x-checksum", "1")]);
    uploads
        .iter()
        .for_each(|stream| frames.frame(|out| write::headers(out, *stream, &trailers, true, 16_384)));
    assert_eq!(frames.whole("/small").text(), "small");
}
