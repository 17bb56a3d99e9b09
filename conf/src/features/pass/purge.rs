//! Directives of purging: which requests purge, and who may.
//!
//! Strangers are refused unless the configuration lets them in by name. Next: `api`, the other way to manage the cache;
//! `millstream-server`'s `content/purge`, which acts on these.

use super::CommonLevel;
use crate::declared::cache_zone::CacheZoneId;
use crate::features::right::RightLevel;
use crate::reading::Reading;
use crate::source::Span;
use crate::suggest;
use crate::template::{self, Template};
use crate::tree::Directive;

#[derive(Debug, Clone, Default)]
pub struct PurgeLevel {
    pub conditions: Option<Vec<Template>>,
    pub methods: Option<bool>,
    pub soft: Option<bool>,
    pub right: RightLevel,
    /// `…_cache_purge zone key`; not inherited.
    pub at: Option<(CacheZoneId, Template, Span)>,
}

impl PurgeLevel {
    pub(super) fn inherit(&mut self, above: &Self) {
        if self.conditions.is_none() {
            self.conditions.clone_from(&above.conditions);
        }
        self.methods = self.methods.or(above.methods);
        self.soft = self.soft.or(above.soft);
        self.right.inherit_open(&above.right);
    }
}

macro_rules! rows {
    ($prefix:literal, $family:expr) => {
        [
            often(concat!($prefix, "_cache_purge"), HTTP_SERVER_LOCATION, (1, MANY),
                "string … | PURGE [from address …] | zone key", "",
                concat!("Purges if one of the strings is neither empty nor `0`: the entry with the request's key or, if the key ends with `*`, all \
                entries whose keys begin with it. The response is 204, or 404 if nothing was stored. This is as in NGINX Plus, but also requires \
                `", $prefix, "_cache_purge_allow` or `", $prefix, "_cache_purge_token` to allow it. The two forms of the free purge module are supported too: a \
                method with the addresses that may use it; and, in a location of its own, a zone with the key that each request purges."),
                Apply::Pass($family, purge::purge)).needing(Need::Cache),
            once(concat!($prefix, "_cache_purge_methods"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
                "Purges on requests with the methods PURGE and BAN in locations with a cache. If off, they are passed to the upstream like other \
                methods.",
                Apply::Pass($family, |l, d, r| l.purge.methods = r.flag(&d.args[0]))).needing(Need::Cache),
            once(concat!($prefix, "_cache_purge_soft"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
                "Marks purged responses as stale instead of removing them, so that they can be used wherever stale responses are allowed.",
                Apply::Pass($family, |l, d, r| l.purge.soft = r.flag(&d.args[0]))).needing(Need::Cache),
            often(concat!($prefix, "_cache_purge_allow"), HTTP_SERVER_LOCATION, (1, MANY),
                "local | address | CIDR | unix: | all …", "",
                "Sets the clients that may purge without a token. By default, there are none, because all clients of a proxy on this machine appear \
                local. `local` allows programs on this machine, unless a proxy passed on the request. With an address or network, a request is \
                allowed if every address that it gives as its source is in the list. These directives are inherited only if the current level has \
                none.",
                Apply::Pass($family, |l, d, r| l.purge.right.allow(&d.args, r))).needing(Need::Cache),
            once(concat!($prefix, "_cache_purge_token"), HTTP_SERVER_LOCATION, (1, 1), "token", "",
                "Allows requests with this token, in `Authorization: Bearer token`, to purge from any address.",
                Apply::Pass($family, |l, d, r| l.purge.right.token = token(&d.args[0], r))).needing(Need::Cache),
        ]
    };
}
pub(super) use rows;

/// The directive has one meaning in NGINX Plus (conditions) and two in the common free module.
pub(super) fn purge(level: &mut CommonLevel, directive: &Directive, reading: &mut Reading<'_>) {
    let first = directive.args[0].text.as_str();
    let is_method = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_uppercase());
    if is_method || matches!(first, "on" | "off") {
        return by_method(level, directive, reading);
    }
    let zone = reading.declared.cache_zones.iter().position(|zone| zone.name == first);
    match (zone, &directive.args[..]) {
        (Some(index), [_, key]) => {
            let key = reading.template(key);
            level.purge.at = Some((CacheZoneId(index as u32), key, directive.span));
        }
        _ => conditions(level, directive, reading),
    }
}

fn conditions(level: &mut CommonLevel, directive: &Directive, reading: &mut Reading<'_>) {
    for word in &directive.args {
        if template::is_literal(&word.text) && !matches!(word.text.as_str(), "" | "0") {
            let zones = reading.declared.cache_zones.iter().map(|zone| zone.name.as_str());
            let help = suggest::did_you_mean(&word.text, zones).unwrap_or_else(|| {
                "write a variable that differs between requests, such as $http_x_purge; PURGE works without this directive".to_owned()
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
        level.purge.conditions.get_or_insert_default().push(condition);
    }
}

/// The module's `on | off | METHOD [from address …]`: the method always purges here, so it only says who may.
fn by_method(level: &mut CommonLevel, directive: &Directive, reading: &mut Reading<'_>) {
    let name = &directive.name.text;
    let (method, rest) = directive.args.split_first().expect("the table asks for a word");
    if !matches!(method.text.as_str(), "on" | "off" | "PURGE") {
        reading
            .error(
                method.span,
                format!("the purge method is PURGE, \"{}\" goes to the upstream", method.text),
            )
            .help(format!("write {name} PURGE from and the allowed addresses"));
        return;
    }
    level.purge.methods = Some(method.text != "off");
    match rest {
        [] if method.text == "off" => {}
        [] => {
            reading
                .diagnostics
                .warning(
                    directive.span,
                    "without addresses, the module allows every client to purge, and Millstream none",
                )
                .help(format!("name the clients that may purge, as in {name} PURGE from local 10.0.0.0/8;"));
        }
        [from, networks_of @ ..] if from.text == "from" && !networks_of.is_empty() => {
            level.purge.right.allow(networks_of, reading);
        }
        [word, ..] => {
            reading.error(word.span, format!("invalid parameter \"{}\"", word.text)).help(format!(
                "write the word from and the allowed addresses, as in {name} PURGE from 127.0.0.1;"
            ));
        }
    }
}
