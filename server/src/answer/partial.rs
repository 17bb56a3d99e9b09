//! Stored parts of answers (RFC 9111 §3.3), and requests that go upstream with their own range or method.
//!
//! ```text
//! a part is stored ─┬ the range lies within ──────────▶ from the part (HIT)
//!                   ├ the whole, or more, is wanted ──▶ only the rest is asked for, and combined (RFC 9111 §3.4)
//!                   └ no strong tag, or both ends miss ▶ the whole is asked for
//! nothing stored ───┬ beyond proxy_cache_max_range_offset ▶ the range is asked for as it is, a 206 stored as a part
//!                   ├ HEAD, proxy_cache_convert_head off ─▶ HEAD is asked, nothing stored
//!                   └ else ───────────────────────────────▶ as any request
//! ```
//! It decides, and answers from parts; who asks is `cached`. Next: `gateway/combining`, which checks what comes.

use super::course::beside;
use super::{Outcome, stored};
use crate::client::{AnswerHead, Client};
use crate::filter::head;
use crate::gateway::{Filling, Rest};
use crate::representation::{conditions, hit, ranges};
use crate::request::Request;
use millstream_cache::{Entry, Hit, Lookup, Now, Part};
use millstream_conf::model::ProxyCache;
use millstream_telemetry::metrics::CacheStatus;
use millstream_wire::conditional::{self, Validators};
use millstream_wire::range::{self, Spec};
use millstream_wire::{FieldId, Method};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// What follows for a request.
pub enum Step {
    /// What any request gets of this look-up.
    On(Lookup),
    /// It is answered.
    Answered(Outcome),
    /// The upstream is asked.
    Ask(Filling),
}

/// Decides whether a request is one of those above.
pub async fn step(
    request: &mut Request,
    client: &mut Client,
    cache: &ProxyCache,
    key: &[u8],
    lookup: Lookup,
) -> Step {
    let lookup = match lookup {
        // A part is not refreshed ahead: that would bring the whole, which nobody has asked for.
        Lookup::Fresh(found) | Lookup::Ahead(found, _) if found.entry.head().part.is_some() => {
            return of_part(request, client, cache, key, &found).await;
        }
        // A part that is stale is of no use: it can neither be confirmed in passing nor stand in for the whole.
        Lookup::Stale(found, permit) if found.entry.head().part.is_some() => match permit {
            Some(permit) => Lookup::Miss(permit),
            None => Lookup::Scarce,
        },
        Lookup::Busy(waiter, Some(found)) if found.entry.head().part.is_some() => Lookup::Busy(waiter, None),
        lookup => lookup,
    };
    let is_plain_miss = match &lookup {
        Lookup::Miss(_) => request.cache_status != Some(CacheStatus::Bypass),
        Lookup::Scarce | Lookup::Busy(_, None) => true,
        _ => false,
    };
    if !is_plain_miss {
        return Step::On(lookup);
    }
    if request.method == Method::Head && !cache.convert_head {
        request.cache_status = Some(CacheStatus::Miss);
        return Step::Ask(Filling::No);
    }
    if goes_on_as_it_is(request, cache) {
        // Whoever waits for the whole does not wait for a part: a right to fill goes back.
        drop(lookup);
        request.cache_status = Some(CacheStatus::Miss);
        return Step::Ask(stored_by(request, Filling::Part(beside(request, cache, key))));
    }
    Step::On(lookup)
}

/// The answer to a request that says no-store is not stored.
fn stored_by(request: &Request, filling: Filling) -> Filling {
    if request.wish.no_store { Filling::No } else { filling }
}

/// Whether the request's range is passed on: `proxy_cache_max_range_offset`, judged by the first range as in nginx.
fn goes_on_as_it_is(request: &Request, cache: &ProxyCache) -> bool {
    let (Some(most), Method::Get) = (cache.max_range_offset, request.method) else { return false };
    let Some(value) = request.field(FieldId::Range) else { return false };
    match range::first(value) {
        _ if most == 0 => true,
        Some(Spec::Last(_)) => true,
        Some(Spec::From(first) | Spec::Between(first, _)) => first >= most,
        None => false,
    }
}

async fn of_part(
    request: &mut Request,
    client: &mut Client,
    cache: &ProxyCache,
    key: &[u8],
    found: &Rc<Hit>,
) -> Step {
    if let Some(outcome) = from_part(request, client, &found.entry).await {
        return Step::Answered(outcome);
    }
    if request.wish.only_if_cached {
        return Step::Answered(Outcome::Status(504));
    }
    request.cache_status = Some(CacheStatus::Miss);
    let permit = beside(request, cache, key);
    let filling = match Rest::of(found).filter(|_| request.method == Method::Get) {
        _ if goes_on_as_it_is(request, cache) => Filling::Part(permit),
        Some(rest) => Filling::Rest(permit, Box::new(rest)),
        None => Filling::Permit(permit),
    };
    Step::Ask(stored_by(request, filling))
}

/// Answers a request whose range lies within a stored part; `None` where it does not, or the part cannot be read.
async fn from_part(request: &mut Request, client: &mut Client, entry: &Arc<Entry>) -> Option<Outcome> {
    let part = entry.head().part?;
    let validators = Validators { etag: entry.head().etag(), last_modified: entry.head().last_modified };
    let range = within(request, &part, validators)?;
    let now = Now::read();
    let mut headers = hit::passed_on(request, entry.head());
    let (status, length) = match conditions::evaluate(request, validators) {
        conditional::Outcome::Proceed => (206, range.end - range.start),
        conditional::Outcome::NotModified => (304, 0),
        conditional::Outcome::PreconditionFailed => (412, 0),
    };
    // Read before the head is sent: the file may be gone.
    let offset = range.start - part.first..range.end - part.first;
    let mut reader = entry.body().open(offset).await.ok()?;
    hit::remember(request, entry.head(), now);
    request.cache_status = Some(CacheStatus::Hit);
    if let Some(report) = &mut request.report {
        report.note_lifetime(&entry.head().lifetime, now);
    }
    head::vary_as_whole(request, &mut headers, part.complete);
    if status == 206 {
        ranges::describe_part(&mut headers, &range, part.complete);
    } else {
        hit::describe_no_body(&mut headers);
        headers.remove(FieldId::ContentRange);
    }
    let (fields, length, age) = (headers.view(), Some(length), Some(entry.age(now)));
    client.begin(request, AnswerHead { status, fields, length, compressible: false, age });
    if status != 206 {
        return Some(stored::close(request, client).await);
    }
    Some(stored::send_all(request, client, stored::in_file(entry), &mut reader).await)
}

/// Whether a request is answered from a stored part, as far as its range says.
pub fn lies_within(request: &Request, entry: &Entry) -> bool {
    let head = entry.head();
    let validators = Validators { etag: head.etag(), last_modified: head.last_modified };
    head.part.is_some_and(|part| within(request, &part, validators).is_some())
}

/// The one range that a request asks for, where all of it is in the part; positions in the whole.
fn within(request: &Request, part: &Part, validators: Validators<'_>) -> Option<Range<u64>> {
    if request.method != Method::Get
        || request.error_status.is_some_and(|status| status != 200)
        || request.location().settings.ranges.max == Some(0)
        || !conditional::range_applies(request.fields(), validators)
    {
        return None;
    }
    let spec = range::only(request.field(FieldId::Range)?)?;
    let range = match (spec, part.complete) {
        (_, Some(complete)) => spec.of(complete),
        (Spec::Between(first, last), None) => first..last.checked_add(1)?,
        (Spec::From(_) | Spec::Last(_), None) => return None,
    };
    (range.start < range.end && range.start >= part.first && range.end <= part.last + 1).then_some(range)
}
