//! What an unsafe request makes untrue (RFC 9111 §4.4): what is stored for its target, and for the Location and
//! Content-Location of its answer where they are of the same origin.
//!
//! A location's key is that of a GET for it: such a request is thought of, admitted and routed as if it had come, and
//! whatever cache it would have asked forgets what it has. Nothing is looked up by guessing. Where `proxy_cache_invalidation rate=` puts that
//! off, the client that sent the request is answered as if it had been done. Next: `keyed`.

use super::keyed;
use crate::admission;
use crate::chosen_zone;
use crate::imagined;
use crate::request::{Arguments, Request};
use crate::sender;
use millstream_cache::{Changed, FillPermit, Now, Store, Turn, policy};
use millstream_cluster::{How, What};
use millstream_conf::model::{Invalidation, ProxyCache};
use millstream_net::timer::Deadline;
use millstream_wire::reference::Reference;
use millstream_wire::{FieldId, Fields, Method, Span};
use std::sync::Arc;
use std::time::Duration;

/// Invalidates what a response to an unsafe request affects; `fields` are the response's, `own` the right to
/// store it. On return the effect is durable.
pub async fn after(request: &Request, status: u16, fields: Fields<'_>, mut own: Option<&mut FillPermit>) {
    if !policy::invalidates(request.method, status) {
        return;
    }
    let Some(cache) = chosen_zone::caches(request).next() else {
        return;
    };
    if policy::looks_up(cache, request.method) {
        // The operator has said that this method only reads.
        return;
    }
    let mut done = Vec::new();
    forget(keyed::with_method(request, Method::Get), own.as_deref_mut(), &mut done).await;
    for id in [FieldId::Location, FieldId::ContentLocation] {
        if let Some(other) = fields.get(id).and_then(|reference| of_reference(request, reference)) {
            forget(other, own.as_deref_mut(), &mut done).await;
        }
    }
}

pub fn is_target(request: &Request, reference: &[u8]) -> bool {
    let own = request.received.head.path.of(&request.received.bytes);
    resolve(request, reference)
        .is_some_and(|(path, query)| path == own && query.as_deref() == request.query())
}

/// Zones and keys dropped for one response: Location often names the target itself.
type Forgotten = Vec<(usize, Vec<u8>)>;

/// In every zone that such requests may choose. If the key contains the method, HEAD's too.
async fn forget(mut request: Request, mut own: Option<&mut FillPermit>, done: &mut Forgotten) {
    for method in [Method::Get, Method::Head] {
        request.method = method;
        for cache in chosen_zone::caches(&request) {
            // What is stored of the answer is stored in the request's own zone, the first.
            forget_in(&request, cache, own.take(), done).await;
        }
    }
}

/// In one zone, as its location's `proxy_cache_invalidation` says.
async fn forget_in(
    request: &Request,
    cache: &ProxyCache,
    own: Option<&mut FillPermit>,
    done: &mut Forgotten,
) {
    if cache.invalidation == Invalidation::Off {
        return;
    }
    let Some(key) = keyed::key(request, cache) else { return };
    let changed = Changed { key: &key, has_pieces: request.location().settings.slice > 0 };
    let zone = cache.zone.0 as usize;
    if done.iter().any(|(of, known)| *of == zone && *known == key) {
        return;
    }
    if let Invalidation::Every(interval) = cache.invalidation {
        let now = Now::read();
        let store = &request.generation.shared.zones.stores[zone];
        match store.turn(changed, interval, sender::client(request), now) {
            Turn::Now => {}
            Turn::Promised => return done.push((zone, key)),
            Turn::At(at) => {
                forget_at(store, &key, (at, now));
                return done.push((zone, key));
            }
        }
    }
    let gone = request.generation.fronts[zone].borrow().invalidate_after(changed, own);
    let published = request.generation.shared.clusters.door(zone).map(|door| {
        let what = What::Changed { key: changed.key.to_vec(), has_pieces: changed.has_pieces };
        door.publish(what, How::Hard, false)
    });
    done.push((zone, key));
    if let Some(gone) = gone {
        gone.await;
    }
    if let Some(published) = published {
        published.sent().await;
    }
}

/// Waits for the key's turn. If this worker ends first, the store drops it within a second or at the end of
/// the process.
fn forget_at(store: &Arc<Store>, key: &[u8], (at, now): (i64, Now)) {
    let (store, hash) = (store.clone(), store.hash(key));
    let wait = Duration::from_millis(u64::try_from(at.saturating_sub(now.unix_milliseconds)).unwrap_or(0));
    tokio::task::spawn_local(async move {
        let mut turn = Deadline::new();
        turn.set(now.after(wait).instant);
        turn.passed().await;
        store.keep_promise(hash, at);
    });
}

/// `None` unless it is of the same origin and would be admitted.
fn of_reference(request: &Request, reference: &[u8]) -> Option<Request> {
    let (path, query) = resolve(request, reference)?;
    let mut other = keyed::with_method(request, Method::Get);
    (other.descent.is_internal, other.route.is_rewritten) = (false, false);
    (other.route.is_outside, other.route.extends_alias) = (false, false);
    other.route.arguments = Arguments::Original;
    other.received.head.path = appended(&mut other.received.bytes, &path);
    let end = match &query {
        Some(query) => {
            other.received.bytes.push(b'?');
            let span = appended(&mut other.received.bytes, query);
            other.received.head.query = Some(span);
            span.end
        }
        None => {
            other.received.head.query = None;
            other.received.head.path.end
        }
    };
    other.received.head.target = Span { start: other.received.head.path.start, end };
    let settled = admission::admit(&mut other).and_then(|()| imagined::settle(&mut other));
    settled.ok().map(|_| other)
}

fn appended(bytes: &mut Vec<u8>, text: &[u8]) -> Span {
    let start = bytes.len();
    bytes.extend_from_slice(text);
    Span::new(start, bytes.len())
}

/// Path and query of a reference relative to the request's target (RFC 3986 §5.2); `None` for another origin.
fn resolve(request: &Request, reference: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let scheme: &[u8] = if request.connection.tls.is_some() { b"https" } else { b"http" };
    let host = match request.received.head.authority {
        Some(span) => span.of(&request.received.bytes),
        None => request.field(FieldId::Host).unwrap_or(&request.route.host),
    };
    let base = Reference {
        scheme: Some(scheme),
        authority: Some(host),
        path: request.received.head.path.of(&request.received.bytes),
        query: request.received.head.query.map(|span| span.of(&request.received.bytes)),
    };
    let target = Reference::read(reference)?.resolved(&base);
    target.is_same_origin(&base).then_some((target.path, target.query))
}
