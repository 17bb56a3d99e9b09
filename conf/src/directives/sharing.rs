//! Directives about an API that nobody described: whom an answer may be given to, how long past its end, and who takes it out.
//!
//! nginx has none of them, so their defaults leave nginx's meaning as it is; `serve` writes them all. Before:
//! `proxy_cache`. Next: `purge`; `millstream-cache`'s `policy` and `vary`, which apply these.

use std::time::Duration;

use super::{Apply, HTTP_SERVER_LOCATION, Row, once};
use crate::inherit::Level;
use crate::model::{CacheVary, Invalidation, StaleWhile};
use crate::reading::{Reading, parameter};
use crate::tree::Directive;

/// The longest where a percentage stands without `max=`.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The rows of this family.
pub const ROWS: &[Row] = &[
    once(
        "proxy_cache_stale_while_updating",
        HTTP_SERVER_LOCATION,
        (1, 2),
        "off | time | percent% [max=time]",
        "off",
        "For how long past its end an entry is answered while it is updated, where `proxy_cache_use_stale updating` or a background update \
         allows it: a time, or so many hundredths of the time that it was fresh, at most `max` (1d). Then the upstream is asked and waited for. An \
         answer's own `stale-while-revalidate` comes first. With `off` there is no bound, as in nginx.",
        Apply::Level(stale_while_updating),
    ),
    once(
        "proxy_cache_stale_if_error",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "off | time",
        "off",
        "For how long past its end an entry stands in for a failure, where `proxy_cache_use_stale` allows it. An answer's own \
         `stale-if-error` comes first. With `off` there is no bound, as in nginx.",
        Apply::Level(|l, d, r| {
            let word = &d.args[0];
            l.proxy_cache_stale_if_error =
                if word.text == "off" { Some(None) } else { r.duration(word).map(Some) };
        }),
    ),
    once(
        "proxy_cache_credentials",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "any | public",
        "any",
        "What becomes of requests with a credential: Cookie, Authorization, Proxy-Authorization, and every field whose name has token, secret, session, \
         key or auth in it (all words are in `wire/src/credential.rs`). With `public` they are answered from the cache, and what they are answered is \
         stored, only where the answer itself says `public` or `s-maxage`; else they go to the upstream with their conditions and ranges, and nobody \
         waits for them. A field that the key names, or that `proxy_set_header` clears, is none. With `any` only Authorization counts, as RFC 9111 §3.5 has it.",
        Apply::Level(credentials),
    ),
    once(
        "proxy_cache_vary",
        HTTP_SERVER_LOCATION,
        (1, 2),
        "off | [origin] [unlisted]",
        "off",
        "By which request fields answers vary that their Vary does not name. `origin`: by Origin, unless the answer says `Access-Control-Allow-Origin: *`. \
         `unlisted`: by Accept, Accept-Language, whether a telephone asks, and every field that is not known to mean nothing to an answer (the list is in \
         `cache/src/vary/unlisted.rs`); credentials are the matter of `proxy_cache_credentials`. With either, an answer with Content-Encoding varies by Accept-Encoding.",
        Apply::Level(vary),
    ),
    once(
        "proxy_cache_invalidation",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off | rate=number r/s",
        "on",
        "Whether a request with an unsafe or unknown method that is answered 2xx or 3xx takes out what is stored for its target (RFC 9111 §4.4). With `on` \
         anybody who may send such requests can have a URL asked of the upstream as often as that. `rate=1r/s` (or `r/m`) does it once a second for each URL; what comes \
         sooner is done together when the time has come, so an answer may be a second older than the last change. With `off` it stays until its end.",
        Apply::Level(invalidation),
    ),
];

/// Reads a percentage with an optional `max=`; `None` where it is told what is wrong.
fn percentage(directive: &Directive, example: &str, reading: &mut Reading<'_>) -> Option<(u64, Duration)> {
    let first = &directive.args[0];
    let mut longest = LONGEST;
    if let Some(word) = directive.args.get(1) {
        match parameter(word) {
            Some(("max", value)) if first.text.ends_with('%') => longest = reading.duration(&value)?,
            _ => {
                reading
                    .error(word.span, format!("invalid parameter \"{}\"", word.text))
                    .help(format!("write {} {example};", directive.name.text));
                return None;
            }
        }
    }
    let percent = first.text.strip_suffix('%')?;
    let percent = reading.number(&Reading::part(first, percent), 1, 1000)?;
    Some((percent, longest))
}

fn stale_while_updating(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let first = &directive.args[0];
    level.proxy_cache_stale_while_updating = match directive.args.len() {
        1 if first.text == "off" => Some(None),
        1 if !first.text.ends_with('%') => {
            reading.duration(first).map(|longest| Some(StaleWhile { percent: None, longest }))
        }
        _ => percentage(directive, "100% max=10s", reading)
            .map(|(percent, longest)| Some(StaleWhile { percent: Some(percent as u16), longest })),
    };
}

fn credentials(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    match word.text.as_str() {
        "any" => level.proxy_cache_credentials = Some(false),
        "public" => level.proxy_cache_credentials = Some(true),
        _ => reading.not_one_of(word, &["any", "public"]),
    }
}

fn vary(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let mut vary = CacheVary::default();
    for word in &directive.args {
        match word.text.as_str() {
            "off" if directive.args.len() == 1 => {}
            "origin" => vary.origin = true,
            "unlisted" => vary.unlisted = true,
            _ => reading.not_one_of(word, &["off", "origin", "unlisted"]),
        }
    }
    level.proxy_cache_vary = Some((vary, directive.span));
}

fn invalidation(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    let per = |text: &str| {
        let (number, per) = match text.strip_suffix("r/s") {
            Some(number) => (number, Duration::from_secs(1)),
            None => (text.strip_suffix("r/m")?, Duration::from_secs(60)),
        };
        let number = number.parse::<u32>().ok().filter(|number| (1..=1000).contains(number))?;
        Some(per / number)
    };
    let invalidation = match (word.text.as_str(), parameter(word)) {
        ("on", _) => Some(Invalidation::On),
        ("off", _) => Some(Invalidation::Off),
        (_, Some(("rate", value))) => per(&value.text).map(Invalidation::Every),
        _ => None,
    };
    if invalidation.is_none() {
        reading
            .error(word.span, format!("invalid value \"{}\"", word.text))
            .help("write on, off, or a rate such as rate=1r/s or rate=30r/m");
    }
    level.proxy_cache_invalidation = invalidation;
}
