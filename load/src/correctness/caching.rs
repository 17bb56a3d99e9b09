//! What the API says of keeping its answers (RFC 9111 §3, §5.2), as far as the ladder has to know beforehand.
//!
//! The cache itself decides by its own, complete rules; this only finds the words to explain a result with, and which
//! lifetime the steps get where the API says nothing.

use super::Direct;
use millstream_wire::cache_control;
use millstream_wire::date;

/// What the API says of keeping its answers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Caching {
    /// In a word.
    pub keeps: Keeps,
    /// Why not; `None`: it may be kept.
    pub why: Option<String>,
    /// The same in a sentence.
    pub words: String,
}

/// Whether and for how long an answer may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeps {
    /// For so many seconds, as it says itself.
    Seconds(u64),
    /// It says nothing; a configuration may decide.
    Silent,
    /// Not at all.
    No,
}

/// What an answer says of being kept, where `method` was asked for with these `fields`.
pub fn caching(answer: &Direct, method: &str, fields: &[(String, String)]) -> Caching {
    match forbidden(answer, method) {
        Some(why) => no(&why),
        None => match lifetime(answer) {
            Some(0) => no("it says that its answers are stale at once"),
            Some(seconds) => Caching {
                keeps: Keeps::Seconds(seconds),
                why: None,
                words: format!("The API says that its answers may be kept for {}.", spelled(seconds)),
            },
            None => silent(answer, fields),
        },
    }
}

/// Where nothing is said, and a configuration has to decide.
fn silent(answer: &Direct, fields: &[(String, String)]) -> Caching {
    if fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("cookie")) {
        return no(
            "it says nothing about caching, and answers to requests with a Cookie are then nobody else's",
        );
    }
    if answer.status != 200 {
        return no(&format!(
            "it says nothing about caching, and then only answers with 200 are kept, not {}",
            answer.status
        ));
    }
    Caching {
        keeps: Keeps::Silent,
        why: None,
        words: "The API says nothing about caching (no Cache-Control, no Expires).".to_owned(),
    }
}

fn no(why: &str) -> Caching {
    let words = format!(
        "The API's answers cannot be cached: {why}. From any proxy an API like that gets about 1x; what the API itself \
         says is the place to gain something."
    );
    Caching { keeps: Keeps::No, why: Some(why.to_owned()), words }
}

/// What keeps an answer from being stored by a cache that others share.
fn forbidden(answer: &Direct, method: &str) -> Option<String> {
    if !matches!(method, "GET" | "HEAD") {
        return Some(format!("the method is {method}, and only GET and HEAD are kept"));
    }
    let control = cache_control::parse(answer.all("cache-control").map(str::as_bytes));
    let said =
        || format!("it says Cache-Control: {}", answer.all("cache-control").collect::<Vec<_>>().join(", "));
    if control.no_store || control.private.is_whole() || control.no_cache.is_whole() {
        return Some(said());
    }
    if answer.all("vary").any(|value| value.split(',').any(|name| name.trim() == "*")) {
        return Some("it says Vary: *, that every request is answered differently".to_owned());
    }
    if answer.field("set-cookie").is_some() {
        return Some("it sets a cookie (Set-Cookie), which is one client's and nobody else's".to_owned());
    }
    None
}

/// Seconds that an answer is fresh by its own word, as nginx reads it: X-Accel-Expires, Cache-Control, Expires.
fn lifetime(answer: &Direct) -> Option<u64> {
    if let Some(value) = answer.field("x-accel-expires") {
        return Some(value.trim().parse().unwrap_or(0));
    }
    let control = cache_control::parse(answer.all("cache-control").map(str::as_bytes));
    if let Some(seconds) = control.s_maxage.or(control.max_age) {
        return Some(seconds);
    }
    let expires = answer.field("expires")?;
    // What is no date is a date in the past (RFC 9111 §5.3).
    let Some(at) = date::parse_http(expires.as_bytes()) else { return Some(0) };
    let from = answer.field("date").and_then(|value| date::parse_http(value.as_bytes()))?;
    Some(u64::try_from(at - from).unwrap_or(0))
}

/// Seconds in the largest unit that is whole.
fn spelled(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0 => (0, "second"),
        s if s % 86_400 == 0 => (s / 86_400, "day"),
        s if s % 3600 == 0 => (s / 3600, "hour"),
        s if s % 60 == 0 => (s / 60, "minute"),
        s => (s, "second"),
    };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}
