//! Server-Side Includes: what commands in an answer bring about, wherever the answer is from. What is not ours alone holds for nginx as
//! well (`MILLSTREAM_BINARY=/usr/sbin/nginx`).

use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;
use std::sync::Arc;

const START: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log notice; worker_processes 1; events { worker_connections 256; }
    http { access_log @DIR@/access.log; types { text/html html; text/plain txt; } default_type text/html;
    proxy_cache_path @DIR@/cache keys_zone=z:1m; proxy_cache_valid 200 1h; add_header X-Cache $upstream_cache_status; ssi on;";

const ERROR: &str = "[an error occurred while processing the directive]";

fn served(origin: &Origin, files: &[(&str, &str)], locations: &str) -> Server {
    let prefix = Prefix::new();
    for (name, text) in files {
        prefix.write(&format!("www/{name}"), text);
    }
    let template = format!(
        "{START} server {{ listen 127.0.0.1:@PORT@; server_name localhost; root @DIR@/www; {locations} }} }}"
    );
    Server::start_in(prefix, &template, &[("ORIGIN", &origin.address())])
}

/// Responds with the path after the first slash, with spaces for dashes, or with one of these pages.
fn pages(pages: &'static [(&'static str, &'static str)]) -> Origin {
    Origin::start(move |request| {
        let target = request.target().to_owned();
        let path = target.split('?').next().unwrap_or_default();
        let page = pages.iter().find(|(name, _)| *name == path).map_or(path, |(_, text)| text);
        let fields = [("Content-Type", "text/html"), ("ETag", "\"tag\"")];
        answer(200, &fields, page.as_bytes())
    })
}

#[test]
fn commands_mean_what_they_mean_in_nginx() {
    let origin = pages(&[]);
    let pages = include_str!("ssi/pages.txt").lines();
    let files: Vec<_> = pages.map(|page| page.split_once(' ').expect("a name and a page")).collect();
    let server = served(
        &origin,
        &files,
        "location /nothing { return 204; } location /off/ { ssi off; } location /silent/ { ssi_silent_errors on; }
        location /all/ { ssi_types text/plain; } location /long.html { ssi_value_length 4; }
        location /pass/ { proxy_pass http://@ORIGIN@/; }",
    );
    for (path, expected) in [
        ("/echo.html?a=x", "x,(none)"),
        ("/echo.html", "d,(none)"),
        ("/echo.html?a=", ",(none)"),
        ("/set.html?a=x", "x&lt;bx<bx<b"),
        ("/url.html", "a%20b/?&%23%25+;"),
        ("/if.html?a=yx", "y."),
        ("/if.html?a=y", "some."),
        ("/if.html", "none."),
        ("/include.html?a=<", "[&lt;,(none)|plain <!--#echo var=\"uri\" -->]"),
        ("/wait.html", "1&lt;b1<b1<b1&lt;b"),
        ("/variable.html", "[plain &lt;!--#echo var=&quot;uri&quot; --&gt;]"),
        ("/missing.html", "[]"),
        ("/stub.html", "[stub 1][plain <!--#echo var=\"uri\" -->]"),
        ("/wrong.html", &format!("a{ERROR}b{ERROR}c{ERROR}dE")),
        ("/silent/wrong.html", "ab"),
        ("/long.html", &format!("{ERROR}x")),
        ("/plain.txt", "plain <!--#echo var=\"uri\" -->"),
        ("/all/plain.txt", "/all/plain.txt"),
        ("/off/on.html", "<!--#echo var=\"uri\" -->"),
        ("/deep.html", "123,(none)21"),
        ("/proxied.html", "/one/two"),
    ] {
        assert_eq!(server.get(path).text(), expected, "{path}");
    }
    if !is_nginx() {
        assert_eq!(server.get("/empty.html").text(), "stub 2");
    }
    let date = server.get("/date.html").text();
    assert!(date.len() == 6 && date.starts_with("20") && date.ends_with("-%"), "{date}");
    let log = server.prefix().read("error.log");
    assert!(log.contains("invalid SSI command: \"nothing\""), "{log}");
    if !is_nginx() {
        assert!(log.contains("in line 1 of \"/wrong.html\""), "{log}");
    }
}

#[test]
fn what_is_cached_are_the_commands_and_each_client_gets_its_own_outcome() {
    let origin = pages(&[("/page", "<!--#echo var=\"arg_who\" -->+<!--#include virtual=\"/part?p\" -->")]);
    let server = served(
        &origin,
        &[],
        "location / { proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_key $uri; }
        location /kept { ssi_last_modified on; proxy_pass http://@ORIGIN@/page; }",
    );
    for (who, cache) in [("a", "MISS"), ("b", "HIT"), ("c", "HIT")] {
        let page = server.get(&format!("/page?who={who}"));
        assert_eq!(page.text(), format!("{who}+/part"), "{who}");
        assert_eq!(page.field("x-cache"), Some(cache));
        for field in ["content-length", "etag", "accept-ranges", "last-modified"] {
            assert_eq!(page.field(field), None, "{field}");
        }
    }
    assert_eq!(origin.count(), 2);
    assert_eq!(server.get("/kept?who=d").field("etag"), Some("W/\"tag\""));
    let part = server.get_with("/page?who=e", &[("Range", "bytes=0-1"), ("If-None-Match", "\"other\"")]);
    assert_eq!((part.status, part.text().as_str()), (200, "e+/part"));
    assert_eq!(server.get_with("/page", &[("If-None-Match", "\"tag\"")]).status, 304);
    let head = server.client().request("HEAD", "/page", &[]).expect("it is answered");
    assert_eq!((head.status, head.field("content-length"), head.body.len()), (200, None, 0));
}

#[test]
fn parts_of_a_page_are_cached_each_as_its_own_whatever_the_key() {
    skip_on_nginx!();
    let origin = pages(&[("/page", "<!--#include virtual=\"/a\" --><!--#include virtual=\"/b?c\" -->")]);
    let server = served(
        &origin,
        &[],
        "location / { proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_key $request_uri; }",
    );
    for _ in 0..3 {
        assert_eq!(server.get("/page").text(), "/a/b");
        assert_eq!(server.get("/a").text(), "/a");
    }
    assert_eq!(origin.count(), 4, "the page, its two parts, and what was asked for by itself");
}

#[test]
fn pages_that_include_themselves_end() {
    let origin =
        pages(&[("/twice", "x<!--#include virtual=\"/twice\" --><!--#include virtual=\"/twice\" -->")]);
    let server = served(
        &origin,
        &[("self.html", "x<!--#include virtual=\"/self.html\" -->")],
        "location /twice { proxy_pass http://@ORIGIN@; proxy_cache z; }",
    );
    let page = server.get("/self.html").text();
    assert_eq!(page.matches('x').count(), 52);
    assert!(page.ends_with(ERROR), "{page}");
    if !is_nginx() {
        let page = server.get("/twice").text();
        assert_eq!(page.matches('x').count(), 1001);
    }
    assert_eq!(server.get("/self.html").status, 200);
}

#[test]
fn parts_are_asked_at_the_same_time_and_what_stands_before_them_goes_out_at_once() {
    let gates = [Arc::new(Gate::default()), Arc::new(Gate::default())];
    let held = gates.clone();
    let origin = Origin::start(move |request| {
        let fields = [("Content-Type", "text/html")];
        let gate = match request.target() {
            "/first" => &held[0],
            "/second" => &held[1],
            _ => {
                let page =
                    "before<!--#include virtual=\"/first\" -->between<!--#include virtual=\"/second\" -->";
                return answer(200, &fields, page.as_bytes());
            }
        };
        let mut steps = vec![Step::Pass(Arc::clone(gate))];
        steps.extend(answer(200, &fields, request.target().as_bytes()));
        steps
    });
    let server = served(&origin, &[], "location / { proxy_pass http://@ORIGIN@; }");
    let mut client = server.client();
    client.send("GET /page HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is sent");
    assert_eq!(client.head().expect("the head is there").status, 200);
    assert_eq!(client.line().expect("a chunk"), "6");
    assert_eq!(client.line().expect("its content"), "before");
    wait::until("both are asked for", || origin.count() == 3);
    gates[1].open();
    gates[0].open();
    assert_eq!(client.chunked().expect("the rest"), b"/firstbetween/second");
}

#[test]
fn an_included_answer_of_any_size_goes_out_whole_in_its_place() {
    let origin = Origin::start(|request| {
        let fields = [("Content-Type", "text/html")];
        match request.target() {
            "/large" => answer(200, &fields, "0123456789".repeat(200_000).as_bytes()),
            _ => answer(
                200,
                &fields,
                b"<!--#include virtual=\"/large\" -->,<!--#include virtual=\"/large\" -->",
            ),
        }
    });
    let server = served(
        &origin,
        &[("large.html", "<!--#include virtual=\"/large\" set=\"v\" -->[<!--#echo var=\"v\" -->]")],
        "location / { proxy_pass http://@ORIGIN@; } location /zipped { gzip on; proxy_pass http://@ORIGIN@; }
        location = /large.html { }",
    );
    let large = "0123456789".repeat(200_000);
    let expected = format!("{large},{large}");
    assert!(server.get("/page").text() == expected);
    let zipped = server.get_with("/zipped", &[("Accept-Encoding", "gzip")]);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&zipped.body[..]), &mut text)
        .expect("it is gzip");
    assert!(text == expected);
    if !is_nginx() {
        assert_eq!(server.get("/large.html").text(), "[]", "a variable is bounded");
    }
}

#[test]
fn what_is_included_is_what_its_location_answers() {
    let origin = pages(&[]);
    let server = served(
        &origin,
        &[
            (
                "a.html",
                "<!--#include virtual=\"/inside/x\" -->|<!--#include virtual=\"/moved\" -->|<!--#include virtual=\"/failed\" -->",
            ),
            (
                "up.html",
                "<!--#include virtual=\"/a/../../secret\" --><!--#include virtual=\"/%2e%2e/secret\" -->",
            ),
            ("up.txt", "no"),
        ],
        "location /inside/ { internal; proxy_pass http://@ORIGIN@; } location /moved { rewrite ^ /inside/y; }
        location /failed { error_page 418 =200 /inside/z; return 418; }",
    );
    assert_eq!(server.get("/a.html").text(), "/inside/x|/inside/y|/inside/z");
    assert_eq!(server.get("/inside/x").status, 404, "a client does not get there");
    assert_eq!(server.get("/up.html").text(), ERROR.repeat(2));
}
