//! What the API says of keeping its answers, as the cache itself reads it, and in words.
//!
//! The judgement is the cache's own (`cache::policy`, RFC 9111 with nginx's order of who decides), by the settings that every
//! step of the ladder has; here are only the words, and what would help. Next: `verdict`, which says them beside figures.

use crate::probe::Reply;
use crate::report::quantity::plural;
use millstream_cache::Now;
use millstream_cache::policy::{Arithmetic, Because, Judgement, Reason, RequestFacts, Storable, judge};
use millstream_conf::model::{IgnoreHeaders, ProxyCache};
use millstream_wire::credential::is_credential;
use millstream_wire::{FieldId, Headers, Method};
use std::time::Duration;

#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Caching {
    pub keeps: Keeps,
    pub why: Option<String>,
    pub advice: Option<String>,
    pub words: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeps {
    /// For so many seconds from when it comes, as it says itself; 0: it may be used only while it is fetched anew.
    Seconds(u64),
    /// It says nothing; a configuration may decide.
    #[default]
    Silent,
    No,
}

const STREAMS: [&str; 2] = ["text/event-stream", "multipart/x-mixed-replace"];

const PER_USER: &str = " The Authorization of a request is part of the key in every step, so each user has separate \
                        responses: a factor is the gain for one user who repeats a request.";

/// What is added where requests carry any credential and the answer does not say that it is for everybody: the steps go by its lifetime
/// alone, as nginx does.
const PASSED_ON: &str = " \"millstream serve\" sends requests with a credential to the API, unless the stored response is marked public or s-maxage.";

const SAY_PUBLIC: &str =
    "A \"Cache-Control: public, max-age=…\" would help, on responses that are the same for every client.";

/// What an answer that came `now` says of being kept, where `method` was asked for with these `fields`.
pub fn caching(answer: &Reply, method: &[u8], fields: &[(String, String)], now: Now) -> Caching {
    let has = |name: &str| fields.iter().any(|(field, _)| field.eq_ignore_ascii_case(name));
    let method = match Method::of(method) {
        // It is asked as GET, by default.
        Method::Head => Method::Get,
        method => method,
    };
    // As in the text of every step: its key names the credentials, and no proxy_cache_valid decides before the answer does.
    let request = RequestFacts { method, ..RequestFacts::default() };
    let conf = ProxyCache::default();
    let mut headers = Headers::new();
    answer.fields.iter().for_each(|(name, value)| headers.push(name.as_bytes(), value.as_bytes()));
    let judgement =
        judge(&conf, &IgnoreHeaders::default(), &request, answer.status, headers.view(), now, false);
    let (status, has_cookie) = (answer.status, has("cookie"));
    let has_credential =
        fields.iter().any(|(name, _)| is_credential(FieldId::of(name.as_bytes()), name.as_bytes()));
    let is_public = matches!(judgement.outcome, Storable::Yes(lifetime) if lifetime.public);
    let mut caching = match judgement.outcome {
        Storable::Yes(lifetime) => kept(lifetime.fresh_until - now.unix_milliseconds, judgement.arithmetic),
        // Nothing is said, and a configuration has to decide.
        Storable::No(Reason::NoLifetime) if !has_cookie && status == 200 => Caching {
            words: "The API sends nothing about caching (no Cache-Control, no Expires).".to_owned(),
            ..Caching::default()
        },
        Storable::No(reason) => {
            let age = judgement.arithmetic.filter(|all| !all.lifetime.is_zero() && !all.age_field.is_zero());
            let field = field(&judgement, answer);
            let (why, advice) = refused(reason, field.as_deref(), age, status, has_cookie);
            let words = format!(
                "The API's responses cannot be cached: {why}. Any proxy gains about 1x with such an API. {advice}"
            );
            Caching { keeps: Keeps::No, why: Some(why), advice: Some(advice.to_owned()), words }
        }
    };
    if has("authorization") && caching.keeps != Keeps::No {
        caching.words.push_str(PER_USER);
    }
    if has_credential && !is_public && caching.keeps != Keeps::No {
        caching.words.push_str(PASSED_ON);
    }
    caching
}

/// The type of an answer that never ends by itself (HTML Standard §9.2; multipart/x-mixed-replace); `None` of all others.
pub fn stream(answer: &Reply) -> Option<&str> {
    let kind = answer.field("content-type")?.split(';').next().unwrap_or_default().trim();
    STREAMS.iter().any(|stream| kind.eq_ignore_ascii_case(stream)).then_some(kind)
}

/// It may be kept for `left` milliseconds.
fn kept(left: i64, arithmetic: Option<Arithmetic>) -> Caching {
    let left = u64::try_from(left).unwrap_or(0).div_ceil(1000);
    let age = arithmetic.and_then(|all| Some((all.lifetime, all.initial_age.filter(|age| !age.is_zero())?)));
    let told = spelled(Duration::from_secs(left));
    let words = match age {
        _ if left == 0 => "are stale at once, and may still be used during a refresh".to_owned(),
        None => format!("may be stored for {told}"),
        Some((lifetime, age)) => {
            let [lifetime, age] = [lifetime, age].map(spelled);
            format!(
                "may be stored for {lifetime}, and are {age} old when they arrive (Age), which leaves {told}"
            )
        }
    };
    let words = format!("According to the API, its responses {words}.");
    Caching { keeps: Keeps::Seconds(left), words, ..Caching::default() }
}

fn field(judgement: &Judgement<'_>, answer: &Reply) -> Option<String> {
    let Because::Field(field, value) = judgement.because else { return None };
    let mut names = answer.fields.iter().map(|(name, _)| name.as_str());
    let name = names.find(|name| name.eq_ignore_ascii_case(field.name())).unwrap_or(field.name());
    Some(format!("{name}: {}", String::from_utf8_lossy(value)))
}

/// Why an answer is not kept, and what would help against just that; `age` is there where it was too old when it came.
fn refused(
    reason: Reason,
    field: Option<&str>,
    age: Option<Arithmetic>,
    status: u16,
    has_cookie: bool,
) -> (String, &'static str) {
    let said = field.map_or_else(|| reason.text().to_owned(), |field| format!("it sends {field}"));
    match (reason, age) {
        (Reason::Streaming, _) => (
            format!(
                "it is a stream ({}), which starts from the beginning for each client",
                field.unwrap_or_default()
            ),
            "Streams are passed on as they arrive: turn the cache off for them.",
        ),
        (Reason::Method, _) => {
            ("only responses to GET and HEAD are stored".to_owned(), "Responses to GET can be stored.")
        }
        (Reason::Status, _) => (
            format!("a response with {status} is not a complete response"),
            "Request the complete response, without Range, If-None-Match and If-Modified-Since.",
        ),
        (Reason::SetCookie, _) => (
            "it sets a cookie (Set-Cookie) for one client".to_owned(),
            "A response that sets a cookie belongs to one client.",
        ),
        (Reason::Vary, _) => (
            format!("{said}, so each request may get a different response"),
            "A Vary that names only what the response depends on would help.",
        ),
        (Reason::XAccelExpires, _) => (format!("{said}, which has passed"), "The API forbids it."),
        (Reason::Expired, Some(all)) => (
            format!(
                "{said}, and the response is already {} old when it arrives (Age), of a lifetime of {}",
                spelled(all.age_field),
                spelled(all.lifetime)
            ),
            "Another cache in front of the API stored the response for that time: measure the API itself, or lower \
             the lifetime in that cache.",
        ),
        (Reason::Expired, None) => (
            format!("{said}, so it is stale immediately"),
            "If it is the same for every client, a longer time would help.",
        ),
        (Reason::MustUnderstand, _) => (
            format!("it sends must-understand, and status {status} is unknown"),
            "The API forbids storing a response with an unknown status.",
        ),
        (Reason::ErrorStatus, _) => (
            format!("its status is {status}, and an error is stored only if the API sets a lifetime"),
            "Measure a URL with status 200.",
        ),
        (Reason::NoLifetime, _) if !has_cookie => (
            format!(
                "it has no caching headers, and without them only responses with 200 are stored, not {status}"
            ),
            SAY_PUBLIC,
        ),
        (Reason::NoStore | Reason::Private, _) => {
            (said, "The API forbids it, and a shared cache must not store it.")
        }
        _ => {
            let cookies = "it has no caching headers, and without them responses to requests with a Cookie are not shared";
            let why = if reason == Reason::NoLifetime { cookies.to_owned() } else { said };
            (why, SAY_PUBLIC)
        }
    }
}

/// A time in the largest unit that is whole.
fn spelled(time: Duration) -> String {
    let (seconds, units) = (time.as_secs(), [(86_400, "day"), (3600, "hour"), (60, "minute")]);
    let whole = units.into_iter().find(|(size, _)| seconds > 0 && seconds % size == 0);
    let (size, unit) = whole.unwrap_or((1, "second"));
    plural(seconds / size, unit)
}
