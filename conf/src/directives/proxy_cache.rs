//! Directives of the cache: its zones and how locations use them.
//!
//! Next: `millstream-cache`'s `policy`, which applies them; RFC 9111 comes first wherever the two meet.

use std::path::PathBuf;
use std::time::Duration;

use super::{Apply, HTTP, HTTP_SERVER_LOCATION, MANY, Row, idle, often, once};
use crate::inherit::Level;
use crate::model::{CacheZone, CacheZoneId, UseStale, Valid, ValidStatus};
use crate::reading::{Reading, parameter};
use crate::suggest;
use crate::tree::{Directive, Word};

/// The rows of this family.
pub const ROWS: &[Row] = &[
    often(
        "proxy_cache_path",
        HTTP,
        (2, MANY),
        "path | memory keys_zone=name:size [levels=levels] [inactive=time] [max_size=size] [min_free=size] \
         [use_temp_path=on|off] [memory=size]",
        "",
        "Defines a cache zone. `path` is a directory, or the word `memory` for a zone without files. `keys_zone` bounds the number of \
         entries, 8,000 a megabyte; entries unused for `inactive` (10m) are removed; `max_size` bounds the files, `memory` (64m) \
         what hot entries take in memory.",
        Apply::Define(cache_path),
    ),
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
        Apply::Level(|l, d, r| l.proxy_cache_key = Some(r.template(&d.args[0]))),
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
        "GET | HEAD | POST …",
        "GET HEAD",
        "The methods whose answers are kept; GET and HEAD always are.",
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
    often(
        "proxy_cache_use_stale",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "error | timeout | invalid_header | updating | http_500 | http_502 | http_503 | http_504 | http_403 | http_404 | \
         http_429 | off …",
        "off",
        "When an entry is still answered that is not fresh.",
        Apply::Level(use_stale),
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
    idle(
        "proxy_cache_max_range_offset",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "number",
        "From which offset on a range request is passed to the upstream.",
        "a request with Range never fills the cache with a part, whatever its offset",
    ),
];

/// What hot entries of a zone may take in memory where `memory=` is not written, in bytes.
pub const DEFAULT_MEMORY: u64 = 64 * 1024 * 1024;

fn cache_path(directive: &Directive, reading: &mut Reading<'_>) {
    let path = &directive.args[0];
    if !reading.without_variables(path, "proxy_cache_path") {
        return;
    }
    let mut zone = CacheZone {
        name: String::new(),
        span: directive.span,
        path: (path.text != "memory").then(|| reading.path(path.text.trim_end_matches('/'))),
        levels: Vec::new(),
        keys_size: 0,
        inactive: Duration::from_secs(600),
        max_size: None,
        min_free: 0,
        use_temp_path: true,
        memory: DEFAULT_MEMORY,
        ..CacheZone::default()
    };
    for word in &directive.args[1..] {
        zone_parameter(&mut zone, word, reading);
    }
    if zone.name.is_empty() {
        // A misspelt or wrong keys_zone has its own error already.
        if !directive.args[1..].iter().any(|word| word.text.starts_with("keys_zone")) {
            reading
                .error(directive.span, "\"proxy_cache_path\" must have \"keys_zone\" parameter")
                .help("add keys_zone=name:10m");
        }
        return;
    }
    add_zone(zone, reading);
}

fn add_zone(zone: CacheZone, reading: &mut Reading<'_>) {
    let zones = &reading.http.cache_zones;
    let same_name = zones.iter().find(|other| other.name == zone.name).map(|other| other.span);
    let same_path: Option<&PathBuf> = zone.path.as_ref();
    let same_path = zones
        .iter()
        .find(|other| same_path.is_some() && other.path.as_ref() == same_path)
        .map(|other| other.span);
    if let Some(first) = same_name {
        return reading.duplicate(zone.span, format!("duplicate zone \"{}\"", zone.name), first);
    }
    if let Some(first) = same_path {
        return reading.duplicate(zone.span, "two cache zones have the same directory", first);
    }
    reading.http.cache_zones.push(zone);
    reading.used_zones.push(false);
}

fn zone_parameter(zone: &mut CacheZone, word: &Word, reading: &mut Reading<'_>) {
    const KNOWN: [&str; 7] =
        ["keys_zone", "levels", "inactive", "max_size", "min_free", "use_temp_path", "memory"];
    const IDLE: [&str; 9] = [
        "manager_files",
        "manager_sleep",
        "manager_threshold",
        "loader_files",
        "loader_sleep",
        "loader_threshold",
        "purger_files",
        "purger_sleep",
        "purger_threshold",
    ];
    match parameter(word) {
        Some(("keys_zone", value)) => keys_zone(zone, &value, reading),
        Some(("levels", value)) => levels(zone, &value, reading),
        Some(("inactive", value)) => zone.inactive = reading.duration(&value).unwrap_or(zone.inactive),
        Some(("max_size", value)) => zone.max_size = reading.offset(&value),
        Some(("min_free", value)) => zone.min_free = reading.offset(&value).unwrap_or(0),
        Some(("use_temp_path", value)) => zone.use_temp_path = reading.flag(&value).unwrap_or(true),
        Some(("memory", value)) => zone.memory = reading.offset(&value).unwrap_or(zone.memory),
        Some((name, _)) if IDLE.contains(&name) => {
            let message = format!(
                "\"{name}\" has no effect here: the cache looks after its files in small steps by itself"
            );
            reading.diagnostics.idle(word.span, message);
        }
        Some(("purger", _)) => {
            reading
                .error(word.span, "nginx knows the parameter \"purger\", Millstream does not (yet)")
                .help("remove it");
        }
        other => {
            let name = other.map_or(word.text.as_str(), |(name, _)| name);
            let help = suggest::did_you_mean(name, KNOWN).unwrap_or_else(|| {
                format!("the parameters are {}", KNOWN.map(|known| format!("{known}=")).join(", "))
            });
            reading.error(word.span, format!("invalid parameter \"{}\"", word.text)).help(help);
        }
    }
}

fn keys_zone(zone: &mut CacheZone, value: &Word, reading: &mut Reading<'_>) {
    let Some((name, size)) = value.text.split_once(':').filter(|(name, _)| !name.is_empty()) else {
        reading
            .error(value.span, format!("invalid keys zone \"{}\"", value.text))
            .help("write a name and a size, as in keys_zone=api:10m");
        return;
    };
    let Some(bytes) = reading.size(&Reading::part(value, size)) else { return };
    if bytes < 8192 {
        reading
            .error(value.span, format!("zone \"{name}\" is too small"))
            .help("write at least 8k; a megabyte holds 8,000 entries");
        return;
    }
    zone.name = name.to_owned();
    zone.keys_size = bytes;
}

fn levels(zone: &mut CacheZone, value: &Word, reading: &mut Reading<'_>) {
    let levels: Option<Vec<u8>> = value
        .text
        .split(':')
        .map(|level| match level {
            "1" => Some(1),
            "2" => Some(2),
            _ => None,
        })
        .collect();
    if value.text.is_empty() {
        return;
    }
    match levels.filter(|levels| levels.len() <= 3) {
        Some(levels) => zone.levels = levels,
        None => {
            reading
                .error(value.span, format!("invalid \"levels\" \"{}\"", value.text))
                .help("write one to three widths of 1 or 2, as in levels=1:2");
        }
    }
}

fn cache(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    if word.text == "off" {
        level.proxy_cache = Some((None, word.span));
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

fn valid(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let (time, codes) = directive.args.split_last().expect("the table asks for a word");
    let Some(time) = reading.duration(time) else { return };
    let list = level.proxy_cache_valid.get_or_insert_default();
    if codes.is_empty() {
        list.extend([200, 301, 302].map(|status| Valid { status: ValidStatus::Is(status), time }));
    }
    for word in codes {
        if word.text == "any" {
            list.push(Valid { status: ValidStatus::Any, time });
        } else if let Some(status) = reading.number(word, 100, 599) {
            list.push(Valid { status: ValidStatus::Is(status as u16), time });
        }
    }
}

fn methods(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    const METHODS: [&str; 3] = ["GET", "HEAD", "POST"];
    let mut post = level.proxy_cache_post.unwrap_or(false);
    for word in &directive.args {
        match METHODS.iter().position(|method| method.eq_ignore_ascii_case(&word.text)) {
            Some(index) => post |= index == 2,
            None => reading.not_one_of(word, &METHODS),
        }
    }
    level.proxy_cache_post = Some(post);
}

fn use_stale(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    const WORDS: [&str; 12] = [
        "off",
        "error",
        "timeout",
        "invalid_header",
        "updating",
        "http_500",
        "http_502",
        "http_503",
        "http_504",
        "http_403",
        "http_404",
        "http_429",
    ];
    let mut stale = level.proxy_cache_use_stale.unwrap_or_default();
    let mut off = false;
    for word in &directive.args {
        match reading.one_of(word, &WORDS) {
            Some(0) => off = true,
            Some(1) => stale.error = true,
            Some(2) => stale.timeout = true,
            Some(3) => stale.invalid_header = true,
            Some(4) => stale.updating = true,
            Some(5) => stale.http_500 = true,
            Some(6) => stale.http_502 = true,
            Some(7) => stale.http_503 = true,
            Some(8) => stale.http_504 = true,
            Some(9) => stale.http_403 = true,
            Some(10) => stale.http_404 = true,
            Some(_) => stale.http_429 = true,
            None => {}
        }
    }
    // `off` wins over every other word.
    level.proxy_cache_use_stale = Some(if off { UseStale::default() } else { stale });
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
