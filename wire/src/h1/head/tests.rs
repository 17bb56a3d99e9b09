//! Heads: what is read out of good ones, what is wrong with bad ones, and that cutting changes nothing.

use proptest::prelude::*;

use super::*;
use crate::h1::encode;
use crate::octets;
use crate::{FieldId, Method, Version};

fn parse(text: &str) -> Result<RequestHead, HeadError> {
    let mut head = RequestHead::default();
    match head.parse(text.as_bytes(), &HeadLimits::default())? {
        Progress::Complete => Ok(head),
        Progress::Partial => panic!("{text:?} is not whole"),
    }
}

fn text(span: crate::Span, of: &str) -> &str {
    std::str::from_utf8(span.of(of.as_bytes())).unwrap()
}

#[test]
fn an_origin_form_request_is_taken_apart() {
    let bytes =
        "POST /a/b%20c?x=1?&y HTTP/1.1\r\nhost:\t t.example:80 \r\nX_Odd!#$: \r\nAccept: a\tb\r\n\r\nrest";
    let head = parse(bytes).unwrap();
    assert_eq!((head.method, head.version), (Method::Post, Version::Http11));
    assert_eq!(text(head.line, bytes), "POST /a/b%20c?x=1?&y HTTP/1.1");
    assert_eq!(text(head.target, bytes), "/a/b%20c?x=1?&y");
    assert_eq!(text(head.path, bytes), "/a/b%20c");
    assert_eq!(text(head.query.unwrap(), bytes), "x=1?&y");
    assert_eq!((head.authority, head.target_is_raw), (None, false));
    assert_eq!(head.length, bytes.len() - 4);
    let view = head.view(bytes.as_bytes());
    assert_eq!(head.host_text(bytes.as_bytes()), Some(&b"t.example:80"[..]));
    assert_eq!(view.get(FieldId::Accept), Some(&b"a\tb"[..]));
    assert_eq!(view.named(b"x_odd!#$"), Some(&b""[..]));
    assert_eq!(view.len(), 3);
}

#[test]
fn the_four_forms_of_a_target_are_told_apart() {
    for (target, method, path, query, authority) in [
        ("/", "GET", "/", None, None),
        ("/?", "GET", "/", Some(""), None),
        ("/a#b?c", "GET", "/a", None, None),
        ("/a?b#c", "GET", "/a", Some("b"), None),
        ("http://h:8080/p?q", "GET", "/p", Some("q"), Some("h:8080")),
        ("HTTPS://h", "GET", "/", None, Some("h")),
        ("http://h?q", "GET", "/", Some("q"), Some("h")),
        ("http://[::1]/", "GET", "/", None, Some("[::1]")),
        ("*", "OPTIONS", "*", None, None),
        ("h:443", "CONNECT", "", None, Some("h:443")),
    ] {
        let bytes = format!("{method} {target} HTTP/1.1\r\nHost: other\r\n\r\n");
        let head = parse(&bytes).unwrap();
        assert_eq!(text(head.path, &bytes), path, "{target}");
        assert_eq!(head.query.map(|span| text(span, &bytes)), query, "{target}");
        assert_eq!(head.authority.map(|span| text(span, &bytes)), authority, "{target}");
        let host = head.host_text(bytes.as_bytes()).unwrap();
        assert_eq!(host, authority.unwrap_or("other").as_bytes(), "{target}");
    }
}

#[test]
fn the_origin_form_is_written_clean() {
    for (target, expected) in [
        ("/a?b=%20", "/a?b=%20"),
        ("http://h", "/"),
        ("http://h?x", "/?x"),
        ("/\u{e4}\"|x?<y>#z", "/%C3%A4%22%7Cx?%3Cy%3E"),
    ] {
        let bytes = format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
        let head = parse(&bytes).unwrap();
        let mut out = Vec::new();
        head.write_origin_form(bytes.as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

#[test]
fn bad_requests_get_their_own_error_and_status() {
    use HeadError::*;
    for (line, error, status) in [
        ("GET / HTTP/1.1 x", BadRequestLine, 400),
        ("GET  / HTTP/1.1", BadRequestLine, 400),
        ("GET\t/ HTTP/1.1", BadMethod, 400),
        ("G(T / HTTP/1.1", BadMethod, 400),
        ("GET /\u{1} HTTP/1.1", BadTarget, 400),
        ("GET /\u{7f} HTTP/1.1", BadTarget, 400),
        ("GET a HTTP/1.1", BadTarget, 400),
        ("GET * HTTP/1.1", BadTarget, 400),
        ("GET ftp://h/ HTTP/1.1", BadTarget, 400),
        ("GET http:///x HTTP/1.1", BadHost, 400),
        ("GET http://u:p@h/ HTTP/1.1", BadHost, 400),
        ("CONNECT h HTTP/1.1", BadTarget, 400),
        ("CONNECT /x HTTP/1.1", BadHost, 400),
        ("GET / HTTP/2.0", BadVersion, 505),
        ("GET / HTTP/0.9", OldVersion, 400),
        ("GET /", OldVersion, 400),
        ("GET / http/1.1", BadRequestLine, 400),
        ("GET / HTTP/1.", BadRequestLine, 400),
        ("GET / HTTP/1.10", BadRequestLine, 400),
        ("GET", BadRequestLine, 400),
    ] {
        let found = parse(&format!("{line}\r\nHost: h\r\n\r\n")).unwrap_err();
        assert_eq!((found, found.status()), (error, status), "{line}");
    }
    for (lines, error) in [
        ("", MissingHost),
        ("Host: a\r\nHost: a\r\n", ManyHosts),
        ("Host:\r\n", BadHost),
        ("Host : a\r\n", BadField),
        ("Host: a\r\n b\r\n", BadField),
        ("Host: a\r\nX: \0\r\n", BadField),
        ("Host: a\r\nX: a\rb\r\n", BadField),
        ("Host: a\r\nX: a\r\r\n", BadField),
        ("Host: a\r\n: x\r\n", BadField),
        ("Host: a\r\nno colon\r\n", BadField),
        ("Host: a\r\nX\u{e9}: x\r\n", BadField),
    ] {
        assert_eq!(parse(&format!("GET / HTTP/1.1\r\n{lines}\r\n")).unwrap_err(), error, "{lines:?}");
    }
    assert!(parse("GET / HTTP/1.0\r\n\r\n").is_ok(), "HTTP/1.0 needs no Host");
    assert_eq!(parse("GET / HTTP/1.9\r\nHost: a\r\n\r\n").unwrap().version, Version::Http11);
}

#[test]
fn lines_end_with_lf_alone_and_empty_lines_before_are_skipped_up_to_a_bound() {
    let bytes = "\r\n\n\r\nGET / HTTP/1.1\nHost: a\n\n";
    let head = parse(bytes).unwrap();
    assert_eq!((head.length, text(head.line, bytes)), (bytes.len(), "GET / HTTP/1.1"));
    let many = format!("{}GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\r\n".repeat(200));
    assert_eq!(parse(&many).unwrap_err(), HeadError::BadRequestLine);
}

#[test]
fn limits_hold_for_lines_fields_and_the_whole_also_while_they_arrive() {
    let limits = HeadLimits { line: 32, total: 64, fields: 3 };
    for (bytes, expected) in [
        (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(16)), Ok(Progress::Complete)),
        (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(17)), Err(HeadError::TargetTooLong)),
        (format!("GET /{}", "a".repeat(40)), Err(HeadError::TargetTooLong)),
        (format!("GET / HTTP/1.1\r\nHost: {}", "a".repeat(40)), Err(HeadError::FieldsTooLarge)),
        (format!("GET / HTTP/1.1\r\n{}", "a".repeat(40)), Err(HeadError::FieldsTooLarge)),
        (format!("GET /{}\0 HTTP/1.1\r\n", "a".repeat(40)), Err(HeadError::TargetTooLong)),
        (format!("GET / HTTP/1.1\r\nHost: {}\0", "a".repeat(40)), Err(HeadError::FieldsTooLarge)),
        (format!("GET / HTTP/1.1\r\nHost: {}\0", "a".repeat(20)), Err(HeadError::BadField)),
        (format!("\r\n\r\nGET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(16)), Ok(Progress::Complete)),
        (
            format!("\r\n\r\nGET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(17)),
            Err(HeadError::TargetTooLong),
        ),
        ("GET / HTTP/1.1\r\nHost:a\r\nA:\r\nB:\r\nC:\r\n\r\n".to_owned(), Err(HeadError::TooManyFields)),
        ("GET / HTTP/1.1\r\nHost:a\r\nA:\r\nB:\r\n\r\n".to_owned(), Ok(Progress::Complete)),
        (
            format!("GET / HTTP/1.1\r\nHost:a\r\n{}\r\n", "A:aaaaaaaaaaaaaaa\r\n".repeat(2)),
            Ok(Progress::Complete),
        ),
        (
            format!("GET / HTTP/1.1\r\nHost:a\r\n{0}{0}\r\n", "A:aaaaaaaaaaaaaaaaa\r\n"),
            Err(HeadError::FieldsTooLarge),
        ),
    ] {
        let mut head = RequestHead::default();
        assert_eq!(head.parse(bytes.as_bytes(), &limits), expected, "{bytes:?}");
        let mut head = RequestHead::default();
        let slow = (1..=bytes.len())
            .map(|end| head.parse(&bytes.as_bytes()[..end], &limits))
            .find(|progress| *progress != Ok(Progress::Partial));
        assert_eq!(slow, Some(expected), "{bytes:?}");
    }
}

#[test]
fn a_cleared_head_is_as_new_and_keeps_its_memory() {
    let first = "GET http://h/a?b HTTP/1.0\r\nHost: a\r\nX: y\r\n\r\n";
    let mut head = parse(first).unwrap();
    let capacity = head.fields.capacity();
    head.clear();
    assert_eq!(head.fields.capacity(), capacity);
    let second = b"PUT / HTTP/1.1\r\nHost: b\r\n\r\n";
    assert_eq!(head.parse(second, &HeadLimits::default()), Ok(Progress::Complete));
    assert_eq!((head.method, head.query, head.authority, head.fields.len()), (Method::Put, None, None, 1));
}

#[test]
fn an_answer_head_is_taken_apart() {
    for (line, version, status, reason) in [
        ("HTTP/1.1 200 OK", Version::Http11, 200, "OK"),
        ("HTTP/1.0 404 Not  found\t\u{e4}", Version::Http10, 404, "Not  found\t\u{e4}"),
        ("HTTP/1.1 204 ", Version::Http11, 204, ""),
        ("HTTP/1.2 999", Version::Http11, 999, ""),
    ] {
        let bytes = format!("{line}\r\nServer: x\n\r\n");
        let mut head = ResponseHead::default();
        assert_eq!(head.parse(bytes.as_bytes(), &HeadLimits::default()), Ok(Progress::Complete), "{line}");
        assert_eq!((head.version, head.status, text(head.reason, &bytes)), (version, status, reason));
        assert_eq!((head.length, head.fields.len()), (bytes.len(), 1));
    }
    for line in [
        "hello",
        "HTTP/1.1",
        "HTTP/1.1  200",
        "HTTP/2.0 200 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 099 X",
        "HTTP/1.1 200 a\0b",
        "HTTP/1.1 200 a\rb",
        "http/1.1 200 OK",
        "\r\nHTTP/1.1 200 OK",
    ] {
        let bytes = format!("{line}\r\n\r\n");
        let found = ResponseHead::default().parse(bytes.as_bytes(), &HeadLimits::default());
        assert_eq!(found, Err(ResponseHeadError::BadStatusLine), "{line}");
    }
}

/// Bytes that heads are made of, so that random ones get past the first check.
fn head_bytes() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "GET ",
        "POST ",
        "/",
        "/a?b",
        "*",
        "http://h",
        " HTTP/1.1",
        " HTTP/1.0",
        "\r\n",
        "\n",
        "\r",
        "Host: h\r\n",
        "Content-Length: 5\r\n",
        "X-A",
        ":",
        " ",
        "\t",
        "v",
        "#",
        "\0",
        "\u{e4}",
        "\r\n\r\n",
    ]);
    prop::collection::vec(pieces, 0..14).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_head_is_the_same_wherever_it_is_cut(bytes in head_bytes()) {
        let limits = HeadLimits { line: 64, total: 128, fields: 4 };
        let mut whole = RequestHead::default();
        let outcome = whole.parse(&bytes, &limits);
        for at in 0..bytes.len() {
            let mut parted = RequestHead::default();
            let outcome_parted = match parted.parse(&bytes[..at], &limits) {
                Ok(Progress::Partial) => parted.parse(&bytes, &limits),
                earlier => earlier,
            };
            prop_assert_eq!(outcome_parted, outcome, "cut at {}", at);
            if outcome == Ok(Progress::Complete) {
                prop_assert_eq!(&parted.fields, &whole.fields);
                prop_assert_eq!((parted.target, parted.length), (whole.target, whole.length));
            }
        }
    }

    #[test]
    fn what_is_written_is_read_again(
        method in "[A-Z]{1,9}",
        path in "/[a-z0-9/._~%?&=]{0,30}",
        names in prop::collection::vec("[A-Za-z0-9!#$%&'*+.^_`|~-]{1,30}", 0..9),
        values in prop::collection::vec("([!-~\u{80}-\u{ff}]([ -~\t]{0,30}[!-~])?)?", 9),
    ) {
        prop_assume!(method != "CONNECT" && names.iter().all(|name| FieldId::of(name.as_bytes()) != FieldId::Host));
        let mut bytes = Vec::new();
        encode::request_line(&mut bytes, method.as_bytes(), path.as_bytes(), Version::Http11);
        encode::field(&mut bytes, b"Host", b"h");
        for (name, value) in names.iter().zip(&values) {
            encode::field(&mut bytes, name.as_bytes(), value.as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        let mut head = RequestHead::default();
        prop_assert_eq!(head.parse(&bytes, &HeadLimits::default()), Ok(Progress::Complete));
        prop_assert_eq!(head.method_text.of(&bytes), method.as_bytes());
        prop_assert_eq!(head.target.of(&bytes), path.as_bytes());
        let found: Vec<_> = head.view(&bytes).iter().skip(1).map(|(_, name, value)| (name, value)).collect();
        let expected: Vec<_> =
            names.iter().zip(&values).map(|(name, value)| (name.as_bytes(), octets::trim(value.as_bytes()))).collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn another_status_line_among_the_fields_of_an_answer_says_nothing_however_it_is_cut() {
    let check = |lines: &str, expected: Result<usize, ResponseHeadError>| {
        let bytes = format!("HTTP/1.1 201 Created\r\n{lines}\r\n");
        for cut in 0..bytes.len() {
            let mut head = ResponseHead::default();
            let outcome = match head.parse(&bytes.as_bytes()[..cut], &HeadLimits::default()) {
                Ok(Progress::Partial) => head.parse(bytes.as_bytes(), &HeadLimits::default()),
                early => early,
            };
            assert_eq!(outcome.map(|_| head.fields.len()), expected, "{bytes:?} cut at {cut}");
            assert!(outcome.is_err() || (head.status, head.length) == (201, bytes.len()));
        }
    };
    check("HTTP/1.1 200 OK\r\nX: y\r\n", Ok(1));
    check("X: y\r\nHTTP/1.1 404 Not: found\r\n", Ok(1));
    check("HTTP/1.1 200 OK\nHTTP/1.0 500 a\0b\n", Ok(0));
    check("HTTP/\r\n", Ok(0));
    check("HTTP: a field\r\n", Ok(1));
    for bad in ["http/1.1 200 OK\r\n", "HTTPS/1.1 200 OK\r\n", "HTTP /1.1 200\r\n", " HTTP/1.1 200 OK\r\n"] {
        check(bad, Err(ResponseHeadError::BadField));
    }
    let request = b"GET / HTTP/1.1\r\nHost: h\r\nHTTP/1.1 200 OK\r\n\r\n";
    assert!(RequestHead::default().parse(request, &HeadLimits::default()).is_err());
}

#[test]
fn the_status_of_a_cgi_answer_is_its_field_or_what_its_location_means() {
    let check = |head: &str, expected: Result<u16, ResponseHeadError>| {
        for cut in 0..head.len() {
            let mut parsed = ResponseHead::default();
            let early = parsed.parse_cgi(&head.as_bytes()[..cut], &HeadLimits::default());
            let outcome = match early {
                Ok(Progress::Partial) => parsed.parse_cgi(head.as_bytes(), &HeadLimits::default()),
                early => early,
            };
            assert_eq!(outcome.map(|_| parsed.status), expected, "{head:?} cut at {cut}");
            assert!(outcome.is_err() || parsed.length == head.len());
        }
    };
    check("Content-Type: text/html\r\n\r\n", Ok(200));
    check("Content-type: text/html\n\n", Ok(200));
    check("\n", Ok(200));
    check("Status: 404 Not Found\r\nContent-Type: text/html\r\n\r\n", Ok(404));
    check("X: y\nstatus:  503\n\n", Ok(503));
    check("Location: /elsewhere\r\n\r\n", Ok(302));
    check("Status: 201 Created\r\nLocation: /new\r\n\r\n", Ok(201));
    for bad in ["", "20", "2000", "abc", "100 Continue", "099", "200OK"] {
        check(&format!("Status: {bad}\r\n\r\n"), Err(ResponseHeadError::BadStatus));
    }
    check("Status: 404\r\nStatus: 200\r\nstatus: abc\r\n\r\n", Ok(404));
    check("Status: abc\r\nStatus: 200\r\n\r\n", Err(ResponseHeadError::BadStatus));
    check("HTTP/1.1 404 Not Found\r\nX: y\r\n\r\n", Ok(200));
    check("HTTP/1.1 200 OK\nStatus: 404\n\n", Ok(404));
    check("http/1.1 200 OK\r\n\r\n", Err(ResponseHeadError::BadField));
}

#[test]
fn the_head_of_an_application_has_a_status_line_or_is_as_in_cgi_however_it_is_cut() {
    let check = |head: &str, expected: Result<u16, ResponseHeadError>| {
        for cut in 0..head.len() {
            let mut parsed = ResponseHead::default();
            let early = parsed.parse_application(&head.as_bytes()[..cut], &HeadLimits::default());
            let outcome = match early {
                Ok(Progress::Partial) => parsed.parse_application(head.as_bytes(), &HeadLimits::default()),
                early => early,
            };
            assert_eq!(outcome.map(|_| parsed.status), expected, "{head:?} cut at {cut}");
        }
    };
    check("HTTP/1.1 404 Not Found\r\nStatus: 200\r\n\r\n", Ok(404));
    check("HTTP/1.0 200\nContent-Type: text/html\n\n", Ok(200));
    check("Status: 404\r\n\r\n", Ok(404));
    check("HTTP: a field\r\n\r\n", Ok(200));
    check("H: 1\nLocation: /x\n\n", Ok(302));
    check("\r\n", Ok(200));
    for bad in ["HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 2 OK\r\n\r\n", "HTTP/\r\n\r\n"] {
        check(bad, Err(ResponseHeadError::BadStatusLine));
    }
}
