//! Which request fields an answer depends on (`Vary`), and what a request says in them: the secondary key.
//!
//! RFC 9111 §4.1. Field values are taken as equal when they differ only in how lines are split, in spaces around
//! commas where the field is a list or nobody knows, for Accept-Language in case and order, or, for Accept-Encoding, in
//! anything that does not change its class: every request of one is sent upstream with the same field. What `proxy_cache_vary` adds is kept and compared like the rest,
//! under a name that no field has where it is about many. It decides nothing about storing; that is `policy`. Next: `policy`.

use crate::footprint::{allocated, counted};
use millstream_wire::accept_encoding::{self, AcceptEncoding};
use millstream_wire::client_address::is_client_address;
use millstream_wire::octets::trim;
use millstream_wire::{FieldId, Fields, accept_language, list};

mod unlisted;

#[cfg(test)]
mod tests;

/// Fields that one key may depend on; a response that names more is not stored.
pub const FIELDS: usize = 16;

/// The name under which a request carries what its upstream is told of the client's address. No field has
/// such a name (RFC 9110 §5.1).
pub const ADDRESS: &[u8] = b":address";

/// Whether a line was added here to tell requests apart, and is no field of the client's: no field has such a
/// name (RFC 9110 §5.1).
pub fn is_note(name: &[u8]) -> bool {
    matches!(name.first(), Some(b':' | b'='))
}

/// Prefix of an Accept-Encoding kept as text; a set of codings is one smaller byte.
const UNFOLDED: u8 = u8::MAX;

/// What a response's `Vary` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Vary {
    Nothing,
    Fields(VaryFields),
    /// `*` somewhere in it: no other request can be known to be the same.
    Anything,
    TooMany,
}

/// The request fields a response varies by in addition to those of its Vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VaryRule {
    /// `proxy_ignore_headers Vary`.
    pub ignored: bool,
    pub origin: bool,
    pub unlisted: bool,
    /// `proxy_cache_vary address`, for a response that is not public.
    pub address: bool,
}

/// In lower case, sorted, each once, never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaryFields {
    names: Vec<(FieldId, Box<[u8]>)>,
}

pub fn read(answer: Fields<'_>) -> Vary {
    let mut names: Vec<Box<[u8]>> = Vec::new();
    for name in answer.all(FieldId::Vary).flat_map(list::elements) {
        if name == b"*" {
            return Vary::Anything;
        }
        let name = name.to_ascii_lowercase().into_boxed_slice();
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() > FIELDS {
            // An asterisk may still follow, but neither is stored.
            return Vary::TooMany;
        }
    }
    if names.is_empty() { Vary::Nothing } else { Vary::Fields(VaryFields::new(names)) }
}

/// The request fields that a response depends on: those of its Vary, and those that `proxy_cache_vary` adds.
/// [`Vary::Anything`] and [`Vary::TooMany`] as [`read`] returns them, unless the response's Vary is ignored.
pub fn by_rule(answer: Fields<'_>, rule: VaryRule) -> Vary {
    let stated = match read(answer) {
        _ if rule.ignored => Vary::Nothing,
        stated => stated,
    };
    let mut added = added(answer, rule);
    // What a client says of its address is not always what its upstream is told.
    if matches!(&stated, Vary::Fields(fields) if fields.names().any(is_client_address)) {
        added.push(ADDRESS);
    }
    if added.is_empty() {
        return stated;
    }
    let added = VaryFields::new(added.into_iter().map(Box::from).collect());
    match stated {
        Vary::Nothing => Vary::Fields(added),
        Vary::Fields(stated) => stated.union(&added).map_or(Vary::TooMany, Vary::Fields),
        Vary::Anything | Vary::TooMany => stated,
    }
}

fn added(answer: Fields<'_>, rule: VaryRule) -> Vec<&'static [u8]> {
    let mut names: Vec<&[u8]> = Vec::new();
    if !(rule.origin || rule.unlisted || rule.address) {
        return names;
    }
    // Only an answer for every origin says that it would have been the same for another: one without the field may
    // have it for the origins that its API knows (Fetch Standard §3.3.6).
    let is_for_every_origin =
        answer.named(b"access-control-allow-origin").is_some_and(|origin| origin == b"*");
    if (rule.origin || rule.unlisted) && !(rule.origin && is_for_every_origin) {
        names.push(b"origin");
    }
    if answer.has(FieldId::ContentEncoding) {
        names.push(b"accept-encoding");
    }
    if rule.address {
        names.push(ADDRESS);
    }
    if rule.unlisted {
        names.extend([b"accept" as &[u8], b"accept-language", unlisted::NAME]);
    }
    names
}

impl VaryFields {
    /// Names must be in lower case.
    pub(crate) fn new(names: Vec<Box<[u8]>>) -> VaryFields {
        let mut names: Vec<_> = names.into_iter().map(|name| (FieldId::of(&name), name)).collect();
        names.sort_by(|a, b| a.1.cmp(&b.1));
        names.dedup();
        VaryFields { names }
    }

    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(|(_, name)| &**name)
    }

    /// Whether all names of the other are among these, so that such a response may be kept under these.
    pub(crate) fn covers(&self, other: &VaryFields) -> bool {
        other.names.iter().all(|name| self.names.contains(name))
    }

    /// `None` if they are more than [`FIELDS`].
    pub(crate) fn union(&self, other: &VaryFields) -> Option<VaryFields> {
        let names: Vec<_> = self.names().chain(other.names()).map(Box::from).collect();
        Some(VaryFields::new(names)).filter(|both| both.names.len() <= FIELDS)
    }

    /// Appends the request's values of these fields. Every value is preceded by its length, so that values
    /// cannot be shifted from one field into the next, and an absent field differs from an empty one.
    pub(crate) fn write(&self, request: Fields<'_>, out: &mut Vec<u8>) {
        for (id, name) in &self.names {
            let start = out.len();
            out.extend_from_slice(&u32::MAX.to_le_bytes());
            let present = match id {
                FieldId::AcceptEncoding => write_accepted(request, out),
                FieldId::AcceptLanguage => write_languages(request, out),
                FieldId::Other if **name == *unlisted::NAME => unlisted::write(request, out),
                FieldId::Other => write_lines(request.all_spelled(*id, name), false, out),
                // Who says nothing accepts everything as well (RFC 9110 §12.5.1): browsers' fetch and curl say it, others do not.
                FieldId::Accept if request.all(FieldId::Accept).all(|value| value == b"*/*") => false,
                id if is_list(*id) => write_lines(request.all(*id), true, out),
                // RFC 9113 §8.2.3 has cookies split into lines.
                FieldId::Cookie => write_joined(request.all(*id), b"; ", out),
                _ => write_joined(request.all_spelled(*id, name), b", ", out),
            };
            if present {
                let length = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX - 1);
                out[start..start + 4].copy_from_slice(&length.to_le_bytes());
            }
        }
    }

    /// Decodes what [`VaryFields::write`] wrote, for people; `None` if the field was absent.
    pub(crate) fn told(&self, mut values: &[u8]) -> Vec<(String, Option<String>)> {
        let mut told = Vec::with_capacity(self.names.len());
        for (id, name) in &self.names {
            let (is_unlisted, is_address) = (**name == *unlisted::NAME, **name == *ADDRESS);
            let name = match &**name {
                unlisted::NAME => "unlisted fields".to_owned(),
                ADDRESS => "the client's address".to_owned(),
                name => String::from_utf8_lossy(name).into_owned(),
            };
            let Some((length, rest)) = values.split_first_chunk::<4>() else { break };
            let length = u32::from_le_bytes(*length);
            let (value, rest) = match length {
                u32::MAX => (None, rest),
                length => {
                    let Some((value, rest)) = rest.split_at_checked(length as usize) else { break };
                    (Some(value), rest)
                }
            };
            values = rest;
            // Beside the name of an address in Vary it stands even where requests do not carry it.
            if is_address && value.is_none() {
                continue;
            }
            match value {
                Some(written) if is_unlisted => {
                    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                    told.extend(unlisted::read(written).map(|(name, value)| (text(name), Some(text(value)))));
                }
                value => told.push((name, value.map(|value| spoken(*id, value)))),
            }
        }
        told
    }

    pub(crate) fn cost(&self) -> u64 {
        let names: u64 = self.names().map(|name| allocated(name.len())).sum();
        counted::<VaryFields>() + allocated(self.names.len() * size_of::<(FieldId, Box<[u8]>)>()) + names
    }
}

fn spoken(id: FieldId, value: &[u8]) -> String {
    match (id, value) {
        (FieldId::AcceptEncoding, [bits]) => AcceptEncoding::told(*bits),
        (FieldId::AcceptEncoding, [UNFOLDED, text @ ..]) => String::from_utf8_lossy(text).into_owned(),
        (FieldId::AcceptLanguage, folded) => accept_language::spoken(folded),
        _ => String::from_utf8_lossy(value).into_owned(),
    }
}

fn write_accepted(request: Fields<'_>, out: &mut Vec<u8>) -> bool {
    if !request.has(FieldId::AcceptEncoding) {
        return false;
    }
    // Only what is sent in the class's own words is compared by them.
    match accept_encoding::class(request.all(FieldId::AcceptEncoding)) {
        Some(class) => out.push(class.bits()),
        None => {
            out.push(UNFOLDED);
            write_lines(request.all(FieldId::AcceptEncoding), true, out);
        }
    }
    true
}

fn write_languages(request: Fields<'_>, out: &mut Vec<u8>) -> bool {
    if !request.has(FieldId::AcceptLanguage) {
        return false;
    }
    accept_language::append_normalised(request.all(FieldId::AcceptLanguage), out);
    true
}

fn write_lines<'a>(lines: impl Iterator<Item = &'a [u8]>, as_list: bool, out: &mut Vec<u8>) -> bool {
    let mut first = true;
    for line in lines {
        if as_list {
            for element in list::elements(line) {
                separate(&mut first, out);
                out.extend_from_slice(element);
            }
            first = false;
        } else {
            // Lines may be joined with a comma and a space (RFC 9110 §5.3), and the space means nothing.
            separate(&mut first, out);
            write_squeezed(line, out);
        }
    }
    !first
}

fn write_joined<'a>(lines: impl Iterator<Item = &'a [u8]>, separator: &[u8], out: &mut Vec<u8>) -> bool {
    let mut first = true;
    for line in lines {
        if !std::mem::take(&mut first) {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(line);
    }
    !first
}

/// Without white space around commas outside of quotes.
fn write_squeezed(value: &[u8], out: &mut Vec<u8>) {
    let mut rest = value;
    loop {
        let end = comma(rest).unwrap_or(rest.len());
        out.extend_from_slice(trim(&rest[..end]));
        match rest.get(end + 1..) {
            Some(behind) => {
                out.push(b',');
                rest = behind;
            }
            None => return,
        }
    }
}

fn comma(text: &[u8]) -> Option<usize> {
    let mut quoted = false;
    let mut escaped = false;
    text.iter().position(|&byte| {
        let found = byte == b',' && !quoted;
        if !std::mem::take(&mut escaped) {
            quoted ^= byte == b'"';
            escaped = quoted && byte == b'\\';
        }
        found
    })
}

fn separate(first: &mut bool, out: &mut Vec<u8>) {
    if !std::mem::take(first) {
        out.push(b',');
    }
}

/// Fields whose values are lists, so that empty elements are ignored.
fn is_list(id: FieldId) -> bool {
    matches!(id, FieldId::Accept | FieldId::CacheControl | FieldId::Forwarded)
}
