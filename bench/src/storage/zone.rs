//! A zone in memory and the two things that are done with it: look a key up, store an answer.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use millstream_cache::policy::{Lifetime, Revalidation};
use millstream_cache::{Front, Lookup, Now, Store, StoredHead};
use millstream_conf::model::{CacheZone, ProxyCache, Template};
use millstream_wire::{Fields, Headers};

pub(crate) struct Zone {
    pub(crate) store: Arc<Store>,
    front: Front,
    conf: ProxyCache,
    now: Now,
}

impl Zone {
    pub(crate) fn open(bytes: u64, keys: u64) -> Zone {
        let zone = CacheZone {
            name: "bench".to_owned(),
            keys_size: keys * 128,
            memory: bytes,
            ..CacheZone::default()
        };
        let store = Store::open(&zone, None, Default::default()).expect("a zone in memory opens");
        let conf = ProxyCache { key: Template::literal("k"), ..ProxyCache::default() };
        Zone { front: Front::new(store.clone()), store, conf, now: Now::read() }
    }

    /// Whether memory holds the key; if not, stores the response.
    pub(crate) fn ask(&mut self, key: &[u8], fields: Fields<'_>, body: &Bytes) -> bool {
        match self.front.lookup(key, Fields::default(), &self.conf, self.now) {
            Lookup::Fresh(_) => true,
            Lookup::Miss(permit) => {
                let head = StoredHead::new(200, fields, Some(body.len() as u64), for_ever(), self.now);
                let mut fill = permit.begin(head, Fields::default(), self.now);
                fill.push(body.clone());
                // A body in memory has nothing to wait for.
                let finished = pin!(fill.finish()).poll(&mut Context::from_waker(Waker::noop()));
                assert!(matches!(finished, Poll::Ready(_)), "it is all there");
                false
            }
            _ => false,
        }
    }
}

pub(crate) fn headers(lines: &[(&str, &str)]) -> Headers {
    let mut headers = Headers::new();
    lines.iter().for_each(|(name, value)| headers.push(name.as_bytes(), value.as_bytes()));
    headers
}

fn for_ever() -> Lifetime {
    Lifetime {
        fresh_until: i64::MAX,
        initial_age: Duration::ZERO,
        stale_while_revalidate: None,
        stale_if_error: None,
        revalidation: Revalidation::Free,
        vary: Default::default(),
        public: false,
        always_validate: false,
    }
}
