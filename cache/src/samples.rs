//! Samples for the tests of this crate: a zone, a location's settings, heads, and moments of a clock of their own.
//!
//! Only compiled for tests. The clock lies an hour ahead of the real one, so that no real timer ever fires.

use crate::fill::Fill;
use crate::front::{Front, Lookup};
use crate::head::StoredHead;
use crate::now::Now;
use crate::permit::FillPermit;
use crate::policy::{Lifetime, Revalidation};
use crate::store::Store;
use bytes::Bytes;
use millstream_conf::model::{CacheZone, ProxyCache, Template};
use millstream_telemetry::error_log::ErrorLogs;
use millstream_wire::{Fields, Headers};
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

pub(crate) fn start() -> Now {
    let instant = millstream_net::clock::now() + Duration::from_secs(3600);
    Now { unix_milliseconds: 1_795_255_200_000, instant }
}

pub(crate) fn zone(path: Option<&Path>) -> CacheZone {
    CacheZone {
        name: "zone".to_owned(),
        span: Default::default(),
        path: path.map(Path::to_path_buf),
        levels: vec![1, 2],
        keys_size: 10 << 20,
        // Files are tidied by the real clock, which is not the tests'.
        inactive: Duration::from_secs(if path.is_some() { 1 << 31 } else { 600 }),
        max_size: None,
        min_free: 0,
        use_temp_path: false,
        memory: 16 << 20,
        ..CacheZone::default()
    }
}

pub(crate) fn store(zone: &CacheZone) -> Arc<Store> {
    Store::open(zone, None, ErrorLogs::default()).expect("the directory is there")
}

pub(crate) fn conf() -> ProxyCache {
    ProxyCache { key: Template::literal("k"), ..ProxyCache::default() }
}

pub(crate) fn lifetime(now: Now, fresh: u64) -> Lifetime {
    Lifetime {
        fresh_until: now.after(Duration::from_secs(fresh)).unix_milliseconds,
        initial_age: Duration::ZERO,
        stale_while_revalidate: None,
        stale_if_error: None,
        revalidation: Revalidation::Free,
        vary: Default::default(),
        public: false,
        always_validate: false,
    }
}

pub(crate) fn headers(lines: &[(&str, &str)]) -> Headers {
    let mut headers = Headers::new();
    lines.iter().for_each(|(name, value)| headers.push(name.as_bytes(), value.as_bytes()));
    headers
}

pub(crate) fn head(lines: &[(&str, &str)], length: Option<u64>, fresh: u64, now: Now) -> StoredHead {
    StoredHead::new(200, headers(lines).view(), length, lifetime(now, fresh), now)
}

/// Runs a future that has nothing to wait for.
pub(crate) fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("there was something to wait for"),
    }
}

pub(crate) fn miss(lookup: Lookup) -> FillPermit {
    match lookup {
        Lookup::Miss(permit) => permit,
        other => panic!("not a miss: {other:?}"),
    }
}

pub(crate) fn begin(permit: FillPermit, lines: &[(&str, &str)], request: Fields<'_>, now: Now) -> Fill {
    permit.begin(head(lines, None, 60, now), request, now)
}

/// With a body that is fresh for 60 s.
pub(crate) fn fill(front: &mut Front, key: &[u8], body: &[u8], now: Now) {
    let permit = miss(front.lookup(key, Fields::default(), &conf(), now));
    let mut fill = begin(permit, &[], Fields::default(), now);
    fill.push(Bytes::copy_from_slice(body));
    ready(fill.finish());
}
