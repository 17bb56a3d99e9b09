//! Requests that are none (RFC 9113 §8.1.1): each is told so, the log has it, and its neighbours go on.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use millstream_tests::frames::{End, Frames, block, frame};
use millstream_tests::origin::Origin;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::wait;
use millstream_wire::h2::error_code::ErrorCode::{
    CompressionError, FlowControlError, FrameSizeError, ProtocolError, StreamClosed,
};
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

const GET: Field = (":method", "GET");
const POST: Field = (":method", "POST");
const CONNECT: Field = (":method", "CONNECT");
const HTTP: Field = (":scheme", "http");
const HERE: Field = (":authority", "localhost");
const ROOT: Field = (":path", "/");

const SOUND: [Field; 4] = [POST, HTTP, HERE, ROOT];

type Field = (&'static str, &'static str);

/// By section of the RFC; with an optional body.
struct Row(&'static str, Lines, Option<&'static str>);

enum Lines {
    /// Follow those of [`SOUND`].
    Behind(&'static [Field]),
    All(&'static [Field]),
}

use Lines::{All, Behind};

const ROWS: &[Row] = &[
    Row("§8.2.1 an upper-case name", Behind(&[("X-A", "1")]), None),
    Row("§8.2.1 an empty name", Behind(&[("", "1")]), None),
    Row("§8.2.1 a name with a colon", Behind(&[("x:a", "1")]), None),
    Row("§8.2.1 a name with a space", Behind(&[("x a", "1")]), None),
    Row("§8.2.1 a value with a line end", Behind(&[("x-a", "1\r\nx-b: 2")]), None),
    Row("§8.2.1 a value with a line feed", Behind(&[("x-a", "1\nx-b: 2")]), None),
    Row("§8.2.1 a value with NUL", Behind(&[("x-a", "1\0")]), None),
    Row("§8.2.1 a value that begins with a space", Behind(&[("x-a", " 1")]), None),
    Row("§8.2.1 a value that ends with a tab", Behind(&[("x-a", "1\t")]), None),
    Row("§8.2.2 Connection", Behind(&[("connection", "close")]), None),
    Row("§8.2.2 Keep-Alive", Behind(&[("keep-alive", "1")]), None),
    Row("§8.2.2 Proxy-Connection", Behind(&[("proxy-connection", "close")]), None),
    Row("§8.2.2 Transfer-Encoding", Behind(&[("transfer-encoding", "chunked")]), Some("0\r\n\r\n")),
    Row("§8.2.2 Upgrade", Behind(&[("upgrade", "websocket")]), None),
    Row("§8.2.2 TE", Behind(&[("te", "gzip")]), None),
    Row("§8.3 an unknown pseudo-header", Behind(&[(":x", "1")]), None),
    Row("§8.3 a pseudo-header of answers", Behind(&[(":status", "200")]), None),
    Row("§8.3 a second :path", Behind(&[(":path", "/other")]), None),
    Row("§8.3 a second :authority", Behind(&[(":authority", "other")]), None),
    Row("§8.3 a pseudo-header behind a field", All(&[GET, HTTP, HERE, ("x-a", "1"), ROOT]), None),
    Row("§8.3.1 two Hosts", Behind(&[("host", "localhost"), ("host", "localhost")]), None),
    Row("§8.3.1 no :method", All(&[HTTP, HERE, ROOT]), None),
    Row("§8.3.1 no :scheme", All(&[GET, HERE, ROOT]), None),
    Row("§8.3.1 no :path", All(&[GET, HTTP, HERE]), None),
    Row("§8.3.1 an empty :path", All(&[GET, HTTP, HERE, (":path", "")]), None),
    Row("§8.3.1 a whole URL in :path", All(&[GET, HTTP, HERE, (":path", "http://localhost/")]), None),
    Row("§8.3.1 a :path with a space", All(&[GET, HTTP, HERE, (":path", "/ HTTP/1.1")]), None),
    Row("§8.3.1 a :method with a space", All(&[(":method", "GET / HTTP/1.1\r\nx:"), HTTP, HERE, ROOT]), None),
    Row("§8.3.1 an :authority with a user", All(&[GET, HTTP, (":authority", "user@localhost"), ROOT]), None),
    Row("§8.3.1 no host", All(&[GET, HTTP, ROOT]), None),
    Row("§8.3.1 two hosts", Behind(&[("host", "other")]), None),
    Row("§8.5 CONNECT with a path", All(&[CONNECT, (":authority", "a:1"), ROOT]), None),
    Row("§8.5 CONNECT to nowhere", All(&[CONNECT]), None),
    Row("§8.1.1 a length without a body", Behind(&[("content-length", "3")]), None),
    Row("§8.1.1 more than the length says", Behind(&[("content-length", "3")]), Some("four")),
    Row("§8.1.1 less than the length says", Behind(&[("content-length", "9")]), Some("four")),
    Row("§8.1.1 two lengths", Behind(&[("content-length", "4"), ("content-length", "5")]), Some("four")),
    Row("§8.1.1 a length that is no number", Behind(&[("content-length", "four")]), Some("four")),
    Row("§8.1.1 a length with a sign", Behind(&[("content-length", "+4")]), Some("four")),
];

fn is_refused(frames: &Frames, stream: u32) -> bool {
    let answer = frames.so_far(stream);
    answer.status == 400 || answer.end == End::Reset(ProtocolError)
}

#[test]
fn what_is_no_request_is_told_so_its_neighbours_go_on_and_the_log_has_it() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"fine");
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    let mut frames = Frames::connect(server.port());
    for (count, Row(name, lines, body)) in ROWS.iter().enumerate() {
        let lines = match lines {
            Behind(lines) => [&SOUND, *lines].concat(),
            All(lines) => lines.to_vec(),
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
            assert_ne!(frames.so_far(stream).end, End::Reset(StreamClosed));
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
        ("§4.2 a large frame", frame(kind::DATA, 0, 1, &[0; 16_385]), FrameSizeError),
        ("§4.3 an unknown index", frame(kind::HEADERS, whole, 1, b"\xff\xff\x01"), CompressionError),
        ("§5.1 DATA on an idle stream", frame(kind::DATA, 0, 1, b"x"), ProtocolError),
        ("§5.1 RST_STREAM on an idle stream", frame(kind::RST_STREAM, 0, 1, &[0; 4]), ProtocolError),
        (
            "§5.1 WINDOW_UPDATE on an idle stream",
            frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 9]),
            ProtocolError,
        ),
        ("§5.1.1 an even number", head(2, whole), ProtocolError),
        ("§5.1.1 a lower number", [head(5, whole), head(3, whole)].concat(), ProtocolError),
        ("§5.1 a number used twice", [head(1, whole), head(1, whole)].concat(), StreamClosed),
        ("§6.2 a block cut by DATA", [head(1, 0), frame(kind::DATA, 0, 1, b"")].concat(), ProtocolError),
        ("§6.2 a block cut by an unknown frame", [head(1, 0), frame(99, 0, 1, b"")].concat(), ProtocolError),
        ("§6.2 a block cut by another", [head(1, 0), head(3, whole)].concat(), ProtocolError),
        ("§6.10 a block continued elsewhere", [head(1, 0), continuation(3)].concat(), ProtocolError),
        ("§6.10 CONTINUATION of nothing", continuation(1), ProtocolError),
        ("§6.5 SETTINGS on a stream", frame(kind::SETTINGS, 0, 1, b""), ProtocolError),
        (
            "§6.5.2 a window that is too large",
            frame(kind::SETTINGS, 0, 0, &[0, 4, 0x80, 0, 0, 0]),
            FlowControlError,
        ),
        ("§6.6 PUSH_PROMISE", frame(kind::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2]), ProtocolError),
        (
            "§6.9.1 more than a window may be",
            frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            FlowControlError,
        ),
    ] {
        let mut frames = Frames::connect(server.port());
        frames.send(&bytes);
        let closed = frames.closes_within(std::time::Duration::from_secs(10));
        assert_eq!(closed, Some(Some(code)), "{name}");
    }
    assert!(!server.log().contains("panicked"), "{}", server.log());
}
