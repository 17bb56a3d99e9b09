//! Requests that are none (RFC 9113 §8.1.1): each is told so, the log has it, and its neighbours go on.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use millstream_tests::frames::{End, Frames, block, frame};
use millstream_tests::origin::Origin;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::wait;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::frame::{flag, kind};
use millstream_wire::h2::write;

const SITE: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
    http {
        access_log @DIR@/access.log;
        server { listen 127.0.0.1:@PORT@; http2 on;
            location / { proxy_pass http://@ORIGIN@; }
            location /unread { proxy_pass http://@ORIGIN@; proxy_request_buffering off; }
            location /dav/ { root @DIR@; dav_methods PUT DELETE; } }
    }";

const SOUND: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", "/")];

/// By section of the RFC; its lines replace or follow [`SOUND`], with an optional body.
struct Row(&'static str, &'static [(&'static str, &'static str)], Lines, Option<&'static str>);

#[derive(Clone, Copy)]
enum Lines {
    Behind,
    All,
}

const ROWS: &[Row] = &[
    Row("§8.2.1 an upper-case name", &[("X-A", "1")], Lines::Behind, None),
    Row("§8.2.1 an empty name", &[("", "1")], Lines::Behind, None),
    Row("§8.2.1 a name with a colon", &[("x:a", "1")], Lines::Behind, None),
    Row("§8.2.1 a name with a space", &[("x a", "1")], Lines::Behind, None),
    Row("§8.2.1 a value with a line end", &[("x-a", "1\r\nx-b: 2")], Lines::Behind, None),
    Row("§8.2.1 a value with a line feed", &[("x-a", "1\nx-b: 2")], Lines::Behind, None),
    Row("§8.2.1 a value with NUL", &[("x-a", "1\0")], Lines::Behind, None),
    Row("§8.2.1 a value that begins with a space", &[("x-a", " 1")], Lines::Behind, None),
    Row("§8.2.1 a value that ends with a tab", &[("x-a", "1\t")], Lines::Behind, None),
    Row("§8.2.2 Connection", &[("connection", "close")], Lines::Behind, None),
    Row("§8.2.2 Keep-Alive", &[("keep-alive", "1")], Lines::Behind, None),
    Row("§8.2.2 Proxy-Connection", &[("proxy-connection", "close")], Lines::Behind, None),
    Row("§8.2.2 Transfer-Encoding", &[("transfer-encoding", "chunked")], Lines::Behind, Some("0\r\n\r\n")),
    Row("§8.2.2 Upgrade", &[("upgrade", "websocket")], Lines::Behind, None),
    Row("§8.2.2 TE", &[("te", "gzip")], Lines::Behind, None),
    Row("§8.3 an unknown pseudo-header", &[(":x", "1")], Lines::Behind, None),
    Row("§8.3 a pseudo-header of answers", &[(":status", "200")], Lines::Behind, None),
    Row("§8.3 a second :path", &[(":path", "/other")], Lines::Behind, None),
    Row("§8.3 a second :authority", &[(":authority", "other")], Lines::Behind, None),
    Row(
        "§8.3 a pseudo-header behind a field",
        &[(":method", "GET"), (":scheme", "http"), (":authority", "localhost"), ("x-a", "1"), (":path", "/")],
        Lines::All,
        None,
    ),
    Row("§8.3.1 two Hosts", &[("host", "localhost"), ("host", "localhost")], Lines::Behind, None),
    Row(
        "§8.3.1 no :method",
        &[(":scheme", "http"), (":authority", "localhost"), (":path", "/")],
        Lines::All,
        None,
    ),
    Row(
        "§8.3.1 no :scheme",
        &[(":method", "GET"), (":authority", "localhost"), (":path", "/")],
        Lines::All,
        None,
    ),
    Row(
        "§8.3.1 no :path",
        &[(":method", "GET"), (":scheme", "http"), (":authority", "localhost")],
        Lines::All,
        None,
    ),
    Row(
        "§8.3.1 an empty :path",
        &[(":method", "GET"), (":scheme", "http"), (":authority", "localhost"), (":path", "")],
        Lines::All,
        None,
    ),
    Row(
        "§8.3.1 a whole URL in :path",
        &[
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "localhost"),
            (":path", "http://localhost/"),
        ],
        Lines::All,
        None,
    ),
    Row(
        "§8.3.1 a :path with a space",
        &[(":method", "GET"), (":scheme", "http"), (":authority", "localhost"), (":path", "/ HTTP/1.1")],
        Lines::All,
        None,
    ),
    Row(
        "§8.3.1 a :method with a space",
        &[
            (":method", "GET / HTTP/1.1\r\nx:"),
            (":scheme", "http"),
            (":authority", "localhost"),
            (":path", "/"),
        ],
        Lines::All,
        None,
    ),
    Row(
        "§8.3.1 an :authority with a user",
        &[(":method", "GET"), (":scheme", "http"), (":authority", "user@localhost"), (":path", "/")],
        Lines::All,
        None,
    ),
    Row("§8.3.1 no host", &[(":method", "GET"), (":scheme", "http"), (":path", "/")], Lines::All, None),
    Row("§8.3.1 two hosts", &[("host", "other")], Lines::Behind, None),
    Row(
        "§8.5 CONNECT with a path",
        &[(":method", "CONNECT"), (":authority", "a:1"), (":path", "/")],
        Lines::All,
        None,
    ),
    Row("§8.5 CONNECT to nowhere", &[(":method", "CONNECT")], Lines::All, None),
    Row("§8.1.1 a length without a body", &[("content-length", "3")], Lines::Behind, None),
    Row("§8.1.1 more than the length says", &[("content-length", "3")], Lines::Behind, Some("four")),
    Row("§8.1.1 less than the length says", &[("content-length", "9")], Lines::Behind, Some("four")),
    Row(
        "§8.1.1 two lengths",
        &[("content-length", "4"), ("content-length", "5")],
        Lines::Behind,
        Some("four"),
    ),
    Row("§8.1.1 a length that is no number", &[("content-length", "four")], Lines::Behind, Some("four")),
    Row("§8.1.1 a length with a sign", &[("content-length", "+4")], Lines::Behind, Some("four")),
];

fn is_refused(frames: &Frames, stream: u32) -> bool {
    let answer = frames.so_far(stream);
    answer.status == 400 || answer.end == End::Reset(ErrorCode::ProtocolError)
}

#[test]
fn what_is_no_request_is_told_so_its_neighbours_go_on_and_the_log_has_it() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    let mut frames = Frames::connect(server.port());
    for (count, Row(name, lines, which, body)) in ROWS.iter().enumerate() {
        let lines = match which {
            Lines::Behind => [&SOUND, *lines].concat(),
            Lines::All => lines.to_vec(),
        };
        // A neighbour whose body is not there yet.
        let neighbour = frames.request("POST", "/neighbour", &[], false);
        let stream = frames.take_number();
        frames.frame(|out| write::headers(out, stream, &block(&lines), body.is_none(), 16_384));
        if let Some(body) = body {
            frames.data(stream, body.as_bytes(), true);
        }
        frames.until(name, |now| now.has_ended(stream));
        assert!(is_refused(&frames, stream), "{name}: {:?}", frames.so_far(stream));
        frames.data(neighbour, b"its body", true);
        assert_eq!(frames.answer(neighbour).status, 200, "{name}");
        wait::until(&format!("the access log has {name}"), || {
            server.prefix().read("access.log").lines().filter(|line| line.contains("\" 400 ")).count()
                == count + 1
        });
    }
    assert!(origin.requests().iter().all(|request| request.target() == "/neighbour"), "none went on");
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

/// What follows a request's head: octets of a frame, and whether they end the stream.
type Follows = &'static [(&'static [u8], bool)];

#[test]
fn a_body_that_was_said_to_be_empty_is_waited_for_to_its_end_and_asks_no_upstream_where_it_is_not_empty() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let prefix = Prefix::new();
    fs::create_dir(prefix.join("dav")).expect("own directory");
    fs::set_permissions(prefix.join("dav"), fs::Permissions::from_mode(0o777)).expect("own directory");
    let server = Server::start_in(prefix, SITE, &[("ORIGIN", &origin.address())]);
    let mut frames = Frames::connect(server.port());
    let ends: Follows = &[(b"", true)];
    let comes: Follows = &[(b"four", true)];
    for (method, path, length, follows, status) in [
        ("POST", "/", "0", ends, 200),
        ("POST", "/", "0", &[(b"", false), (b"", true)], 200),
        ("GET", "/", "0", ends, 200),
        ("HEAD", "/", "0", ends, 200),
        ("PUT", "/dav/empty", "0", ends, 201),
        ("DELETE", "/dav/empty", "0", ends, 204),
        ("POST", "/", "0", comes, 400),
        ("POST", "/", "0", &[(b"", false), (b"four", false)], 400),
        ("GET", "/", "0", comes, 400),
        ("HEAD", "/", "0", comes, 400),
        ("PUT", "/dav/other", "0", comes, 400),
        ("GET", "/", "3", comes, 400),
        ("GET", "/", "5", comes, 400),
        ("HEAD", "/", "3", comes, 400),
        ("HEAD", "/", "5", comes, 400),
        ("PUT", "/dav/other", "3", comes, 400),
        ("PUT", "/dav/other", "5", comes, 400),
    ] {
        for is_at_once in [true, false] {
            let name = format!("{method} {path} of {length}, {follows:?}, at once: {is_at_once}");
            let reached = || (origin.count(), origin.connections());
            let before = reached();
            let stream = frames.request(method, path, &[("content-length", length)], false);
            if !is_at_once {
                frames.round_trip();
                assert!(method == "DELETE" || frames.so_far(stream).status == 0, "{name}");
                assert_eq!(reached(), before, "{name}");
            }
            follows.iter().for_each(|(piece, is_last)| frames.data(stream, piece, *is_last));
            frames.until(&name, |now| now.has_ended(stream));
            // What is there already is put and deleted once more.
            let wanted = match (status, is_at_once) {
                (201, false) => 204,
                (204, false) => 404,
                _ => status,
            };
            assert_eq!(frames.so_far(stream).status, wanted, "{name}");
            assert_eq!(reached() != before, status == 200, "{name}");
        }
    }
    assert!(!server.prefix().join("dav/other").exists());
    // What is not read first is passed on as it comes.
    let before = origin.count();
    let stream = frames.request("POST", "/unread", &[("content-length", "0")], false);
    wait::until("the upstream is asked", || origin.count() > before);
    frames.data(stream, b"", true);
    assert_eq!(frames.answer(stream).status, 200);
    let stream = frames.request("POST", "/", &[("content-length", "0")], false);
    let end = flag::END_STREAM | flag::END_HEADERS;
    frames.send(&frame(kind::HEADERS, end, stream, &block(&[("x-checksum", "1")])));
    assert_eq!(frames.answer(stream).status, 200);
    let stream = frames.request("POST", "/", &[("content-length", "0")], false);
    frames.send(&frame(kind::HEADERS, end, stream, &block(&[(":path", "/")])));
    assert_eq!(frames.answer(stream).status, 400);
}

#[test]
fn a_body_that_is_too_long_is_told_so_whatever_follows_it() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    let mut frames = Frames::connect(server.port());
    let piece = |stream, flags| frame(kind::DATA, flags, stream, b"four");
    let trailers = |stream| frame(kind::HEADERS, flag::END_STREAM | flag::END_HEADERS, stream, b"");
    for path in ["/", "/unread"] {
        for count in [1, 2, 3] {
            let stream = frames.request("POST", path, &[("content-length", "3")], false);
            let mut bytes = piece(stream, 0).repeat(count);
            bytes.extend(if count == 3 { trailers(stream) } else { piece(stream, flag::END_STREAM) });
            frames.send(&bytes);
            frames.until("it ends", |now| now.has_ended(stream));
            assert!(is_refused(&frames, stream), "{path} {count}: {:?}", frames.so_far(stream));
            assert_ne!(frames.so_far(stream).end, End::Reset(ErrorCode::StreamClosed));
        }
    }
    assert_eq!(frames.whole("/").status, 200);
}

#[test]
fn what_follows_a_body_ends_it_and_has_no_pseudo_headers() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    let mut frames = Frames::connect(server.port());
    let end = flag::END_STREAM | flag::END_HEADERS;
    for (path, name, flags, lines, is_sound) in [
        ("/", "sound ones", end, &[("x-checksum", "1")][..], true),
        ("/", "none", end, &[], true),
        ("/", "no end", flag::END_HEADERS, &[("x-checksum", "1")], false),
        ("/", "a pseudo-header", end, &[(":path", "/")], false),
        ("/", "an upper-case name", end, &[("X-A", "/")], false),
        ("/unread", "no end", flag::END_HEADERS, &[("x-checksum", "1")], false),
        ("/unread", "a pseudo-header", end, &[(":path", "/")], false),
    ] {
        let stream = frames.request("POST", path, &[], false);
        frames.data(stream, b"body", false);
        frames.send(&frame(kind::HEADERS, flags, stream, &block(lines)));
        frames.until(name, |now| now.has_ended(stream));
        match is_sound {
            true => assert_eq!(frames.so_far(stream).status, 200, "{name}"),
            false => assert!(is_refused(&frames, stream), "{path} {name}: {:?}", frames.so_far(stream)),
        }
    }
    assert_eq!(frames.whole("/").status, 200);
}

#[test]
fn what_makes_the_rest_unreadable_ends_the_connection_with_its_code() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    let sound = block(&SOUND);
    let whole = flag::END_STREAM | flag::END_HEADERS;
    let head = |stream, flags| frame(kind::HEADERS, flags, stream, &sound);
    let continuation = |stream| frame(kind::CONTINUATION, flag::END_HEADERS, stream, &sound);
    for (name, bytes, code) in [
        ("§4.2 a large frame", frame(kind::DATA, 0, 1, &[0; 16_385]), ErrorCode::FrameSizeError),
        (
            "§4.3 an unknown index",
            frame(kind::HEADERS, whole, 1, b"\xff\xff\x01"),
            ErrorCode::CompressionError,
        ),
        ("§5.1 DATA on an idle stream", frame(kind::DATA, 0, 1, b"x"), ErrorCode::ProtocolError),
        (
            "§5.1 RST_STREAM on an idle stream",
            frame(kind::RST_STREAM, 0, 1, &[0; 4]),
            ErrorCode::ProtocolError,
        ),
        (
            "§5.1 WINDOW_UPDATE on an idle stream",
            frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 9]),
            ErrorCode::ProtocolError,
        ),
        ("§5.1.1 an even number", head(2, whole), ErrorCode::ProtocolError),
        ("§5.1.1 a lower number", [head(5, whole), head(3, whole)].concat(), ErrorCode::ProtocolError),
        ("§5.1 a number used twice", [head(1, whole), head(1, whole)].concat(), ErrorCode::StreamClosed),
        (
            "§6.2 a block cut by DATA",
            [head(1, 0), frame(kind::DATA, 0, 1, b"")].concat(),
            ErrorCode::ProtocolError,
        ),
        (
            "§6.2 a block cut by an unknown frame",
            [head(1, 0), frame(99, 0, 1, b"")].concat(),
            ErrorCode::ProtocolError,
        ),
        ("§6.2 a block cut by another", [head(1, 0), head(3, whole)].concat(), ErrorCode::ProtocolError),
        (
            "§6.10 a block continued elsewhere",
            [head(1, 0), continuation(3)].concat(),
            ErrorCode::ProtocolError,
        ),
        ("§6.10 CONTINUATION of nothing", continuation(1), ErrorCode::ProtocolError),
        ("§6.5 SETTINGS on a stream", frame(kind::SETTINGS, 0, 1, b""), ErrorCode::ProtocolError),
        (
            "§6.5.2 a window that is too large",
            frame(kind::SETTINGS, 0, 0, &[0, 4, 0x80, 0, 0, 0]),
            ErrorCode::FlowControlError,
        ),
        ("§6.6 PUSH_PROMISE", frame(kind::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2]), ErrorCode::ProtocolError),
        (
            "§6.9.1 more than a window may be",
            frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            ErrorCode::FlowControlError,
        ),
    ] {
        let mut frames = Frames::connect(server.port());
        frames.send(&bytes);
        let closed = frames.closes_within(std::time::Duration::from_secs(10));
        assert_eq!(closed, Some(Some(code)), "{name}");
    }
    assert!(!server.log().contains("panicked"), "{}", server.log());
}
