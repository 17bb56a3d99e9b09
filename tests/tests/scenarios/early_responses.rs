//! Upstreams that respond before they have the whole request, and requests that went out in part.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use millstream_tests::client::Client;
use millstream_tests::frames::{End, Frames};
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::wait;

/// More than a unix socket's buffer takes.
const BODY: usize = 2 << 20;

fn listen(path: &std::path::Path) -> UnixListener {
    let listener = UnixListener::bind(path).expect("a socket");
    // Who serves may be another user.
    fs::set_permissions(path, Permissions::from_mode(0o777)).expect("own socket");
    listener
}

/// Whether a whole one came.
fn read_head(stream: &mut UnixStream) -> bool {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    true
}

/// Responds once it has the head, reads no more, and holds the connection until it is dropped. Counts requests.
fn hasty(path: &std::path::Path, response: &'static [u8]) -> Arc<AtomicUsize> {
    let listener = listen(path);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        let mut held: Vec<UnixStream> = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            read_head(&mut stream);
            counted.fetch_add(1, Ordering::SeqCst);
            _ = stream.write_all(response);
            held.push(stream);
        }
    });
    count
}

/// Responds once it has the head, then reads on, and sends the rest once it has the body, unless it has responded whole.
/// What comes behind a head until the connection ends, of each connection.
fn patient(path: &std::path::Path, response: Vec<u8>, rest: &'static [u8]) -> Arc<Mutex<Vec<Vec<u8>>>> {
    let listener = listen(path);
    let read = Arc::<Mutex<Vec<Vec<u8>>>>::default();
    let all = Arc::clone(&read);
    thread::spawn(move || {
        for (at, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            all.lock().expect("whole").push(Vec::new());
            let (all, response) = (Arc::clone(&all), response.clone());
            thread::spawn(move || {
                if !read_head(&mut stream) {
                    return;
                }
                _ = stream.write_all(&response);
                let (mut piece, mut count) = (vec![0; 64 * 1024], 0);
                while let Ok(length @ 1..) = stream.read(&mut piece) {
                    all.lock().expect("whole")[at].extend_from_slice(&piece[..length]);
                    count += piece[..length].iter().filter(|byte| **byte == b'x').count();
                    if count == BODY && !response.ends_with(b"ok") {
                        _ = stream.write_all(rest);
                    }
                }
            });
        }
    });
    read
}

fn hints(count: usize, length: usize) -> Vec<u8> {
    format!("HTTP/1.1 103 Early Hints\r\nLink: </{}>\r\n\r\n", "a".repeat(length)).into_bytes().repeat(count)
}

#[test]
fn interim_responses_while_a_request_is_blocked_lose_nothing_of_it() {
    skip_on_nginx!();
    const FINAL: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    // As many as may be read ahead, and more; with a response behind them, and without one.
    let responses = [
        [hints(5, 10), FINAL.to_vec()].concat(),
        [hints(8, 3000), FINAL.to_vec()].concat(),
        hints(3, 10),
        hints(20, 1500),
    ];
    for (way, is_chunked) in [(BUFFERED, false), (IN_FILE, false), (STREAMED, false), (STREAMED, true)] {
        for response in &responses {
            let prefix = Prefix::new();
            let socket = prefix.path().join("api.sock");
            let rest = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole";
            let read = patient(&socket, response.clone(), rest);
            let template = site! {
                http "client_max_body_size 8m; upstream api { server unix:@SOCKET@; keepalive 4; }"
                server "location / { proxy_pass http://api; @WAY@ proxy_buffer_size 16k; proxy_read_timeout 10s; }"
            };
            let server = Server::start(template, &[("SOCKET", &socket.display().to_string()), ("WAY", way)]);
            let mut client =
                Client::connect_with_patience(server.port(), Duration::from_secs(20)).expect("it listens");
            if is_chunked {
                let framed = format!("{BODY:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(BODY));
                _ = client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
                _ = client.send(framed);
            } else {
                _ = post(&mut client);
            }
            let got = client.answer().expect("an answer");
            let is_final = response.ends_with(b"ok");
            let expected = (200, if is_final { "ok" } else { "whole" }.to_owned());
            let what = format!("{way} {is_chunked} {} bytes: {}", response.len(), server.log());
            assert_eq!((got.status, got.text()), expected, "{what}");
            if is_final {
                assert_eq!(server.get("/secret").text(), "ok", "{what}");
            }
            let read = read.lock().expect("whole");
            let is_mixed = read.iter().any(|bytes| bytes.windows(7).any(|part| part == b"/secret"));
            assert!(!is_mixed, "a request was read as a part of the body: {what}");
        }
    }
}

fn post(client: &mut Client) -> std::io::Result<()> {
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {BODY}\r\n\r\n"))?;
    client.send(vec![b'x'; BODY])
}

const BUFFERED: &str = "client_body_buffer_size 4m;";
const IN_FILE: &str = "client_body_buffer_size 16k;";
const STREAMED: &str = "proxy_request_buffering off;";

#[test]
fn the_rest_of_a_request_follows_the_beginning_of_its_response() {
    skip_on_nginx!();
    const BEGINNING: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nearly\r\n";
    const REST: &[u8] = b"5\r\nwhole\r\n0\r\n\r\n";
    let ways = [BUFFERED, IN_FILE, STREAMED, "proxy_request_buffering off; proxy_buffering off;"];
    for (way, is_http2) in ways.into_iter().flat_map(|way| [(way, false), (way, true)]) {
        let prefix = Prefix::new();
        let socket = prefix.path().join("api.sock");
        let read = patient(&socket, BEGINNING.to_vec(), REST);
        let template = site! {
            http "client_max_body_size 8m; upstream api { server unix:@SOCKET@; }"
            server "http2 on; location / { proxy_pass http://api; @WAY@ proxy_read_timeout 10s; }"
        };
        let server = Server::start(template, &[("SOCKET", &socket.display().to_string()), ("WAY", way)]);
        let text = if is_http2 {
            let mut frames = Frames::connect(server.port());
            let stream = frames.request("POST", "/", &[], false);
            frames.upload(stream, &vec![b'x'; BODY]);
            frames.answer(stream).text()
        } else {
            let patience = Duration::from_secs(20);
            let mut client = Client::connect_with_patience(server.port(), patience).expect("it listens");
            post(&mut client).expect("all of it is read");
            client.answer().expect("an answer").text()
        };
        assert_eq!(text, "earlywhole", "{way} {is_http2}: {}", server.log());
        let count = read.lock().expect("whole")[0].iter().filter(|byte| **byte == b'x').count();
        assert_eq!(count, BODY, "{way} {is_http2}");
    }
}

#[test]
fn a_success_that_comes_whole_before_its_upload_ends_after_it_over_http2() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    let socket = prefix.path().join("api.sock");
    let count = hasty(&socket, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbig");
    let template = site! {
        http "client_max_body_size 8m;"
        server "http2 on; location / { proxy_pass http://unix:@SOCKET@; proxy_request_buffering off; }
            location /missing { proxy_pass http://unix:@SOCKET@-none; proxy_request_buffering off; error_page 502 =200 /text; }
            location /text { return 200 big; }"
    };
    let server = Server::start(template, &[("SOCKET", &socket.display().to_string())]);
    let mut frames = Frames::connect(server.port());
    for path in ["/", "/missing"] {
        let stream = frames.request("POST", path, &[], false);
        frames.data(stream, &[b'x'; 16_384], false);
        // All but its last byte is there at once.
        frames.until("the response has begun", |frames| frames.so_far(stream).text() == "bi");
        frames.round_trip();
        assert!(!frames.has_ended(stream), "{path}: its client would read no window");
        frames.upload(stream, &vec![b'x'; BODY]);
        let answer = frames.answer(stream);
        assert_eq!((answer.status, answer.text().as_str(), answer.end), (200, "big", End::Whole), "{path}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn a_response_that_comes_before_the_request_is_out_is_relayed_at_once_and_no_failure_of_the_server() {
    skip_on_nginx!();
    const RESPONSES: [(&str, &[u8]); 3] = [
        ("413", b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig"),
        ("413", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig"),
        ("200", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nbig\r\n0\r\n\r\n"),
    ];
    for (how, place) in [("memory", BUFFERED), ("file", IN_FILE), ("stream", STREAMED)] {
        for (status, response) in RESPONSES {
            let prefix = Prefix::new();
            let socket = prefix.path().join("api.sock");
            let count = hasty(&socket, response);
            let template = site! {
                http "client_max_body_size 8m; upstream api { server unix:@SOCKET@ max_fails=1 fail_timeout=1h; }"
                server "location / { proxy_pass http://api; @PLACE@ proxy_send_timeout 30s; }"
            };
            let server =
                Server::start(template, &[("SOCKET", &socket.display().to_string()), ("PLACE", place)]);
            for round in 1..=2 {
                let mut client = Client::connect_with_patience(server.port(), Duration::from_secs(10))
                    .expect("it listens");
                // Who is answered early may take no more.
                _ = post(&mut client);
                let got = client.answer().expect("an answer");
                assert_eq!((got.status.to_string().as_str(), got.text().as_str()), (status, "big"), "{how}");
                assert_eq!(count.load(Ordering::SeqCst), round, "{how}: it stays in use");
            }
        }
    }
}

#[test]
fn a_post_of_which_a_part_went_out_goes_to_no_other_server() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    let (first, second) = (prefix.path().join("a.sock"), prefix.path().join("b.sock"));
    let (begun, repeated) =
        (hasty(&first, b""), hasty(&second, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    let template = site! {
        http "client_max_body_size 8m; upstream api { server unix:@FIRST@; server unix:@SECOND@ backup; }"
        server "location / { proxy_pass http://api; client_body_buffer_size 4m; proxy_send_timeout 300ms;
            proxy_next_upstream error timeout; }"
    };
    let (first, second) = (first.display().to_string(), second.display().to_string());
    let server = Server::start(template, &[("FIRST", &first), ("SECOND", &second)]);
    let mut client = server.client();
    post(&mut client).expect("it is read before it is passed on");
    assert_eq!(client.answer().expect("an answer").status, 504);
    assert_eq!((begun.load(Ordering::SeqCst), repeated.load(Ordering::SeqCst)), (1, 0));
}

#[test]
fn a_redirect_to_a_file_is_never_stored_though_its_client_has_left() {
    skip_on_nginx!();
    let gate = Arc::new(Gate::default());
    let passed = Arc::clone(&gate);
    let origin = Origin::start(move |_| {
        let mut steps = vec![Step::Pass(Arc::clone(&passed))];
        steps.extend(answer(200, &[("X-Accel-Redirect", "/file"), ("Cache-Control", "max-age=60")], b"raw"));
        steps
    });
    let template = site! {
        http "proxy_cache_path memory keys_zone=one:1m memory=8m;"
        server "location / { proxy_pass http://@ORIGIN@; proxy_cache one; proxy_ignore_client_abort on; }
            location /file { internal; return 200 file; }"
    };
    let server = Server::start(template, &[("ORIGIN", &origin.address())]);
    let mut client = server.client();
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("the API is asked", || origin.count() == 1);
    drop(client);
    _ = gate.open();
    for _ in 0..2 {
        assert_eq!(server.get("/a").text(), "file");
    }
}
