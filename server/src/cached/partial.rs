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
//! It decides, and answers from parts; who asks is `cached`. Next: `exchange/combining`, which checks what comes.

use super::course::beside;
use super::stored;
use crate::client::Client;
use crate::exchange::{Filling, Rest};
use crate::outcome::Outcome;
use crate::representation::chosen::{self, Extent};
use crate::representation::hit;
use crate::request::Request;
use millstream_cache::{Entry, Hit, Lookup, Now};
use millstream_conf::model::ProxyCache;
use millstream_telemetry::metrics::CacheStatus;
use millstream_wire::range::{self, Spec};
use millstream_wire::{FieldId, Method};
use std::rc::Rc;
use std::sync::Arc;

pub enum PartialDecision {
    On(Lookup),
    Answered(Outcome),
    Ask(Filling),
}

pub async fn step(
    request: &mut Request,
    client: &mut Client,
    cache: &ProxyCache,
    key: &[u8],
    lookup: Lookup,
) -> PartialDecision {
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
        Lookup::Miss(_) => request.cache.status != Some(CacheStatus::Bypass),
        Lookup::OwnWrite(_) | Lookup::Scarce | Lookup::Busy(_, None) => true,
        _ => false,
    };
    if !is_plain_miss {
        return PartialDecision::On(lookup);
    }
    if request.method == Method::Head && !cache.convert_head {
        request.cache.status = Some(CacheStatus::Miss);
        return PartialDecision::Ask(Filling::No);
    }
    if goes_on_as_it_is(request, cache) {
        // Whoever waits for the whole does not wait for a part: a right to fill goes back.
        drop(lookup);
        request.cache.status = Some(CacheStatus::Miss);
        return PartialDecision::Ask(Filling::Part(beside(request, cache, key)));
    }
    PartialDecision::On(lookup)
}

/// `proxy_cache_max_range_offset`: whether to pass the range on, judged by its first range as nginx does.
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
) -> PartialDecision {
    if let Some(outcome) = from_part(request, client, &found.entry).await {
        return PartialDecision::Answered(outcome);
    }
    if request.cache.wish.only_if_cached {
        return PartialDecision::Answered(Outcome::Status(504));
    }
    request.cache.status = Some(CacheStatus::Miss);
    let permit = beside(request, cache, key);
    let filling = match Rest::of(found).filter(|_| request.method == Method::Get) {
        _ if goes_on_as_it_is(request, cache) => Filling::Part(permit),
        Some(rest) => Filling::Rest(permit, Box::new(rest)),
        None => Filling::Permit(permit),
    };
    PartialDecision::Ask(filling)
}

/// `None` if the range is not inside the stored part, or that cannot be read.
async fn from_part(request: &mut Request, client: &mut Client, entry: &Arc<Entry>) -> Option<Outcome> {
    let part = entry.head().part?;
    let chosen = chosen::choose_within(request, entry.head())?;
    let now = Now::read();
    let headers = hit::passed_on(request, entry.head());
    let shape = match chosen.shape(request, headers, 206, part.complete) {
        Ok(shape) => shape,
        Err(unmet) => return Some(Outcome::Status(chosen::refuse(request, unmet))),
    };
    let wanted = match &shape.extent {
        Extent::Part(range) => range.start - part.first..range.end - part.first,
        _ => 0..0,
    };
    // Read before the head is sent: the file may be gone.
    let mut reader = entry.body().open(wanted).await.ok()?;
    hit::remember(request, entry.head(), now);
    request.cache.status = Some(CacheStatus::Hit);
    if let Some(report) = &mut request.cache.report {
        report.note_lifetime(&entry.head().lifetime, now);
    }
    shape.begin(request, client, Some(entry.age(now)));
    if let Extent::Nothing = shape.extent {
        return Some(client.finish(request, None).await.into());
    }
    let sent = stored::send(request, client, &mut reader).await;
    Some(stored::ended(request, client, stored::in_file(entry).as_ref(), sent).await)
}
