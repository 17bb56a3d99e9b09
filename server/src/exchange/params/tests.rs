//! What an application is told of a request.

use super::super::request_head::RequestFraming;
use super::{RequestPlan, write_fastcgi};
use crate::admission;
use crate::fixture::{admitted, worker};
use millstream_wire::Method;
use millstream_wire::client_address::KNOWN;

fn sent(words: &str, request: &str, framed: RequestFraming) -> Vec<(String, String)> {
    let (server, words) = words.split_once('|').unwrap_or(("", words));
    let http = format!("server {{ listen 80; {server} location / {{ fastcgi_pass 127.0.0.1:1; {words} }} }}");
    let mut request = admitted(&worker(&http), request);
    admission::route(&mut request).expect("it is decided");
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.route.location).settings;
    let proxy = settings.pass().expect("it is passed on");
    let plan = RequestPlan {
        request: &request,
        proxy,
        method: Method::Get,
        uri: None,
        caching: false,
        confirm: None,
        rest: None,
        framed,
        codings: None,
    };
    let mut out = Vec::new();
    write_fastcgi(&mut out, &plan, proxy.fastcgi().expect("in FastCGI"));
    assert_eq!(&out[..16], [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(&out[out.len() - 8..], [1, 4, 0, 1, 0, 0, 0, 0]);
    let length = usize::from(u16::from_be_bytes([out[20], out[21]]));
    let (mut pairs, mut rest) = (Vec::new(), &out[24..24 + length]);
    assert_eq!(out.len(), 24 + length + 8, "one record takes them all");
    while let [name, value, text @ ..] = rest {
        let (name, value) = (usize::from(*name), usize::from(*value));
        let read = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        pairs.push((read(&text[..name]), read(&text[name..name + value])));
        rest = &text[name + value..];
    }
    pairs
}

fn check(words: &str, request: &str, framed: RequestFraming, expected: &[(&str, &str)]) {
    let sent = sent(words, request, framed);
    let sent: Vec<_> = sent.iter().map(|(name, value)| (&**name, &**value)).collect();
    assert_eq!(sent, expected, "{words}");
}

#[test]
fn the_requests_fields_are_parameters_as_cgi_names_them() {
    let head = "GET / HTTP/1.1\r\nHost: Api.Example\r\nAccept-Language: en\r\nX-A: 1\r\nx-a: 2\r\nCookie: a=1\r\n\
        Cookie: b=2\r\nProxy: http://evil.test\r\nConnection: close, X-Hop\r\nX-Hop: y\r\nX_Odd: z\r\nTE: trailers\r\n\r\n";
    check(
        "",
        head,
        RequestFraming::None,
        &[
            ("HTTP_HOST", "api.example"),
            ("HTTP_ACCEPT_LANGUAGE", "en"),
            ("HTTP_X_A", "1, 2"),
            ("HTTP_COOKIE", "a=1; b=2"),
        ],
    );
}

const EVERY: &str = "underscores_in_headers on; |";

#[test]
fn no_spelling_of_a_field_comes_past_what_is_set_or_held_back() {
    let head = |fields: &str| format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    for (words, fields, expected) in [
        (
            "fastcgi_param HTTP_X_REAL_IP $remote_addr;",
            "X-Real-IP: 6\r\nX_Real_IP: 7\r\nX_REAL-IP: 8\r\nx-real_ip: 9\r\n",
            &[("HTTP_X_REAL_IP", "192.0.2.1"), ("HTTP_HOST", "a")][..],
        ),
        ("", "X-A_B: 1\r\nX-A-B: 2\r\nx_a_b: 3\r\n", &[("HTTP_HOST", "a"), ("HTTP_X_A_B", "1, 2, 3")]),
        (
            "",
            "X_Forwarded_For: 6\r\nX-Forwarded-For: 7\r\n",
            &[("HTTP_HOST", "a"), ("HTTP_X_FORWARDED_FOR", "6, 7")],
        ),
        (
            "",
            "Keep_Alive: 1\r\nContent_Length: 9\r\nTransfer_Encoding: chunked\r\nProxy_Connection: x\r\n",
            &[("HTTP_HOST", "a")],
        ),
        (
            "fastcgi_pass_client_address off;",
            "X_Real_IP: 7\r\nX_Forwarded-For: 7\r\nTrue_Client_IP: 7\r\n",
            &[("HTTP_HOST", "a")],
        ),
        (
            "fastcgi_param HTTP_X_API_KEY mine;",
            "X_Api_Key: theirs\r\n",
            &[("HTTP_X_API_KEY", "mine"), ("HTTP_HOST", "a")],
        ),
    ] {
        check(&format!("{EVERY}{words}"), &head(fields), RequestFraming::None, expected);
    }
}

#[test]
fn what_names_the_clients_address_is_no_parameter_where_that_is_hidden() {
    for name in KNOWN {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{name}: 192.0.2.1\r\n\r\n");
        let words = "fastcgi_pass_client_address off; fastcgi_param REMOTE_ADDR $remote_addr;";
        let expected = [("REMOTE_ADDR", "192.0.2.1"), ("HTTP_HOST", "a")];
        check(words, &head, RequestFraming::None, &expected);
    }
}

#[test]
fn parameters_are_sent_as_set_and_stand_in_the_place_of_fields() {
    check(
        "fastcgi_param A 1; fastcgi_param EMPTY $arg_none; fastcgi_param GONE $arg_none if_not_empty; \
         fastcgi_param QUERY_STRING $query_string if_not_empty; fastcgi_param HTTP_X_A mine; \
         fastcgi_param HTTP_HOST $server_name;",
        "GET /?x=1 HTTP/1.1\r\nHost: a\r\nX-A: theirs\r\n\r\n",
        RequestFraming::None,
        &[("A", "1"), ("EMPTY", ""), ("QUERY_STRING", "x=1"), ("HTTP_X_A", "mine"), ("HTTP_HOST", "")],
    );
}

#[test]
fn an_application_is_told_the_host_that_the_request_is_for_and_its_port() {
    let words = "server_name named.example; |";
    for (host, expected) in [
        ("Host: AbC.org:80\r\n", "abc.org:80"),
        ("Host: abc.org.\r\n", "abc.org"),
        ("Host: [::1]:8080\r\n", "[::1]:8080"),
    ] {
        let head = format!("GET / HTTP/1.1\r\n{host}\r\n");
        check(words, &head, RequestFraming::None, &[("HTTP_HOST", expected)]);
    }
    check(words, "GET / HTTP/1.0\r\n\r\n", RequestFraming::None, &[("HTTP_HOST", "named.example")]);
    let absolute = "GET http://Abs.org:81/ HTTP/1.1\r\nHost: other\r\n\r\n";
    check(words, absolute, RequestFraming::None, &[("HTTP_HOST", "abs.org:81")]);
    let bare = "GET / HTTP/1.0\r\n\r\n";
    check("fastcgi_param A 1;", bare, RequestFraming::None, &[("A", "1")]);
    let off = "server_name a; | fastcgi_pass_request_headers off;";
    check(
        off,
        "GET / HTTP/1.1\r\nHost: A:1\r\nX-A: 1\r\n\r\n",
        RequestFraming::None,
        &[("HTTP_HOST", "a:1")],
    );
}

#[test]
fn an_application_is_told_the_method_and_the_length_that_are_sent() {
    let words = "fastcgi_param REQUEST_METHOD $request_method; fastcgi_param CONTENT_LENGTH $content_length;";
    let check = |method: &str, framed, told: &str, length: &str| {
        let head = format!("{method} / HTTP/1.0\r\n\r\n");
        check(words, &head, framed, &[("REQUEST_METHOD", told), ("CONTENT_LENGTH", length)]);
    };
    check("GET", RequestFraming::None, "GET", "");
    check("HEAD", RequestFraming::None, "GET", "");
    check("GET", RequestFraming::Length(70_000), "GET", "70000");
    check("GET", RequestFraming::Length(0), "GET", "0");
}

#[test]
fn the_script_is_parted_from_what_follows_it_and_has_an_index() {
    let params = "fastcgi_param S $fastcgi_script_name; fastcgi_param P $fastcgi_path_info;";
    let check = |words: &str, path: &str, script: &str, info: &str| {
        let head = format!("GET {path} HTTP/1.0\r\n\r\n");
        check(&format!("{words} {params}"), &head, RequestFraming::None, &[("S", script), ("P", info)]);
    };
    check("", "/a.php/b", "/a.php/b", "");
    check("fastcgi_index index.php;", "/blog/", "/blog/index.php", "");
    check("fastcgi_index index.php;", "/blog", "/blog", "");
    let split = "fastcgi_index index.php; fastcgi_split_path_info ^(.+?\\.php)(/.*)$;";
    check(split, "/a.php/b/c.php/d", "/a.php", "/b/c.php/d");
    check(split, "/a.php", "/a.php", "");
    check(split, "/", "/index.php", "");
    check("fastcgi_split_path_info ^(/app/)(.*)$; fastcgi_index x;", "/app/y", "/app/x", "y");
}
