//! The head of an answer, byte by byte where it matters, and nginx's conditions for compressing.

use super::coding::{self, Plain};
use super::compressor::{Compressor, EncoderAccount, EncoderMemory};
use super::encoder::{Effort, whole};
use super::head;
use crate::fixture::{admitted, worker};
use crate::request::Request;
use millstream_wire::{Coding, Headers};

fn request(server: &str, head: &str) -> Request {
    admitted(&worker(&format!("server {{ listen 80; {server} }}")), head)
}

fn fields(lines: &[(&str, &str)]) -> Headers {
    let mut headers = Headers::default();
    for (name, value) in lines {
        headers.push(name.as_bytes(), value.as_bytes());
    }
    headers
}

fn written(request: &mut Request, status: u16, lines: &[(&str, &str)], age: Option<u64>) -> Vec<String> {
    let headers = fields(lines);
    let plan =
        head::HeadPlan { status, fields: headers.view(), length: Some(5), chunked: false, coding: None, age };
    let mut out = Vec::new();
    head::encode(&mut out, request, &plan);
    let text = String::from_utf8(out).expect("it is text");
    let text = text.strip_suffix("\r\n\r\n").expect("an empty line ends it");
    let mut lines: Vec<_> =
        text.split("\r\n").filter(|line| !line.starts_with("Date: ")).map(str::to_owned).collect();
    lines[1..].sort();
    lines
}

const GET: &str = "GET /x HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";

#[test]
fn a_head_says_its_own_framing_and_passes_the_rest_on() {
    let mut request = request("server_tokens off; keepalive_timeout 9s 7s;", GET);
    let lines = [("Content-Type", "text/plain"), ("Connection", "x"), ("Content-Length", "9"), ("Age", "3")];
    let expected = [
        "HTTP/1.1 200 OK",
        "Age: 3",
        "Connection: keep-alive",
        "Content-Length: 5",
        "Content-Type: text/plain",
        "Keep-Alive: timeout=7",
        "Server: millstream",
    ];
    assert_eq!(written(&mut request, 200, &lines, None), expected);
    assert_eq!(request.sent.status, 200);
}

#[test]
fn an_answer_out_of_the_cache_has_the_age_it_has_now() {
    let mut request = request("server_tokens off;", GET);
    request.keep_alive = false;
    let expected =
        ["HTTP/1.1 200 OK", "Age: 12", "Connection: close", "Content-Length: 5", "Server: millstream"];
    assert_eq!(written(&mut request, 200, &[("Age", "3")], Some(12)), expected);
}

#[test]
fn add_header_is_for_successes_unless_it_says_always_and_can_start_no_line() {
    let server = r#"add_header X-A a; add_header X-B $status always; add_header X-Empty "" always;
        add_header X-Path $uri always;"#;
    let mut request = request(server, "GET /a%0d%0aEvil:1 HTTP/1.1\r\nHost: a\r\n\r\n");
    let lines = written(&mut request, 200, &[], None);
    assert!(lines.contains(&"X-A: a".to_owned()) && lines.contains(&"X-B: 200".to_owned()), "{lines:?}");
    assert!(lines.contains(&"X-Path: /a  Evil:1".to_owned()), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("X-Empty") || line.starts_with("Evil")), "{lines:?}");
    let lines = written(&mut request, 404, &[], None);
    assert!(!lines.contains(&"X-A: a".to_owned()) && lines.contains(&"X-B: 404".to_owned()), "{lines:?}");
}

#[test]
fn an_error_page_is_answered_with_the_status_of_its_error() {
    let mut request = request("", GET);
    request.descent.error_status = Some(404);
    assert_eq!(written(&mut request, 200, &[], None)[0], "HTTP/1.1 404 Not Found");
}

#[test]
fn fields_that_an_x_accel_redirect_leaves_come_before_the_response_s_own_and_its_type_counts_where_that_has_none()
 {
    let own = [("Set-Cookie", "b=2"), ("X-Own", "1"), ("Location", "/own")];
    for (media, status, expected) in [
        (Some("text/plain"), 200, Some("text/plain")),
        (Some(""), 200, None),
        (None, 200, Some("application/pdf")),
        (None, 304, None),
        (None, 204, None),
    ] {
        let mut request = request("server_tokens off;", GET);
        let left = [("Content-Type", "application/pdf"), ("Set-Cookie", "a=1"), ("Location", "/first")];
        request.descent.accel_fields = Some(Box::new(fields(&left)));
        let typed: Vec<_> = own.into_iter().chain(media.map(|media| ("Content-Type", media))).collect();
        let lines = written(&mut request, status, &typed, None);
        let all = |name: &str| -> Vec<&str> {
            let lines = lines.iter().filter_map(|line| line.strip_prefix(name));
            lines.filter_map(|value| value.strip_prefix(": ")).collect()
        };
        assert_eq!(all("Content-Type"), Vec::from_iter(expected), "{media:?} {status}");
        assert_eq!(all("Set-Cookie"), ["a=1", "b=2"], "{lines:?}");
        assert_eq!((all("Location"), all("X-Own")), (vec!["/first"], vec!["1"]), "{lines:?}");
        assert!(request.descent.accel_fields.is_none());
    }
}

#[test]
fn what_is_compressed_is_what_nginx_compresses() {
    let check =
        |server: &str, head: &str, status: u16, lines: &[(&str, &str)], length: u64, expected: bool| {
            let headers = fields(lines);
            let request = request(&format!("gzip on; gzip_min_length 100; {server}"), head);
            let plain = Plain { status, fields: headers.view(), length: Some(length) };
            let applies = coding::choose(&request, &plain).is_some();
            assert_eq!(applies, expected, "{server} {head} {status} {lines:?} {length}");
        };
    let html: &[_] = &[("Content-Type", "text/html; charset=utf-8")];
    let json: &[_] = &[("Content-Type", "application/json")];
    check("", GET, 200, html, 100, true);
    check("", GET, 403, html, 100, true);
    check("", GET, 404, html, 100, true);
    check("", GET, 500, html, 100, false);
    check("", GET, 206, html, 100, false);
    check("", GET, 200, html, 99, false);
    check("", GET, 200, json, 100, false);
    check("gzip_types application/json;", GET, 200, json, 100, true);
    check("gzip_types application/json;", GET, 200, html, 100, true);
    check("gzip_types *;", GET, 200, json, 100, true);
    check("", GET, 200, &[("Content-Type", "text/html"), ("Content-Encoding", "br")], 100, false);
    check("", GET, 200, &[("Content-Type", "text/html"), ("Cache-Control", "no-transform")], 100, false);
    check("", GET, 200, &[], 100, false);
    check("", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200, html, 100, false);
    check("", "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip;q=0\r\n\r\n", 200, html, 100, false);
    let old = "GET / HTTP/1.0\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";
    check("", old, 200, html, 100, false);
    check("gzip_http_version 1.0;", old, 200, html, 100, true);
}

#[test]
fn a_request_through_a_proxy_is_compressed_as_gzip_proxied_says() {
    let proxied = "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nVia: 1.1 p\r\n\r\n";
    let check = |rule: &str, head: &str, extra: (&str, &str), expected: bool| {
        let headers = fields(&[("Content-Type", "text/html"), extra]);
        let request = request(&format!("gzip on; gzip_min_length 1; gzip_proxied {rule};"), head);
        let plain = Plain { status: 200, fields: headers.view(), length: None };
        assert_eq!(coding::choose(&request, &plain).is_some(), expected, "{rule} {extra:?}");
    };
    let none = ("X-None", "");
    check("off", proxied, none, false);
    check("off", GET, none, true);
    check("any", proxied, none, true);
    check("expired", proxied, none, true);
    check("expired", proxied, ("Expires", "Thu, 01 Jan 1970 00:00:01 GMT"), true);
    check("expired", proxied, ("Expires", "Fri, 01 Jan 2100 00:00:00 GMT"), false);
    check("no-store", proxied, ("Expires", "Thu, 01 Jan 1970 00:00:01 GMT"), false);
    check("no-store", proxied, ("Cache-Control", "no-store"), true);
    check("no-store private", proxied, ("Cache-Control", "private"), true);
    check("no-store", proxied, ("Cache-Control", "max-age=5"), false);
    check("no_etag", proxied, ("ETag", "\"x\""), false);
    check("no_last_modified", proxied, ("Last-Modified", "x"), false);
    let authorised =
        "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nVia: 1.1 p\r\nAuthorization: x\r\n\r\n";
    check("auth", authorised, ("Cache-Control", "private"), true);
}

#[test]
fn clients_that_gzip_disable_names_get_no_gzip_and_other_codings_all_the_same() {
    let check = |directives: &str, agent: &str, accepted: &str, expected: Option<Coding>| {
        let headers = fields(&[("Content-Type", "text/html")]);
        let head = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {accepted}\r\nUser-Agent: {agent}\r\n\r\n"
        );
        let request = request(&format!("gzip on; brotli on; {directives}"), &head);
        let plain = Plain { status: 200, fields: headers.view(), length: None };
        assert_eq!(coding::choose(&request, &plain), expected, "{directives} {agent}");
    };
    let (old, service_pack) =
        ("Mozilla/4.0 (compatible; MSIE 6.0; Windows)", "Mozilla/4.0 (compatible; MSIE 6.0; SV1)");
    check("", old, "gzip", Some(Coding::Gzip));
    check("gzip_disable msie6;", old, "gzip", None);
    check("gzip_disable msie6;", service_pack, "gzip", Some(Coding::Gzip));
    check("gzip_disable msie6;", "MSIE 5.5", "gzip", None);
    check("gzip_disable msie6;", "MSIE 7.0", "gzip", Some(Coding::Gzip));
    check("gzip_disable msie6;", old, "gzip, br", Some(Coding::Br));
    check(r#"gzip_disable "curl/7\." "^lynx";"#, "Curl/7.88", "gzip", None);
    check(r#"gzip_disable "curl/7\." "^lynx";"#, "Lynx/2", "gzip", None);
    check(r#"gzip_disable "curl/7\." "^lynx";"#, "curl/8.0", "gzip", Some(Coding::Gzip));
}

#[test]
fn of_the_codings_that_are_on_for_an_answer_the_client_chooses() {
    let check = |directives: &str, accepted: &str, expected: Option<Coding>| {
        let headers = fields(&[("Content-Type", "application/json")]);
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {accepted}\r\n\r\n");
        let request = request(directives, &head);
        let plain = Plain { status: 200, fields: headers.view(), length: Some(500) };
        assert_eq!(coding::choose(&request, &plain), expected, "{directives} {accepted}");
    };
    let all = "gzip on; gzip_types application/json; brotli on; brotli_types application/json; zstd on; zstd_types *;";
    let browser = "gzip, deflate, br, zstd";
    check(all, browser, Some(Coding::Br));
    check(all, "gzip, zstd", Some(Coding::Zstd));
    check(all, "gzip, br;q=0.9", Some(Coding::Gzip));
    check(all, "*;q=0", None);
    check("gzip on; gzip_types application/json; brotli on;", browser, Some(Coding::Gzip));
    check("gzip on; zstd on; zstd_types application/json; zstd_min_length 501;", browser, None);
    check("zstd on; zstd_types application/json; zstd_min_length 500;", browser, Some(Coding::Zstd));
    check("", browser, None);
}

fn effort(coding: Coding, level: u32) -> Effort {
    let levels = format!("gzip_comp_level {level}; brotli_comp_level {level}; zstd_comp_level {level};");
    Effort::of(&request(&levels, GET).location().settings, coding, None)
}

fn read(coding: Coding, bytes: &[u8]) -> Vec<u8> {
    use std::io::Read;
    let mut text = Vec::new();
    // It may not have ended.
    _ = match coding {
        Coding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut text),
        Coding::Br => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut text),
        Coding::Zstd => {
            zstd::stream::read::Decoder::new(bytes).and_then(|mut body| body.read_to_end(&mut text))
        }
    };
    text
}

#[test]
fn a_body_in_pieces_is_one_stream_in_every_coding_and_all_of_it_is_there_after_a_pause() {
    for coding in Coding::ALL {
        for level in [1, 6, 9] {
            let (mut compressor, mut out) = (compressor(effort(coding, level)), Vec::new());
            for piece in ["hello ", "", "world "] {
                compressor.compress(piece.as_bytes(), &mut out);
            }
            compressor.flush(&mut out);
            assert_eq!(read(coding, &out), b"hello world ", "{coding:?} {level}");
            let paused = out.len();
            compressor.flush(&mut out);
            assert_eq!(out.len(), paused, "{coding:?}: nothing new, nothing sent");
            compressor.compress(b"hello world", &mut out);
            assert!(compressor.finish(&mut out));
            assert_eq!(compressor.totals(), (23, out.len() as u64));
            assert_eq!(read(coding, &out), b"hello world hello world");
            let whole = whole(b"hello world hello world", effort(coding, level)).expect("there is memory");
            assert_eq!(read(coding, &whole), b"hello world hello world");
        }
    }
}

#[test]
fn zstd_needs_no_larger_window_than_clients_have() {
    // RFC 9659 §3: 8 MiB. The length is not known when the stream begins, so the window is that of the level.
    let body: Vec<u8> =
        (0..100_000u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 29) as u8).collect();
    let (mut compressor, mut out) = (compressor(effort_of_zstd(20)), Vec::new());
    compressor.compress(&body, &mut out);
    assert!(compressor.finish(&mut out));
    let mut decoder = zstd::stream::read::Decoder::new(&out[..]).expect("a stream");
    decoder.window_log_max(23).expect("a window");
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut decoder, &mut text).expect("within the window");
    assert!(text == body);
}

fn effort_of_zstd(level: u32) -> Effort {
    Effort::of(&request(&format!("zstd_comp_level {level};"), GET).location().settings, Coding::Zstd, None)
}

#[test]
fn a_body_compressed_in_pieces_is_one_gzip_stream() {
    use std::io::Read;
    let effort = |level: u32| {
        let request = request(&format!("gzip_comp_level {level};"), GET);
        Effort::of(&request.location().settings, Coding::Gzip, None)
    };
    let mut compressor = compressor(effort(1));
    let mut out = Vec::new();
    for piece in ["hello ", "", "world ", "hello world"] {
        compressor.compress(piece.as_bytes(), &mut out);
    }
    assert!(compressor.finish(&mut out));
    assert_eq!(compressor.totals(), (23, out.len() as u64));
    let mut text = String::new();
    flate2::read::GzDecoder::new(out.as_slice()).read_to_string(&mut text).expect("it is a gzip stream");
    assert_eq!(text, "hello world hello world");
    let whole = whole(text.as_bytes(), effort(6)).expect("there is memory");
    let mut again = String::new();
    flate2::read::GzDecoder::new(whole.as_slice()).read_to_string(&mut again).expect("it is a gzip stream");
    assert_eq!(again, text);
}

fn compressor(effort: Effort) -> Compressor {
    Compressor::new(effort, EncoderMemory::take(effort).expect("there is room"))
}

#[test]
fn encoders_of_all_streams_have_a_bound_and_small_bodies_small_windows() {
    static ACCOUNT: EncoderAccount = EncoderAccount::new(128 << 20);
    let now = millstream_net::clock::now();
    let many = |directives: &str, coding, length| {
        let request = request(directives, GET);
        let effort = Effort::of(&request.location().settings, coding, length);
        let take = || ACCOUNT.take(effort.memory(false), now);
        let taken: Vec<EncoderMemory> = std::iter::from_fn(take).take(10_000).collect();
        assert!(take().is_none(), "no room is left");
        taken.len()
    };
    let large = "brotli_window 16m; brotli_comp_level 11; zstd_comp_level 22;";
    for coding in [Coding::Br, Coding::Zstd] {
        for length in [None, Some(u64::MAX)] {
            assert_eq!(many(large, coding, length), 2, "the largest windows are reduced: {coding:?}");
        }
        assert!(many(large, coding, Some(1000)) > 2, "a small body takes a small window: {coding:?}");
        assert_eq!(many(large, coding, None), 2, "all was given back");
    }
    assert!(many("", Coding::Gzip, None) > 300);
    let empty = Effort::of(&request("", GET).location().settings, Coding::Br, Some(0));
    assert!(whole(b"", empty).is_some());
}
