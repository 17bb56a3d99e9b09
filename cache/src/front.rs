//! The door that requests come through: one per worker thread and zone, with handles to what is hot.
//!
//! A hit that repeats is answered from the thread's own handle: the key is hashed and compared, the entry's mark is
//! read, and a count that no other thread sees goes up. Handles are bounded, and one whose entry has been replaced or
//! removed is dropped when it is come upon. Everything else goes to the store. Next: `memory/lookup`.

use crate::entry::{Entry, Variant};
use crate::key::Key;
use crate::memory::{Asked, Found, Grant};
use crate::now::Now;
use crate::permit::{FillPermit, Waiter};
use crate::policy::Asker;
use crate::store::{Changed, Store};
use millstream_conf::model::ProxyCache;
use millstream_wire::Fields;
use std::any::Any;
use std::cell::RefCell;
use std::net::{IpAddr, Ipv6Addr};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

mod probe;
#[cfg(test)]
mod tests;

pub use probe::DiskProbe;

/// Handles in a set: their hashes fill one cache line.
const WAYS: usize = 8;
/// Initial and maximum sets: 16,384 handles.
const FEWEST_SETS: usize = 32;
const MOST_SETS: usize = 2048;
const PREPARED: usize = 4;
/// Sets that one call of [`Front::sweep`] examines.
const SWEEP: usize = 256;

/// A worker's access to a zone.
#[derive(Debug)]
pub struct Front {
    store: Arc<Store>,
    sets: Vec<Set>,
    scratch: Vec<u8>,
    turn: usize,
    displaced: usize,
    swept: usize,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Set {
    hashes: [u64; WAYS],
    hits: [Option<Rc<Hit>>; WAYS],
}

/// A worker's handle to an entry.
#[derive(Debug)]
pub struct Hit {
    pub entry: Arc<Entry>,
    /// What the server has made from the entry, ready to be sent.
    pub prepared: Prepared,
}

impl Deref for Hit {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.entry
    }
}

/// Up to four values made from an entry, each under a number of the maker's choice.
#[derive(Default)]
pub struct Prepared(RefCell<Vec<(u64, Rc<dyn Any>)>>);

impl Prepared {
    #[inline]
    pub fn find<T: 'static>(&self, tag: u64) -> Option<Rc<T>> {
        let values = self.0.borrow();
        let (_, value) = values.iter().find(|(found, _)| *found == tag)?;
        value.clone().downcast().ok()
    }

    /// Beyond four, the oldest is dropped.
    pub fn keep<T: 'static>(&self, tag: u64, value: Rc<T>) {
        let mut values = self.0.borrow_mut();
        values.retain(|(found, _)| *found != tag);
        if values.len() == PREPARED {
            values.remove(0);
        }
        values.push((tag, value));
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Prepared({})", self.0.borrow().len())
    }
}

/// A moment among the fills and purges of a zone.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    order: u64,
    born: u64,
}

/// What the cache has for a request; each case holds exactly what it allows.
#[derive(Debug)]
pub enum Lookup {
    /// Respond with it.
    Fresh(Rc<Hit>),
    /// Respond with it; it is in use and near its end (`proxy_cache_refresh_ahead`): refresh it in the
    /// background.
    Ahead(Rc<Hit>, FillPermit),
    /// No longer fresh. With a permit it is yours to update, in the background if [`Entry::may_serve_stale`]
    /// allows it to be sent meanwhile. Without one another request updates it and it may be sent.
    Stale(Rc<Hit>, Option<FillPermit>),
    Miss(FillPermit),
    /// The client has changed what is stored, and its invalidation is still delayed
    /// (`proxy_cache_invalidation`): ask the upstream and fill.
    OwnWrite(FillPermit),
    /// Ask the upstream and store nothing: `proxy_cache_min_uses` is not reached, or there is no room.
    Scarce,
    /// What is stored, or arriving, is not for this request (`proxy_cache_credentials`): ask the upstream for
    /// this one alone. The response is stored if it is public.
    Apart(FillPermit),
    /// Another request asks; wait. The stale entry is for a failure of the upstream.
    Busy(Waiter, Option<Rc<Hit>>),
    /// It may be on disk: [`DiskProbe::load`].
    Disk(DiskProbe),
}

impl Front {
    pub fn new(store: Arc<Store>) -> Front {
        let sets = (0..FEWEST_SETS).map(|_| Set::default()).collect();
        Front { store, sets, scratch: Vec::new(), turn: 0, displaced: 0, swept: 0 }
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Memory only; returns at once.
    #[inline]
    pub fn lookup(&mut self, key: &[u8], request: Fields<'_>, conf: &ProxyCache, now: Now) -> Lookup {
        self.lookup_for(
            (key, None),
            (request, Asker::Anybody, || IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
            conf,
            now,
        )
    }

    /// As [`Front::lookup`], with who asks and the client's address, which is only needed if that client's
    /// own change of the key is delayed ([`Store::turn`]). `whole` is the key of the whole if `key` is that
    /// of a slice.
    #[inline]
    pub fn lookup_for(
        &mut self,
        (key, whole): (&[u8], Option<&[u8]>),
        (request, asker, client): (Fields<'_>, Asker, impl FnOnce() -> IpAddr),
        conf: &ProxyCache,
        now: Now,
    ) -> Lookup {
        let hash = self.store.memory.hash(key);
        let changed = whole.map_or(hash, |whole| self.store.hash(whole));
        let since = self.store.own_write(changed, client);
        let asked = Asked { key, hash, request, conf, now, asker, counts_use: true, since };
        if since == 0
            && let Some(hit) = self.find(&asked)
        {
            return Lookup::Fresh(hit);
        }
        match look_up(&self.store, &asked) {
            // Without a clone of the store, whose count all threads share.
            Found::Fresh(entry) => Lookup::Fresh(self.handle(entry)),
            found => {
                let store = self.store.clone();
                answer(&store, &asked, found, |entry| self.handle(entry))
            }
        }
    }

    /// The right to store a response without a look-up, beside whoever fills the key (`proxy_cache_bypass`):
    /// the stored response is neither used nor waited for, and the new one replaces it.
    pub fn beside(&self, key: &[u8], asker: Asker) -> FillPermit {
        self.beside_since(key, asker, self.moment())
    }

    /// As [`Front::beside`], for a request sent after this moment: a purge since then applies to its
    /// response.
    pub fn beside_since(&self, key: &[u8], asker: Asker, Moment { order, born }: Moment) -> FillPermit {
        let key = Arc::new(Key::new(key, self.store.memory.hash(key)));
        let grant = Grant { key, values: None, right: None, order, born, since: None, asker };
        FillPermit::new(self.store.clone(), grant)
    }

    /// Now, in the order of fills and purges. Take it before sending a request whose response may turn out to
    /// be worth storing.
    pub fn moment(&self) -> Moment {
        let memory = &self.store.memory;
        Moment { order: memory.next_order(), born: memory.purges.generation() }
    }

    /// As [`Store::invalidate`], after an unsafe request that changed the resource. `own` is the right to
    /// store the response to that same request, which stays valid. If a file may exist, the future waits
    /// until it is gone, at most 1 s, so that the end of this process does not bring it back; the work is
    /// done even if it is dropped.
    pub fn invalidate_after(
        &self,
        changed: Changed<'_>,
        own: Option<&mut FillPermit>,
    ) -> Option<impl Future<Output = ()> + use<>> {
        self.store.invalidate_after(changed, own.and_then(|own| own.grant_in(&self.store)))
    }

    /// Fresh or not, in memory only, without counting as a use.
    pub fn peek(&self, key: &[u8], request: Fields<'_>) -> Option<Arc<Entry>> {
        self.store.memory.peek(key, request)
    }

    /// Drops handles to entries that are no longer stored, some at each call. Otherwise they are dropped when
    /// they are met, which may be never for an idle worker. Once a second is enough.
    pub fn sweep(&mut self) {
        let count = self.sets.len();
        // What handles hold is not free to be used by others.
        let most = if self.store.memory.shards.loans.is_pressed() { count } else { SWEEP.min(count) };
        for offset in 0..most {
            let set = &mut self.sets[(self.swept + offset) % count];
            for hit in &mut set.hits {
                hit.take_if(|hit| hit.entry.is_retired());
            }
        }
        self.swept = (self.swept + most) % count;
    }

    #[inline]
    fn find(&mut self, asked: &Asked<'_>) -> Option<Rc<Hit>> {
        let Asked { key, hash, request, conf, now, .. } = *asked;
        let generation = self.store.memory.purges.generation();
        let index = hash as usize & (self.sets.len() - 1);
        let set = &mut self.sets[index];
        for way in 0..WAYS {
            if set.hashes[way] != hash {
                continue;
            }
            let Some(hit) = &set.hits[way] else { continue };
            let entry = &*hit.entry;
            if entry.is_retired() {
                set.hits[way] = None;
                continue;
            }
            let fits = |variant: &Variant, scratch| variant.fits(request, scratch);
            let same = entry.key() == key
                && entry.variant.as_ref().is_none_or(|variant| fits(variant, &mut self.scratch));
            if same {
                // One that is stale, purged, for others, or to be refreshed is the store's to decide about.
                let ours = entry.is_fresh(now)
                    && entry.meets(asked.needs())
                    && (entry.born() >= generation || self.store.memory.spares(entry))
                    && (conf.refresh_ahead.is_zero() || !entry.wants_refresh(conf.refresh_ahead, now));
                return ours.then(|| {
                    entry.marks.mark_used();
                    hit.clone()
                });
            }
        }
        None
    }

    fn handle(&mut self, entry: Arc<Entry>) -> Rc<Hit> {
        let hash = self.store.hash(entry.key());
        let index = hash as usize & (self.sets.len() - 1);
        let set = &mut self.sets[index];
        let held = set.hits.iter().flatten().find(|hit| Arc::ptr_eq(&hit.entry, &entry));
        if let Some(hit) = held {
            return hit.clone();
        }
        let hit = Rc::new(Hit { entry, prepared: Prepared::default() });
        let free = set.hits.iter().position(|held| held.as_ref().is_none_or(|held| held.entry.is_retired()));
        let way = free.unwrap_or_else(|| {
            self.turn = self.turn.wrapping_add(1);
            self.displaced += 1;
            self.turn % WAYS
        });
        set.hashes[way] = hash;
        set.hits[way] = Some(hit.clone());
        if self.displaced > self.sets.len() && self.sets.len() < MOST_SETS {
            self.grow();
        }
        hit
    }

    fn grow(&mut self) {
        self.displaced = 0;
        self.swept = 0;
        let count = self.sets.len() * 2;
        let old = std::mem::replace(&mut self.sets, (0..count).map(|_| Set::default()).collect());
        for hit in old.into_iter().flat_map(|set| set.hits).flatten() {
            let hash = self.store.hash(hit.entry.key());
            let set = &mut self.sets[hash as usize & (count - 1)];
            if let Some(way) = set.hits.iter().position(Option::is_none) {
                set.hashes[way] = hash;
                set.hits[way] = Some(hit);
            }
        }
    }
}

fn look_up(store: &Store, asked: &Asked<'_>) -> Found {
    store.memory.look_up(asked, |slot, values| store.may_be_on_disk(slot, values))
}

fn answer(
    store: &Arc<Store>,
    asked: &Asked<'_>,
    found: Found,
    mut hit: impl FnMut(Arc<Entry>) -> Rc<Hit>,
) -> Lookup {
    let permit = |grant: Grant| FillPermit::new(store.clone(), grant);
    match found {
        Found::Fresh(entry) => Lookup::Fresh(hit(entry)),
        Found::Ahead(entry, grant) => Lookup::Ahead(hit(entry), permit(grant)),
        Found::Stale(entry, grant) => Lookup::Stale(hit(entry), grant.map(permit)),
        Found::Miss(grant) if asked.since > 0 => Lookup::OwnWrite(permit(grant)),
        Found::Miss(grant) => Lookup::Miss(permit(grant)),
        Found::Apart(grant) => Lookup::Apart(permit(grant)),
        Found::Scarce => Lookup::Scarce,
        Found::Busy(slot, grant, patience, entry) => {
            let waiter = Waiter::new(store.clone(), (slot, grant), patience, asked.needs());
            Lookup::Busy(waiter, entry.map(hit))
        }
        Found::Probe(grant) => Lookup::Disk(DiskProbe::new(permit(grant), asked.asker)),
    }
}
