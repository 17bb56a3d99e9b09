//! Framing cases, one per line.

use super::*;
use crate::Headers;

fn fields(lines: &str) -> Headers {
    let mut headers = Headers::new();
    for line in lines.split('|').filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').unwrap();
        headers.push(name.as_bytes(), value.as_bytes());
    }
    headers
}

#[test]
fn a_requests_framing_has_one_reading_or_is_an_error() {
    use Framing::*;
    use FramingError::*;
    for (lines, expected) in [
        // RFC 9112 §6.3, rule 7
        ("", Ok(None)),
        // Rules 5 and 6, RFC 9110 §8.6
        ("Content-Length: 0", Ok(Length(0))),
        ("Content-Length: 010", Ok(Length(10))),
        ("Content-Length: 9223372036854775807", Ok(Length(i64::MAX as u64))),
        ("Content-Length: 9223372036854775808", Err(BadLength)),
        ("Content-Length: 18446744073709551621", Err(BadLength)),
        ("Content-Length: +5", Err(BadLength)),
        ("Content-Length:", Err(BadLength)),
        ("Content-Length: 5 5", Err(BadLength)),
        ("Content-Length: 5, 5", Err(ManyLengths)),
        ("Content-Length: 5|Content-Length: 5", Err(ManyLengths)),
        // Rules 3 and 4, §6.1
        ("Transfer-Encoding: chunked", Ok(Chunked)),
        ("transfer-encoding: CHUNKED", Ok(Chunked)),
        ("Content-Length: 5|Transfer-Encoding: chunked", Err(LengthAndCoding)),
        ("Transfer-Encoding: chunked|Content-Length: 5", Err(LengthAndCoding)),
        ("Transfer-Encoding: chunked, chunked", Err(BadCoding)),
        ("Transfer-Encoding: chunked|Transfer-Encoding: chunked", Err(BadCoding)),
        ("Transfer-Encoding: chunked, identity", Err(BadCoding)),
        ("Transfer-Encoding: \"chunked\"", Err(BadCoding)),
        ("Transfer-Encoding: chunked;a=b", Err(BadCoding)),
        ("Transfer-Encoding:", Err(BadCoding)),
        ("Transfer-Encoding: ,chunked", Err(BadCoding)),
        ("Transfer-Encoding: gzip, chunked", Err(UnknownCoding)),
        ("Transfer-Encoding: xchunked", Err(UnknownCoding)),
        ("Transfer-Encoding: identity|Transfer-Encoding: chunked", Err(UnknownCoding)),
        ("Transfer-Encoding: gzip, xchunked", Err(BadCoding)),
        ("Transfer-Encoding: gzip|Transfer-Encoding: xchunked", Err(BadCoding)),
        ("Host: a|Host: b|Accept: a|Accept: b|Cookie: a|Cookie: b|X-A: 1|X-A: 1", Ok(None)),
        ("If-Match: a|If-Match: a", Err(Repeated(FieldId::IfMatch))),
        ("If-None-Match: a|X: y|If-None-Match: b", Err(Repeated(FieldId::IfNoneMatch))),
        ("If-Modified-Since: a|if-modified-since: b", Err(Repeated(FieldId::IfModifiedSince))),
        ("If-Unmodified-Since: a|If-Unmodified-Since: b", Err(Repeated(FieldId::IfUnmodifiedSince))),
        ("If-Range: a|If-Range: b", Err(Repeated(FieldId::IfRange))),
        ("Content-Range: a|Content-Range: b", Err(Repeated(FieldId::ContentRange))),
        ("Expect: a|Expect: b", Err(Repeated(FieldId::Expect))),
        ("Authorization: a|Authorization: a", Err(Repeated(FieldId::Authorization))),
    ] {
        assert_eq!(request(Version::Http11, fields(lines).view()), expected, "{lines}");
    }
    let coding = fields("Transfer-Encoding: chunked");
    assert_eq!(request(Version::Http10, coding.view()), Err(CodingInHttp10));
    assert_eq!((UnknownCoding.status(), BadCoding.status()), (501, 400));
}

#[test]
fn an_answers_framing_depends_on_method_and_status_first() {
    let length = fields("Content-Length: 5");
    let none = fields("");
    let chunked = fields("Transfer-Encoding: chunked");
    let check = |method, status, headers: &Headers, expected| {
        assert_eq!(
            response(method, Version::Http11, status, headers.view()),
            Ok(expected),
            "{method:?} {status}"
        );
    };
    check(Method::Get, 200, &length, Framing::Length(5));
    check(Method::Get, 200, &chunked, Framing::Chunked);
    check(Method::Get, 200, &none, Framing::Close);
    check(Method::Head, 200, &length, Framing::None);
    check(Method::Head, 200, &chunked, Framing::None);
    check(Method::Get, 304, &length, Framing::None);
    check(Method::Get, 204, &length, Framing::None);
    check(Method::Get, 103, &none, Framing::None);
    check(Method::Connect, 200, &length, Framing::None);
    check(Method::Connect, 407, &length, Framing::Length(5));
    let both = fields("Content-Length: 5|Transfer-Encoding: chunked");
    assert!(response(Method::Head, Version::Http11, 200, both.view()).is_err());
    assert!(response(Method::Get, Version::Http10, 200, chunked.view()).is_err());
}

#[test]
fn persistence_follows_version_and_connection() {
    for (version, lines, expected) in [
        (Version::Http11, "", true),
        (Version::Http10, "", false),
        (Version::Http11, "Connection: close", false),
        (Version::Http11, "Connection: keep-alive|Connection: x, Close", false),
        (Version::Http10, "Connection: Keep-Alive", true),
        (Version::Http10, "Connection: keep-alive, close", false),
        (Version::Http11, "Connection: closed", true),
    ] {
        assert_eq!(is_persistent(version, fields(lines).view()), expected, "{version:?} {lines}");
    }
}

#[test]
fn a_cgi_answer_ends_with_its_stream_or_where_its_length_says() {
    let check = |method, status, lines: &str, expected| {
        assert_eq!(cgi(method, status, fields(lines).view()), expected, "{lines}");
    };
    check(Method::Get, 200, "", Ok(Framing::Close));
    check(Method::Get, 200, "Content-Length: 5", Ok(Framing::Length(5)));
    check(Method::Get, 200, "Transfer-Encoding: chunked", Ok(Framing::Close));
    check(Method::Get, 304, "", Ok(Framing::None));
    check(Method::Head, 200, "Content-Length: 5", Ok(Framing::None));
    check(Method::Get, 200, "Content-Length: 5|Content-Length: 5", Err(FramingError::ManyLengths));
    check(Method::Head, 200, "Content-Length: -5", Err(FramingError::BadLength));
}
