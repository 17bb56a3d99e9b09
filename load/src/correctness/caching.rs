//! What the API says of keeping its answers, as the cache itself reads it, and in words.
//!
//! The judgement is the cache's own (`cache::policy`, RFC 9111 with nginx's order of who decides), by the settings that every
//! step of the ladder has; here are only the words, and what would help. Next: `verdict`, which says them beside figures.

use super::Direct;
use millstream_cache::Now;
use millstream_cache::policy::{Arithmetic, Because, Judgement, Reason, RequestFacts, Storable, judge};
use millstream_conf::model::{IgnoreHeaders, ProxyCache};
use millstream_wire::{FieldId, Headers, Method};
use std::time::Duration;

/// What the API says of keeping its answers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Caching {
    /// In a word.
    pub keeps: Keeps,
    /// Why not; `None`: it may be kept.
    pub why: Option<String>,
    /// What would help against that, one sentence; `None` where it may be kept.
    #[serde(default)]
    pub advice: Option<String>,
    /// All of it in sentences.
    pub words: String,
}

/// Whether and for how long an answer may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeps {
    /// For so many seconds from when it comes, as it says itself; 0: it may be used only while it is fetched anew.
    Seconds(u64),
    /// It says nothing; a configuration may decide.
    Silent,
    /// Not at all.
    No,
}

/// Types of answers that have no end of their own.
const STREAMS: [&str; 2] = ["text/event-stream", "multipart/x-mixed-replace"];

const MAX_AGE: &str = "What would help is a Cache-Control with a max-age on what is the same for everybody.";

/// What is added where requests carry credentials.
const PER_USER: &str = " Its Authorization is part of the key in every step, so each user has answers of his own: a factor is \
                        what one user gets who asks again and again. \"millstream serve --microcache\" passes such requests on.";

/// What an answer that came `now` says of being kept, where `method` was asked for with these `fields`.
pub fn caching(answer: &Direct, method: &str, fields: &[(String, String)], now: Now) -> Caching {
    if let Some(kind) = stream(answer) {
        let why = format!(
            "it is a stream (Content-Type: {kind}), which goes on for each client from when he comes"
        );
        return no(why, "Streams are to be passed on as they come: leave the cache off where they are.");
    }
    let has = |name: &str| fields.iter().any(|(field, _)| field.eq_ignore_ascii_case(name));
    let method = match Method::of(method.as_bytes()) {
        // It is asked as GET, by default.
        Method::Head => Method::Get,
        method => method,
    };
    let request = RequestFacts { method, has_authorization: has("authorization"), ..RequestFacts::default() };
    // As in the text of every step: its key names the credentials, and no proxy_cache_valid decides before the answer does.
    let conf = ProxyCache { key_names_credential: true, ..ProxyCache::default() };
    let mut headers = Headers::new();
    answer.fields.iter().for_each(|(name, value)| headers.push(name.as_bytes(), value.as_bytes()));
    let judgement =
        judge(&conf, &IgnoreHeaders::default(), &request, answer.status, headers.view(), now, false);
    let mut caching = match judgement.outcome {
        Storable::Yes(lifetime) => kept(lifetime.fresh_until - now.unix_milliseconds, judgement.arithmetic),
        Storable::No(Reason::NoLifetime) => silent(answer, has("cookie")),
        Storable::No(reason) => {
            let (why, advice) = refused(reason, &judgement, answer);
            no(why, advice)
        }
    };
    if request.has_authorization && caching.keeps != Keeps::No {
        caching.words.push_str(PER_USER);
    }
    caching
}

/// The type of an answer that never ends by itself (HTML Standard §9.2; multipart/x-mixed-replace); `None` of all others.
pub fn stream(answer: &Direct) -> Option<&str> {
    let kind = answer.field("content-type")?.split(';').next().unwrap_or_default().trim();
    STREAMS.iter().any(|stream| kind.eq_ignore_ascii_case(stream)).then_some(kind)
}

/// It may be kept for `left` milliseconds.
fn kept(left: i64, arithmetic: Option<Arithmetic>) -> Caching {
    let left = u64::try_from(left).unwrap_or(0).div_ceil(1000);
    let age = arithmetic.and_then(|all| Some((all.lifetime, all.initial_age.filter(|age| !age.is_zero())?)));
    let words = match age {
        _ if left == 0 => {
            "The API says that its answers are stale at once, and may be used all the same while they are \
                           fetched anew."
                .to_owned()
        }
        None => format!("The API says that its answers may be kept for {}.", spelled(left)),
        Some((lifetime, age)) => format!(
            "The API says that its answers may be kept for {}, and that they are {} old when they come (Age), which leaves \
             {}.",
            spelled(lifetime.as_secs()),
            spelled(age.as_secs()),
            spelled(left)
        ),
    };
    Caching { keeps: Keeps::Seconds(left), why: None, advice: None, words }
}

/// Where nothing is said, and a configuration has to decide.
fn silent(answer: &Direct, has_cookie: bool) -> Caching {
    if has_cookie {
        let why =
            "it says nothing about caching, and answers to requests with a Cookie are then nobody else's";
        return no(why.to_owned(), MAX_AGE);
    }
    if answer.status != 200 {
        let why = format!(
            "it says nothing about caching, and then only answers with 200 are kept, not {}",
            answer.status
        );
        return no(why, "What would help is a Cache-Control with a max-age on this answer too.");
    }
    Caching {
        keeps: Keeps::Silent,
        why: None,
        advice: None,
        words: "The API says nothing about caching (no Cache-Control, no Expires).".to_owned(),
    }
}

fn no(why: String, advice: &str) -> Caching {
    let words = format!(
        "The API's answers cannot be cached: {why}. From any proxy an API like that gets about 1x. {advice}"
    );
    Caching { keeps: Keeps::No, why: Some(why), advice: Some(advice.to_owned()), words }
}

/// Why an answer is not kept, and what would help against just that.
fn refused(reason: Reason, judgement: &Judgement<'_>, answer: &Direct) -> (String, &'static str) {
    let said = || match judgement.because {
        Because::Field(field, value) => {
            format!("it says {}: {}", name(field), String::from_utf8_lossy(value))
        }
        _ => reason.text().to_owned(),
    };
    match reason {
        Reason::Method => (
            "only answers to GET and HEAD are kept".to_owned(),
            "What is only read can be asked for with GET, and kept.",
        ),
        Reason::Status => (
            format!("an answer with {} is no whole one that could be kept", answer.status),
            "Ask for the whole: without Range, If-None-Match and If-Modified-Since.",
        ),
        Reason::SetCookie => (
            "it sets a cookie (Set-Cookie), which is one client's and nobody else's".to_owned(),
            "What would help is to set it where somebody logs in, and not with what is the same for everybody.",
        ),
        Reason::Vary => (
            format!("{}, so every request may be answered differently", said()),
            "What would help is a Vary that names only what the answer depends on.",
        ),
        Reason::XAccelExpires => (
            format!("{}, which is over", said()),
            "What would help is an X-Accel-Expires with a time to come on what is the same for everybody, or a \
             Cache-Control alone.",
        ),
        Reason::Expired => expired(judgement, &said()),
        Reason::NoStore | Reason::Private | Reason::NoCache => (said(), MAX_AGE),
        Reason::MustUnderstand => (
            format!("it says must-understand, and nothing is known here of {}", answer.status),
            "What would help is a max-age without must-understand.",
        ),
        _ => (reason.text().to_owned(), MAX_AGE),
    }
}

/// An answer that is over when it comes: because of its age, or by its own word.
fn expired(judgement: &Judgement<'_>, said: &str) -> (String, &'static str) {
    let numbers = judgement.arithmetic.map(|all| (all.lifetime, all.age_field));
    match numbers {
        Some((lifetime, age)) if !lifetime.is_zero() && age > Duration::ZERO => (
            format!(
                "{said}, and that its answer is {} old already when it comes (Age), of {} that it may be kept",
                spelled(age.as_secs()),
                spelled(lifetime.as_secs())
            ),
            "Another cache in front of the API has kept it so long: ask the API itself, or have that cache keep it for less.",
        ),
        _ => (
            format!("{said}, so it is stale at once"),
            "What would help is a longer time on what is the same for everybody.",
        ),
    }
}

/// A field's name as people write it.
fn name(field: FieldId) -> String {
    let part = |part: &str| {
        let (first, rest) = part.split_at(part.len().min(1));
        first.to_uppercase() + rest
    };
    field.name().split('-').map(part).collect::<Vec<_>>().join("-")
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
