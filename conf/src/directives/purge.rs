//! Directives of purging: which requests purge, and who may.
//!
//! Strangers are refused unless the configuration lets them in by name. Next: `api`, the other way to manage the cache;
//! `millstream-server`'s `answer/purge`, which acts on these.

use super::{Apply, HTTP_SERVER_LOCATION, MANY, Row, often, once};
use crate::inherit::Level;
use crate::model::{CacheZoneId, Network};
use crate::network;
use crate::reading::Reading;
use crate::suggest;
use crate::template;
use crate::tree::{Directive, Word};

/// The rows of this family.
pub const ROWS: &[Row] = &[
    often(
        "proxy_cache_purge",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "string … | PURGE [from address …] | zone key",
        "",
        "A request for which one of the strings is neither empty nor `0` purges the entry of its key, or every entry whose key begins \
         as its key does where that ends in `*`; it gets 204. That is as in NGINX Plus, and in addition only for those whom \
         `proxy_cache_purge_allow` or `proxy_cache_purge_token` lets. The two forms of the free purge module are known too: a method with \
         the addresses that may use it, and, in a location of its own, a zone with the key that each request there purges.",
        Apply::Level(purge),
    ),
    once(
        "proxy_cache_purge_methods",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "on",
        "Whether the methods PURGE and BAN purge in a location with a cache; `off` passes them to the upstream as any other method.",
        Apply::Level(|l, d, r| l.proxy_cache_purge_methods = r.flag(&d.args[0])),
    ),
    once(
        "proxy_cache_purge_soft",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "off",
        "Whether purging marks entries as stale instead of removing them, so that they may still be answered where stale ones may.",
        Apply::Level(|l, d, r| l.proxy_cache_purge_soft = r.flag(&d.args[0])),
    ),
    often(
        "proxy_cache_purge_allow",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "address | CIDR | unix: | all …",
        "127.0.0.1 ::1 unix:",
        "The clients that may purge without a token. By default only this machine, and only where the request was not forwarded by \
         a proxy before this one; with a token and without this directive, nobody. A level that writes one has none of the \
         level above.",
        Apply::Level(|l, d, r| {
            let networks = networks(&d.args, r);
            l.proxy_cache_purge_allow.get_or_insert_default().extend(networks);
        }),
    ),
    once(
        "proxy_cache_purge_token",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "token",
        "",
        "Whoever shows this token, in a field `Authorization: Bearer token`, may purge from anywhere.",
        Apply::Level(|l, d, r| l.proxy_cache_purge_token = token(&d.args[0], r)),
    ),
];

/// Reads the words of a list of networks; wrong ones are reported, and let nobody in.
pub(super) fn networks(words: &[Word], reading: &mut Reading<'_>) -> Vec<(Network, crate::source::Span)> {
    let mut networks = Vec::with_capacity(words.len());
    for word in words {
        if !reading.without_variables(word, "a list of addresses") {
            continue;
        }
        let Some((network, has_more_bits)) = reading.value(word.span, network::parse(&word.text)) else {
            continue;
        };
        if has_more_bits {
            reading
                .diagnostics
                .warning(word.span, format!("low address bits of \"{}\" are meaningless", word.text))
                .help("bits beyond the mask are not looked at; write the network's first address");
        }
        networks.push((network, word.span));
    }
    networks
}

/// Fewer characters than this can be tried one after the other.
const SHORT_TOKEN: usize = 16;

/// Reads a bearer token (RFC 6750 §2.1): what a client can send in a field, and not empty.
pub(super) fn token(word: &Word, reading: &mut Reading<'_>) -> Option<String> {
    if !reading.without_variables(word, "a token") {
        return None;
    }
    let body = word.text.trim_end_matches('=');
    let may_be_sent = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    if body.is_empty() || !body.bytes().all(may_be_sent) {
        reading
            .error(word.span, "a token consists of letters, digits and - . _ ~ + /, and may end with =")
            .help("write one that nobody can guess, such as the output of: openssl rand -hex 32");
        return None;
    }
    if body.len() < SHORT_TOKEN {
        reading
            .diagnostics
            .warning(word.span, format!("a token of {} characters can be guessed", word.text.len()))
            .help(format!("write at least {SHORT_TOKEN}, such as the output of: openssl rand -hex 32"));
    }
    Some(word.text.clone())
}

/// The directive has one meaning in NGINX Plus, conditions, and two in the module that everybody else compiles in.
fn purge(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let first = directive.args[0].text.as_str();
    let is_method = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_uppercase());
    if is_method || matches!(first, "on" | "off") {
        return by_method(level, directive, reading);
    }
    let zone = reading.http.cache_zones.iter().position(|zone| zone.name == first);
    match (zone, &directive.args[..]) {
        (Some(index), [_, key]) => {
            let key = reading.template(key);
            level.purge_at = Some((CacheZoneId(index as u32), key, directive.span));
        }
        _ => conditions(level, directive, reading),
    }
}

fn conditions(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    for word in &directive.args {
        if template::is_literal(&word.text) && !matches!(word.text.as_str(), "" | "0") {
            let zones = reading.http.cache_zones.iter().map(|zone| zone.name.as_str());
            let help = suggest::did_you_mean(&word.text, zones).unwrap_or_else(|| {
                "write a variable that tells requests apart, such as $http_x_purge; PURGE works without this directive".to_owned()
            });
            reading
                .error(
                    word.span,
                    format!("\"{}\" is never empty or 0, so every request here would purge", word.text),
                )
                .help(help);
            continue;
        }
        let condition = reading.template(word);
        level.proxy_cache_purge.get_or_insert_default().push(condition);
    }
}

/// The module's `on | off | METHOD [from address …]`: the method purges in any case here, so what it says is who may.
fn by_method(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let (method, rest) = directive.args.split_first().expect("the table asks for a word");
    if !matches!(method.text.as_str(), "on" | "off" | "PURGE") {
        reading
            .error(
                method.span,
                format!("the method that purges is PURGE, \"{}\" goes to the upstream", method.text),
            )
            .help("write proxy_cache_purge PURGE from and the addresses that may");
        return;
    }
    level.proxy_cache_purge_methods = Some(method.text != "off");
    match rest {
        [] if method.text == "off" => {}
        [] => {
            reading
                .diagnostics
                .warning(
                    directive.span,
                    "without addresses the module lets everybody purge, Millstream this machine alone",
                )
                .help("write who may, as in proxy_cache_purge PURGE from 127.0.0.1 10.0.0.0/8;");
        }
        [from, networks_of @ ..] if from.text == "from" && !networks_of.is_empty() => {
            let networks = networks(networks_of, reading);
            level.proxy_cache_purge_allow.get_or_insert_default().extend(networks);
        }
        [word, ..] => {
            reading
                .error(word.span, format!("invalid parameter \"{}\"", word.text))
                .help("write the word from and the addresses that may, as in proxy_cache_purge PURGE from 127.0.0.1;");
        }
    }
}
