//! Leaves of the `wire` crate: reading and writing heads, framing, chunks, dates.
//!
//! The inputs are what load generators and browsers really send. Results go through `black_box`, so that the
//! compiler cannot leave the work out.

use std::hint::black_box;

use millstream_wire::h1::chunked::{Decoder, Event};
use millstream_wire::h1::head::{HeadLimits, RequestHead, ResponseHead};
use millstream_wire::h1::{encode, framing};
use millstream_wire::{FieldId, Method, accept_encoding, date, target};

use crate::Leaf;

/// All leaves of this file.
pub const LEAVES: &[Leaf] = &[
    Leaf { name: "head", what: "parse wrk's request head (77 bytes, 2 fields) and its framing", run: head },
    Leaf {
        name: "browser_head",
        what: "parse a browser's request head (14 fields) and its framing",
        run: browser_head,
    },
    Leaf {
        name: "response_head",
        what: "parse an API's answer head (7 fields) and its framing",
        run: response_head,
    },
    Leaf { name: "field_id", what: "recognise a field name", run: field_id },
    Leaf { name: "encode", what: "write an answer's head with 6 fields", run: encode_head },
    Leaf { name: "chunked", what: "decode a body of 4 chunks of 1,000 bytes", run: chunked },
    Leaf { name: "date", what: "format an HTTP date", run: format_date },
    Leaf { name: "date_parse", what: "read an HTTP date", run: parse_date },
    Leaf { name: "target", what: "normalise a plain path", run: normalise },
    Leaf { name: "accept_encoding", what: "fold a browser's Accept-Encoding", run: fold_encodings },
];

const WRK: &[u8] = b"GET /api/books/17 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nConnection: Keep-Alive\r\n\r\n";

const BROWSER: &[u8] = b"GET /search?q=water+mill&page=2 HTTP/1.1\r\nHost: shop.example\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
    Referer: https://shop.example/search?q=water\r\nConnection: keep-alive\r\n\
    Cookie: session=6c1b7a3e9f; theme=dark; consent=1\r\nUpgrade-Insecure-Requests: 1\r\n\
    Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: same-origin\r\n\
    Sec-Fetch-User: ?1\r\nPriority: u=0, i\r\n\r\n";

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nServer: gunicorn\r\nDate: Sat, 21 Nov 2026 10:26:00 GMT\r\n\
    Connection: keep-alive\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\
    Cache-Control: public, max-age=60\r\nETag: \"5f2b-1a\"\r\n\r\n";

fn heads(bytes: &[u8], times: u64) {
    let limits = HeadLimits::default();
    let mut head = RequestHead::default();
    for _ in 0..times {
        head.clear();
        let bytes = black_box(bytes);
        let progress = head.parse(bytes, &limits);
        let framing = framing::request(head.version, head.view(bytes));
        black_box((&progress, &framing, &head));
    }
}

fn head(times: u64) {
    heads(WRK, times);
}

fn browser_head(times: u64) {
    heads(BROWSER, times);
}

fn response_head(times: u64) {
    let limits = HeadLimits::default();
    let mut head = ResponseHead::default();
    for _ in 0..times {
        head.clear();
        let bytes = black_box(ANSWER);
        let progress = head.parse(bytes, &limits);
        let framing = framing::response(Method::Get, head.version, head.status, head.view(bytes));
        black_box((&progress, &framing, &head));
    }
}

fn field_id(times: u64) {
    for _ in 0..times {
        black_box(FieldId::of(black_box(b"accept-encoding")));
    }
}

fn encode_head(times: u64) {
    let mut out = Vec::with_capacity(1024);
    for _ in 0..times {
        out.clear();
        encode::status_line(&mut out, black_box(200));
        encode::field(&mut out, b"Server", b"millstream");
        encode::field(&mut out, b"Date", black_box(b"Sat, 21 Nov 2026 10:26:00 GMT"));
        encode::field(&mut out, b"Content-Type", black_box(b"application/json"));
        encode::number_field(&mut out, b"Content-Length", black_box(900));
        encode::field(&mut out, b"Connection", b"keep-alive");
        encode::number_field(&mut out, b"Age", black_box(17));
        out.extend_from_slice(b"\r\n");
        black_box(&out);
    }
}

fn chunked(times: u64) {
    let mut body = Vec::new();
    for _ in 0..4 {
        encode::chunk_head(&mut body, 1000);
        body.resize(body.len() + 1000, b'x');
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(encode::LAST_CHUNK);
    for _ in 0..times {
        let mut decoder = Decoder::new(1024);
        let mut rest = black_box(&body[..]);
        while let Ok((consumed, event)) = decoder.decode(rest) {
            rest = &rest[consumed..];
            if !matches!(black_box(event), Event::Data(_)) {
                break;
            }
        }
    }
}

fn format_date(times: u64) {
    for _ in 0..times {
        black_box(date::format_http(black_box(1_795_256_760)));
    }
}

fn parse_date(times: u64) {
    for _ in 0..times {
        black_box(date::parse_http(black_box(b"Sat, 21 Nov 2026 10:26:00 GMT")));
    }
}

fn normalise(times: u64) {
    let mut out = Vec::new();
    for _ in 0..times {
        black_box(target::normalise(black_box(b"/api/books/17"), true, &mut out).is_ok());
    }
}

fn fold_encodings(times: u64) {
    for _ in 0..times {
        black_box(accept_encoding::normalise(std::iter::once(black_box(&b"gzip, deflate, br, zstd"[..]))));
    }
}
