//! The upstream answers by a host that the key does not name: `proxy_set_header Host $host;` with a key without it, or by what
//! a client says of host, scheme or target in a field.

use super::Cached;
use crate::reading::Reading;
use crate::template::Variable;
use crate::variables::Builtin;
use std::borrow::Cow;

/// Warns if the upstream is told the client's host but the key does not contain it: one key could then serve
/// the responses of another host. `$host` lacks the port and the case of letters, so it does not stand for
/// `$http_host`.
pub(super) fn advise(of: &Cached<'_>, reading: &mut Reading<'_>) {
    let (key, key_name) = (&of.cache.key, of.family.directive("cache_key"));
    let is_raw = |variable: &Variable| matches!(variable, Variable::RequestHeader(name) if &**name == "host");
    let is_keyed = |builtin: Builtin| {
        key.variables().any(|variable| matches!(variable, Variable::Builtin(named) if *named == builtin))
    };
    let raw_is_keyed = key.variables().any(is_raw);
    let host_is_keyed = raw_is_keyed || is_keyed(Builtin::Host);
    // What a trusted proxy says of them is neither of the two.
    let told_by = |variable: &&Variable| match variable {
        variable if is_raw(variable) => (!raw_is_keyed).then_some(Cow::Borrowed("$http_host")),
        Variable::RequestHeader(name) if names_target(name) => Some(Cow::Owned(format!("$http_{name}"))),
        Variable::Builtin(Builtin::Host) => (!host_is_keyed).then_some("$host".into()),
        Variable::Builtin(Builtin::ForwardedHost) => {
            (!is_keyed(Builtin::ForwardedHost)).then_some("$forwarded_host".into())
        }
        Variable::Builtin(Builtin::ForwardedProto) => {
            (!is_keyed(Builtin::ForwardedProto)).then_some("$forwarded_proto".into())
        }
        _ => None,
    };
    let mut told: Vec<(&str, Cow<'_, str>)> = Vec::new();
    for field in of.sent {
        // What the key names is told by it, whatever it is made of.
        let read =
            field.value.variables().filter(|variable| !key.variables().any(|named| named == *variable));
        let read: Vec<_> = read.flat_map(|variable| reading.declared.made_of(variable)).collect();
        for variable in read.iter().filter_map(told_by) {
            if !told.iter().any(|(_, known)| *known == variable) {
                told.push((&field.name, variable));
            }
        }
    }
    if told.is_empty() {
        return;
    }
    let sent: Vec<_> = told.iter().map(|(field, variable)| format!("{variable} as {field}")).collect();
    let (sent, them) = (sent.join(" and "), if told.len() == 1 { "it" } else { "them" });
    let message = format!(
        "the upstream receives {sent}, but \"{key_name}\" does not contain {them}: a response for one value is sent to clients with another"
    );
    // The host that is sent stays what it is: the upstream makes links and redirects of it, with the port.
    let told: String = told.iter().map(|(_, variable)| &**variable).collect();
    let help = format!("write {key_name} \"{told}{}\";", key.source);
    reading.diagnostics.warning(of.span, message).help(help).once();
}

/// Fields of which applications make links and choose pages; a client's own are not passed on unless they are set.
fn names_target(name: &str) -> bool {
    name.starts_with("x_forwarded_") && name != "x_forwarded_for"
        || matches!(
            name,
            "forwarded"
                | "x_host"
                | "x_scheme"
                | "x_original_host"
                | "x_original_url"
                | "x_rewrite_url"
                | "x_http_method_override"
        )
}
