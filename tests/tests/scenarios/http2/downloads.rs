//! Answers: whole from wherever they come, cut where they are, at the pace of who takes them, the urgent ones first.

use std::iter;
use std::time::Duration;

use millstream_tests::client;
use millstream_tests::frames::{End, Frames, headers, request};
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::process::resident_bytes;
use millstream_tests::server::Server;
use millstream_tests::wait;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::frame::kind;
use millstream_wire::h2::settings;

const SITE: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
    http {
        access_log @DIR@/access.log; proxy_http_version 1.1; proxy_temp_path @DIR@/temp;
        proxy_cache_path memory keys_zone=z:1m memory=64m; gzip_types text/plain;
        server { listen 127.0.0.1:@PORT@; http2 on; root @DIR@/site; default_type text/plain; send_timeout @SEND@;
            location / { }
            location /pass { proxy_pass http://@ORIGIN@; proxy_pass_trailers on; }
            location /cached { proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_valid 200 1h; add_header X-Cache $upstream_cache_status; }
            location /pieces { proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_valid 200 1h; http2_chunk_size 32; }
            location /gzip { alias @DIR@/site/; gzip on; }
            location /trailed { alias @DIR@/site/; add_trailer X-Sent $bytes_sent; }
            location /slow { alias @DIR@/site/; limit_rate 100k; }
            location /none { return 204; } }
    }";

const LARGE: usize = 5_000_000;

fn large() -> Vec<u8> {
    (0..LARGE as u32).map(|n| b'a' + (n.wrapping_mul(2_654_435_761) >> 24) as u8 % 26).collect()
}

fn start(origin: &Origin, send_timeout: &str) -> Server {
    let server = Server::start(SITE, &[("ORIGIN", &origin.address()), ("SEND", send_timeout)]);
    let site = server.prefix().join("site");
    std::fs::create_dir(&site).expect("own directory");
    std::fs::write(site.join("large"), large()).expect("own directory");
    std::fs::write(site.join("small"), "a small file, which is not that small ".repeat(20))
        .expect("own directory");
    server
}

fn origin() -> Origin {
    Origin::start(|request| {
        match request.target() {
        "/pass/cut" => {
            vec![Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome".to_vec()), Step::Close]
        }
        "/pass/chunked" => vec![Step::Send(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n".to_vec(),
        )],
        _ => answer(200, &[("ETag", "\"v\""), ("Content-Type", "text/plain")], &large()),
    }
    })
}

/// A body that goes to the socket without a copy, and its API.
fn middling() -> (Vec<u8>, Origin) {
    let body = large()[..60_000].to_vec();
    let answered = body.clone();
    (body, Origin::start(move |_| answer(200, &[("Content-Type", "text/plain")], &answered)))
}

#[test]
fn five_megabytes_come_whole_from_a_file_the_cache_and_an_api() {
    skip_on_nginx!();
    let (origin, expected) = (origin(), large());
    let server = start(&origin, "60s");
    let mut frames = Frames::connect(server.port());
    for path in ["/large", "/pass/a", "/cached/a", "/cached/a", "/slow/small", "/gzip/small"] {
        let answer = frames.whole(path);
        assert_eq!(answer.status, 200, "{path}");
        match path {
            "/slow/small" => assert_eq!(answer.field("content-length"), Some("760")),
            "/gzip/small" => assert_eq!(answer.field("content-encoding"), None, "nobody asked for it"),
            _ => assert!(answer.body == expected, "{path}: {} octets", answer.body.len()),
        }
    }
    // All at once, by a client with the windows that a client has that says nothing.
    let mut frames = Frames::connect_with(server.port(), &[]);
    let streams: Vec<u32> = (0..8).map(|n| frames.get(["/large", "/pass/b", "/cached/a"][n % 3])).collect();
    let mut given: Vec<usize> = vec![0; streams.len()];
    frames.until("all have come", |now| {
        let mut all = 0;
        for (stream, given) in streams.iter().zip(&mut given) {
            let came = now.so_far(*stream).body.len();
            if came > *given && !now.has_ended(*stream) {
                now.widen(*stream, (came - *given) as u32);
            }
            all += came - *given;
            *given = came;
        }
        if all > 0 {
            now.widen(0, all as u32);
        }
        streams.iter().all(|stream| now.has_ended(*stream))
    });
    for stream in streams {
        assert!(frames.so_far(stream).body == expected, "stream {stream}");
    }
}

#[test]
fn many_answers_of_some_size_at_once_come_whole_however_slowly_they_are_taken() {
    skip_on_nginx!();
    let (expected, origin) = middling();
    let server = start(&origin, "60s");
    assert_eq!(Frames::connect(server.port()).whole("/cached/a").status, 200);
    let mut frames = Frames::connect(server.port());
    let streams: Vec<u32> = (0..120).map(|_| frames.get("/cached/a")).collect();
    // Nobody reads: seven megabytes are more than the kernel takes, so that some of it waits, and some waits for its turn.
    let (answered, mut others) = (streams.len(), Frames::connect(server.port()));
    assert!(others.whole("/cached/a").body == expected, "somebody else is answered meanwhile");
    frames.until("all have come", |now| streams.iter().all(|stream| now.has_ended(*stream)));
    let whole = streams.iter().filter(|stream| frames.so_far(**stream).body == expected);
    assert_eq!(whole.count(), answered);
}

#[test]
fn answers_without_a_body_with_a_part_of_one_packed_or_trailed_are_as_over_http1() {
    skip_on_nginx!();
    let origin = origin();
    let server = start(&origin, "60s");
    let mut frames = Frames::connect(server.port());
    let mut ask = |method: &str, path: &str, fields: &[(&str, &str)]| {
        let stream = frames.request(method, path, fields, true);
        let answer = frames.answer(stream);
        assert_eq!(answer.end, End::Whole, "{method} {path}");
        answer
    };
    let head = ask("HEAD", "/large", &[]);
    assert_eq!((head.status, head.field("content-length"), head.body.len()), (200, Some("5000000"), 0));
    let none = ask("GET", "/none", &[]);
    assert_eq!((none.status, none.body.len()), (204, 0));
    let etag = ask("GET", "/small", &[]).field("etag").expect("files have one").to_owned();
    let same = ask("GET", "/small", &[("if-none-match", &etag)]);
    assert_eq!((same.status, same.body.len()), (304, 0));
    let part = ask("GET", "/large", &[("range", "bytes=10-19")]);
    assert_eq!((part.status, part.body.as_slice()), (206, &large()[10..20]));
    assert_eq!(part.field("content-range"), Some("bytes 10-19/5000000"));
    let packed = ask("GET", "/gzip/small", &[("accept-encoding", "gzip")]);
    let mut unpacked = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&packed.body[..]), &mut unpacked)
        .expect("gzip");
    assert_eq!(unpacked, client::get(server.port(), "/small").text());
    let trailed = ask("GET", "/trailed/small", &[]);
    assert_eq!(trailed.trailers.first().map(|(name, _)| name.as_str()), Some("x-sent"), "{trailed:?}");
    let passed = ask("GET", "/pass/chunked", &[("te", "trailers")]);
    assert_eq!((passed.text().as_str(), passed.trailers.len()), ("body", 1), "{passed:?}");
    let missing = ask("GET", "/nowhere", &[]);
    assert_eq!(missing.status, 404);
}

#[test]
fn what_an_api_cuts_is_no_whole_answer() {
    skip_on_nginx!();
    let origin = origin();
    let server = start(&origin, "60s");
    let mut frames = Frames::connect(server.port());
    let cut = frames.get("/pass/cut");
    let answer = frames.answer(cut);
    assert_eq!((answer.status, answer.end), (200, End::Reset(ErrorCode::InternalError)));
    assert_eq!(frames.whole("/small").status, 200);
}

#[test]
fn who_never_opens_its_window_stops_nobody_else_and_has_its_time() {
    skip_on_nginx!();
    let origin = origin();
    let server = start(&origin, "700ms");
    for path in ["/large", "/cached/a", "/pass/a"] {
        let mut frames = Frames::connect_with(server.port(), &[(settings::INITIAL_WINDOW_SIZE, 0)]);
        frames.widen(0, 1 << 30);
        let stalled = frames.get(path);
        let other = frames.get("/large");
        frames.widen(other, 1 << 30);
        assert_eq!(frames.answer(other).body.len(), LARGE);
        let small = frames.get("/small");
        frames.widen(small, 1 << 20);
        assert_eq!(frames.answer(small).status, 200);
        let answer = frames.answer(stalled);
        assert_eq!((answer.status, answer.end), (200, End::Reset(ErrorCode::InternalError)), "{path}");
        assert!(answer.body.is_empty());
        let small = frames.get("/small");
        frames.widen(small, 1 << 20);
        assert_eq!(frames.answer(small).status, 200, "the connection goes on");
    }
    wait::until("the log has them", || server.prefix().read("access.log").lines().count() >= 12);
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn an_answer_that_waits_its_turn_behind_a_long_one_is_not_cut_for_it() {
    skip_on_nginx!();
    let origin = origin();
    let server = start(&origin, "400ms");
    let mut frames = Frames::connect_with(server.port(), &[(settings::INITIAL_WINDOW_SIZE, 1 << 30)]);
    let long = frames.get("/large");
    frames.until("the window is used up", |now| now.so_far(long).body.len() == 65_535);
    let waits = [frames.get("/large"), frames.get("/cached/a")];
    // A slow line, on which something arrives all the time.
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(1500) {
        frames.widen(0, 5000);
        frames.read_for(Duration::from_millis(30));
        assert!(waits.iter().all(|stream| !frames.has_ended(*stream)), "cut after {:?}", begun.elapsed());
    }
    assert!(frames.so_far(long).body.len() > 100_000);
    frames.widen(0, 1 << 30);
    for stream in [long, waits[0], waits[1]] {
        let answer = frames.answer(stream);
        assert_eq!((answer.end, answer.body.len()), (End::Whole, LARGE));
    }
    // Who takes nothing at all has its time.
    let mut frames = Frames::connect_with(server.port(), &[(settings::INITIAL_WINDOW_SIZE, 1 << 30)]);
    let streams = [frames.get("/large"), frames.get("/large")];
    for stream in streams {
        assert_eq!(frames.answer(stream).end, End::Reset(ErrorCode::InternalError));
    }
}

#[test]
fn the_rate_of_an_answer_is_its_own() {
    skip_on_nginx!();
    let origin = origin();
    let server = start(&origin, "60s");
    let mut frames = Frames::connect(server.port());
    let slow = frames.get("/slow/large");
    frames.until("it begins", |now| !now.so_far(slow).body.is_empty());
    let begun = std::time::Instant::now();
    assert_eq!(frames.whole("/large").body.len(), LARGE);
    frames.read_for(Duration::from_millis(300));
    let came = frames.so_far(slow).body.len();
    let most = 250_000 + 100 * 1024 * begun.elapsed().as_millis() as usize / 1000;
    assert!(came < most, "{came} octets by 100k a second");
    frames.give_up(slow);
    assert_eq!(frames.whole("/small").status, 200);
}

#[test]
fn the_urgent_come_first_and_who_changes_its_mind_is_heard() {
    skip_on_nginx!();
    let origin = origin();
    let server = start(&origin, "60s");
    // What is said ahead of the requests, and behind them: of which, and what.
    for (first, second, ahead, behind, expected) in [
        ("u=5", "u=0", None, None, [1, 0]),
        ("u=0", "u=5", None, None, [0, 1]),
        ("u=3", "u=3", None, None, [0, 1]),
        ("u=5", "u=5", None, Some((1, "u=0")), [1, 0]),
        ("u=0", "u=0", None, Some((0, "u=7")), [1, 0]),
        ("u=3", "u=3", Some((1, "u=1")), None, [1, 0]),
        ("u=0", "u=1", Some((0, "u=2")), None, [1, 0]),
        ("u=3", "u=3", Some((1, "u=1")), Some((1, "u=4")), [0, 1]),
    ] {
        // The connection's window is closed until both wait for it.
        let mut frames = Frames::connect_with(server.port(), &[(settings::INITIAL_WINDOW_SIZE, 1 << 30)]);
        let filling = frames.get("/large");
        frames.until("the window is used up", |now| now.so_far(filling).body.len() == 65_535);
        let said = |stream: u32, priority: &str| {
            let payload = [&stream.to_be_bytes()[..], priority.as_bytes()].concat();
            millstream_tests::frames::frame(kind::PRIORITY_UPDATE, 0, 0, &payload)
        };
        if let Some((which, priority)) = ahead {
            frames.send(&said(filling + 2 * (which + 1), priority));
        }
        let streams = [first, second].map(|priority| frames.get_with("/large", &[("priority", priority)]));
        frames.until("both have begun", |now| streams.iter().all(|stream| now.so_far(*stream).status == 200));
        frames.round_trip();
        if let Some((which, priority)) = behind {
            frames.send(&said(streams[which], priority));
        }
        frames.give_up(filling);
        frames.widen(0, 1 << 30);
        frames.until("both have come", |now| streams.iter().all(|stream| now.has_ended(*stream)));
        let order: Vec<u32> =
            frames.order().iter().copied().filter(|stream| streams.contains(stream)).collect();
        assert_eq!(
            order,
            expected.map(|which: usize| streams[which]),
            "{first} {second} {ahead:?} {behind:?}"
        );
    }
}

#[test]
fn what_is_urgent_is_not_overtaken_by_what_came_with_it_and_could_be_answered_at_once() {
    skip_on_nginx!();
    let origin = Origin::start(|request| {
        let length = if request.target() == "/cached/large" { LARGE } else { 60_000 };
        answer(200, &[("Content-Type", "text/plain")], &large()[..length])
    });
    let server = start(&origin, "60s");
    let mut frames = Frames::connect(server.port());
    for path in ["/cached/large", "/cached/small"] {
        assert_eq!(frames.whole(path).status, 200);
    }
    let urgencies = iter::once(("/cached/large", "u=0")).chain(iter::repeat_n(("/cached/small", "u=7"), 20));
    let streams: Vec<(u32, Vec<u8>)> = urgencies
        .map(|(path, priority)| (frames.take_number(), request("GET", path, &[("priority", priority)])))
        .collect();
    let burst: Vec<u8> = streams.iter().flat_map(|(stream, block)| headers(*stream, block)).collect();
    frames.send(&burst);
    frames.until("all have come", |now| streams.iter().all(|(stream, _)| now.has_ended(*stream)));
    let first = frames.order().iter().find(|stream| streams.iter().any(|(one, _)| one == *stream));
    assert_eq!(first, Some(&streams[0].0));
}

#[test]
fn an_answer_of_thousands_of_frames_comes_whole_without_another_word_of_its_client() {
    skip_on_nginx!();
    let (expected, origin) = middling();
    let server = start(&origin, "60s");
    let mut frames = Frames::connect(server.port());
    for _ in 0..2 {
        assert!(frames.whole("/pieces/a").body == expected);
    }
}

#[test]
fn those_that_are_of_use_piece_by_piece_share() {
    skip_on_nginx!();
    let origin = origin();
    let server = start(&origin, "60s");
    let mut frames = Frames::connect_with(server.port(), &[(settings::INITIAL_WINDOW_SIZE, 1 << 30)]);
    let filling = frames.get("/large");
    frames.until("the window is used up", |now| now.so_far(filling).body.len() == 65_535);
    let streams = [0, 1].map(|_| frames.get_with("/large", &[("priority", "i")]));
    frames.until("both have begun", |now| streams.iter().all(|stream| now.so_far(*stream).status == 200));
    frames.round_trip();
    frames.give_up(filling);
    frames.widen(0, 1 << 20);
    frames.until("the window is used up", |now| {
        streams.iter().map(|stream| now.so_far(*stream).body.len()).sum::<usize>() == 1 << 20
    });
    for stream in streams {
        let came = frames.so_far(stream).body.len();
        assert!((400_000..700_000).contains(&came), "{came} of {}", 1 << 20);
    }
}

#[test]
fn stalled_answers_of_the_cache_hold_no_copy_of_their_bodies() {
    skip_on_nginx!();
    let origin = origin();
    let server = start(&origin, "60s");
    assert_eq!(client::get(server.port(), "/cached/a").body.len(), LARGE);
    let before = resident_bytes(server.id());
    let mut frames = Frames::connect_with(server.port(), &[(settings::INITIAL_WINDOW_SIZE, 0)]);
    let streams: Vec<u32> = (0..100).map(|_| frames.get("/cached/a")).collect();
    frames.until("all have begun", |now| streams.iter().all(|stream| now.so_far(*stream).status == 200));
    let grown = resident_bytes(server.id()).saturating_sub(before);
    println!("100 stalled answers of {LARGE} octets out of the cache: {} KiB each", (grown / 100) >> 10);
    assert!(grown / 100 < 512 << 10, "{grown} bytes for 100 stalled answers");
}
