//! The size that a body may have (`client_max_body_size`), wherever its request goes on.
//!
//! Each location that is found for a URI bounds a body whose length is known, before anything else of it runs; a named one does not.
//! Any other body has the bound of the location that reads it. The tables hold for nginx as well (`MILLSTREAM_BINARY=/usr/sbin/nginx`).

use millstream_tests::frames::Frames;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::{ports, wait};

#[test]
fn a_body_of_unknown_length_has_the_bound_of_the_location_that_reads_it() {
    let origin = Origin::start(|request| answer(200, &[], &request.body));
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; proxy_http_version 1.1;
            server { listen 127.0.0.1:@PORT@; http2 on;
                location /denied { client_max_body_size 5; deny all; error_page 403 = @read; }
                location /missing { client_max_body_size 5; root @DIR@/none; error_page 404 405 = @read; }
                location @read { client_max_body_size 1m; proxy_pass http://@ORIGIN@; }
                location /narrow { deny all; error_page 403 = @narrow; }
                location @narrow { client_max_body_size 5; proxy_pass http://@ORIGIN@; }
                location / { client_max_body_size 5; proxy_pass http://@ORIGIN@; } } }",
        &[("ORIGIN", &origin.address())],
    );
    for (path, status) in [("/denied", 200), ("/missing", 200), ("/narrow", 413), ("/", 413)] {
        let chunked = "Transfer-Encoding: chunked\r\n\r\n8\r\nabcdefgh\r\n0\r\n\r\n";
        let got = server.ask(format!("POST {path} HTTP/1.1\r\nHost: a\r\n{chunked}"));
        assert_eq!(got.status, status, "{path}");
        assert!(status != 200 || got.text() == "abcdefgh", "{path}: {}", got.text());
        // An announced length has the bound of the first location, whatever that responds.
        let mut client = server.client();
        client
            .send(format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nabcdefgh"))
            .expect("sent");
        let of_announced = if path == "/narrow" { 200 } else { 413 };
        assert_eq!(client.answer().expect("an answer").status, of_announced, "{path} with a length");
        let mut frames = Frames::connect(server.port());
        let stream = frames.request("POST", path, &[], false);
        frames.data(stream, b"abcdefgh", true);
        let got = frames.answer(stream);
        assert_eq!(got.status, status, "{path} in HTTP/2");
        assert!(status != 200 || got.text() == "abcdefgh", "{path} in HTTP/2: {}", got.text());
    }
}

/// A location is called after its bound: 1 KB or 1 MB. Bodies have a size between.
const SITE: &str = site! {
    server "http2 on; client_max_body_size 1k; root @DIR@/site;
        if ($uri = /server) { return 200 server; }
        rewrite ^/moved$ /text/narrow;
        location @narrow { proxy_pass http://@ORIGIN@; }
        location @wide { client_max_body_size 1m; proxy_pass http://@ORIGIN@; }
        location @on { client_max_body_size 1m; rewrite ^ /in/narrow last; }
        location /in/narrow { proxy_pass http://@ORIGIN@; }
        location /in/wide { client_max_body_size 1m; proxy_pass http://@ORIGIN@; }
        location /in/page { error_page 413 = /text/narrow; proxy_pass http://@ORIGIN@; }
        location /text/narrow { return 200 text; }
        location /text/wide { client_max_body_size 1m; return 200 text; }
        location /narrow/named { try_files /none @wide; }
        location /narrow/uri { try_files /none /in/wide; }
        location /narrow/last { rewrite ^ /in/wide last; }
        location /narrow/returned { return 200 text; }
        location /narrow/slash/ { proxy_pass http://@ORIGIN@; }
        location /narrow/internal { internal; proxy_pass http://@ORIGIN@; }
        location /narrow/denied { deny all; }
        location /narrow/put { dav_methods PUT; }
        location /narrow/files { }
        location /narrow/page { error_page 413 = /text/narrow; proxy_pass http://@ORIGIN@; }
        location /narrow/page/wide { error_page 413 = /text/wide; proxy_pass http://@ORIGIN@; }
        location /narrow/page/read { error_page 413 /in/wide; proxy_pass http://@ORIGIN@; }
        location /narrow/page/again { recursive_error_pages on; error_page 413 = /narrow/page/again; proxy_pass http://@ORIGIN@; }
        location /wide { client_max_body_size 1m;
            location /wide/named { try_files /none @narrow; }
            location /wide/on { try_files /none @on; }
            location /wide/uri { try_files /none /in/narrow; }
            location /wide/text { try_files /none /text/narrow; }
            location /wide/last { rewrite ^ /in/narrow last; }
            location /wide/break { rewrite ^ /in/narrow break; proxy_pass http://@ORIGIN@; }
            location /wide/denied { deny all; error_page 403 = /in/narrow; }
            location /wide/denied/text { deny all; error_page 403 = /text/narrow; }
            location /wide/denied/named { deny all; error_page 403 = @narrow; }
            location /wide/returned { error_page 418 = /text/narrow; return 418; }
            location /wide/failed { proxy_pass http://127.0.0.1:@CLOSED@; error_page 502 = /in/narrow; }
            location /wide/failed/text { proxy_pass http://127.0.0.1:@CLOSED@; error_page 502 = /text/narrow; }
            location /wide/failed/page { proxy_pass http://127.0.0.1:@CLOSED@; error_page 502 = /in/page; }
            location /wide/failed/named { proxy_pass http://127.0.0.1:@CLOSED@; error_page 502 = @narrow; }
            location /wide/to/ { proxy_set_header X-To yes; proxy_pass http://@ORIGIN@; }
            location /wide/streamed/to/ {
                proxy_request_buffering off; proxy_http_version 1.1; proxy_set_header X-To yes; proxy_pass http://@ORIGIN@;
            }
            location /wide/asked/narrow { auth_request /text/narrow; proxy_pass http://@ORIGIN@; }
            location /wide/asked/wide { auth_request /text/wide; proxy_pass http://@ORIGIN@; }
            location /wide/copied/narrow { mirror /in/narrow; proxy_pass http://@ORIGIN@; }
            location /wide/copied/wide { mirror /in/wide; proxy_pass http://@ORIGIN@; }
            location /wide/copied/bodiless { mirror /in/narrow; mirror_request_body off; proxy_pass http://@ORIGIN@; }
            location /wide/followed/narrow { post_action /in/narrow; proxy_pass http://@ORIGIN@; }
            location /wide/followed/wide { post_action /in/wide; proxy_pass http://@ORIGIN@; }
            location /wide/followed/unread { post_action /in/narrow; return 200 text; }
            location /wide/page { ssi on; proxy_pass http://@ORIGIN@; }
            location /wide/index/ { alias @DIR@/site/; index x.html; }
            location = /wide/index/x.html { client_max_body_size 1k; return 200 text; } }"
};

const SIZE: usize = 4_000;

fn site() -> (Origin, Server) {
    let origin = Origin::start(|request| {
        let to = request.target().split_once("/to").filter(|_| request.field("x-to").is_some());
        match (to, request.target()) {
            (Some((_, to)), _) => {
                let to = to.strip_prefix('/').filter(|name| name.starts_with('@')).unwrap_or(to);
                answer(200, &[("X-Accel-Redirect", to)], b"")
            }
            (None, "/wide/page") => {
                let page = b"<!--# include virtual=\"/text/narrow\" -->";
                answer(200, &[("Content-Type", "text/html")], page)
            }
            (None, _) => answer(200, &[], format!("{}", request.body.len()).as_bytes()),
        }
    });
    let prefix = Prefix::new();
    prefix.write("site/x.html", "file");
    let closed = ports::free().to_string();
    let server = Server::start_in(prefix, SITE, &[("ORIGIN", &origin.address()), ("CLOSED", &closed)]);
    (origin, server)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Sent {
    Announced,
    Chunked,
    OverHttp2Announced,
    OverHttp2,
}

const EACH: [Sent; 4] = [Sent::Announced, Sent::Chunked, Sent::OverHttp2Announced, Sent::OverHttp2];

impl Sent {
    fn is_announced(self) -> bool {
        matches!(self, Sent::Announced | Sent::OverHttp2Announced)
    }

    fn ask(self, server: &Server, method: &str, path: &str) -> (u16, String) {
        let body = "x".repeat(SIZE);
        let (length, text) = (SIZE.to_string(), body.as_bytes());
        let fields: &[(&str, &str)] = if self.is_announced() { &[("content-length", &length)] } else { &[] };
        if matches!(self, Sent::OverHttp2 | Sent::OverHttp2Announced) {
            let mut frames = Frames::connect(server.port());
            let stream = frames.request(method, path, fields, false);
            frames.data(stream, text, true);
            let got = frames.answer(stream);
            return (got.status, got.text());
        }
        let head = format!("{method} {path} HTTP/1.1\r\nHost: a\r\n");
        let mut client = server.client();
        // What is refused is not read to its end.
        _ = client.send(match self {
            Sent::Chunked => {
                format!("{head}Transfer-Encoding: chunked\r\n\r\n{SIZE:x}\r\n{body}\r\n0\r\n\r\n")
            }
            _ => format!("{head}Content-Length: {SIZE}\r\n\r\n{body}"),
        });
        let got = client.answer().unwrap_or_else(|error| panic!("{path} {self:?}: {error}"));
        (got.status, got.text())
    }
}

#[test]
fn each_location_that_is_found_for_a_uri_bounds_a_body_of_known_length_and_a_named_one_does_not() {
    let (_origin, server) = site();
    for (method, path, of_announced, of_unknown) in [
        ("POST", "/in/narrow", 413, 413),
        ("POST", "/in/wide", 200, 200),
        ("POST", "/text/narrow", 413, 200),
        ("POST", "/server", 200, 200),
        ("POST", "/moved", 413, 200),
        ("POST", "/nowhere", 413, 404),
        ("POST", "/narrow/named", 413, 200),
        ("POST", "/narrow/uri", 413, 200),
        ("POST", "/narrow/last", 413, 200),
        ("POST", "/narrow/returned", 413, 200),
        ("POST", "/narrow/slash", 413, 301),
        ("POST", "/narrow/internal", 404, 404),
        ("POST", "/narrow/denied", 413, 403),
        ("PUT", "/narrow/put", 413, 413),
        ("GET", "/narrow/files", 413, 404),
        ("POST", "/wide/named", 200, 413),
        ("POST", "/wide/on", 413, 413),
        ("POST", "/wide/uri", 413, 413),
        ("POST", "/wide/text", 413, 200),
        ("POST", "/wide/last", 413, 413),
        ("POST", "/wide/break", 200, 200),
        ("POST", "/wide/denied", 413, 413),
        ("POST", "/wide/denied/text", 413, 200),
        ("POST", "/wide/denied/named", 200, 413),
        ("POST", "/wide/returned", 413, 200),
        // What was read has a known length.
        ("POST", "/wide/failed", 413, 413),
        ("POST", "/wide/failed/text", 413, 413),
        ("POST", "/wide/failed/named", 200, 200),
        ("POST", "/wide/to/in/narrow", 413, 413),
        ("POST", "/wide/to/text/narrow", 413, 413),
        ("POST", "/wide/to/in/wide", 200, 200),
        ("POST", "/wide/to/@narrow", 200, 200),
        ("GET", "/wide/index/", 413, 200),
    ] {
        for sent in EACH {
            let status = if sent.is_announced() { of_announced } else { of_unknown };
            let (got, text) = sent.ask(&server, method, path);
            assert_eq!(got, status, "{method} {path} {sent:?}: {text}");
        }
    }
}

#[test]
fn a_body_that_was_passed_on_has_the_length_that_came() {
    let (_origin, server) = site();
    for path in ["/wide/streamed/to/in/narrow", "/wide/streamed/to/text/narrow"] {
        for (sent, status) in [(Sent::Announced, 413), (Sent::OverHttp2Announced, 413), (Sent::Chunked, 413)]
        {
            assert_eq!(sent.ask(&server, "POST", path).0, status, "{path} {sent:?}");
        }
    }
}

#[test]
fn the_page_of_a_refused_body_is_served_and_that_of_a_body_that_was_read_has_its_own_bound() {
    let (_origin, server) = site();
    for sent in EACH {
        // nginx looks at the length again in HTTP/2, where nothing is read of a refused body.
        if is_nginx() && sent == Sent::OverHttp2Announced {
            continue;
        }
        for (path, status, text) in [
            ("/narrow/page", 200, "text"),
            ("/narrow/page/wide", 200, "text"),
            ("/narrow/page/read", 413, "0"),
            ("/narrow/page/again", 200, "0"),
        ] {
            let (got, body) = sent.ask(&server, "POST", path);
            assert_eq!((got, body.as_str()), (status, text), "{path} {sent:?}");
        }
    }
    for sent in EACH {
        let (got, body) = sent.ask(&server, "POST", "/wide/failed/page");
        assert_eq!((got, body.contains("text")), (413, false), "{sent:?}");
    }
}

#[test]
fn a_subrequest_is_bound_by_its_location_as_the_request_that_asks() {
    let (origin, server) = site();
    for sent in EACH {
        let is_announced = sent.is_announced();
        let narrow = if is_announced { 500 } else { 200 };
        assert_eq!(sent.ask(&server, "POST", "/wide/asked/narrow").0, narrow, "{sent:?}");
        assert_eq!(sent.ask(&server, "POST", "/wide/asked/wide").0, 200, "{sent:?}");
        let (page, text) = sent.ask(&server, "POST", "/wide/page");
        assert_eq!((page, text.contains("413")), (200, true), "{sent:?}: {text}");
        // How often the application is asked: by the copy, or by what follows, too.
        for (path, count) in [
            ("/wide/copied/narrow", 1),
            ("/wide/copied/bodiless", if is_announced { 1 } else { 2 }),
            ("/wide/copied/wide", 2),
            ("/wide/followed/narrow", 1),
            ("/wide/followed/wide", 2),
        ] {
            let before = origin.count();
            assert_eq!(sent.ask(&server, "POST", path).0, 200, "{path} {sent:?}");
            wait::until("the application is asked", || origin.count() >= before + count);
            // A copy too many would have come by the next response.
            assert_eq!(Sent::Announced.ask(&server, "POST", "/in/wide").0, 200);
            assert_eq!(origin.count() - before, count + 1, "{path} {sent:?}");
        }
    }
    let before = origin.count();
    assert_eq!(Sent::Announced.ask(&server, "POST", "/wide/followed/unread").0, 200);
    wait::until("what follows a body that was dropped is asked", || origin.count() > before);
}

#[test]
fn a_client_that_waits_is_not_told_to_send_a_body_that_is_too_large() {
    let (_origin, server) = site();
    for (path, status) in
        [("/narrow/named", 413), ("/wide/uri", 413), ("/wide/asked/narrow", 500), ("/wide/named", 100)]
    {
        let mut client = server.client();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {SIZE}\r\nExpect: 100-continue\r\n\r\n"
        );
        client.send(head).expect("open");
        assert_eq!(client.head().expect("a head").status, status, "{path}");
    }
}
