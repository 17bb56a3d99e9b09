//! How a location uses a cache zone.
//!
//! Before: `features/cache_zone`, which declares zones; `crate::zones`, for those that a request chooses. Next: `cache/usage`, what comes of it; `sharing`; `millstream-cache`'s `policy`,
//! which applies these (RFC 9111 comes first wherever the two meet).

use std::time::Duration;

use super::failures::UseStale;
use super::store::{Store, incompatible};
use super::{CommonLevel, sibling};
use crate::declared::cache_zone::CacheZoneId;
use crate::features::level::level;
use crate::features::templates::without_templates;
use crate::reading::{Reading, parameter};
use crate::source::Span;
use crate::suggest;
use crate::template::{self, Template, Variable};
use crate::tree::{Directive, Word};
use crate::value;
use crate::variables::Builtin;
use ignored_args::IgnoredArg;
use verify::CacheVerify;

pub mod ignored_args;
pub mod verify;
pub mod usage;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValidStatus {
    Any,
    Is(u16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Valid {
    pub status: ValidStatus,
    /// Zero = do not store.
    pub time: Duration,
}

#[derive(Debug, Clone)]
pub enum ZoneChoice {
    Off,
    Fixed(CacheZoneId),
    /// The zone whose name the text evaluates to; empty or `off` = none.
    Chosen(Template),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heuristic {
    /// Hundredths of the age at the origin; RFC 9111 §4.2.2 suggests 10.
    pub percent: u8,
    /// The longest guessed lifetime. Default a day.
    pub longest: Duration,
}

without_templates!(Valid, Heuristic);

/// Methods stored besides GET and HEAD.
#[derive(Debug, Clone, Copy, Default)]
pub struct CacheMethods {
    pub post: bool,
    pub query: bool,
}

level! {
    pub struct CacheLevel {
        zone: (ZoneChoice, Span),
        key: (Template, Span),
        /// The empty list is `off`.
        ignored_args: Vec<IgnoredArg>,
        valid: Vec<(Valid, Span)>,
        /// With the last place.
        methods: (CacheMethods, Span),
        lock: bool,
        lock_timeout: Duration,
        lock_age: Duration,
        /// The inner `None` is `off`.
        unread_timeout: Option<Duration>,
        /// The inner `None` is `off`.
        fill_timeout: Option<Duration>,
        use_stale: UseStale,
        background_update: bool,
        revalidate: bool,
        bypass: Vec<Template>,
        no_cache: Vec<Template>,
        min_uses: u32,
        convert_head: bool,
        max_range_offset: u64,
        client_control: bool,
        /// The inner `None` is `off`.
        heuristic: (Option<Heuristic>, Span),
        /// Zero = `off`.
        refresh_ahead: Duration,
        tags: Vec<Template>,
        /// The inner `None` is `off`.
        verify: Option<CacheVerify>,
        explain: bool,
    }
}

impl CacheLevel {
    pub fn zone_at(&self) -> Option<Span> {
        self.zone.as_ref().filter(|(zone, _)| !matches!(zone, ZoneChoice::Off)).map(|(_, span)| *span)
    }
}

macro_rules! rows {
    ($prefix:literal, $family:expr) => {
        [
            once(concat!($prefix, "_cache"), HTTP_SERVER_LOCATION, (1, 1), "zone | off", "off",
                "Sets the zone that stores responses. If the parameter contains variables, each request selects a zone by name. If the value is empty \
                or `off`, the request is not cached; if there is no such zone, it gets 500. Responses to requests with Authorization are shared only \
                if RFC 9111 §3.5 allows it or the key contains the credential.",
                Apply::Pass($family, cache::zone)),
            once(concat!($prefix, "_cache_key"), HTTP_SERVER_LOCATION, (1, 1), "string",
                "$scheme$proxy_host$request_uri",
                "Sets the key of cached responses. For FastCGI, uwsgi and SCGI, the default is `$scheme$host$is_request_port$request_port$request_uri$uri`.",
                Apply::Pass($family, cache::key)),
            often(concat!($prefix, "_cache_ignore_args"), HTTP_SERVER_LOCATION, (1, MANY), "off | name …", "off",
                "Excludes arguments of the query string from the key, such as those of campaigns (`utm_* gclid fbclid`). In a name, `*` stands for \
                any characters; case is ignored. The upstream still receives the arguments. An argument that contains `;` remains in the key, \
                because some upstreams use `;` as a separator. The other arguments keep their order and encoding. This applies to `$args`, \
                `$query_string`, `$is_args`, `$request_uri` and `$request` in the key, but not to `$arg_name` or to variables that are set from \
                these.",
                Apply::Pass($family, cache::ignored_args::read)).needing(Need::Cache),
            often(concat!($prefix, "_cache_valid"), HTTP_SERVER_LOCATION, (1, MANY), "[code … | any] time", "",
                "Sets the lifetime of responses without one of their own. Without codes, it applies to 200, 301 and 302.",
                Apply::Pass($family, cache::valid)),
            often(concat!($prefix, "_cache_methods"), HTTP_SERVER_LOCATION, (1, MANY), "GET | HEAD | POST | QUERY …",
                "GET HEAD",
                "Sets the methods whose responses are cached. GET and HEAD are always included. For QUERY (RFC 10008; not in nginx), the body is part \
                of the key.",
                Apply::Pass($family, cache::methods)),
            once(concat!($prefix, "_cache_lock"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
                "Passes only one of several requests for a missing response to the upstream. The others receive its response as it arrives. In nginx, \
                this is off by default, and waiting requests poll every 500 ms.",
                Apply::Pass($family, |l, d, r| l.cache.lock = r.flag(&d.args[0]))),
            once(concat!($prefix, "_cache_lock_timeout"), HTTP_SERVER_LOCATION, (1, 1), "time", "5s",
                "The maximum time that a request waits for the response to another one. After this time, it is passed to the upstream, and its \
                response is not cached. If this is not set and nothing is stored for the key, up to eight requests are passed after two seconds, and \
                their responses are cached.",
                Apply::Pass($family, |l, d, r| l.cache.lock_timeout = r.duration(&d.args[0]))),
            once(concat!($prefix, "_cache_lock_age"), HTTP_SERVER_LOCATION, (1, 1), "time", "5s",
                "The time after which one more request is passed to the upstream to fill the entry.",
                Apply::Pass($family, |l, d, r| l.cache.lock_age = r.duration(&d.args[0]))),
            once(concat!($prefix, "_cache_unread_timeout"), HTTP_SERVER_LOCATION, (1, 1), "time | off", "3s",
                "The time for which a response is read for the cache after all its clients have disconnected. If it is not complete by then, it is \
                not cached, so that clients cannot keep the upstream busy by disconnecting. With `off`, it is read to its end, as in nginx.",
                Apply::Pass($family, |l, d, r| l.cache.unread_timeout = cache::time_or_off(d, r))),
            once(concat!($prefix, "_cache_fill_timeout"), HTTP_SERVER_LOCATION, (1, 1), "time | off", "off",
                "The maximum time for the body of a cached response to arrive. If a response takes longer, such as a stream, it continues for its \
                clients, but is not cached, and no other request joins it.",
                Apply::Pass($family, |l, d, r| l.cache.fill_timeout = cache::time_or_off(d, r))),
            often(concat!($prefix, "_cache_use_stale"), HTTP_SERVER_LOCATION, (1, MANY),
                "error | timeout | invalid_header | updating | http_500 | http_502 | http_503 | http_504 | http_403 | http_404 | \
                http_429 | off …", "off",
                "Sets the cases in which a stale response may be used.",
                Apply::Pass($family, |l, d, r| l.cache.use_stale = Some(failures::words(l.cache.use_stale, d, r)))),
            once(concat!($prefix, "_cache_background_update"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
                "Refreshes a stale response in the background when it is used. No client waits for the refresh.",
                Apply::Pass($family, |l, d, r| l.cache.background_update = r.flag(&d.args[0]))),
            once(concat!($prefix, "_cache_revalidate"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
                "Revalidates expired responses with If-Modified-Since and If-None-Match.",
                Apply::Pass($family, |l, d, r| l.cache.revalidate = r.flag(&d.args[0]))),
            often(concat!($prefix, "_cache_bypass"), HTTP_SERVER_LOCATION, (1, MANY), "string …", "",
                "Bypasses the cache if one of the strings is neither empty nor `0`.",
                Apply::Pass($family, |l, d, r| l.cache.bypass.get_or_insert_default().extend(cache::strings(d, r)))),
            often(concat!($prefix, "_no_cache"), HTTP_SERVER_LOCATION, (1, MANY), "string …", "",
                "Does not store the response if one of the strings is neither empty nor `0`.",
                Apply::Pass($family, |l, d, r| l.cache.no_cache.get_or_insert_default().extend(cache::strings(d, r)))),
            once(concat!($prefix, "_cache_min_uses"), HTTP_SERVER_LOCATION, (1, 1), "number", "1",
                "The number of requests after which a response is cached.",
                Apply::Pass($family, |l, d, r| {
                    l.cache.min_uses = r.number(&d.args[0], 0, u64::from(u32::MAX)).map(|uses| uses as u32);
                })),
            once(concat!($prefix, "_cache_convert_head"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
                "Sends HEAD to the upstream as GET, so that the response can be cached. If off, the key should contain `$request_method`.",
                Apply::Pass($family, |l, d, r| l.cache.convert_head = r.flag(&d.args[0]))),
            once(concat!($prefix, "_cache_max_range_offset"), HTTP_SERVER_LOCATION, (1, 1), "number", "",
                "Passes requests for a range that begins beyond this number of bytes unchanged to the upstream, and caches the part that is returned. Only the \
                latest part of each URL is kept. Without this directive, the whole response is always fetched. For seeking in large files, see `slice`.",
                Apply::Pass($family, |l, d, r| l.cache.max_range_offset = r.offset(&d.args[0]))),
            once(concat!($prefix, "_cache_client_control"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
                "Obeys Cache-Control and Pragma in requests (RFC 9111 §5.2.1). A client can then force a refresh, or require a stored response. It is \
                off by default, because nginx never obeys them.",
                Apply::Pass($family, |l, d, r| l.cache.client_control = r.flag(&d.args[0]))).needing(Need::Cache),
            once(concat!($prefix, "_cache_heuristic"), HTTP_SERVER_LOCATION, (1, 2), "off | percent% [max=time]",
                "off",
                concat!("Sets the lifetime of responses with Last-Modified but without a lifetime of their own (RFC 9111 §4.2.2): this percentage of the \
                time since their modification, at most `max` (1d). `", $prefix, "_cache_valid` takes precedence."),
                Apply::Pass($family, cache::heuristic)).needing(Need::Cache),
            once(concat!($prefix, "_cache_refresh_ahead"), HTTP_SERVER_LOCATION, (1, 1), "off | time", "off",
                "Refreshes a response in the background if it is requested when less than this time is left until it expires.",
                Apply::Pass($family, |l, d, r| {
                    let word = &d.args[0];
                    l.cache.refresh_ahead =
                        if word.text == "off" { Some(Duration::ZERO) } else { r.duration(word) };
                })).needing(Need::Cache),
            once(concat!($prefix, "_cache_verify"), HTTP_SERVER_LOCATION, (1, 3),
                "off | share [sample=rate] [on_leak=off | warn]", "off",
                "In the background, repeats the requests of this share of the hits (`1%` or `0.01`) at the upstream, and compares the responses with those served. \
                Times and request IDs are ignored. If the responses differ, further requests, some without the client's fields, find the cause: noise (responses \
                to identical requests differ), a stale response, or a leak, which means that the response depends on something that neither the key nor Vary \
                contains, such as a cookie. The first leak turns the location's cache off until the configuration is reloaded or Millstream is \
                restarted, its zone is purged, and the error log (`alert`), the dashboard and the metric `millstream_cache_verify_off` report it. With `on_leak=warn`, \
                the cache remains on. `sample=` limits the checks of the location, by default to `10r/s` (or `r/m`); a check sends at most eight requests. Only GET requests \
                are checked, and no request contains the credential of another client.",
                Apply::Pass($family, cache::verify::read)).needing(Need::Cache),
            often(concat!($prefix, "_cache_tag"), HTTP_SERVER_LOCATION, (1, MANY), "string …", "",
                "Adds tags for purging a response, separated by spaces or commas, to those in its Surrogate-Key, Cache-Tag and xkey fields. A \
                response with more than 1,024 tags is not cached.",
                Apply::Pass($family, |l, d, r| l.cache.tags.get_or_insert_default().extend(cache::strings(d, r)))).needing(Need::Cache),
            once(concat!($prefix, "_cache_explain"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
                "Adds a `Cache-Status` field (RFC 9211) to responses, with the cache's decision and its reason.",
                Apply::Pass($family, |l, d, r| l.cache.explain = r.flag(&d.args[0]))).needing(Need::Cache),
        ]
    };
}
pub(super) use rows;

pub(super) fn zone(level: &mut CommonLevel, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    if word.text == "off" {
        level.cache.zone = Some((ZoneChoice::Off, word.span));
        return;
    }
    if level.store.place.as_ref().is_some_and(|store| store.value != Store::Off) {
        incompatible(directive, "store", reading);
        return;
    }
    if !template::is_literal(&word.text) {
        reading.used_zones.fill(true);
        level.cache.zone = Some((ZoneChoice::Chosen(reading.template(word)), word.span));
        return;
    }
    let zones = &reading.declared.cache_zones;
    if let Some(index) = zones.iter().position(|zone| zone.name == word.text) {
        reading.used_zones[index] = true;
        level.cache.zone = Some((ZoneChoice::Fixed(CacheZoneId(index as u32)), word.span));
        return;
    }
    let help = suggest::did_you_mean(&word.text, zones.iter().map(|zone| zone.name.as_str()));
    let help = help.unwrap_or_else(|| {
        format!(
            "define it in the http block: {} /var/cache/millstream keys_zone={}:10m;",
            sibling(directive, "cache_path"),
            word.text
        )
    });
    let message = format!("\"{}\" zone \"{}\" is unknown", directive.name.text, word.text);
    reading.error(word.span, message).help(help);
}

/// What is known only once the entry is found cannot be part of its key.
pub(super) fn key(level: &mut CommonLevel, directive: &Directive, reading: &mut Reading<'_>) {
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
    if reading.reads(&key).into_iter().any(is_later) {
        let name = &directive.name.text;
        reading
            .error(word.span, format!("a variable $upstream_cache_… cannot be part of \"{name}\""))
            .help("it has a value only after the key was looked up; remove it");
        return;
    }
    level.cache.key = Some((key, directive.span));
}

pub(super) fn valid(level: &mut CommonLevel, directive: &Directive, reading: &mut Reading<'_>) {
    let (time, codes) = directive.args.split_last().expect("the table asks for a word");
    let Some(time) = reading.duration(time) else { return };
    let list = level.cache.valid.get_or_insert_default();
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

/// What to write if a word that is often mistaken for a status stands in place of one.
fn no_status(word: &Word, directive: &Directive) -> Option<String> {
    let (name, text) = (&directive.name.text, word.text.as_bytes());
    if let [class @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] = text {
        let examples = ["100", "200 204", "301 302 308", "404 410", "500 503"][usize::from(class - b'1')];
        return Some(format!("write each status, as in {name} {examples} 5m; or any"));
    }
    let is_time = text.iter().any(u8::is_ascii_alphabetic) && value::duration(&word.text).is_ok();
    is_time.then(|| {
        let others = directive.args.iter().filter(|other| other.span != word.span);
        let others: Vec<_> = others.map(|other| other.text.as_str()).collect();
        format!("write the time last: {name} {} {};", others.join(" "), word.text)
    })
}

pub(super) fn methods(level: &mut CommonLevel, directive: &Directive, reading: &mut Reading<'_>) {
    const METHODS: [&str; 4] = ["GET", "HEAD", "POST", "QUERY"];
    let mut methods = level.cache.methods.map(|(methods, _)| methods).unwrap_or_default();
    for word in &directive.args {
        match METHODS.iter().position(|method| method.eq_ignore_ascii_case(&word.text)) {
            Some(2) => methods.post = true,
            Some(3) => methods.query = true,
            Some(_) => {}
            None => reading.not_one_of(word, &METHODS),
        }
    }
    level.cache.methods = Some((methods, directive.span));
}

/// Default of `max=`.
const LONGEST_GUESS: Duration = Duration::from_secs(24 * 3600);

pub(super) fn heuristic(level: &mut CommonLevel, directive: &Directive, reading: &mut Reading<'_>) {
    let (name, first) = (&directive.name.text, &directive.args[0]);
    let mut longest = LONGEST_GUESS;
    if let Some(word) = directive.args.get(1) {
        match parameter(word) {
            Some(("max", value)) if first.text != "off" => {
                longest = reading.duration(&value).unwrap_or(longest);
            }
            _ => {
                reading
                    .error(word.span, format!("invalid parameter \"{}\"", word.text))
                    .help(format!("write {name} 10% max=1d; or {name} off;"));
            }
        }
    }
    if first.text == "off" {
        level.cache.heuristic = Some((None, directive.span));
        return;
    }
    let Some(percent) = first.text.strip_suffix('%') else {
        reading
            .error(first.span, format!("invalid value \"{}\"", first.text))
            .help("write a percentage such as 10%, or off");
        return;
    };
    if let Some(percent) = reading.number(&Reading::part(first, percent), 1, 100) {
        let guess = Heuristic { percent: percent as u8, longest };
        level.cache.heuristic = Some((Some(guess), directive.span));
    }
}

/// The inner `None` is `off`.
pub(super) fn time_or_off(directive: &Directive, reading: &mut Reading<'_>) -> Option<Option<Duration>> {
    match &directive.args[0] {
        word if word.text == "off" => Some(None),
        word => reading.duration(word).map(Some),
    }
}

pub(super) fn strings(directive: &Directive, reading: &mut Reading<'_>) -> Vec<Template> {
    directive.args.iter().map(|word| reading.template(word)).collect()
}
