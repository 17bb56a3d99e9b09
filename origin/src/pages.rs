//! What the demo API answers: a table of paths, each with its own rule for caches.
//!
//! Bodies are made up of invented words, so that they compress like real text, and are the same in every run but
//! for the number of the request, by which a cached answer is told from a new one; `/list` has none.

const PAGE_BYTES: usize = 60 << 10;

/// The smallest JSON body: its fixed parts with the longest number.
const LEAST_BODY: usize = 64;

const LARGEST_BODY: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct Resource {
    path: &'static str,
    /// Multiple of the service time.
    pub(super) times: u32,
    pub(super) cache_control: &'static str,
    pub(super) set_cookie: Option<&'static str>,
    pub(super) form: &'static Form,
}

/// What surrounds the words of a body; `#` is the number of the request.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) media_type: &'static str,
    start: &'static str,
    end: &'static str,
    /// `None`: as the options say.
    bytes: Option<usize>,
}

const JSON: Form =
    Form { media_type: "application/json", start: "{\"served\":#,\"text\":\"", end: "\"}", bytes: None };
const FIXED: Form = Form { start: "{\"text\":\"", ..JSON };
const HTML: Form = Form {
    media_type: "text/html; charset=utf-8",
    start: "<!doctype html><title>Resource #</title><p>",
    end: "</p>",
    bytes: Some(PAGE_BYTES),
};

const PUBLIC: Resource =
    Resource { path: "/", times: 1, cache_control: "public, max-age=10", set_cookie: None, form: &JSON };

/// `/private` is cacheable but for its cookie, which no shared cache may give to another user.
static PAGES: [Resource; 6] = [
    PUBLIC,
    Resource { path: "/list", form: &FIXED, ..PUBLIC },
    Resource { path: "/slow", times: 10, ..PUBLIC },
    Resource { path: "/page", cache_control: "public, max-age=60", form: &HTML, ..PUBLIC },
    Resource {
        path: "/private",
        cache_control: "max-age=10",
        set_cookie: Some("session=4f1c; Path=/; HttpOnly"),
        ..PUBLIC
    },
    Resource { path: "/uncacheable", cache_control: "no-store", ..PUBLIC },
];

#[derive(Debug)]
pub(super) struct Pages {
    words: String,
    body_bytes: usize,
}

impl Pages {
    pub(super) fn new(body_bytes: usize) -> Self {
        let body_bytes = body_bytes.clamp(LEAST_BODY, LARGEST_BODY);
        Pages { words: prose(body_bytes.max(PAGE_BYTES)), body_bytes }
    }

    pub(super) fn find(path: &[u8]) -> Option<&'static Resource> {
        PAGES.iter().find(|page| page.path.as_bytes() == path)
    }

    pub(super) fn body(&self, form: &Form, number: u64) -> String {
        let start = form.start.replace('#', &number.to_string());
        let bytes = form.bytes.unwrap_or(self.body_bytes);
        // The words are ASCII and as long as the whole, so they can be cut anywhere.
        let room = bytes.saturating_sub(start.len() + form.end.len());
        [start.as_str(), &self.words[..room], form.end].concat()
    }
}

/// Words from a vocabulary of 2,000, common ones more often, as in a language. Deterministic.
fn prose(bytes: usize) -> String {
    const SYLLABLES: [&str; 24] = [
        "ba", "cor", "den", "el", "fi", "gar", "hu", "in", "jo", "ker", "lum", "mi", "nor", "ost", "pra",
        "qui", "ris", "sta", "tem", "ul", "ven", "wa", "xi", "zo",
    ];
    const WORDS: u64 = 2_000;
    // A linear congruence, with Knuth's factor for MMIX, is chance enough for words; its upper bits are the better ones.
    let mut state = 1u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut word = || (0..2 + below(3)).map(|_| SYLLABLES[below(24) as usize]).collect::<String>();
    let vocabulary: Vec<String> = (0..WORDS).map(|_| word()).collect();
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        // The smaller of two draws leans towards the front of the vocabulary.
        text.push_str(&vocabulary[below(WORDS).min(below(WORDS)) as usize]);
        text.push_str(if below(12) == 0 { ". " } else { " " });
    }
    text.truncate(bytes);
    text
}
