//! Looks for a key that memory does not have, off the loop, and tells memory what there was.
//!
//! The key's own file says what the key varies by; a request of another variant needs a second file. What a purge goes for is
//! not brought back. Next: `variants` (which file is whose), `disk/read`.

use super::super::{Sight, Store};
use super::Tier;
use crate::body::Body;
use crate::disk::Loaded;
use crate::entry::{Entry, Variant};
use crate::key::Key;
use crate::memory::{Grant, Put, as_ruled};
use crate::now::Now;
use crate::purges::Verdict;
use crate::variants::{self, FileName, OwnFile, Wanted};
use millstream_net::blocking;
use millstream_wire::Fields;
use std::sync::Arc;

impl Sight {
    /// The key's files: the one under its own name, and the one of the variant for this request. The second
    /// value is the index of the latter. Bodies stay in the files.
    pub async fn on_disk(
        store: &Store,
        key: &[u8],
        request: Fields<'_>,
        now: Now,
    ) -> (Vec<Arc<Entry>>, Option<usize>) {
        let Some(tier) = store.tier.clone() else { return (Vec::new(), None) };
        let key = Arc::new(Key::new(key, store.memory.hash(key)));
        let look = |name| {
            let (tier, key) = (tier.clone(), key.clone());
            blocking::run(move || tier.disk.peek(&name, key.bytes()))
        };
        let entry = |loaded: Loaded, variant: Option<Variant>| {
            let (variant, head) = (variant.map(Arc::new), loaded.head.head.view());
            let entry = Entry::new(key.bytes(), variant, (0, loaded.born), head, loaded.body);
            as_ruled(&store.memory.purges.rules(), &Arc::new(entry), now)
        };
        let Some(mut loaded) = look(variants::own(key.bytes())).await else { return (Vec::new(), None) };
        let own = OwnFile::of(loaded.epoch, loaded.head.vary.take());
        let mut entries: Vec<_> = entry(loaded, own.variant.clone()).into_iter().collect();
        let Wanted::Beside(name, wanted) = own.wanted(key.bytes(), request) else {
            let chosen = (!entries.is_empty()).then_some(0);
            return (entries, chosen);
        };
        let Some(mut loaded) = look(name).await else { return (entries, None) };
        let variant = own.beside(&wanted, loaded.epoch, loaded.head.vary.take());
        let found = variant.and_then(|variant| entry(loaded, Some(variant)));
        let chosen = found.is_some().then_some(entries.len());
        entries.extend(found);
        (entries, chosen)
    }
}

pub(crate) struct Looking<'a> {
    store: &'a Store,
    tier: Arc<Tier>,
    grant: &'a Grant,
    now: Now,
}

impl Looking<'_> {
    /// Reads what there is for a key into memory; returns it if memory has no room. Ends the line.
    pub(crate) async fn look(
        store: &Arc<Store>,
        grant: &Grant,
        request: Fields<'_>,
        now: Now,
    ) -> Option<Arc<Entry>> {
        match store.tier.clone() {
            Some(tier) => Looking { store, tier, grant, now }.find(request).await,
            None => {
                grant.end(&store.memory);
                None
            }
        }
    }

    async fn find(&self, request: Fields<'_>) -> Option<Arc<Entry>> {
        let key = self.grant.key.bytes();
        let name = variants::own(key);
        let Some(mut loaded) = self.read(name).await else { return self.absent() };
        let own = OwnFile::of(loaded.epoch, loaded.head.vary.take());
        if own.variant.is_none() && !self.obeys(&mut loaded) {
            self.remove(name).await;
            return self.absent();
        }
        self.store.memory.shards.found_on_disk(self.grant, &own);
        let (name, wanted) = match own.wanted(key, request) {
            Wanted::Own => {
                let Some(variant) = own.variant else { return self.insert((&name, loaded), None) };
                // Where a purge goes for it, it stays all the same: variants that are in other files count only beside it.
                return match self.obeys(&mut loaded) {
                    true => self.insert((&name, loaded), Some(variant)),
                    false => self.without(&variant.values),
                };
            }
            Wanted::Beside(name, wanted) => (name, wanted),
        };
        let Some(mut other) = self.read(name).await else { return self.without(&wanted) };
        match own.beside(&wanted, other.epoch, other.head.vary.take()) {
            Some(variant) if self.obeys(&mut other) => self.insert((&name, other), Some(variant)),
            // Purged, or what it belonged to is gone, and so is what it says.
            _ => {
                self.remove(name).await;
                self.without(&wanted)
            }
        }
    }

    async fn read(&self, name: FileName) -> Option<Loaded> {
        let (tier, key) = (self.tier.clone(), self.grant.key.clone());
        let (in_memory, now) = (self.store.largest_in_memory(), self.now);
        blocking::run(move || tier.disk.read(&name, &key, in_memory, now)).await
    }

    /// A file that replaced it meanwhile stays.
    async fn remove(&self, name: FileName) {
        let (tier, order) = (self.tier.clone(), self.grant.order);
        blocking::run(move || tier.disk.unlink(&name, order)).await;
    }

    /// Applies purges since it was stored. False if it is gone.
    fn obeys(&self, loaded: &mut Loaded) -> bool {
        let purges = &self.store.memory.purges;
        purges.outnumber(loaded.born);
        let head = &mut loaded.head.head;
        match purges.verdict(loaded.born, &head.tags, self.grant.key.text()) {
            Verdict::Untouched(upto) => loaded.born = upto,
            Verdict::Soft { at, upto } => {
                let until = &mut head.lifetime.fresh_until;
                *until = (*until).min(at).min(self.now.unix_milliseconds);
                loaded.born = upto;
            }
            Verdict::Hard => return false,
        }
        true
    }

    fn absent(&self) -> Option<Arc<Entry>> {
        self.store.memory.shards.absent_on_disk(self.grant);
        None
    }

    /// The variant has no file. If the request turned out to belong to another variant, the line only ends:
    /// the next look-up knows better.
    fn without(&self, wanted: &[u8]) -> Option<Arc<Entry>> {
        if self.grant.values.as_deref() == Some(wanted) {
            return self.absent();
        }
        self.grant.end(&self.store.memory);
        None
    }

    /// Keeps what was read in memory, and ends the line. Returns it, with its body left in the file, if there
    /// is no room.
    fn insert(&self, (name, loaded): (&FileName, Loaded), variant: Option<Variant>) -> Option<Arc<Entry>> {
        let memory = &self.store.memory;
        // What was read is as old as its file: whatever was asked for since then is newer.
        let order = self.tier.disk.order(name);
        let variant = variant.map(Arc::new);
        let entry = |body: Body| {
            let head = loaded.head.head.view();
            let orders = (order, loaded.born);
            Arc::new(Entry::new(self.grant.key.bytes(), variant.clone(), orders, head, body))
        };
        let body = match &loaded.body {
            Body::Memory(held) => Body::Memory(memory.shards.loans.hold((**held).clone())),
            body => body.clone(),
        };
        let whole = entry(body);
        for (coding, body) in &loaded.coded {
            whole.keep_coded(*coding, memory.shards.loans.hold(body.clone()));
        }
        match memory.put(self.grant, &whole, self.now) {
            Put::Stored => None,
            // Not asked of the disk again for this request: memory knows better.
            Put::Outdated => self.absent(),
            // An answer all the same, and the file is there for the next one.
            Put::NoRoom => Some(entry(Body::File(loaded.file.clone()))),
        }
    }
}
