//! Requests from blocks: what comes out as text, what is malformed by section of the RFC, what is too large.

use super::*;
use crate::h1::head::Progress;
use crate::h2::extra::{ConnectProtocol, Scheme};
use crate::h2::hpack::encoder;
use crate::version::Version;
use proptest::prelude::*;

const LIMITS: HeadLimits = HeadLimits { line: 80, total: 1000, fields: 6 };

type Pairs<'a> = &'a [(&'a str, &'a str)];

/// Names are not lowered, as an attacker would write them.
fn block(lines: Pairs<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in lines {
        out.push(0x40);
        for text in [name, value] {
            crate::h2::hpack::integer::encode(&mut out, 0, 7, text.len());
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

struct Decoded {
    text: String,
    head: RequestHead,
    extra: Extra,
}

fn decode(block: &[u8]) -> Result<Decoded, RequestError> {
    let mut bytes = b"what stood here before".to_vec();
    let mut head = RequestHead::default();
    let extra = decode_request(&mut HpackDecoder::default(), block, &mut bytes, &mut head, &LIMITS, true)?;
    if extra.protocol.is_none() {
        check_as_h1(&head, &bytes);
    }
    Ok(Decoded { text: String::from_utf8_lossy(&bytes).into_owned(), head, extra })
}

/// HTTP/1 must read the text as what the head says.
fn check_as_h1(head: &RequestHead, bytes: &[u8]) {
    let mut text = bytes.to_vec();
    let version = head.line.end as usize - 3;
    text[version..version + 3].copy_from_slice(b"1.1");
    text.extend_from_slice(b"\r\n");
    let mut read = RequestHead::default();
    let limits = HeadLimits { total: 100_000, ..LIMITS };
    assert_eq!(read.parse(&text, &limits), Ok(Progress::Complete), "{}", String::from_utf8_lossy(&text));
    assert_eq!(head.length, bytes.len());
    assert_eq!((head.version, read.version), (Version::Http2, Version::Http11));
    assert_eq!((read.method, read.method_text, read.line), (head.method, head.method_text, head.line));
    assert_eq!((read.target, read.target_is_raw), (head.target, head.target_is_raw));
    assert_eq!((read.path, read.query), (head.path, head.query));
    assert_eq!((read.authority, read.host), (head.authority, head.host));
    assert_eq!(read.fields, head.fields);
}

fn check(lines: Pairs<'_>, expected: &str) -> Decoded {
    let decoded = decode(&block(lines)).expect("a sound request");
    assert_eq!(decoded.text, expected);
    decoded
}

#[test]
fn a_request_becomes_the_text_that_http_1_would_have() {
    let decoded = check(
        &[
            (":method", "GET"),
            (":authority", "t.example:8080"),
            (":scheme", "https"),
            (":path", "/a%20b?c=d"),
            ("user-agent", "x"),
            ("te", "trailers"),
            ("x-empty", ""),
        ],
        "GET /a%20b?c=d HTTP/2.0\r\nhost: t.example:8080\r\nuser-agent: x\r\nte: trailers\r\nx-empty: \r\n",
    );
    let (head, bytes) = (&decoded.head, decoded.text.as_bytes());
    assert_eq!(head.path.of(bytes), b"/a%20b");
    assert_eq!(head.query.map(|query| query.of(bytes)), Some(&b"c=d"[..]));
    assert_eq!(head.host_text(bytes), Some(&b"t.example:8080"[..]));
    assert_eq!(head.line.of(bytes), b"GET /a%20b?c=d HTTP/2.0");
    assert_eq!(decoded.extra, Extra { scheme: Some(Scheme::Https), protocol: None });
}

const HOSTLESS: [(&str, &str); 3] = [(":path", "/"), (":scheme", "http"), (":method", "POST")];

#[test]
fn the_host_field_stands_for_a_missing_authority_and_may_repeat_it() {
    check(
        &[HOSTLESS[0], HOSTLESS[1], HOSTLESS[2], ("x-a", "1"), ("host", "h")],
        "POST / HTTP/2.0\r\nx-a: 1\r\nhost: h\r\n",
    );
    check(
        &[HOSTLESS[0], HOSTLESS[1], HOSTLESS[2], (":authority", "h"), ("x-a", "1"), ("host", "H")],
        "POST / HTTP/2.0\r\nhost: h\r\nx-a: 1\r\n",
    );
}

#[test]
fn pieces_of_cookies_are_joined_to_one_line() {
    let start = [HOSTLESS[0], HOSTLESS[1], HOSTLESS[2], (":authority", "h")];
    let with = |lines: Pairs<'static>| [&start[..], lines].concat();
    check(
        &with(&[("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "c=3"), ("x", "y")]),
        "POST / HTTP/2.0\r\nhost: h\r\ncookie: a=1; b=2; c=3\r\nx: y\r\n",
    );
    check(
        &with(&[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2"), ("cookie", "c=3"), ("z", "")]),
        "POST / HTTP/2.0\r\nhost: h\r\nx: y\r\nz: \r\ncookie: a=1; b=2; c=3\r\n",
    );
    check(
        &with(&[("cookie", ""), ("cookie", "a"), ("cookie", ""), ("cookie", "b"), ("cookie", "")]),
        "POST / HTTP/2.0\r\nhost: h\r\ncookie: a; b\r\n",
    );
    check(
        &with(&[("cookie", ""), ("x", "y"), ("cookie", "a"), ("z", ""), ("cookie", "")]),
        "POST / HTTP/2.0\r\nhost: h\r\nx: y\r\nz: \r\ncookie: a\r\n",
    );
    check(
        &[HOSTLESS[0], HOSTLESS[1], HOSTLESS[2], ("cookie", "a"), ("host", "h"), ("cookie", "b")],
        "POST / HTTP/2.0\r\nhost: h\r\ncookie: a; b\r\n",
    );
}

#[test]
fn connect_has_an_authority_alone_and_with_protocol_a_target() {
    let plain = check(
        &[(":method", "CONNECT"), (":authority", "t.example:443")],
        "CONNECT t.example:443 HTTP/2.0\r\nhost: t.example:443\r\n",
    );
    assert_eq!(plain.head.authority.map(|span| span.of(plain.text.as_bytes())), Some(&b"t.example:443"[..]));
    assert_eq!(plain.extra, Extra { scheme: None, protocol: None });
    let extended = check(
        &[
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "https"),
            (":path", "/chat?x"),
            (":authority", "t.example"),
        ],
        "CONNECT /chat?x HTTP/2.0\r\nhost: t.example\r\n",
    );
    assert_eq!(extended.head.path.of(extended.text.as_bytes()), b"/chat");
    assert_eq!(extended.head.authority, None);
    assert_eq!(
        extended.extra,
        Extra { scheme: Some(Scheme::Https), protocol: Some(ConnectProtocol::WebSocket) }
    );
}

const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "/")];

#[test]
fn a_malformed_request_is_told_by_section() {
    let without = |name: &str| GET.into_iter().filter(|line| line.0 != name).collect::<Vec<_>>();
    let with = |name, value| [&GET[..], &[(name, value)]].concat();
    let changed = |name: &str, value| {
        GET.into_iter().map(|line| if line.0 == name { (line.0, value) } else { line }).collect::<Vec<_>>()
    };
    for (section, lines) in [
        ("§8.2.1", with("X-Capital", "1")),
        ("§8.2.1", with("x y", "1")),
        ("§8.2.1", with("x:y", "1")),
        ("§8.2.1", with("", "1")),
        ("§8.2.1", with("x\u{e4}", "1")),
        ("§8.2.1", with("x", "a\nb")),
        ("§8.2.1", with("x", "a\rb")),
        ("§8.2.1", with("x", "a\0b")),
        ("§8.2.1", with("x", "\u{7f}")),
        ("§8.2.1", with("x", " a")),
        ("§8.2.1", with("x", "a\t")),
        ("§8.2.1", changed(":path", "/a\r\nx: y")),
        ("§8.2.2", with("connection", "close")),
        ("§8.2.2", with("proxy-connection", "close")),
        ("§8.2.2", with("keep-alive", "1")),
        ("§8.2.2", with("transfer-encoding", "chunked")),
        ("§8.2.2", with("upgrade", "h2c")),
        ("§8.2.2", with("te", "trailers, deflate")),
        ("§8.3", with(":method", "GET")),
        ("§8.3", with(":status", "200")),
        ("§8.3", with(":other", "1")),
        ("§8.3", [&GET[..3], &[("x", "y")], &GET[3..]].concat()),
        ("§8.3.1", without(":method")),
        ("§8.3.1", without(":scheme")),
        ("§8.3.1", without(":path")),
        ("§8.3.1", without(":authority")),
        ("§8.3.1", changed(":path", "")),
        ("§8.3.1", changed(":path", "a")),
        ("§8.3.1", changed(":path", "*")),
        ("§8.3.1", changed(":path", "http://h/")),
        ("§8.3.1", changed(":path", "/a b")),
        ("§8.3.1", changed(":method", "")),
        ("§8.3.1", changed(":method", "G T")),
        ("§8.3.1", changed(":scheme", "")),
        ("§8.3.1", changed(":scheme", "1http")),
        ("§8.3.1", changed(":scheme", "ht tp")),
        ("§8.3.1", changed(":authority", "")),
        ("§8.3.1", changed(":authority", "user@h")),
        ("§8.3.1", changed(":authority", "a/b")),
        ("§8.3.1", with("host", "other")),
        ("§8.3.1", with("host", "h:80")),
        ("§8.3.1", [&GET[..], &[("host", "h"), ("host", "h")]].concat()),
        ("§8.3.1", [&without(":authority")[..], &[("host", "h"), ("host", "h")]].concat()),
        ("§8.3.1", [&without(":authority")[..], &[("host", "a b")]].concat()),
        ("§8.5", changed(":method", "CONNECT")),
        ("§8.5", vec![(":method", "CONNECT")]),
        ("§8.5", vec![(":method", "CONNECT"), (":authority", "h")]),
        ("RFC 8441 §4", with(":protocol", "websocket")),
        ("RFC 8441 §4", vec![(":method", "CONNECT"), (":authority", "h:1"), (":protocol", "websocket")]),
    ] {
        let found = decode(&block(&lines)).map(|decoded| decoded.text);
        assert!(matches!(found, Err(RequestError::Malformed(_))), "{section} {lines:?}: {found:?}");
    }
}

#[test]
fn protocol_is_malformed_where_it_was_not_allowed() {
    let lines = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "h"),
    ];
    let (mut bytes, mut head) = (Vec::new(), RequestHead::default());
    let outcome =
        decode_request(&mut HpackDecoder::default(), &block(&lines), &mut bytes, &mut head, &LIMITS, false);
    assert!(matches!(outcome, Err(RequestError::Malformed(_))));
}

#[test]
fn what_is_past_a_limit_gets_the_status_of_its_own() {
    let long = "x".repeat(100);
    let path = format!("/{long}");
    let many: Vec<_> = GET.into_iter().chain((0..=6).map(|_| ("a", ""))).collect();
    let large: Vec<_> = GET.into_iter().chain((0..30).map(|_| ("cookie", ""))).collect();
    for (lines, status) in [
        (vec![GET[0], GET[1], GET[2], (":path", &path)], 414),
        (vec![GET[0], GET[1], GET[3], (":authority", &long)], 431),
        ([&GET[..], &[("a", &long)]].concat(), 431),
        ([&GET[..], &[("cookie", &long[..40]), ("cookie", &long[..40])]].concat(), 431),
        ([&GET[..], &[("cookie", &long[..40]), ("a", ""), ("cookie", &long[..40])]].concat(), 431),
        (many, 400),
        (large, 431),
    ] {
        assert_eq!(decode(&block(&lines)).map_err(RequestError::status).err(), Some(status), "{lines:?}");
    }
}

#[test]
fn the_table_follows_the_peer_through_a_refused_request() {
    let mut decoder = HpackDecoder::default();
    let (mut bytes, mut head) = (Vec::new(), RequestHead::default());
    let mut refused = block(&[("connection", "close"), ("x-later", "1")]);
    let mut decode =
        |block: &[u8]| decode_request(&mut decoder, block, &mut bytes, &mut head, &LIMITS, false);
    assert!(matches!(decode(&refused), Err(RequestError::Malformed(_))));
    let mut block = Vec::new();
    GET.iter().for_each(|(name, value)| encoder::field(&mut block, name.as_bytes(), value.as_bytes()));
    block.push(0x80 | 62);
    assert!(decode(&block).is_ok());
    assert!(bytes.ends_with(b"x-later: 1\r\n"));
    refused.push(0xff);
    let mut decode =
        |block: &[u8]| decode_request(&mut decoder, block, &mut bytes, &mut head, &LIMITS, false);
    assert!(matches!(decode(&refused), Err(RequestError::Compression(_))));
}

fn line() -> impl Strategy<Value = (String, String)> {
    let name = ":method|:path|:scheme|:authority|host|cookie|te|[a-z-]{1,6}|[ -~]{0,3}";
    (name, "GET|CONNECT|/|/[a-z?#%|]{0,5}|http|h|h:1|[!-~]{0,4}|[ -~\t]{0,6}")
}

proptest! {
    #[test]
    fn a_request_has_the_reading_that_http_1_has_of_its_text(
        first in Just(GET).prop_shuffle(), kept in 2..5usize, others in proptest::collection::vec(line(), 0..6),
    ) {
        let lines: Vec<_> = first[..kept.min(4)].iter().copied()
            .chain(others.iter().map(|(name, value)| (&name[..], &value[..])))
            .collect();
        // The comparison is made where the block is decoded.
        let _ = decode(&block(&lines));
    }
}
