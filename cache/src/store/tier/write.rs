//! Writes entries into their files, behind the answer: nobody waits for it.
//!
//! What waits to be written is bounded; beyond that an entry is written by a later round of tidying, if it is still stored
//! then. Bodies that are too large for memory are written while they arrive ([`Writing`]). Next: `disk/write`.

use super::super::{Store, values_of};
use super::{PENDING, Tier};
use crate::body::{Body, FileBody};
use crate::disk::{self, Identity, Spool};
use crate::entry::{Entry, Variant};
use crate::file_format;
use crate::key::Key;
use crate::memory::Grant;
use crate::now::Now;
use crate::policy::Reason;
use crate::progress::Progress;
use crate::variants::{self, BaseFile, FilePlace};
use bytes::Bytes;
use millstream_net::blocking;
use std::sync::Arc;
use std::sync::atomic::Ordering;

struct Placed<'a> {
    key: &'a Key,
    variant: Option<&'a Variant>,
    file: FilePlace,
}

impl Store {
    /// Why a response of this length will not be stored, as far as known in advance.
    pub(crate) fn objection(&self, length: u64) -> Option<Reason> {
        if length > self.largest_body() {
            return Some(Reason::TooLarge);
        }
        (length > self.largest_in_memory() && self.is_failing()).then_some(Reason::DiskError)
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.tier.as_ref().is_some_and(|tier| tier.is_failing())
    }

    /// Off the event loop. `began` is when its fill was granted.
    pub(crate) fn save(self: &Arc<Self>, entry: &Arc<Entry>, began: u64, now: Now) {
        let Some(tier) = self.tier.clone() else { return };
        let Some(pending) = Pending::among(&tier, entry.cost()) else {
            // A later round of tidying finds it, if it is still stored then.
            entry.marks.set_unwritten(true);
            return;
        };
        let (store, entry) = (self.clone(), entry.clone());
        tier.behind.push(move || pending.0.write(&store, &entry, began, now));
    }

    /// For a response too large for memory, off the event loop. `None` without a directory, or if it refuses.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        grant: &Grant,
        progress: &Arc<Progress>,
        expected: u64,
    ) -> Option<Box<Writing>> {
        let tier = self.tier.clone()?;
        let (store, grant, progress) = (self.clone(), grant.clone(), progress.clone());
        blocking::run(move || {
            let variant = progress.variant.as_ref();
            let place = tier.place(&store, &grant.key, variant.map(|variant| &*variant.values));
            let vary = variant.map(|variant| (&*variant.fields, &*variant.values));
            let head = file_format::encode_head(grant.key.bytes(), vary, progress.head.view());
            let identity = Identity { id: disk::random_id(), epoch: place.epoch, born: grant.born };
            let spool = tier.disk.begin(&head, identity, expected)?;
            Some(Box::new(Writing { store, tier, spool }))
        })
        .await
    }
}

impl Tier {
    /// Which file is an entry's. Blocks.
    pub(in crate::store) fn place(&self, store: &Store, key: &Key, values: Option<&[u8]>) -> FilePlace {
        // Memory does not know of every file that others remove.
        let is_there = |_: &BaseFile| self.disk.path(&variants::own(key.bytes())).exists();
        let base = store.memory.shards.base_of(key).filter(is_there);
        variants::place(key.bytes(), base.as_ref(), values, disk::random_id)
    }

    fn write(&self, store: &Store, entry: &Arc<Entry>, began: u64, now: Now) {
        if !store.memory.spares(entry) {
            return;
        }
        let key = Key::new(entry.key(), store.hash(entry.key()));
        let place = self.place(store, &key, values_of(entry));
        let vary = entry.variant.as_ref().map(|variant| (&*variant.fields, &*variant.values));
        let head = file_format::encode_head(entry.key(), vary, entry.head());
        let id = entry.body_in_file().map_or_else(disk::random_id, |body| body.id);
        let identity = Identity { id, epoch: place.epoch, born: entry.born() };
        let Some(mut spool) = self.disk.begin(&head, identity, entry.length()) else { return };
        let written = match &entry.body() {
            Body::Memory(held) => self.disk.append(&mut spool, std::slice::from_ref(held)),
            Body::File(body) => self.disk.copy_body(&mut spool, body),
        };
        spool.set_coded(file_format::encode_coded(
            entry.coded_bodies().map(|(coding, body)| (coding, &body[..])),
        ));
        if written {
            let placed = Placed { key: &key, variant: entry.variant.as_deref(), file: place };
            self.commit(store, spool, placed, began, now);
        }
    }

    /// Names a written file; `began` is the fill's place in the order. Blocks.
    fn commit(
        &self,
        store: &Store,
        spool: Spool,
        Placed { key, variant, file }: Placed<'_>,
        began: u64,
        now: Now,
    ) -> Option<FileBody> {
        let is_current = || store.memory.purged_at(key.hash()) <= began;
        let body = self.disk.commit(spool, &file.name, (began, key.hash()), now, is_current)?;
        if file.is_own {
            let values = variant.map(|variant| variant.values.clone());
            let base = BaseFile { epoch: file.epoch, values };
            store.memory.shards.written(key, variant.map(|variant| &*variant.fields), base);
        }
        Some(body)
    }
}

/// The file of an arriving response; removed unless it is finished.
#[derive(Debug)]
pub(crate) struct Writing {
    store: Arc<Store>,
    tier: Arc<Tier>,
    pub(crate) spool: Spool,
}

impl Writing {
    /// Off the event loop; `None`, and the failure counted, if the disk refuses.
    pub(crate) async fn append(mut self: Box<Self>, pieces: Vec<Bytes>) -> Option<Box<Writing>> {
        blocking::run(move || self.tier.disk.append(&mut self.spool, &pieces).then_some(self)).await
    }

    /// Names the file, off the event loop, unless the response was purged meanwhile.
    pub(crate) async fn finish(self, grant: &Grant, progress: &Arc<Progress>, now: Now) -> Option<FileBody> {
        let Writing { store, tier, spool } = self;
        let (grant, progress) = (grant.clone(), progress.clone());
        blocking::run(move || {
            let (key, variant) = (&*grant.key, progress.variant.as_ref());
            if store.memory.purges.rules().go_for(grant.born, &progress.head.tags, key.text()) {
                return None;
            }
            let place = tier.place(&store, key, variant.map(|variant| &*variant.values));
            // The epoch is in the file already. As the key's own file it begins a new one; beside another own file it
            // is only good where that has the same.
            let file = FilePlace { epoch: spool.epoch(), ..place };
            tier.commit(&store, spool, Placed { key, variant, file }, grant.order, now)
        })
        .await
    }
}

/// Bytes that wait to be written; no longer once it is dropped, written or not.
struct Pending(Arc<Tier>, u64);

impl Pending {
    /// `None`, counted, if too much waits.
    fn among(tier: &Arc<Tier>, cost: u64) -> Option<Pending> {
        let waiting = tier.pending.fetch_add(cost, Ordering::Relaxed) + cost;
        let pending = Pending(tier.clone(), cost);
        if waiting > PENDING {
            tier.put_off.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(pending)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(self.1, Ordering::Relaxed);
    }
}
