//! Writing entries into their files, behind the answer: nobody waits for it.
//!
//! What waits to be written is bounded; beyond that an entry is written by a later round of tidying, if it is still stored
//! then. Large bodies are written while they arrive, by `fill`, and given their names here. Next: `disk/write`.

use super::{PENDING, Store};
use crate::body::{Body, FileBody};
use crate::disk::{self, Disk, Identity};
use crate::entry::{Entry, Variant};
use crate::file_format;
use crate::key::Key;
use crate::now::Now;
use crate::variants::{self, BaseFile, FilePlace};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An answer's file, and whose it is.
pub(crate) struct Placed<'a> {
    pub(crate) key: &'a Key,
    pub(crate) variant: Option<&'a Variant>,
    pub(crate) file: FilePlace,
}

impl Store {
    /// Which file is an entry's. Blocks.
    pub(crate) fn place(&self, key: &Key, values: Option<&[u8]>) -> FilePlace {
        // Memory does not know of every file that others remove.
        let is_there =
            || self.disk.as_ref().is_some_and(|disk| disk.path(&variants::own(key.bytes())).exists());
        let base = self.memory.base_of(key).filter(|_| is_there());
        variants::place(key.bytes(), base.as_ref(), values, disk::random_id)
    }

    /// Writes an entry to disk, off the loop. `began` is when its fill was granted.
    pub(crate) fn save(self: &Arc<Self>, entry: &Arc<Entry>, began: u64, now: Now) {
        let Some(disk) = self.disk.clone() else { return };
        let cost = entry.cost();
        let waiting = self.pending.fetch_add(cost, Ordering::Relaxed) + cost;
        let pending = Pending { store: self.clone(), cost };
        if waiting > PENDING {
            // A later round of tidying finds it, if it is still stored then.
            entry.set_unwritten(true);
            self.unwritten.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let entry = entry.clone();
        self.behind.push(move || pending.store.write(&disk, &entry, began, now));
    }

    fn write(&self, disk: &Disk, entry: &Arc<Entry>, began: u64, now: Now) {
        if !self.memory.spares(entry) {
            return;
        }
        let key = Key::new(entry.key(), self.hash(entry.key()));
        let place = self.place(&key, values_of(entry));
        let vary = entry.variant.as_ref().map(|variant| (&*variant.fields, &*variant.values));
        let head = file_format::encode_head(entry.key(), vary, entry.head());
        let id = entry.body_in_file().map_or_else(disk::random_id, |body| body.id);
        let identity = Identity { id, epoch: place.epoch, born: entry.born() };
        let Some(mut spool) = disk.begin(&head, identity, entry.length()) else { return };
        let written = match &entry.body() {
            Body::Memory(held) => disk.append(&mut spool, std::slice::from_ref(held)),
            Body::File(body) => disk.copy_body(&mut spool, body),
        };
        spool.set_coded(file_format::encode_coded(
            entry.coded_bodies().map(|(coding, body)| (coding, &body[..])),
        ));
        if written {
            let placed = Placed { key: &key, variant: entry.variant.as_deref(), file: place };
            self.commit(disk, spool, placed, began, now);
        }
    }

    /// Gives a written file its name; `began` is the fill's place in the order. Blocks.
    pub(crate) fn commit(
        &self,
        disk: &Disk,
        spool: disk::Spool,
        Placed { key, variant, file }: Placed<'_>,
        began: u64,
        now: Now,
    ) -> Option<FileBody> {
        let is_current = || self.memory.purged_at(key.hash()) <= began;
        let body = disk.commit(spool, &file.name, (began, key.hash()), now, is_current)?;
        if file.is_own {
            let values = variant.map(|variant| variant.values.clone());
            let base = BaseFile { epoch: file.epoch, values };
            self.memory.written(key, variant.map(|variant| &*variant.fields), base);
        }
        Some(body)
    }
}

/// Bytes that wait to be written; no longer once it is dropped, written or not.
struct Pending {
    store: Arc<Store>,
    cost: u64,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.store.pending.fetch_sub(self.cost, Ordering::Relaxed);
    }
}

/// What an entry's request said in the fields that the key varies by.
pub(super) fn values_of(entry: &Entry) -> Option<&[u8]> {
    entry.variant.as_ref().map(|variant| &*variant.values)
}
