//! Directives of the cache: how locations use a zone.
//!
//! Before: `cache_zone`, which defines zones. Next: `sharing`; `millstream-cache`'s `policy`, which applies these (RFC 9111
//! comes first wherever the two meet).

use std::time::Duration;

use super::failures::words;
use super::store::incompatible;
use super::{Apply, HTTP_SERVER_LOCATION, MANY, Row, often, once};
use crate::inherit::Level;
use crate::model::{CacheZoneId, Heuristic, Store, Valid, ValidStatus, Variable};
use crate::reading::{Reading, parameter};
use crate::suggest;
use crate::tree::{Directive, Word};
use crate::value;
use crate::variables::Builtin;

/// The rows of this family.
pub const ROWS: &[Row] = &[
    once(
        "proxy_cache",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "zone | off",
        "off",
        "The zone that answers are kept in. Answers to requests with Authorization are shared only where RFC 9111 §3.5 allows it or \
         the key names the credential.",
        Apply::Level(cache),
    ),
    once(
        "proxy_cache_key",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "string",
        "$scheme$proxy_host$request_uri",
        "What an entry is found by.",
        Apply::Level(key),
    ),
    often(
        "proxy_cache_valid",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "[code … | any] time",
        "",
        "How long answers are fresh that say nothing themselves. Without codes it is for 200, 301 and 302.",
        Apply::Level(valid),
    ),
    often(
        "proxy_cache_methods",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "GET | HEAD | POST | QUERY …",
        "GET HEAD",
        "The methods whose answers are kept; GET and HEAD always are. Of QUERY (RFC 10008; Millstream's own here) the body is \
         a part of the key.",
        Apply::Level(methods),
    ),
    once(
        "proxy_cache_lock",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "on",
        "Whether of several requests for one missing entry only one goes upstream; the others get its answer as it arrives. In nginx it is off by default, and a waiter polls every 500 ms.",
        Apply::Level(|l, d, r| l.proxy_cache_lock = r.flag(&d.args[0])),
    ),
    once(
        "proxy_cache_lock_timeout",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "time",
        "5s",
        "How long they wait before they go upstream themselves; what they get is not kept.",
        Apply::Level(|l, d, r| l.proxy_cache_lock_timeout = r.duration(&d.args[0])),
    ),
    once(
        "proxy_cache_lock_age",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "time",
        "5s",
        "After how long one more request may go upstream to fill the entry.",
        Apply::Level(|l, d, r| l.proxy_cache_lock_age = r.duration(&d.args[0])),
    ),
    once(
        "proxy_cache_unread_timeout",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "time | off",
        "3s",
        "How long the upstream is still read for the cache when everybody who read along has left; an answer that has not ended by then is given up and not kept, so that nobody can hold the upstream by asking and leaving. With off it is read to its end, as in nginx.",
        Apply::Level(|l, d, r| l.proxy_cache_unread_timeout = time_or_off(d, r)),
    ),
    once(
        "proxy_cache_fill_timeout",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "time | off",
        "off",
        "How long after its head an answer may still arrive and be kept. One that takes longer, a stream for instance, goes on for those who read it; it is not kept, and nobody new joins it.",
        Apply::Level(|l, d, r| l.proxy_cache_fill_timeout = time_or_off(d, r)),
    ),
    often(
        "proxy_cache_use_stale",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "error | timeout | invalid_header | updating | http_500 | http_502 | http_503 | http_504 | http_403 | http_404 | \
         http_429 | off …",
        "off",
        "When an entry is still answered that is not fresh.",
        Apply::Level(|l, d, r| l.proxy_cache_use_stale = Some(words(l.proxy_cache_use_stale, d, r))),
    ),
    once(
        "proxy_cache_background_update",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "off",
        "Whether a stale entry is refreshed while it is answered. Nobody waits for the refresh.",
        Apply::Level(|l, d, r| l.proxy_cache_background_update = r.flag(&d.args[0])),
    ),
    once(
        "proxy_cache_revalidate",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "off",
        "Whether an entry is refreshed with If-Modified-Since and If-None-Match.",
        Apply::Level(|l, d, r| l.proxy_cache_revalidate = r.flag(&d.args[0])),
    ),
    often(
        "proxy_cache_bypass",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "string …",
        "",
        "The cache is not asked where one of the strings is neither empty nor `0`.",
        Apply::Level(|l, d, r| {
            let conditions: Vec<_> = d.args.iter().map(|word| r.template(word)).collect();
            l.proxy_cache_bypass.get_or_insert_default().extend(conditions);
        }),
    ),
    often(
        "proxy_no_cache",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "string …",
        "",
        "The answer is not kept where one of the strings is neither empty nor `0`.",
        Apply::Level(|l, d, r| {
            let conditions: Vec<_> = d.args.iter().map(|word| r.template(word)).collect();
            l.proxy_no_cache.get_or_insert_default().extend(conditions);
        }),
    ),
    once(
        "proxy_cache_min_uses",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "number",
        "1",
        "After how many requests an answer is kept.",
        Apply::Level(|l, d, r| {
            l.proxy_cache_min_uses = r.number(&d.args[0], 0, u64::from(u32::MAX)).map(|uses| uses as u32);
        }),
    ),
    often(
        "proxy_ignore_headers",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "field …",
        "",
        "Fields of the upstream's answer that have no effect here: X-Accel-Redirect, X-Accel-Expires, X-Accel-Limit-Rate, \
         X-Accel-Buffering, X-Accel-Charset, Expires, Cache-Control, Set-Cookie, Vary.",
        Apply::Level(ignore_headers),
    ),
    once(
        "proxy_cache_convert_head",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "on",
        "Whether a HEAD is asked of the upstream as GET, so that its answer can be kept. With `off` the key should contain \
         `$request_method`.",
        Apply::Level(|l, d, r| l.proxy_cache_convert_head = r.flag(&d.args[0])),
    ),
    once(
        "proxy_cache_max_range_offset",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "number",
        "",
        "A range that begins beyond this many bytes is passed to the upstream as it is, and its answer kept as a part, the \
         latest of each URL; without it the whole answer is always fetched. For seeking in large files see `slice`.",
        Apply::Level(|l, d, r| l.proxy_cache_max_range_offset = r.offset(&d.args[0])),
    ),
    once(
        "proxy_cache_client_control",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "off",
        "Whether Cache-Control and Pragma of a request count (RFC 9111 §5.2.1): then a client may force a refresh, or ask for a \
         stored answer only. Off by default, as nginx never lets clients do that.",
        Apply::Level(|l, d, r| l.proxy_cache_client_control = r.flag(&d.args[0])),
    ),
    once(
        "proxy_cache_heuristic",
        HTTP_SERVER_LOCATION,
        (1, 2),
        "off | percent% [max=time]",
        "off",
        "For how long an answer is fresh that says nothing of it but has Last-Modified (RFC 9111 §4.2.2): so many hundredths of the time \
         that has passed since then, at most `max` (1d). `proxy_cache_valid` comes first.",
        Apply::Level(heuristic),
    ),
    once(
        "proxy_cache_refresh_ahead",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "off | time",
        "off",
        "An entry that is asked for this long before its end, or later, is refreshed in the background while it is still fresh.",
        Apply::Level(|l, d, r| {
            let word = &d.args[0];
            l.proxy_cache_refresh_ahead =
                if word.text == "off" { Some(Duration::ZERO) } else { r.duration(word) };
        }),
    ),
    often(
        "proxy_cache_tag",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "string …",
        "",
        "Tags that the entry can be purged by, separated by spaces or commas, beside those in the answer's Surrogate-Key, Cache-Tag and \
         xkey fields. An answer with more than 1,024 is not stored.",
        Apply::Level(|l, d, r| {
            let tags: Vec<_> = d.args.iter().map(|word| r.template(word)).collect();
            l.proxy_cache_tags.get_or_insert_default().extend(tags);
        }),
    ),
    once(
        "proxy_cache_explain",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "off",
        "Whether answers say in a field Cache-Status (RFC 9211) what the cache did and why.",
        Apply::Level(|l, d, r| l.proxy_cache_explain = r.flag(&d.args[0])),
    ),
];

fn cache(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    if word.text == "off" {
        level.proxy_cache = Some((None, word.span));
        return;
    }
    if level.proxy_store.as_ref().is_some_and(|(store, _)| *store != Store::Off) {
        incompatible(directive, "proxy_cache", "proxy_store", reading);
        return;
    }
    if !reading.without_variables(word, "proxy_cache") {
        return;
    }
    let zones = &reading.http.cache_zones;
    if let Some(index) = zones.iter().position(|zone| zone.name == word.text) {
        reading.used_zones[index] = true;
        level.proxy_cache = Some((Some(CacheZoneId(index as u32)), word.span));
        return;
    }
    let help = suggest::did_you_mean(&word.text, zones.iter().map(|zone| zone.name.as_str()));
    let help = help.unwrap_or_else(|| {
        format!(
            "define it in the http block: proxy_cache_path /var/cache/millstream keys_zone={}:10m;",
            word.text
        )
    });
    reading.error(word.span, format!("\"proxy_cache\" zone \"{}\" is unknown", word.text)).help(help);
}

/// What is known only once the entry is found cannot be a part of what it is found by.
fn key(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    const LATER: [Builtin; 5] = [
        Builtin::UpstreamCacheKey,
        Builtin::UpstreamCacheStatus,
        Builtin::UpstreamCacheAge,
        Builtin::UpstreamCacheLastModified,
        Builtin::UpstreamCacheEtag,
    ];
    let word = &directive.args[0];
    let key = reading.template(word);
    let is_later =
        |variable: &Variable| matches!(variable, Variable::Builtin(known) if LATER.contains(known));
    if key.variables().any(is_later) {
        reading
            .error(word.span, "a variable $upstream_cache_… cannot be a part of \"proxy_cache_key\"")
            .help("it has a value only after the key was looked up; take it out");
        return;
    }
    level.proxy_cache_key = Some(key);
}

fn valid(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let (time, codes) = directive.args.split_last().expect("the table asks for a word");
    let Some(time) = reading.duration(time) else { return };
    let list = level.proxy_cache_valid.get_or_insert_default();
    let mut add = |status| list.push((Valid { status, time }, directive.span));
    if codes.is_empty() {
        [200, 301, 302].into_iter().map(ValidStatus::Is).for_each(&mut add);
    }
    for word in codes {
        if word.text == "any" {
            add(ValidStatus::Any);
        } else if let Some(help) = no_status(word, directive) {
            reading.error(word.span, format!("\"{}\" is not a status", word.text)).help(help);
        } else if let Some(status) = reading.number(word, 100, 599) {
            add(ValidStatus::Is(status as u16));
        }
    }
}

/// What to write where a status was expected and something else stands that is often taken for one.
fn no_status(word: &Word, directive: &Directive) -> Option<String> {
    let text = word.text.as_bytes();
    if let [class @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] = text {
        let examples = ["100", "200 204", "301 302 308", "404 410", "500 503"][usize::from(class - b'1')];
        return Some(format!("write each status, as in proxy_cache_valid {examples} 5m; or any"));
    }
    let is_time = text.iter().any(u8::is_ascii_alphabetic) && value::duration(&word.text).is_ok();
    is_time.then(|| {
        let others = directive.args.iter().filter(|other| other.span != word.span);
        let others: Vec<_> = others.map(|other| other.text.as_str()).collect();
        format!("the time comes last: proxy_cache_valid {} {};", others.join(" "), word.text)
    })
}

fn methods(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    const METHODS: [&str; 4] = ["GET", "HEAD", "POST", "QUERY"];
    let mut methods = level.proxy_cache_methods.unwrap_or_default();
    for word in &directive.args {
        match METHODS.iter().position(|method| method.eq_ignore_ascii_case(&word.text)) {
            Some(2) => methods.post = true,
            Some(3) => methods.query = true,
            Some(_) => {}
            None => reading.not_one_of(word, &METHODS),
        }
    }
    level.proxy_cache_methods = Some(methods);
}

/// The longest lifetime that is guessed where `max=` is not written.
const LONGEST_GUESS: Duration = Duration::from_secs(24 * 3600);

fn heuristic(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let first = &directive.args[0];
    let mut longest = LONGEST_GUESS;
    if let Some(word) = directive.args.get(1) {
        match parameter(word) {
            Some(("max", value)) if first.text != "off" => {
                longest = reading.duration(&value).unwrap_or(longest);
            }
            _ => {
                reading
                    .error(word.span, format!("invalid parameter \"{}\"", word.text))
                    .help("write proxy_cache_heuristic 10% max=1d; or proxy_cache_heuristic off;");
            }
        }
    }
    if first.text == "off" {
        level.proxy_cache_heuristic = Some(None);
        return;
    }
    let Some(percent) = first.text.strip_suffix('%') else {
        reading
            .error(first.span, format!("invalid value \"{}\"", first.text))
            .help("write a percentage such as 10%, or off");
        return;
    };
    if let Some(percent) = reading.number(&Reading::part(first, percent), 1, 100) {
        level.proxy_cache_heuristic = Some(Some(Heuristic { percent: percent as u8, longest }));
    }
}

fn ignore_headers(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    const FIELDS: [&str; 9] = [
        "X-Accel-Redirect",
        "X-Accel-Expires",
        "X-Accel-Limit-Rate",
        "X-Accel-Buffering",
        "X-Accel-Charset",
        "Expires",
        "Cache-Control",
        "Set-Cookie",
        "Vary",
    ];
    let mut ignore = level.proxy_ignore_headers.unwrap_or_default();
    for word in &directive.args {
        match FIELDS.iter().position(|field| field.eq_ignore_ascii_case(&word.text)) {
            Some(0) => ignore.x_accel_redirect = true,
            Some(1) => ignore.x_accel_expires = true,
            Some(2) => ignore.x_accel_limit_rate = true,
            Some(3) => ignore.x_accel_buffering = true,
            Some(4) => ignore.x_accel_charset = true,
            Some(5) => ignore.expires = true,
            Some(6) => ignore.cache_control = true,
            Some(7) => ignore.set_cookie = true,
            Some(_) => ignore.vary = true,
            None => reading.not_one_of(word, &FIELDS),
        }
    }
    level.proxy_ignore_headers = Some(ignore);
}

/// A time, or `off`, which is none.
fn time_or_off(directive: &Directive, reading: &mut Reading<'_>) -> Option<Option<Duration>> {
    match &directive.args[0] {
        word if word.text == "off" => Some(None),
        word => reading.duration(word).map(Some),
    }
}
