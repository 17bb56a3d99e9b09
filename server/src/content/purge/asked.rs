//! What a purging request asks for: PURGE, BAN and PURGEKEYS as real clients send them.
//!
//! Whoever sends something that has no exact meaning here is told so, and nothing is purged. It reads the request and
//! nothing else; which keys that touches is `orders`'s part.

use super::Refusal;
use super::pattern::{self, Urls};
use crate::request::Request;
use millstream_wire::Method;

#[cfg(test)]
mod tests;

const TAGS: usize = 1024;

const TAG_FIELDS: [&[u8]; 9] = [
    b"surrogate-key",
    b"cache-tag",
    b"cache-tags",
    b"xkey",
    b"xkey-purge",
    b"x-xkey-purge",
    b"x-purge-tag",
    b"x-purge-tags",
    b"x-cache-tags",
];
/// The same, for soft purges.
const SOFT_TAG_FIELDS: [&[u8]; 2] = [b"xkey-softpurge", b"x-xkey-softpurge"];
const TAG_EXPRESSIONS: [&[u8]; 1] = [b"x-magento-tags-pattern"];
const BAN_TAG_EXPRESSIONS: [&[u8]; 4] =
    [b"x-cache-tags", b"cache-tags", b"x-ban-tags", b"x-magento-tags-pattern"];
const BAN_URLS: [&[u8]; 3] = [b"x-url", b"x-ban-url", b"x-ban"];
const BAN_HOSTS: [&[u8]; 2] = [b"x-host", b"x-ban-host"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeMethod {
    Purge,
    /// By regular expressions in fields.
    Ban,
    PurgeKeys,
}

impl PurgeMethod {
    pub fn of(request: &Request) -> Option<PurgeMethod> {
        if request.method != Method::Other {
            return None;
        }
        match request.method_text() {
            b"PURGE" => Some(PurgeMethod::Purge),
            b"BAN" => Some(PurgeMethod::Ban),
            b"PURGEKEYS" => Some(PurgeMethod::PurgeKeys),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurgeScope {
    /// All variants of this target on these hosts.
    Target(Vec<u8>, Hosts),
    Prefix(Vec<u8>, Hosts),
    Tags(Vec<Vec<u8>>),
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    Own,
    Named(Vec<Vec<u8>>),
    Any,
}

#[derive(Debug, PartialEq, Eq)]
pub struct PurgeRequest {
    pub wanted: PurgeScope,
    /// Whether to mark stale only; `None`: as configured.
    pub soft: Option<bool>,
}

pub fn read(request: &Request, method: PurgeMethod) -> Result<PurgeRequest, Refusal> {
    match method {
        PurgeMethod::Purge => purge(request),
        PurgeMethod::Ban => ban(request),
        PurgeMethod::PurgeKeys => purged_tags(request)?
            .ok_or(Refusal::bad("PURGEKEYS needs xkey-purge or xkey-softpurge with tags")),
    }
}

fn purge(request: &Request) -> Result<PurgeRequest, Refusal> {
    if let Some(asked) = purged_tags(request)? {
        return Ok(asked);
    }
    Ok(PurgeRequest { wanted: of_target(request)?, soft: soft_by_field(request) })
}

fn of_target(request: &Request) -> Result<PurgeScope, Refusal> {
    let target = origin_form(request);
    let is_expression =
        value(request, &[b"x-purge-method"]).is_some_and(|how| how.eq_ignore_ascii_case(b"regex"));
    if is_expression {
        pattern::plain_target(target)?;
    }
    Ok(match pattern::target_prefix(target) {
        Some(prefix) if prefix.starts_with(b"/") => PurgeScope::Prefix(prefix.to_vec(), Hosts::Own),
        // An expression without `.*` is searched for anywhere from its place on, so what begins so is meant.
        _ if is_expression => {
            PurgeScope::Prefix(target.strip_suffix(b"$").unwrap_or(target).to_vec(), Hosts::Own)
        }
        _ => PurgeScope::Target(target.to_vec(), Hosts::Own),
    })
}

/// Path and query as received; without scheme and authority.
pub(super) fn origin_form(request: &Request) -> &[u8] {
    let end = request.received.head.query.map_or(request.received.head.path.end, |query| query.end);
    &request.received.bytes[request.received.head.path.start as usize..end as usize]
}

fn purged_tags(request: &Request) -> Result<Option<PurgeRequest>, Refusal> {
    let expression = match only(request, &TAG_EXPRESSIONS)? {
        // What is an expression for BAN may be one here too; no tag begins like this.
        None => value(request, &TAG_FIELDS).filter(|value| value.starts_with(b"(")),
        known => known,
    };
    if let Some(expression) = expression {
        let tags = pattern::tags(expression)?;
        bounded(tags.as_deref().unwrap_or_default())?;
        let wanted = tags.map_or(PurgeScope::All, PurgeScope::Tags);
        return Ok(Some(PurgeRequest { wanted, soft: soft_by_field(request) }));
    }
    let soft = list(request, &SOFT_TAG_FIELDS)?;
    let hard = list(request, &TAG_FIELDS)?;
    match (hard, soft) {
        (Some(_), Some(_)) => {
            Err(Refusal::bad("a request cannot both remove tags and make tags stale: send two requests"))
        }
        (Some(tags), None) => {
            Ok(Some(PurgeRequest { wanted: PurgeScope::Tags(tags), soft: soft_by_field(request) }))
        }
        (None, Some(tags)) => Ok(Some(PurgeRequest { wanted: PurgeScope::Tags(tags), soft: Some(true) })),
        (None, None) => Ok(None),
    }
}

fn ban(request: &Request) -> Result<PurgeRequest, Refusal> {
    let (tags, urls) = (only(request, &BAN_TAG_EXPRESSIONS)?, only(request, &BAN_URLS)?);
    let hosts = only(request, &BAN_HOSTS)?;
    if value(request, &[b"x-content-type"]).is_some_and(|kind| !matches!(kind, b"" | b".*")) {
        return Err(Refusal::bad("purging by content type is not supported: X-Content-Type must be .*"));
    }
    let soft = soft_by_field(request);
    if tags.is_none() && urls.is_none() && hosts.is_none() {
        return Ok(PurgeRequest { wanted: of_target(request)?, soft });
    }
    let named = match hosts.map(pattern::hosts).transpose()?.flatten() {
        Some(names) => Hosts::Named(names),
        None => Hosts::Any,
    };
    let urls = pattern::urls(urls.unwrap_or_default())?;
    if let Some(tags) = tags.map(pattern::tags).transpose()?.flatten() {
        if urls != Urls::Any || named != Hosts::Any {
            return Err(Refusal::bad("tags are purged on all hosts and URLs: X-Host and X-Url must be .*"));
        }
        bounded(&tags)?;
        return Ok(PurgeRequest { wanted: PurgeScope::Tags(tags), soft });
    }
    let wanted = match (urls, named) {
        (Urls::Any, Hosts::Any) => PurgeScope::All,
        (Urls::Any, named) => PurgeScope::Prefix(b"/".to_vec(), named),
        (Urls::Prefix(path), named) => PurgeScope::Prefix(path, named),
        (Urls::Exact(path), named) => PurgeScope::Target(path, named),
    };
    Ok(PurgeRequest { wanted, soft })
}

fn soft_by_field(request: &Request) -> Option<bool> {
    value(request, &[b"fastly-soft-purge"]).map(|value| value == b"1").filter(|soft| *soft)
}

fn value<'a>(request: &'a Request, names: &[&[u8]]) -> Option<&'a [u8]> {
    names.iter().find_map(|name| request.fields().named(name))
}

/// The value of the only field with these names; two are refused as ambiguous.
fn only<'a>(request: &'a Request, names: &[&[u8]]) -> Result<Option<&'a [u8]>, Refusal> {
    let fields = request.fields();
    let mut values = names.iter().flat_map(|name| fields.all_named(name));
    let first = values.next();
    if values.next().is_some() {
        return Err(Refusal::bad("duplicate header with an expression"));
    }
    Ok(first)
}

fn list(request: &Request, names: &[&[u8]]) -> Result<Option<Vec<Vec<u8>>>, Refusal> {
    let fields = request.fields();
    let mut values = names.iter().flat_map(|name| fields.all_named(name)).peekable();
    if values.peek().is_none() {
        return Ok(None);
    }
    let mut tags: Vec<Vec<u8>> = Vec::new();
    for value in values {
        for tag in value.split(|byte| matches!(byte, b' ' | b'\t' | b',')).filter(|tag| !tag.is_empty()) {
            tags.push(tag.to_vec());
        }
    }
    if tags.is_empty() {
        return Err(Refusal::bad("the header for tags contains no tag"));
    }
    bounded(&tags)?;
    Ok(Some(tags))
}

fn bounded(tags: &[Vec<u8>]) -> Result<(), Refusal> {
    if tags.len() > TAGS { Err(Refusal::bad("more than 1,024 tags in one request")) } else { Ok(()) }
}
