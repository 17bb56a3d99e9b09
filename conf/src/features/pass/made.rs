//! What the request fields that a location makes (`proxy_set_header`) mean for the cache.
//!
//! The upstream answers by the fields it is sent, the cache looks up by those that came. Where the one cannot be told from
//! the other or from the key, an answer that depends on it must not be shared. Next: `cache/usage`, which asks.

use std::sync::Arc;

use super::Family;
use super::http::SetHeader;
use super::params::Param;
use super::sharing::Credentials;
use super::target::PassTarget;
use crate::reading::Reading;
use crate::template::{Part, Template, Variable};
use crate::variables::Builtin;

/// Whether the key names the credential that goes upstream: the client's, or that which `proxy_set_header` makes.
///
/// `$remote_user` does not count: it is what a client claims, whatever its password, and empty for any scheme but Basic,
/// so that a key with it would give one bearer's answer to all.
pub(super) fn names_credential(set: &[SetHeader], key: &Template) -> bool {
    let is_credential = |field: &&SetHeader| field.name.eq_ignore_ascii_case("authorization");
    if set.iter().any(|field| is_credential(&field)) {
        let mut made = set.iter().filter(is_credential).flat_map(|field| field.value.variables());
        return made.all(|variable| is_told(variable, key));
    }
    key.variables()
        .any(|variable| matches!(variable, Variable::RequestHeader(name) if &**name == "authorization"))
}

/// The fields by which no answer may vary, in lower case. One that is always the same, or never sent, is none of them:
/// the upstream sees no difference.
pub(super) fn fields(set: &[SetHeader], key: &Template, reading: &Reading<'_>) -> Arc<[Box<str>]> {
    let is_plain = |variable: &Variable, name: &str| is_of_field(variable, name) || is_told(variable, key);
    // What a map makes of fields that are told is told as well.
    let is_made = |variable: &Variable, name: &str| {
        let parts = reading.declared.made_of(variable);
        parts.len() > 1
            && parts.into_iter().all(|part| match part {
                Variable::Made(_) => reading.declared.made_of(part).len() > 1,
                part => is_plain(part, name),
            })
    };
    set.iter()
        .filter(|field| {
            let name = field.name.to_ascii_lowercase();
            !field.value.variables().all(|variable| is_plain(variable, &name) || is_made(variable, &name))
        })
        .map(|field| field.name.to_ascii_lowercase().into())
        .collect()
}

/// `proxy_cache_credentials public`, with the fields that the upstream is sent in place of the client's.
pub(super) fn public(set: &[SetHeader], key: &Template, reading: &Reading<'_>) -> Credentials {
    let name = |field: &SetHeader| Box::<str>::from(field.name.to_ascii_lowercase());
    let is_clients = |variable: &Variable| match variable {
        Variable::RequestHeader(_) | Variable::Cookie(_) => true,
        Variable::Builtin(builtin) => *builtin == Builtin::RemoteUser,
        _ => false,
    };
    let is_clients = |variable: &Variable| reading.declared.made_of(variable).into_iter().any(is_clients);
    // Which host is asked for says nothing of who asks.
    let hands_on = |field: &&SetHeader| {
        !field.name.eq_ignore_ascii_case("host")
            && field.value.variables().any(|variable| is_clients(variable) && !is_told(variable, key))
    };
    Credentials::Public {
        replaced: set.iter().map(name).collect(),
        handed_on: set.iter().filter(hands_on).map(|field| (name(field), field.value.clone())).collect(),
    }
}

/// The values by which an upstream may learn the client's address: fields, parameters and its own URL, where they are made of it. An
/// application behind another protocol is told it in a parameter, whatever is written.
pub(super) fn addresses(
    (target, family): (&PassTarget, Family),
    (set, params): (&[SetHeader], &[Param]),
    reading: &Reading<'_>,
) -> Arc<[Template]> {
    use Builtin::{
        BinaryRemoteAddr, ForwardedAddr, ForwardedFor, ProxyAddXForwardedFor, ProxyProtocolAddr,
        RealipRemoteAddr, RemoteAddr,
    };
    let is_address = |variable: &Variable| match variable {
        Variable::RequestHeader(name) => may_be_address(name),
        Variable::Builtin(builtin) => matches!(
            builtin,
            BinaryRemoteAddr
                | ForwardedAddr
                | ForwardedFor
                | ProxyAddXForwardedFor
                | ProxyProtocolAddr
                | RealipRemoteAddr
                | RemoteAddr
        ),
        // Set, or captured, from anything.
        Variable::Slot(number) => reading.slots.get(usize::from(*number)).is_none_or(|slot| !slot.is_routed),
        Variable::Capture(_) => true,
        _ => false,
    };
    let tells = |value: &&Template| {
        let mut variables = value.variables();
        variables.any(|variable| reading.declared.made_of(variable).into_iter().any(is_address))
    };
    let target = match target {
        PassTarget::Variables(target) => Some(target),
        PassTarget::Upstream(_) => None,
    };
    let fields = set.iter().map(|field| &field.value);
    let told = fields.chain(params.iter().map(|param| &param.value)).chain(target).filter(tells).cloned();
    let parameter = (!matches!(family, Family::Proxy | Family::Grpc)).then(|| Template {
        parts: [Part::Variable(Variable::Builtin(RemoteAddr))].into(),
        source: "$remote_addr".into(),
    });
    told.chain(parameter).collect()
}

/// Whether a field of the client's may say its address; one too many costs an entry of its own.
fn may_be_address(name: &str) -> bool {
    let is_part = |part: &str| part.ends_with("ip") || part.starts_with("addr");
    name.contains("forwarded") || name.split(['-', '_']).any(is_part)
}

/// Whether two requests with one key have the same value of a variable.
fn is_told(variable: &Variable, key: &Template) -> bool {
    let fixed = [Builtin::Hostname, Builtin::NginxVersion, Builtin::ProxyHost, Builtin::ProxyPort];
    matches!(variable, Variable::Builtin(builtin) if fixed.contains(builtin))
        || key.variables().any(|named| named == variable)
}

/// Whether the client's field of that name, which Vary compares, tells the variable's value.
fn is_of_field(variable: &Variable, name: &str) -> bool {
    match variable {
        Variable::RequestHeader(field) => &**field == name,
        Variable::Cookie(_) => name == "cookie",
        Variable::Builtin(Builtin::Host) => name == "host",
        _ => false,
    }
}
