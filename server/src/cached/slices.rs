//! `slice`: a large answer fetched and stored in pieces of one size, and put together for the client.
//!
//! ```text
//! range → first piece → 206 ┬ its place, length and tag are the answer's ─▶ head ─▶ piece, piece, piece …
//!                     │     └ else ─▶ cut, before anything was sent
//!                     └ any other status ─▶ passed on as it is: the upstream knows no ranges, or nothing of this one
//! ```
//! With a cache each piece is an entry of its own, for `$slice_range` is a part of the key. The next one is fetched while the
//! present one is sent. A piece of another representation ends the answer: two are never mixed. Pieces that say neither tag
//! nor date are not stored, as nothing would tell which version they are of. Next: `piece`.

mod piece;
#[cfg(test)]
mod tests;

use super::stored::Unsent;
use crate::cached;
use crate::client::Client;
use crate::failure;
use crate::outcome::Outcome;
use crate::representation::chosen::{self, Extent, Offer, Unmet};
use crate::representation::{follow, hit};
use crate::request::Request;
use millstream_cache::{Hit, Now, Prepared};
use millstream_conf::model::Level;
use millstream_wire::h1::framing::Framing;
use millstream_wire::range::{self, Spec};
use millstream_wire::{FieldId, Method};
use piece::{Piece, Source, Whole};
use std::ops::Range;
use std::rc::Rc;
use tokio::task::JoinSet;

pub fn applies(request: &Request) -> bool {
    let settings = &request.location().settings;
    settings.slice > 0
        && matches!(request.method, Method::Get | Method::Head)
        && request.received.framing == Framing::None
        // Another protocol has no pieces.
        && !(request.fields().connection_lists("upgrade") && request.fields().has(FieldId::Upgrade))
}

/// Start of the first piece, as nginx: that of a single range without condition, else 0.
pub fn first_start(request: &Request) -> u64 {
    let size = request.location().settings.slice;
    if request.fields().has(FieldId::IfRange) {
        return 0;
    }
    match request.field(FieldId::Range).and_then(range::only) {
        Some(Spec::From(first) | Spec::Between(first, _)) => first / size * size,
        Some(Spec::Last(_)) | None => 0,
    }
}

pub async fn answer(request: &mut Request, client: &mut Client) -> Outcome {
    let start = first_start(request);
    request.cache.whole = piece::whole(request);
    request.cache.slice = Some(start);
    let opened = match client.unless_gone(piece::open(piece::copy(request, start))).await {
        Ok(opened) => opened,
        Err(failure) => return Outcome::Client(failure),
    };
    let is_cached = !matches!(opened, Ok(None));
    let opened = match opened {
        Ok(None) => piece::first(request, client).await,
        Ok(Some(first)) => Ok(first),
        Err(ending) => Err(ending),
    };
    let first = match opened {
        Ok(first) => first,
        Err(ending) => {
            (request.cache.slice, request.cache.whole) = (None, None);
            return cached::settle(request, client, ending, None).await;
        }
    };
    request.cache.status = first.cache_status;
    // Of an answer in pieces it tells what became of the first.
    request.cache.report = first.report.clone();
    if let Some(tries) = first.tries.clone() {
        request.tries = tries;
    }
    if first.status() != 206 {
        (request.cache.slice, request.cache.whole) = (None, None);
        return as_it_is(request, client, first).await;
    }
    let size = request.location().settings.slice;
    match Whole::of(&first, start, size, is_cached) {
        Some(whole) => in_pieces(request, client, first, &whole).await,
        None => {
            log(request, "invalid range in slice response");
            request.sent.status = 502;
            cut(request, client).await
        }
    }
}

async fn as_it_is(request: &mut Request, client: &mut Client, piece: Piece) -> Outcome {
    match piece.source {
        Source::Entry(entry) => {
            let hit = Rc::new(Hit { entry, prepared: Prepared::default() });
            Box::pin(cached::from_entry(request, client, hit)).await.unwrap_or(Outcome::Status(502))
        }
        Source::Stream(follower) => {
            let age = follower.head().view().age(Now::read());
            let followed =
                follow::serve(request, client, follower, Some(age).filter(|age| *age > 0), &|_| None).await;
            cached::followed(request, followed)
        }
    }
}

async fn in_pieces(request: &mut Request, client: &mut Client, first: Piece, whole: &Whole) -> Outcome {
    let range = match begin(request, client, &first, whole) {
        Ok(Some(range)) => range,
        Ok(None) => return client.finish(request, None).await.into(),
        Err(unmet) => return Outcome::Status(chosen::refuse(request, unmet)),
    };
    match send(request, client, first, whole, range).await {
        Ok(()) => client.finish(request, None).await.into(),
        Err(Unsent::Client(failure)) => Outcome::Client(failure),
        Err(Unsent::Body) => cut(request, client).await,
    }
}

/// Ends a response that cannot start or continue. As in nginx without an error page: the client sees the cut.
async fn cut(request: &mut Request, client: &mut Client) -> Outcome {
    client.abandon();
    request.keep_alive = false;
    if request.sent.bytes > 0 {
        _ = client.flush(request).await;
    }
    Outcome::Done
}

/// Makes the head from the first piece's; returns the range to send, `None` without a body.
fn begin(
    request: &mut Request,
    client: &mut Client,
    first: &Piece,
    whole: &Whole,
) -> Result<Option<Range<u64>>, Unmet> {
    let now = Now::read();
    let head = first.head();
    if let Source::Entry(_) = first.source {
        hit::remember(request, head, now);
    }
    let mut headers = hit::passed_on(request, head);
    headers.remove(FieldId::ContentRange);
    headers.remove(FieldId::AcceptRanges);
    let age = Some(head.age(now)).filter(|age| *age > 0 || matches!(first.source, Source::Entry(_)));
    let stored = Offer::stored(head, Some(whole.complete), true);
    let offer = Offer { status: 200, fields: headers.view(), ..stored };
    let shape = chosen::choose(request, &offer).shape(request, headers, 200, Some(whole.complete))?;
    shape.begin(request, client, age);
    Ok(match shape.extent {
        Extent::Nothing => None,
        Extent::Part(part) => Some(part),
        Extent::Whole | Extent::Parts(_) => Some(0..whole.complete),
    })
}

async fn send(
    request: &mut Request,
    client: &mut Client,
    first: Piece,
    whole: &Whole,
    range: Range<u64>,
) -> Result<(), Unsent> {
    let size = request.location().settings.slice;
    let mut position = range.start;
    let mut first = Some(first).filter(|_| whole.first == position / size * size);
    // The next piece on its way; of one that is not stored nobody waits for the rest once the client has left.
    let mut coming = JoinSet::new();
    while position < range.end {
        let start = position / size * size;
        let piece = match first.take() {
            Some(first) => first,
            None => {
                if coming.is_empty() {
                    coming.spawn_local(fetch(request, whole, start));
                }
                if !piece::is_held_back(request, client) {
                    client.flush(request).await.map_err(Unsent::Client)?;
                }
                let came = client.unless_gone(coming.join_next()).await.map_err(Unsent::Client)?;
                came.and_then(Result::ok).flatten().ok_or(Unsent::Body)?
            }
        };
        if !whole.has(&piece, start, size) {
            log(request, "slice response does not belong to the same version of the file");
            forget(request, &[whole.first, start]);
            return Err(Unsent::Body);
        }
        let end = start.saturating_add(size).min(range.end);
        if end < range.end {
            coming.spawn_local(fetch(request, whole, end));
        }
        piece::send(request, client, piece.source, position - start..end - start).await?;
        position = end;
    }
    Ok(())
}

fn fetch(request: &Request, whole: &Whole, start: u64) -> impl Future<Output = Option<Piece>> + use<> {
    let (copy, is_cached) = (piece::copy(request, start), whole.is_cached);
    async move {
        match is_cached {
            true => piece::open(copy).await.ok().flatten(),
            false => piece::fetch(copy).await.ok(),
        }
    }
}

/// Drops pieces that do not belong together, so that the next request fetches them again.
fn forget(request: &Request, starts: &[u64]) {
    let settings = &request.location().settings;
    let Some(cache) = settings.cache() else { return };
    for &start in starts {
        let copy = piece::copy(request, start);
        if let Some(key) = crate::caching::keyed::key(&copy, cache) {
            request.generation.shared.zones.stores[cache.zone.0 as usize].invalidate(&key);
        }
    }
}

fn log(request: &Request, what: &str) {
    failure::log(request, Level::Error, format_args!("{what}"));
}
