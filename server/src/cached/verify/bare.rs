//! A request for the same entry that is no one's: of the client's, only what key and Vary name.
//!
//! It has no credential, address or certificate unless the key contains it, which is found out by taking it away: if the key stays the
//! same, the key does not contain it.

use crate::caching::keyed;
use crate::no_one;
use crate::request::Request;
use crate::shows::Shows;
use crate::slots::Captures;
use millstream_cache::Entry;
use millstream_wire::{FieldId, list};
use std::cell::RefCell;
use std::rc::Rc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bareness {
    /// What key and Vary name, Host, Accept and Accept-Encoding.
    Named,
    /// Also what makes it look like a browser's.
    Browser,
}

/// `None` if there is no such request: the key contains what cannot be told from the client.
pub(super) fn request(request: &Request, entry: &Entry, bareness: Bareness) -> Option<Request> {
    let cache = request.location().settings.cache()?;
    // Then even the URL is the client's own.
    if keyed::is_chosen(request, cache, Shows::WHO) {
        return None;
    }
    let key = keyed::key(request, cache)?;
    let is_same = |other: &Request| keyed::key(other, cache).is_some_and(|other| other == key);
    let mut bare = request.for_refresh();
    bare.route.made.clear();
    bare.forget_visitor();
    keep_fields(&mut bare, request, entry, bareness, &is_same);
    keep_cookies(&mut bare, request, &is_same);
    // Each is taken away unless the key contains it.
    let any = Shows::CLIENT | Shows::FIELD;
    let slots = std::mem::replace(&mut bare.route.slots, Rc::new(request.route.slots.without(any)));
    if !is_same(&bare) {
        bare.route.slots = slots;
    }
    if request.route.captures.borrow().have_shown.has(any) {
        let captures = bare.route.captures.replace(Captures::default());
        if !is_same(&bare) {
            bare.route.captures = RefCell::new(captures);
        }
    }
    let (connection, client) = (bare.connection.clone(), bare.received.client.clone());
    no_one::asks(&mut bare);
    bare.route.made.clear();
    if !is_same(&bare) {
        (bare.connection, bare.received.client) = (connection, client);
        bare.route.made.clear();
    }
    is_same(&bare).then_some(bare)
}

fn keep_fields(
    bare: &mut Request,
    request: &Request,
    entry: &Entry,
    bareness: Bareness,
    is_same: &impl Fn(&Request) -> bool,
) {
    let varies = entry.varies_by();
    let names = |name: &[u8]| {
        varies.iter().any(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name))
            || entry
                .head()
                .fields()
                .all(FieldId::Vary)
                .any(|vary| list::elements(vary).any(|element| element.eq_ignore_ascii_case(name)))
    };
    let is_kept = |id: FieldId, name: &[u8]| {
        matches!(id, FieldId::Host | FieldId::Accept | FieldId::AcceptEncoding)
            || bareness == Bareness::Browser && matches!(id, FieldId::UserAgent | FieldId::AcceptLanguage)
            || names(name)
    };
    let bytes = request.received.bytes.as_slice();
    let count = request.received.head.fields.len();
    let mut kept = Vec::with_capacity(count);
    for at in 0..count {
        let field = &request.received.head.fields[at];
        kept.push(
            is_kept(field.id, field.name(bytes))
                || field.id != FieldId::Cookie && {
                    let mut without = request.for_refresh();
                    without.route.made.clear();
                    without.received.head.fields.remove(at);
                    !is_same(&without)
                },
        );
    }
    let mut kept = kept.into_iter();
    bare.received.head.fields.retain(|_| kept.next().unwrap_or(false));
}

/// Of the client's cookies, those that the key contains.
fn keep_cookies(bare: &mut Request, request: &Request, is_same: &impl Fn(&Request) -> bool) {
    if bare.fields().has(FieldId::Cookie) {
        // Vary names the field.
        return;
    }
    let lines = request.fields().all(FieldId::Cookie);
    let cookies: Vec<Vec<u8>> = lines
        .flat_map(|line| line.split(|byte| *byte == b';'))
        .map(|cookie| cookie.trim_ascii().to_vec())
        .filter(|cookie| !cookie.is_empty())
        .collect();
    let with = |cookies: &[&Vec<u8>]| {
        let mut other = request.for_refresh();
        other.route.made.clear();
        other.received.head.fields.retain(|field| field.id != FieldId::Cookie);
        append(&mut other, cookies);
        other
    };
    let all: Vec<&Vec<u8>> = cookies.iter().collect();
    if all.is_empty() || is_same(&with(&[])) {
        return;
    }
    let is_named = |at: &usize| {
        let others: Vec<_> =
            all.iter().enumerate().filter(|(other, _)| other != at).map(|(_, one)| *one).collect();
        !is_same(&with(&others))
    };
    let named: Vec<_> = (0..all.len()).filter(is_named).map(|at| all[at]).collect();
    append(bare, &named);
}

fn append(request: &mut Request, cookies: &[&Vec<u8>]) {
    if !cookies.is_empty() {
        let line: Vec<&[u8]> = cookies.iter().map(|cookie| cookie.as_slice()).collect();
        request.received.append_field(b"Cookie", &line.join(&b"; "[..]));
    }
}
