//! What the request fields that a location makes (`proxy_set_header`) mean for the cache.
//!
//! The upstream answers by the fields it is sent, the cache looks up by those that came. Where the one cannot be told from
//! the other or from the key, an answer that depends on it must not be shared. Next: `cache/usage`, which asks.

use std::sync::Arc;

use super::http::SetHeader;
use super::sharing::{AddressValue, Credentials};
use super::{Family, Sent};
use crate::reading::Reading;
use crate::template::{Part, Template, Variable};
use crate::variables::{Builtin, Source};

impl Sent<'_> {
    fn others(&self) -> impl Iterator<Item = &Template> {
        let params = self.params.iter().map(|param| &param.value);
        params.chain(self.target).chain(self.values.iter().copied())
    }
}

/// Whether the key contains the credential that is sent upstream: the client's, or what `proxy_set_header`
/// makes.
///
/// Not `$remote_user`: it is what a client claims, whatever its password, and empty for any scheme but Basic,
/// so that one bearer's response would be served to all.
pub(super) fn names_credential(set: &[SetHeader], key: &Template) -> bool {
    let is_credential = |field: &&SetHeader| field.name.eq_ignore_ascii_case("authorization");
    if set.iter().any(|field| is_credential(&field)) {
        let mut made = set.iter().filter(is_credential).flat_map(|field| field.value.variables());
        return made.all(|variable| is_told(variable, key));
    }
    key.variables()
        .any(|variable| matches!(variable, Variable::RequestHeader(name) if &**name == "authorization"))
}

/// The fields by which no response may vary, in lower case. A constant or never-sent field is not among them:
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
            let name = name(field);
            !field.value.variables().all(|variable| is_plain(variable, &name) || is_made(variable, &name))
        })
        .map(name)
        .collect()
}

/// `proxy_cache_credentials public`, with the fields sent in place of the client's.
pub(super) fn public(sent: &Sent<'_>) -> Credentials {
    Credentials::Public { replaced: sent.fields.iter().map(name).collect() }
}

fn name(field: &SetHeader) -> Box<str> {
    field.name.to_ascii_lowercase().into()
}

/// What is sent that may show who asks, which a request knows: fields by their names, in lower case, and
/// everything else.
pub(super) fn handed_on(
    sent: &Sent<'_>,
    key: &Template,
    reading: &Reading<'_>,
) -> Arc<[(Box<str>, Template)]> {
    let shows = |source: Source| source.is_of_client() && source != Source::Address;
    let may_show = |variable: &Variable| is_made_untold(variable, shows, key, reading);
    let fields = sent.fields.iter().map(|field| (name(field), &field.value));
    let others = sent.others().map(|value| (Box::default(), value));
    let all = fields.chain(others).filter(|(_, value)| value.variables().any(may_show));
    all.map(|(name, value)| (name, value.clone())).collect()
}

/// What decides which resource of which upstream is asked for, as far as the key does not contain it.
pub(super) fn resource(sent: &Sent<'_>, key: &Template, reading: &Reading<'_>) -> Arc<[Template]> {
    let may_choose = |variable: &Variable| is_made_untold(variable, Source::is_of_client, key, reading);
    let params = sent.params.iter().filter(|param| RESOURCE.contains(&param.name.as_str()));
    let host = sent.fields.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
    let values = host.map(|field| &field.value).chain(params.map(|param| &param.value));
    let values = values.chain(sent.target.filter(|_| !tells_url(key)));
    values.filter(|value| value.variables().any(may_choose)).cloned().collect()
}

/// Whether the key lacks a variable that is made of such a source.
fn is_made_untold(
    variable: &Variable,
    wanted: impl Fn(Source) -> bool,
    key: &Template,
    reading: &Reading<'_>,
) -> bool {
    let parts = reading.declared.made_of(variable);
    !is_told(variable, key) && parts.into_iter().any(|part| wanted(part.source()))
}

/// Whether it is the default key, which contains the URL that is requested from the upstream.
fn tells_url(key: &Template) -> bool {
    key.variables().any(|variable| *variable == Variable::SentOrigin)
}

/// The parameters by which an application tells resources (RFC 3875 §4.1, and what PHP-FPM and uwsgi add).
const RESOURCE: &[&str] = &[
    "SCRIPT_FILENAME",
    "SCRIPT_NAME",
    "PATH_INFO",
    "PATH_TRANSLATED",
    "DOCUMENT_ROOT",
    "DOCUMENT_URI",
    "REQUEST_URI",
    "QUERY_STRING",
    "SERVER_NAME",
    "UWSGI_APPID",
];

/// The values that may tell an upstream the client's address: fields, parameters, its URL, a body, the source
/// address and the PROXY header of connections. An application behind another protocol is always told it in a
/// parameter.
pub(super) fn addresses(family: Family, sent: &Sent<'_>, reading: &Reading<'_>) -> Arc<[AddressValue]> {
    let is_address = |variable: &Variable| match (variable, variable.source()) {
        // Set from anything.
        (Variable::Slot(number), _) => is_set(*number, reading),
        // A directory may be made of one.
        (_, source) => matches!(source, Source::Address | Source::Folder | Source::File | Source::Kept),
    };
    let field = |variable: &Variable| match (variable, variable.source()) {
        (Variable::RequestHeader(name), Source::Field) => Some(name.clone()),
        _ => None,
    };
    let told = |value: &Template| {
        let parts = value.variables().flat_map(|variable| reading.declared.made_of(variable));
        let parts: Vec<&Variable> = parts.collect();
        let is_certain = parts.iter().any(|variable| is_address(variable));
        let fields: Arc<[Box<str>]> =
            if is_certain { Arc::default() } else { parts.into_iter().filter_map(field).collect() };
        (is_certain || !fields.is_empty()).then(|| AddressValue { value: value.clone(), fields })
    };
    let is_application = !matches!(family, Family::Proxy | Family::Grpc);
    let peer = (is_application || sent.announces).then(|| AddressValue {
        value: Template {
            parts: [Part::Variable(Variable::Builtin(Builtin::RemoteAddr))].into(),
            source: "$remote_addr".into(),
        },
        fields: Arc::default(),
    });
    let fields = sent.fields.iter().map(|field| &field.value);
    fields.chain(sent.others()).filter_map(told).chain(peer).collect()
}

/// Whether a variable may hold more than what server names and location paths capture.
fn is_set(slot: u16, reading: &Reading<'_>) -> bool {
    reading.slots.get(usize::from(slot)).is_none_or(|slot| !slot.is_routed)
}

fn is_told(variable: &Variable, key: &Template) -> bool {
    let fixed = [Builtin::Hostname, Builtin::NginxVersion, Builtin::ProxyHost, Builtin::ProxyPort];
    let is_of = |named: &Variable| match (variable, named) {
        // A user's name is a part of it.
        (Variable::Builtin(Builtin::RemoteUser), named) => is_of_field(named, "authorization"),
        (part, whole) => part.source().is_of_certificate() && whole.source() == Source::Certificate,
    };
    matches!(variable, Variable::Builtin(builtin) if fixed.contains(builtin))
        || key.variables().any(|named| named == variable || is_of(named))
}

/// Whether the client's field of that name, which Vary compares, determines the variable's value.
fn is_of_field(variable: &Variable, name: &str) -> bool {
    match variable {
        Variable::RequestHeader(field) => &**field == name,
        Variable::Cookie(_) => name == "cookie",
        Variable::Builtin(Builtin::Host) => name == "host",
        _ => false,
    }
}
