//! Leaves of the `wire` crate's HTTP/2: what a connection does for each request.
//!
//! The requests are those of h2load and of Chromium after their first one, when the table of the connection has all that
//! repeats.

use std::hint::black_box;

use millstream_wire::h1::head::{HeadLimits, RequestHead};
use millstream_wire::h2::hpack::{HpackDecoder, encoder, huffman, integer, static_table};
use millstream_wire::h2::request::decode_request;
use millstream_wire::h2::{read, settings, write};

use crate::Leaf;

/// All leaves of this file.
pub const LEAVES: &[Leaf] = &[
    Leaf { name: "h2_frame", what: "read a HEADERS frame", run: frame },
    Leaf { name: "h2_head", what: "decode h2load's request (5 fields, all indexed)", run: load_head },
    Leaf {
        name: "h2_browser_head",
        what: "decode Chromium's request (20 fields, all indexed)",
        run: browser_head,
    },
    Leaf { name: "h2_first_head", what: "decode Chromium's first request (Huffman code)", run: first_head },
    Leaf { name: "h2_encode", what: "write an answer's block with 6 fields", run: encode },
];

const LOAD: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "http"),
    (":authority", "127.0.0.1:8080"),
    (":path", "/"),
    ("user-agent", "h2load nghttp2/1.64.0"),
];

const BROWSER: &[(&str, &str)] = &[
    (":method", "GET"),
    (":authority", "shop.example"),
    (":scheme", "https"),
    (":path", "/search?q=water+mill&page=2"),
    ("cache-control", "max-age=0"),
    ("sec-ch-ua", "\"Chromium\";v=\"142\", \"Not_A Brand\";v=\"99\""),
    ("sec-ch-ua-mobile", "?0"),
    ("sec-ch-ua-platform", "\"Linux\""),
    ("upgrade-insecure-requests", "1"),
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    ),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-user", "?1"),
    ("sec-fetch-dest", "document"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-US,en;q=0.9"),
    ("cookie", "session=6c1b7a3e9f"),
    ("cookie", "theme=dark"),
    ("priority", "u=0, i"),
];

/// The block of a connection's first request, which puts into the table what the static one has not, and that of its next
/// one, which has nothing but indices.
fn blocks(lines: &[(&str, &str)]) -> (Vec<u8>, Vec<u8>) {
    let (mut first, mut next) = (Vec::new(), Vec::new());
    let known = |name: &str, value: &str| {
        (1..=static_table::LENGTH).find(|&index| {
            static_table::line(index)
                .is_some_and(|line| line.name() == name.as_bytes() && line.value() == value.as_bytes())
        })
    };
    let mut unknown = lines.iter().filter(|(name, value)| known(name, value).is_none()).count();
    for &(name, value) in lines {
        let index = match known(name, value) {
            Some(index) => {
                integer::encode(&mut first, 0x80, 7, index);
                index
            }
            None => {
                first.push(0x40);
                for text in [name, value] {
                    integer::encode(&mut first, 0x80, 7, huffman::encoded_length(text.as_bytes()));
                    huffman::encode(text.as_bytes(), &mut first);
                }
                unknown -= 1;
                static_table::LENGTH + 1 + unknown
            }
        };
        integer::encode(&mut next, 0x80, 7, index);
    }
    (first, next)
}

fn heads(first: &[u8], next: &[u8], times: u64) {
    let limits = HeadLimits::default();
    let mut decoder = HpackDecoder::default();
    let (mut bytes, mut head) = (Vec::new(), RequestHead::default());
    let mut decode = |block: &[u8]| {
        black_box(decode_request(&mut decoder, block, &mut bytes, &mut head, &limits, false).is_ok());
        black_box((&bytes, &head));
    };
    decode(first);
    for _ in 0..times {
        decode(black_box(next));
    }
}

fn load_head(times: u64) {
    let (first, next) = blocks(LOAD);
    heads(&first, &next, times);
}

fn browser_head(times: u64) {
    let (first, next) = blocks(BROWSER);
    heads(&first, &next, times);
}

fn first_head(times: u64) {
    let (first, _) = blocks(BROWSER);
    heads(&first, &first, times);
}

fn frame(times: u64) {
    let mut bytes = Vec::new();
    write::headers(&mut bytes, 1, &blocks(LOAD).1, true, settings::DEFAULT_MAX_FRAME_SIZE);
    for _ in 0..times {
        black_box(read::read(black_box(&bytes), settings::DEFAULT_MAX_FRAME_SIZE).is_ok());
    }
}

fn encode(times: u64) {
    let mut out = Vec::with_capacity(1024);
    for _ in 0..times {
        out.clear();
        encoder::status(&mut out, black_box(200));
        encoder::field(&mut out, b"Server", b"millstream");
        encoder::raw_field(&mut out, b"Date", black_box(b"Sat, 21 Nov 2026 10:26:00 GMT"));
        encoder::field(&mut out, b"Content-Type", black_box(b"application/json"));
        encoder::number_field(&mut out, b"Content-Length", black_box(900));
        encoder::field(&mut out, b"ETag", black_box(b"\"5f2b-1a\""));
        encoder::number_field(&mut out, b"Age", black_box(17));
        black_box(&out);
    }
}
