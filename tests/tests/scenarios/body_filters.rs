//! Bodies that are changed on their way out: texts replaced, charsets converted, codings taken off; from files, from upstreams and out of
//! the cache alike. The tables hold for nginx as well (`MILLSTREAM_BINARY=/usr/sbin/nginx`), but for what is coded already.

use std::io::{Read, Write};

use millstream_tests::client::Answer;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::server::{Server, is_nginx};

const START: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log notice; worker_processes 1; events { worker_connections 64; }
    http { access_log off; types { text/html html; text/plain txt; } default_type text/html;
    proxy_cache_path @DIR@/cache keys_zone=z:1m; proxy_cache_valid 200 1h; add_header X-Cache $upstream_cache_status;
    charset_map koi8-r utf-8 { C0 D18E; C1 D0B0; }
    charset_map lower upper { 61 41; 62 42; }";

fn served(origin: &Origin, locations: &str) -> Server {
    let prefix = Prefix::new();
    prefix.write("www/a.html", "one two one");
    prefix.write("www/a.txt", "one two one");
    prefix.write("www/letters.html", "abcabcabc");
    let template = format!(
        "{START} server {{ listen 127.0.0.1:@PORT@; server_name localhost; root @DIR@/www; {locations} }} }}"
    );
    Server::start_in(prefix, &template, &[("ORIGIN", &origin.address())])
}

pub fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

fn told(answer: &Answer) -> (u16, String, String) {
    let cache = answer.field("x-cache").unwrap_or_default().to_owned();
    (answer.status, cache, answer.text())
}

#[test]
fn texts_are_replaced_in_files_and_answers_and_out_of_the_cache() {
    let origin = Origin::start(|request| {
        let fields = [
            ("Content-Type", "text/html"),
            ("ETag", "\"tag\""),
            ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ];
        let body =
            if request.target() == "/long" { "-one-".repeat(30_000) } else { "one two one".to_owned() };
        answer(200, &fields, body.as_bytes())
    });
    let server = served(
        &origin,
        "sub_filter one 1; sub_filter two \"$arg_t\";
        location /all/ { alias @DIR@/www/; sub_filter_once off; sub_filter_types text/plain; sub_filter_last_modified on; }
        location /pass { proxy_pass http://@ORIGIN@; }
        location /cached { proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_key k; }
        location /zipped { proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_key k; gzip on; gzip_min_length 1; }
        location /long { proxy_pass http://@ORIGIN@; proxy_cache z; sub_filter_once off; sub_filter -one- <1>; }
        location /error { error_page 404 /a.html; return 404; }",
    );
    for (path, expected) in [
        ("/a.html?t=2", (200, "", "1 2 one")),
        ("/a.txt", (200, "", "one two one")),
        ("/all/a.txt?t=2", (200, "", "1 2 1")),
        ("/pass?t=x", (200, "", "1 x one")),
        ("/cached?t=3", (200, "MISS", "1 3 one")),
        ("/cached?t=4", (200, "HIT", "1 4 one")),
        ("/error", (404, "", "1  one")),
    ] {
        let (status, cache, body) = told(&server.get(path));
        assert_eq!((status, cache.as_str(), body.as_str()), expected, "{path}");
    }
    assert_eq!(origin.count(), 2, "what was changed for one client is not what is stored");
    for (path, validators) in [
        ("/a.html", (false, false)),
        ("/a.txt", (true, true)),
        ("/all/a.txt", (true, true)),
        ("/cached", (false, false)),
    ] {
        let answer = server.get(path);
        assert_eq!(
            (answer.field("etag").is_some(), answer.field("last-modified").is_some()),
            validators,
            "{path}"
        );
        if path.starts_with("/all") {
            assert!(answer.field("etag").is_some_and(|etag| etag.starts_with("W/")), "{path}");
        }
        let is_changed = path != "/a.txt";
        assert_eq!(answer.field("content-length").is_none(), is_changed, "{path}");
        let part = server.get_with(path, &[("Range", "bytes=0-1")]);
        assert_eq!(part.status, if is_changed { 200 } else { 206 }, "{path}");
        let head = server.client().request("HEAD", path, &[]).expect("it is answered");
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        assert_eq!(head.field("content-length").is_none(), is_changed, "{path}");
    }
    let fresh = server.get_with("/cached", &[("If-None-Match", "\"tag\"")]);
    assert_eq!(fresh.status, 304);
    let zipped = server.get_with("/zipped?t=6", &[("Accept-Encoding", "gzip")]);
    let mut text = String::new();
    flate2::read::GzDecoder::new(&zipped.body[..]).read_to_string(&mut text).expect("it is gzip");
    assert_eq!((text.as_str(), zipped.field("x-cache")), ("1 6 one", Some("HIT")));
    for _ in 0..2 {
        assert_eq!(server.get("/long").text(), "<1>".repeat(30_000));
    }
}

#[test]
fn what_is_coded_already_is_not_searched() {
    skip_on_nginx!();
    let origin = Origin::start(|_| {
        let fields = [("Content-Type", "text/html"), ("Content-Encoding", "gzip"), ("ETag", "\"tag\"")];
        answer(200, &fields, &gzipped(b"one"))
    });
    let server = served(&origin, "sub_filter one 1; location /pass { proxy_pass http://@ORIGIN@; }");
    let answer = server.get("/pass");
    assert_eq!((answer.body.as_slice(), answer.field("etag")), (gzipped(b"one").as_slice(), Some("\"tag\"")));
}

#[test]
fn charsets_are_converted_where_there_is_a_map() {
    let origin = Origin::start(|request| match request.target() {
        "/said" => answer(200, &[("Content-Type", "text/html; charset=KOI8-R")], b"\xC0a\xC1\xC2"),
        "/utf8" => answer(200, &[("Content-Type", "text/html; charset=utf-8")], "юж€".as_bytes()),
        _ => answer(200, &[("Content-Type", "text/html"), ("ETag", "\"tag\"")], b"\xC0\xC1"),
    });
    let server = served(
        &origin,
        "location / { proxy_pass http://@ORIGIN@; proxy_cache z; charset utf-8; source_charset koi8-r; override_charset on; }
        location /utf8 { proxy_pass http://@ORIGIN@; charset koi8-r; override_charset on; }
        location /letters.html { charset upper; source_charset lower; }
        location /var { alias @DIR@/www/letters.html; charset $arg_c; source_charset lower; }",
    );
    for _ in 0..2 {
        for (path, content_type, expected) in [
            ("/", "text/html; charset=utf-8", "юа".as_bytes()),
            ("/said", "text/html; charset=utf-8", "юaа?".as_bytes()),
            ("/utf8", "text/html; charset=koi8-r", b"\xC0&#1078;&#8364;"),
            ("/letters.html", "text/html; charset=upper", b"ABcABcABc"),
            ("/var?c=upper", "text/html; charset=upper", b"ABcABcABc"),
            ("/var?c=lower", "text/html; charset=lower", b"abcabcabc"),
            ("/var?c=other", "text/html", b"abcabcabc"),
        ] {
            let answer = server.get(path);
            assert_eq!(
                (answer.field("content-type"), answer.body.as_slice()),
                (Some(content_type), expected),
                "{path}"
            );
        }
    }
    // Where bytes become bytes there are ranges, and nothing else changes.
    let part = server.get_with("/letters.html", &[("Range", "bytes=3-5")]);
    assert_eq!((part.status, part.text().as_str()), (206, "ABc"));
    assert_eq!(part.field("content-range"), Some("bytes 3-5/9"));
    assert_eq!(server.get("/letters.html").field("content-length"), Some("9"));
    assert_eq!(server.get_with("/", &[("Range", "bytes=0-0")]).status, 200);
    server.says("no \"charset_map\" between the charsets \"lower\" and \"other\"");
}

#[test]
fn who_takes_no_gzip_gets_what_is_stored_so_decoded() {
    let text = "a text that is long enough to be worth it. ".repeat(3_000);
    let body = gzipped(text.as_bytes());
    let cut = body[..body.len() / 2].to_vec();
    let origin = Origin::start(move |request| {
        let fields = [("Content-Type", "text/html"), ("Content-Encoding", "gzip"), ("ETag", "\"tag\"")];
        answer(200, &fields, if request.target() == "/cut" { &cut } else { &body })
    });
    let server = served(
        &origin,
        "gunzip on; gzip_vary on; gzip_http_version 1.0; location / { proxy_pass http://@ORIGIN@; proxy_cache z; }
        location /sub { proxy_pass http://@ORIGIN@; sub_filter \"a text\" \"A TEXT\"; }",
    );
    for _ in 0..2 {
        let plain = server.get("/");
        assert_eq!((plain.status, plain.text()), (200, text.clone()));
        assert_eq!((plain.field("content-encoding"), plain.field("etag")), (None, Some("W/\"tag\"")));
        assert_eq!(plain.field("vary"), Some("Accept-Encoding"));
        let coded = server.get_with("/", &[("Accept-Encoding", "gzip")]);
        assert_eq!((coded.field("content-encoding"), coded.field("etag")), (Some("gzip"), Some("\"tag\"")));
        assert_eq!(coded.field("vary"), Some("Accept-Encoding"));
        assert_ne!(coded.body.len(), plain.body.len());
    }
    assert!(server.get("/sub").text().starts_with("A TEXT that is long"));
    assert_eq!(server.get_with("/", &[("Range", "bytes=0-9")]).status, 200);
    // Where the end is missing the client is told so.
    let mut client = server.client();
    client.send("GET /cut HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is sent");
    assert!(is_nginx() || client.answer().is_err());
}
