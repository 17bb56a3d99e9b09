//! What of a request goes upstream, what else is sent in its place, and what is said of the answer's characters.

mod limits;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use millstream_tests::application::{self, Application};
use millstream_tests::frames::Frames;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::Server;
use millstream_tests::{ports, wait};

const SITE: &str = site! {
    server "charset utf-8;
        location / { proxy_pass http://@ORIGIN@; add_header X-Body \"[$request_body]\"; }
        location /fields { proxy_pass http://@ORIGIN@; proxy_pass_request_headers off; proxy_set_header X-Set yes; }
        location /bodiless { proxy_pass http://@ORIGIN@; proxy_pass_request_body off; proxy_set_header Content-Length \"\"; }
        location /replaced { proxy_pass http://@ORIGIN@; proxy_set_body \"<$request_body>\"; }"
};

#[test]
fn what_goes_upstream_of_a_request_is_what_the_location_lets_go() {
    let origin = Origin::start(|request| {
        let said = |name: &str| request.field(name).unwrap_or("-").to_owned();
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let text = format!("{} {} {} [{body}]", said("x-client"), said("x-set"), said("content-length"));
        answer(200, &[("Content-Type", "text/plain")], text.as_bytes())
    });
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    for (path, came, seen) in [
        ("/", "yes - 4 [body]", Some("[body]")),
        ("/fields", "- yes 4 [body]", None),
        ("/bodiless", "yes - - []", None),
        ("/replaced", "yes - 6 [<body>]", None),
    ] {
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nX-Client: yes\r\nContent-Length: 4\r\n\r\n");
        let answer = server.ask(format!("{head}body"));
        assert_eq!(answer.text(), came, "{path}");
        assert_eq!(answer.field("x-body"), seen, "{path}");
        assert_eq!(answer.field("content-type"), Some("text/plain; charset=utf-8"), "{path}");
    }
}

#[test]
fn a_body_is_in_a_file_that_others_can_read_where_that_is_wanted() {
    let origin = Origin::start(|request| answer(200, &[], &request.body));
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; client_body_temp_path @DIR@/bodies; client_body_buffer_size 1k;
            server { listen 127.0.0.1:@PORT@; add_header X-File $request_body_file; add_header X-Body $request_body;
                location / { proxy_pass http://@ORIGIN@; }
                location /stays { client_body_in_file_only on; proxy_pass http://@ORIGIN@; }
                location /clean { client_body_in_file_only clean; proxy_pass http://@ORIGIN@; } } }",
        &[("ORIGIN", &origin.address())],
    );
    let large = "0123456789".repeat(1_000);
    for (path, body, is_in_file) in [
        ("/", "small", false),
        ("/", large.as_str(), true),
        ("/stays", "small", true),
        ("/stays", large.as_str(), true),
        ("/clean", "small", true),
    ] {
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
        let told = server.ask(head + body);
        assert_eq!(told.text(), body, "{path}");
        assert_eq!(told.field("x-body").is_none(), is_in_file, "{path}");
        let file = told.field("x-file").map(std::path::PathBuf::from);
        assert_eq!(file.is_some(), is_in_file, "{path}");
        match file {
            Some(file) if path == "/stays" => {
                assert_eq!(std::fs::read_to_string(&file).expect("it is there"), body);
            }
            Some(file) => wait::until("the file is gone", || !file.exists()),
            None => {}
        }
    }
    assert_eq!(server.prefix().count_files("bodies"), 2, "nothing stays but what is to");
}

fn unbuffered(origin: &str) -> Server {
    Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off;
            server { listen 127.0.0.1:@PORT@; proxy_request_buffering off; client_body_in_file_only on;
                location / { proxy_pass http://@ORIGIN@; add_header X-Body \"[$request_body]\"; }
                location /fixed { return 200 fixed; } } }",
        &[("ORIGIN", origin)],
    )
}

#[test]
fn a_body_that_came_with_its_head_is_kept_though_bodies_are_passed_on_as_they_come() {
    let origin = Origin::start(|request| answer(200, &[], &request.body));
    let server = unbuffered(&origin.address());
    for (fields, body) in [
        ("Content-Length: 4\r\n", "body"),
        ("Transfer-Encoding: chunked\r\n", "1\r\nb\r\n3\r\nody\r\n0\r\n\r\n"),
    ] {
        let told = server.ask(format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}"));
        assert_eq!((told.text().as_str(), told.field("x-body")), ("body", Some("[body]")), "{fields}");
    }
    let lengths: Vec<_> =
        origin.requests().iter().map(|request| request.field("content-length").map(str::to_owned)).collect();
    assert_eq!(lengths, [Some("4".to_owned()), Some("4".to_owned())], "its length is known");
}

#[test]
fn the_beginning_of_a_body_goes_on_while_the_rest_is_still_to_come() {
    for (fields, first, rest, whole) in [
        ("Content-Length: 8\r\n", "begi", "nend", "beginend"),
        (
            "Transfer-Encoding: chunked\r\n",
            "2\r\nbe\r\n2\r\ngi\r\n",
            "4\r\nnend\r\n0\r\n\r\n",
            "4\r\nbegi\r\n4\r\nnend\r\n0\r\n\r\n",
        ),
    ] {
        let origin = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = unbuffered(&origin.local_addr().expect("bound").to_string());
        let mut client = server.client();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n{first}")).expect("open");
        let (mut asked, _) = origin.accept().expect("the upstream is asked");
        let mut came = Vec::new();
        read_until(&mut asked, &mut came, b"begi");
        client.send(rest).expect("open");
        read_until(&mut asked, &mut came, whole.as_bytes());
        asked.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").expect("it is read");
        assert_eq!(client.answer().expect("an answer").status, 204, "{fields}");
    }
}

fn read_until(stream: &mut TcpStream, came: &mut Vec<u8>, end: &[u8]) {
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("it can be set");
    let mut piece = [0; 4096];
    while !came.windows(end.len()).any(|window| window == end) {
        let count = stream.read(&mut piece).expect("more is to come");
        assert!(count > 0, "{}", String::from_utf8_lossy(came));
        came.extend_from_slice(&piece[..count]);
    }
}

#[test]
fn what_is_no_chunked_body_is_refused_also_where_nobody_wants_the_body() {
    let server = unbuffered("127.0.0.1:1");
    for (body, status) in [("4\r\nbody\r\n0\r\n\r\n", 200), ("4\r\nbody too long\r\n0\r\n\r\n", 400)] {
        let head = "POST /fixed HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(server.ask(format!("{head}{body}")).status, status, "{body}");
    }
}

const FALLBACKS: &str = site! {
    http "client_body_buffer_size 4k; client_max_body_size 1m;"
    server "http2 on;
        location /refused { proxy_pass http://127.0.0.1:@CLOSED@; error_page 502 = @fallback; }
        location /failed { proxy_pass http://@ORIGIN@/500; proxy_intercept_errors on; error_page 500 = @fallback; }
        location /accelerated { proxy_pass http://@ORIGIN@/go/accelerated; }
        location /set { proxy_pass http://@ORIGIN@/500; proxy_set_body other; proxy_intercept_errors on; error_page 500 = @fallback; }
        location /bodiless {
            proxy_pass http://@ORIGIN@/go/accelerated; proxy_pass_request_body off; proxy_set_header Content-Length \"\";
        }
        location /streamed/refused { proxy_request_buffering off; proxy_pass http://127.0.0.1:@CLOSED@; error_page 502 = @fallback; }
        location /streamed/failed {
            proxy_request_buffering off; proxy_pass http://@ORIGIN@/500; proxy_intercept_errors on; error_page 500 = @fallback;
        }
        location /page { proxy_pass http://@ORIGIN@/500; proxy_intercept_errors on; error_page 500 /seen; }
        location @fallback { proxy_pass http://@ORIGIN@; }
        location /seen { proxy_pass http://@ORIGIN@; }"
};

fn seen(method: &str, body: &[u8]) -> String {
    format!(
        "{method} {} {:x}",
        body.len(),
        body.iter().fold(0_u64, |sum, &octet| sum.rotate_left(5) ^ u64::from(octet))
    )
}

#[test]
fn a_body_is_sent_whole_by_whatever_a_request_goes_on_with_or_the_request_fails() {
    let origin = Origin::start(|request| match request.target() {
        target if target.starts_with("/500") => answer(500, &[], b"failed"),
        target if target.starts_with("/go/accelerated") => {
            answer(200, &[("X-Accel-Redirect", "@fallback")], b"")
        }
        _ => answer(
            200,
            &[],
            seen(request.head.split(' ').next().unwrap_or_default(), &request.body).as_bytes(),
        ),
    });
    let closed = ports::free().to_string();
    let server = Server::start(FALLBACKS, &[("ORIGIN", &origin.address()), ("CLOSED", &closed)]);
    for path in [
        "/refused",
        "/failed",
        "/accelerated",
        "/set",
        "/bodiless",
        "/streamed/refused",
        "/streamed/failed",
        "/page",
    ] {
        for size in [0, 5, 5_000, 300_000] {
            let body: Vec<u8> = (0..size).map(|at: u32| (at % 251) as u8).collect();
            for is_chunked in [false, true] {
                let mut message = format!("PUT {path} HTTP/1.1\r\nHost: a\r\n").into_bytes();
                if is_chunked {
                    message.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                    for chunk in body.chunks(1_000) {
                        message.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                        message.extend_from_slice(chunk);
                        message.extend_from_slice(b"\r\n");
                    }
                    message.extend_from_slice(b"0\r\n\r\n");
                } else {
                    message.extend_from_slice(format!("Content-Length: {size}\r\n\r\n").as_bytes());
                    message.extend_from_slice(&body);
                }
                let got = server.ask(message);
                let what = format!("{path} {size} chunked {is_chunked}: {}", got.text());
                match path {
                    "/page" => assert_eq!((got.status, got.text()), (500, seen("GET", &body)), "{what}"),
                    "/streamed/failed" if got.status == 502 => assert!(size > 0, "{what}"),
                    _ => assert_eq!((got.status, got.text()), (200, seen("PUT", &body)), "{what}"),
                }
            }
        }
    }
}

/// An application that reads a request whole before it responds with 503; tells when a head has come.
fn failing() -> (u16, mpsc::Receiver<()>) {
    let (listener, port) = ports::listener();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut came = Vec::new();
            read_until(&mut stream, &mut came, b"\r\n\r\n");
            tell.send(()).expect("the test waits");
            read_until(&mut stream, &mut came, b"the end");
            let response = b"HTTP/1.1 503 Not Now\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(response).expect("it is read");
        }
    });
    (port, told)
}

#[test]
fn a_body_that_came_while_a_server_was_asked_over_http_2_is_sent_whole_to_whoever_is_asked_next() {
    let origin = Origin::start(|request| answer(200, &[], seen("POST", &request.body).as_bytes()));
    let (failing, heads) = failing();
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; proxy_cache_path memory keys_zone=zone:1m;
            server { listen 127.0.0.1:@RELAY@; http2 on; location / { proxy_request_buffering off; proxy_pass http://127.0.0.1:@FAILING@; } }
            server { listen 127.0.0.1:@PORT@; proxy_http_version 2; proxy_request_buffering off;
                proxy_intercept_errors on; grpc_intercept_errors on; recursive_error_pages on;
                location /named { proxy_pass http://127.0.0.1:@RELAY@; error_page 503 = @next; }
                location /twice { proxy_pass http://127.0.0.1:@RELAY@; error_page 503 = @again; }
                location /cached { proxy_pass http://127.0.0.1:@RELAY@; proxy_cache zone; error_page 503 = @next; }
                location /grpc { grpc_pass 127.0.0.1:@RELAY@; error_page 503 = @next; }
                location @again { proxy_pass http://127.0.0.1:@RELAY@; error_page 503 = @next; }
                location @next { proxy_http_version 1.1; proxy_pass http://@ORIGIN@; } } }",
        &[
            ("ORIGIN", &origin.address()),
            ("RELAY", &ports::free().to_string()),
            ("FAILING", &failing.to_string()),
        ],
    );
    for path in ["/named", "/twice", "/cached", "/grpc"] {
        for length in [10, 1_000, 16_000] {
            let body = [vec![b'x'; length], b"the end".to_vec()].concat();
            let mut client = server.client();
            let length = body.len();
            let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
            client.send(head).expect("open");
            heads.recv_timeout(Duration::from_secs(20)).expect("the first is asked");
            let told = client.ask(&body);
            assert_eq!((told.status, told.text()), (200, seen("POST", &body)), "{path} {length}");
            assert_eq!(heads.try_iter().count(), usize::from(path == "/twice"), "{path}");
        }
    }
}

#[test]
fn a_body_in_the_key_is_read_before_the_look_up_and_one_body_is_not_answered_for_another() {
    let origin = Origin::start(|request| answer(200, &[], &request.body));
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; proxy_cache_path @DIR@/cache keys_zone=z:1m; map $request_body $is_new { default 0; ~new 1; }
            server { listen 127.0.0.1:@PORT@; proxy_cache_methods POST; proxy_cache_valid 1m; proxy_cache z;
                add_header X-Cache $upstream_cache_status;
                location / { proxy_pass http://@ORIGIN@; proxy_cache_key $uri|$request_body; }
                location /unkeyed { proxy_pass http://@ORIGIN@; proxy_cache_key $uri; }
                location /bypass { proxy_pass http://@ORIGIN@; proxy_cache_bypass $is_new; proxy_cache_key $uri|$request_body; } } }",
        &[("ORIGIN", &origin.address())],
    );
    let large = |last: &str| "x".repeat(100_000) + last;
    for (path, body, cache) in [
        ("/", "one".to_owned(), "MISS"),
        ("/", "two".to_owned(), "MISS"),
        ("/", "one".to_owned(), "HIT"),
        ("/", large("a"), "BYPASS"),
        ("/", large("b"), "BYPASS"),
        // What the key of one location reads is no matter of the others.
        ("/unkeyed", large("a"), "MISS"),
        ("/unkeyed", large("a"), "HIT"),
        ("/bypass", "new".to_owned(), "BYPASS"),
        ("/bypass", "new".to_owned(), "BYPASS"),
        ("/bypass", "old".to_owned(), "MISS"),
        ("/bypass", "old".to_owned(), "HIT"),
    ] {
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
        let got = server.ask(head + &body);
        assert_eq!(
            (got.status, got.text() == body, got.field("x-cache")),
            (200, true, Some(cache)),
            "{path}"
        );
    }
}

#[test]
fn a_write_takes_out_what_is_stored_for_reading_whatever_body_is_in_the_key() {
    let origin = Origin::start(|_| answer(200, &[("Cache-Control", "max-age=60")], b"it"));
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; proxy_cache_path @DIR@/cache keys_zone=z:1m;
            server { listen 127.0.0.1:@PORT@; add_header X-Cache $upstream_cache_status;
                location / { proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_key $uri|$request_body; } } }",
        &[("ORIGIN", &origin.address())],
    );
    for cache in ["MISS", "HIT"] {
        assert_eq!(server.get("/").field("x-cache"), Some(cache));
    }
    assert_eq!(server.ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nnew").status, 200);
    assert_eq!(server.get("/").field("x-cache"), Some("MISS"));
}

/// A site that loses bodies in every way, and what is requested next.
const LOST: &str = site! {
    server "http2 on; proxy_intercept_errors on;
        location /large/named { client_max_body_size 10; proxy_pass http://@ORIGIN@; error_page 413 = @named; }
        location /large/told { client_max_body_size 10; proxy_pass http://@ORIGIN@; error_page 413 @named; }
        location /large/page { client_max_body_size 10; proxy_pass http://@ORIGIN@; error_page 413 = /page; }
        location /large/text { client_max_body_size 10; proxy_pass http://@ORIGIN@; error_page 413 = @text; }
        location /bad/named { proxy_pass http://@ORIGIN@; error_page 400 = @named; }
        location /bad/told { proxy_pass http://@ORIGIN@; error_page 400 @named; }
        location /streamed/named { proxy_request_buffering off; proxy_pass http://@EARLY@; error_page 502 503 = @named; }
        location /streamed/page { proxy_request_buffering off; proxy_pass http://@EARLY@; error_page 502 503 = /page; }
        location /streamed/told { proxy_request_buffering off; proxy_pass http://@EARLY@; error_page 502 503 /page; }
        location /streamed/done { proxy_request_buffering off; proxy_pass http://@ORIGIN@/to-page; }
        location @named { proxy_pass http://@ORIGIN@; }
        location @text { return 200 text; }
        location /page { internal; proxy_pass http://@ORIGIN@; }"
};

#[test]
fn a_body_that_is_lost_is_left_out_of_pages_that_tell_of_it_and_is_an_error_otherwise() {
    let origin = Origin::start(|request| match request.target() {
        "/to-page" => answer(200, &[("X-Accel-Redirect", "/page")], b""),
        _ => answer(
            200,
            &[],
            seen(request.head.split(' ').next().unwrap_or_default(), &request.body).as_bytes(),
        ),
    });
    // It answers before it has the body, of which there is too much for the sockets between.
    let early = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = early.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        for mut stream in early.incoming().flatten() {
            read_until(&mut stream, &mut Vec::new(), b"xxxx");
            _ = stream.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    let server = Server::start(LOST, &[("ORIGIN", &origin.address()), ("EARLY", &address)]);
    let large = "x".repeat(4_000_000);
    for (path, size, status, text) in [
        ("/large/named", 100, 413, None),
        ("/large/told", 100, 413, Some(seen("POST", b""))),
        ("/large/page", 100, 200, Some(seen("GET", b""))),
        ("/large/text", 100, 200, Some("text".to_owned())),
        ("/bad/named", 0, 400, None),
        ("/bad/told", 0, 400, Some(seen("POST", b""))),
        ("/streamed/named", 900_000, 502, None),
        ("/streamed/page", 900_000, 502, None),
        ("/streamed/told", 900_000, 503, Some(seen("GET", b""))),
        ("/streamed/done", 900_000, 200, Some(seen("GET", b""))),
    ] {
        for method in ["POST", "GET"] {
            for is_chunked in [false, true] {
                let (body, text) = (&large[..size], text.clone().map(|text| text.replace("POST", method)));
                let mut message = format!("{method} {path} HTTP/1.1\r\nHost: a\r\n");
                match (is_chunked, path.starts_with("/bad")) {
                    (_, true) => message += "Transfer-Encoding: chunked\r\n\r\nno size\r\n",
                    (true, _) => {
                        message +=
                            &format!("Transfer-Encoding: chunked\r\n\r\n{size:x}\r\n{body}\r\n0\r\n\r\n")
                    }
                    (false, _) => message += &format!("Content-Length: {size}\r\n\r\n{body}"),
                }
                let mut client = server.client();
                _ = client.send(message); // What is answered early is not read to its end.
                let got =
                    client.answer().unwrap_or_else(|error| panic!("{method} {path} {is_chunked}: {error}"));
                let what = format!("{method} {path} {is_chunked}: {}", got.text());
                assert_eq!(got.status, status, "{what}");
                assert!(text.is_none_or(|text| text == got.text()), "{what}");
            }
        }
    }
}

#[test]
fn an_upload_that_was_read_for_the_key_is_in_its_file_all_the_same() {
    let origin = Origin::start(|request| {
        let file = std::fs::read(request.field("x-file").unwrap_or_default()).unwrap_or_default();
        answer(200, &[], &file)
    });
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; proxy_cache_path @DIR@/cache keys_zone=z:1m; client_body_temp_path @DIR@/bodies; client_max_body_size 1m;
            server { listen 127.0.0.1:@PORT@; proxy_cache z; proxy_cache_methods POST; proxy_cache_valid 1m; proxy_cache_key $uri|$request_body;
                client_body_in_file_only clean; proxy_pass_request_body off; proxy_set_header X-File $request_body_file;
                location / { proxy_pass http://@ORIGIN@; } } }",
        &[("ORIGIN", &origin.address())],
    );
    for size in [1, 5_000, 20_000, 5_000] {
        let body = "y".repeat(size);
        assert_eq!(
            server.ask(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n{body}")).text(),
            body,
            "{size}"
        );
    }
    wait::until("no file stays", || server.prefix().count_files("bodies") == 0);
    assert_eq!(origin.count(), 3, "the last one is stored");
}

#[test]
fn what_leads_to_no_path_is_not_found_and_the_response_stays_inside() {
    let origin =
        Origin::start(|request| answer(200, &[("X-Accel-Redirect", &request.target()[1..])], b"inside"));
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; proxy_cache_path @DIR@/cache keys_zone=z:1m;
            server { listen 127.0.0.1:@PORT@; location / { proxy_pass http://@ORIGIN@; }
                location /cached/ { proxy_cache z; proxy_cache_valid 1m; proxy_pass http://@ORIGIN@/; }
                location /ignored/ { proxy_ignore_headers X-Accel-Redirect; proxy_pass http://@ORIGIN@/; } location @here { return 200 here; } } }",
        &[("ORIGIN", &origin.address())],
    );
    for (to, status) in [
        ("http://other/a", 404),
        ("https://other/a", 404),
        ("relative", 404),
        ("*", 404),
        ("", 404),
        ("@here", 200),
    ] {
        for path in ["/", "/cached/"] {
            let got = server.get(&format!("{path}{to}"));
            assert_eq!((got.status, got.text().contains("inside")), (status, false), "{path}{to}");
        }
        assert_eq!(server.get(&format!("/ignored/{to}")).text(), "inside", "{to}");
    }
}

/// Locations by how they handle a body; each names its file and the known length.
const OF_NO_BYTES: &str = site! {
    http "client_body_temp_path @DIR@/bodies; client_body_in_file_only clean; proxy_http_version 1.1;
        add_header X-File $request_body_file;"
    server "http2 on;
        location / { proxy_pass http://@ORIGIN@; }
        location /off { proxy_pass_request_body off; proxy_set_header Content-Length 0; proxy_pass http://@ORIGIN@; }
        location /led { proxy_pass http://127.0.0.1:1; error_page 502 = @led; }
        location @led { proxy_pass http://@ORIGIN@; }
        location /app { fastcgi_param L $content_length; fastcgi_param REQUEST_METHOD $request_method; fastcgi_pass 127.0.0.1:@APP@; }
        location /passed-on { proxy_request_buffering off; proxy_pass http://@ORIGIN@; }
        location /in-memory { client_body_in_file_only off; proxy_pass http://@ORIGIN@; }"
};

#[test]
fn a_body_of_no_bytes_has_a_file_as_any_other_and_no_body_has_none() {
    let origin = Origin::start(|request| answer(200, &[], &request.body));
    let application = Application::start(|_| application::answer("\r\nok"));
    let server = Server::start(
        OF_NO_BYTES,
        &[("ORIGIN", &origin.address()), ("APP", &application.port().to_string())],
    );
    for (path, has_file) in [
        ("/", true),
        ("/off", true),
        ("/led", true),
        ("/app", true),
        ("/passed-on", false),
        ("/in-memory", false),
    ] {
        for (fields, body, is_body) in [
            ("Content-Length: 0\r\n", "", true),
            ("Transfer-Encoding: chunked\r\n", "0\r\n\r\n", true),
            ("", "", false),
        ] {
            let got = server.ask(format!("POST {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}"));
            assert_eq!(got.status, 200, "{path} {fields}");
            assert_eq!(got.field("x-file").is_some(), has_file && is_body, "{path} {fields}");
        }
        let mut frames = Frames::connect(server.port());
        for (fields, is_all) in [(&[("content-length", "0")][..], true), (&[], false)] {
            let stream = frames.request("POST", path, fields, is_all);
            if !is_all {
                frames.data(stream, b"", true);
            }
            let got = frames.answer(stream);
            assert_eq!(got.field("x-file").is_some(), has_file, "{path} in HTTP/2 {fields:?}");
        }
    }
    wait::until("no file stays", || server.prefix().count_files("bodies") == 0);
}

const LENGTHS: &str = site! {
    http "fastcgi_param REQUEST_METHOD $request_method; proxy_pass_request_body off; fastcgi_pass_request_body off;"
    server "location /zero { proxy_set_header Content-Length 0; proxy_pass http://@ORIGIN@; }
        location /empty { proxy_set_header Content-Length \"\"; proxy_pass http://@ORIGIN@; }
        location /unset { proxy_pass http://@ORIGIN@; }
        location /wrong { proxy_set_header Content-Length 5; proxy_pass http://@ORIGIN@; }
        location /shown { proxy_set_header X-L $content_length; proxy_set_header Content-Length \"\"; proxy_pass http://@ORIGIN@; }
        location /passed { proxy_pass_request_body on; proxy_set_header Content-Length 0; proxy_pass http://@ORIGIN@; }
        location /app { fastcgi_param CONTENT_LENGTH $content_length; fastcgi_param L $content_length; fastcgi_pass 127.0.0.1:@APP@; }"
};

#[test]
fn a_body_that_stays_behind_is_announced_as_none_where_that_is_set_and_reported_by_its_length() {
    let origin = Origin::start(|request| {
        let said = |name: &str| request.field(name).unwrap_or("-").to_owned();
        answer(200, &[], format!("{} {}", said("content-length"), said("x-l")).as_bytes())
    });
    let application = Application::start(|asked| {
        application::answer(&format!("\r\n{}|{}", asked.param("CONTENT_LENGTH"), asked.param("L")))
    });
    let server =
        Server::start(LENGTHS, &[("ORIGIN", &origin.address()), ("APP", &application.port().to_string())]);
    for (path, of_three, of_chunks, of_none) in [
        ("/zero", "0 -", "0 -", "0 -"),
        ("/empty", "- -", "- -", "- -"),
        ("/unset", "- -", "- -", "- -"),
        // No length but that of no body is true.
        ("/wrong", "- -", "- -", "- -"),
        ("/shown", "- 3", "- 3", "- -"),
        ("/passed", "3 -", "3 -", "0 -"),
        ("/app", "|3", "|3", "|"),
    ] {
        for (fields, body, expected) in [
            ("Content-Length: 3\r\n", "abc", of_three),
            ("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n", of_chunks),
            ("", "", of_none),
        ] {
            assert_eq!(
                server.ask(format!("POST {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}")).text(),
                expected,
                "{path} {fields}"
            );
        }
    }
}
