//! What the demo API answers: a table of paths, each with its own rule for caches.
//!
//! Bodies are made up of invented words, so that they compress like real text, and are the same in every run but
//! for the number of the request, by which a cached answer is told from a new one; `/list` has none.

use fastrand::Rng;
use std::fmt::Write;

/// Bytes of `/page`.
const PAGE_BYTES: usize = 60 << 10;

/// The smallest JSON answer: its fixed parts with the longest number.
const LEAST_BODY: usize = 64;

/// The largest.
const LARGEST_BODY: usize = 16 << 20;

/// One path of the API.
#[derive(Debug)]
pub(super) struct Resource {
    pub(super) path: &'static str,
    /// Service times that it takes.
    pub(super) times: u32,
    /// `Cache-Control`.
    pub(super) cache_control: &'static str,
    pub(super) set_cookie: Option<&'static str>,
    content: Filling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filling {
    Json,
    Html,
    /// JSON that is the same every time.
    Fixed,
}

/// What anybody may keep for ten seconds.
const PUBLIC: &str = "public, max-age=10";

/// The paths. `/private` is cacheable but for its cookie, which no shared cache may hand to somebody else.
static PAGES: [Resource; 6] = [
    Resource::new("/", 1, PUBLIC, Filling::Json),
    Resource::new("/list", 1, PUBLIC, Filling::Fixed),
    Resource::new("/slow", 10, PUBLIC, Filling::Json),
    Resource::new("/page", 1, "public, max-age=60", Filling::Html),
    Resource {
        set_cookie: Some("session=4f1c; Path=/; HttpOnly"),
        ..Resource::new("/private", 1, "max-age=10", Filling::Json)
    },
    Resource::new("/uncacheable", 1, "no-store", Filling::Json),
];

impl Resource {
    const fn new(path: &'static str, times: u32, cache_control: &'static str, content: Filling) -> Resource {
        Resource { path, times, cache_control, set_cookie: None, content }
    }
}

/// The bodies, made once.
#[derive(Debug)]
pub(super) struct Pages {
    /// Text to fill JSON answers up with.
    filling: String,
    body_bytes: usize,
    html: String,
}

impl Pages {
    pub(super) fn new(body_bytes: usize) -> Self {
        let body_bytes = body_bytes.clamp(LEAST_BODY, LARGEST_BODY);
        Pages { filling: prose(body_bytes), body_bytes, html: prose(PAGE_BYTES) }
    }

    /// The page of a path without its query, which is part of no decision here.
    pub(super) fn find(path: &[u8]) -> Option<&'static Resource> {
        PAGES.iter().find(|page| page.path.as_bytes() == path)
    }

    /// The media type and the body of the answer to a request of this number.
    pub(super) fn body(&self, page: &Resource, number: u64) -> (&'static str, Vec<u8>) {
        let mut body = String::with_capacity(PAGE_BYTES.max(self.body_bytes));
        // Writing to a String cannot fail.
        let (kind, end, bytes, filling) = match page.content {
            Filling::Json => {
                let _ = write!(body, "{{\"served\":{number},\"text\":\"");
                ("application/json", "\"}", self.body_bytes, &self.filling)
            }
            Filling::Fixed => {
                body.push_str("{\"text\":\"");
                ("application/json", "\"}", self.body_bytes, &self.filling)
            }
            Filling::Html => {
                let _ = write!(body, "<!doctype html><title>Resource {number}</title><p>");
                ("text/html; charset=utf-8", "</p>", PAGE_BYTES, &self.html)
            }
        };
        // The filling is ASCII and as long as the whole, so it can be cut anywhere.
        let room = bytes.saturating_sub(body.len() + end.len());
        body.push_str(&filling[..room.min(filling.len())]);
        body.push_str(end);
        (kind, body.into_bytes())
    }
}

/// So many bytes of varied lower-case words out of a vocabulary of 2,000, the common ones more often, as in a
/// language. Always the same.
fn prose(bytes: usize) -> String {
    const SYLLABLES: [&str; 24] = [
        "ba", "cor", "den", "el", "fi", "gar", "hu", "in", "jo", "ker", "lum", "mi", "nor", "ost", "pra",
        "qui", "ris", "sta", "tem", "ul", "ven", "wa", "xi", "zo",
    ];
    const WORDS: u64 = 2_000;
    let mut random = Rng::with_seed(0x9e37_79b9_7f4a_7c15);
    let vocabulary: Vec<String> = (0..WORDS)
        .map(|_| (0..2 + random.u64(..3)).map(|_| SYLLABLES[random.u64(..24) as usize]).collect())
        .collect();
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        // The smaller of two draws leans towards the front of the vocabulary.
        let word = random.u64(..WORDS).min(random.u64(..WORDS));
        text.push_str(&vocabulary[word as usize]);
        text.push_str(if random.u64(..12) == 0 { ". " } else { " " });
    }
    text.truncate(bytes);
    text
}
