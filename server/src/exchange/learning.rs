//! What an answer tells the cache about what is stored already, beside being stored itself.
//!
//! A HEAD that was passed on as it is confirms or outdates a stored GET (RFC 9111 §4.3.5), a 304 to a client's own
//! condition gives the stored answer it confirms new fields (§4.3.4), and an answer to POST that says so is what a GET
//! would get (RFC 9110 §9.3.3). Nothing here keeps the client waiting.

use super::{Filling, Passing, unkeyed};
use crate::caching::{invalidation, keyed};
use millstream_cache::policy::{self, Asker, Storable};
use millstream_cache::{Entry, FillPermit, Now};
use millstream_conf::model::ProxyCache;
use millstream_wire::{FieldId, Fields, Headers, Method, etag};
use std::sync::Arc;

/// Whether Content-Location names the target, so that the response to POST is also that of a GET.
pub(super) fn is_of_target(passing: &Passing<'_>, fields: Fields<'_>) -> bool {
    passing.terms.method == Method::Post
        && fields
            .get(FieldId::ContentLocation)
            .is_some_and(|reference| invalidation::is_target(passing.request, reference))
}

/// The request's permit, or a new one for a response to POST that stands for a GET.
pub(super) fn permit(
    passing: &Passing<'_>,
    filling: Filling,
    status: u16,
    fields: Fields<'_>,
) -> Option<FillPermit> {
    let cache = passing.proxy.cache.as_ref()?;
    match filling {
        Filling::Permit(permit) => Some(permit),
        // The client's conditions went with it, so only what was sent for its range, or whole, is stored.
        Filling::Part(permit) => Some(permit).filter(|_| matches!(status, 200 | 206)),
        Filling::Rest(..) | Filling::Along(_) | Filling::Check(_) => None,
        Filling::No => {
            let stands_for_get = passing.request.method == Method::Post
                && !policy::looks_up(cache, Method::Post)
                && !passing.request.cache.wish.no_store
                && (200..300).contains(&status)
                && is_of_target(passing, fields)
                && !says_what_no_key_names(passing, cache)
                && !(cache.verify.is_some() && keyed::is_off(passing.request));
            stands_for_get.then(|| beside(passing, cache, Method::Get)).flatten()
        }
    }
}

/// Updates or invalidates the entry by a HEAD or 304 passed to the client.
pub(super) fn learn(passing: &Passing<'_>, status: u16, fields: Fields<'_>) {
    let (Some(cache), Some(since)) = (&passing.proxy.cache, passing.terms.cache.since) else { return };
    let about_stored = match (passing.terms.method, status) {
        (Method::Head, 200) => true,
        (Method::Get, 304) => !passing.terms.cache.caching,
        _ => false,
    };
    if !about_stored || passing.request.cache.wish.no_store || !keyed::is_keyed(passing.request) {
        return;
    }
    // What somebody with a credential is told need not hold for others.
    if passing.request.cache.asker == Asker::Known {
        return;
    }
    let Some(key) = keyed::key_of(passing.request, cache, Method::Get) else { return };
    let zone = cache.zone.0 as usize;
    let now = Now::read();
    let front = passing.request.generation.fronts[zone].borrow();
    let Some(entry) = front.peek(&key, passing.request.fields()) else { return };
    let is_part = entry.head().part.is_some();
    if is_part && status != 304 {
        // What GET would answer now has another status and length, whatever has changed.
        return;
    }
    if is_same(&entry, fields, status) {
        let headers: Headers = entry.head().updated(fields);
        if let Storable::Yes(lifetime) =
            passing.storable_as(cache, Method::Get, (entry.head().status, is_part), headers.view(), now)
        {
            front
                .beside_since(&key, passing.request.cache.asker, since)
                .refresh(&entry, headers, lifetime, now);
        }
    } else if status == 200 {
        // Something else would be answered now: what is stored is outdated.
        passing.request.generation.shared.zones.stores[zone].invalidate(&key);
    }
}

/// Whether the request has fields that may have changed the response but are not in a GET's key.
fn says_what_no_key_names(passing: &Passing<'_>, cache: &ProxyCache) -> bool {
    !keyed::is_keyed(passing.request)
        || keyed::is_for_its_client(passing.request, cache)
        || passing.request.fields().iter().any(|(id, name, _)| unkeyed::ends_here(id, name, &cache.key))
}

fn beside(passing: &Passing<'_>, cache: &ProxyCache, method: Method) -> Option<FillPermit> {
    let key = keyed::key_of(passing.request, cache, method)?;
    let front = passing.request.generation.fronts[cache.zone.0 as usize].borrow();
    passing.terms.cache.since.map(|since| front.beside_since(&key, passing.request.cache.asker, since))
}

/// Whether a 304 to a condition from an entry refers to it (RFC 9111 §4.3.4): its ETag and date are not of
/// another. Without either it can refer to no other.
pub(super) fn confirms(entry: &Entry, fields: Fields<'_>) -> bool {
    let (named, own) = (fields.get(FieldId::ETag), entry.head().etag());
    let dates = (fields.get(FieldId::LastModified), entry.head().fields().get(FieldId::LastModified));
    means(named, own, dates)
}

fn means(named: Option<&[u8]>, own: Option<&[u8]>, dates: (Option<&[u8]>, Option<&[u8]>)) -> bool {
    match (named, own, dates) {
        // Weakly: compressed on the way, an answer has the weak form of the tag that its 304 has.
        (Some(named), Some(own), _) => named == own || etag::weak_match(named, own),
        // It was never seen with this one; a weak tag promises no more than the date that was asked with.
        (Some(named), None, _) => etag::is_weak(named),
        (None, None, (Some(named), Some(own))) => named == own,
        (None, _, _) => true,
    }
}

/// Whether a response without a body describes the entry: no validator or length contradicts (RFC 9111
/// §4.3.5); a 304 must have the same ETag or date (§4.3.4).
fn is_same(entry: &Arc<Entry>, fields: Fields<'_>, status: u16) -> bool {
    let stored = entry.head().fields();
    let differs = |id: FieldId| fields.get(id).is_some_and(|value| stored.get(id) != Some(value));
    if status == 304 {
        return match (fields.get(FieldId::ETag), stored.get(FieldId::ETag)) {
            (Some(named), Some(own)) => etag::weak_match(named, own),
            (Some(_), None) => false,
            (None, _) => fields.has(FieldId::LastModified) && !differs(FieldId::LastModified),
        };
    }
    let other_length = fields
        .get(FieldId::ContentLength)
        .and_then(millstream_wire::octets::decimal)
        .is_some_and(|length| length != entry.length());
    entry.head().status == status
        && !other_length
        && !differs(FieldId::ETag)
        && !differs(FieldId::LastModified)
}

#[cfg(test)]
mod tests {
    use super::means;

    #[test]
    fn a_304_means_the_stored_answer_unless_its_tag_or_its_date_is_of_another() {
        for (tags, dates, expected) in [
            (["\"1\"", "\"1\""], ["", ""], true),
            (["\"2\"", "\"1\""], ["", ""], false),
            (["\"2\"", "\"1\""], ["a", "a"], false),
            (["\"1\"", "\"1\""], ["b", "a"], true),
            (["\"1\"", "W/\"1\""], ["", ""], true),
            (["W/\"2\"", "\"1\""], ["", ""], false),
            (["bare", "bare"], ["", ""], true),
            (["\"1\"", ""], ["a", "a"], false),
            (["W/\"1\"", ""], ["a", "a"], true),
            (["", "\"1\""], ["", ""], true),
            (["", ""], ["a", "a"], true),
            (["", ""], ["b", "a"], false),
            (["", ""], ["", "a"], true),
        ] {
            let some = |text: &'static str| Some(text.as_bytes()).filter(|text| !text.is_empty());
            let found = means(some(tags[0]), some(tags[1]), (some(dates[0]), some(dates[1])));
            assert_eq!(found, expected, "{tags:?} {dates:?}");
        }
    }
}
