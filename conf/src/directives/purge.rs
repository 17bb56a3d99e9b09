//! Directives of purging: which requests purge, and who may.
//!
//! Strangers are refused unless the configuration lets them in by name. Next: `api`, the other way to manage the cache;
//! `millstream-server`'s `answer/purge`, which acts on these.

use super::{Apply, HTTP_SERVER_LOCATION, MANY, Row, often, once};
use crate::inherit::Level;
use crate::model::Network;
use crate::network;
use crate::reading::Reading;
use crate::template;
use crate::tree::{Directive, Word};

/// The rows of this family.
pub const ROWS: &[Row] = &[
    often(
        "proxy_cache_purge",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "string …",
        "",
        "A request for which one of the strings is neither empty nor `0` purges the entry of its key, or every entry whose key begins \
         as its key does where that ends in `*`; it gets 204. As in NGINX Plus, and in addition only for those whom \
         `proxy_cache_purge_allow` or `proxy_cache_purge_token` lets.",
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
         a proxy before this one. A level that writes one has none of the level above.",
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
            .error(word.span, "a token is letters, digits and - . _ ~ + /, at its end also =")
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

fn purge(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    if is_of_the_module(&directive.args, reading) {
        reading
            .error(directive.span, "this is how the ngx_cache_purge module writes \"proxy_cache_purge\"")
            .help(
                "PURGE works in every location with a cache; write proxy_cache_purge_allow and the addresses that may, and \
                 leave this out",
            );
        return;
    }
    for word in &directive.args {
        if template::is_literal(&word.text) && !matches!(word.text.as_str(), "" | "0") {
            reading
                .diagnostics
                .warning(
                    word.span,
                    format!("\"{}\" is never empty or 0, so every request here purges", word.text),
                )
                .help("write a variable that tells requests apart, such as $http_x_purge");
        }
        let condition = reading.template(word);
        level.proxy_cache_purge.get_or_insert_default().push(condition);
    }
}

/// The third-party module's forms, `on`, `off`, `METHOD from address …` and `zone key`, would purge with every request.
fn is_of_the_module(args: &[Word], reading: &Reading<'_>) -> bool {
    let first = args[0].text.as_str();
    let is_method = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_zone = args.len() == 2 && reading.http.cache_zones.iter().any(|zone| zone.name == first);
    is_method
        || is_zone
        || matches!(first, "on" | "off")
        || args.get(1).is_some_and(|word| word.text == "from")
}
