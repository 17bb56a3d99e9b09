//! The right to make a coded form of an entry's body, which one thread has at a time.
//!
//! What is made is kept beside the plain body; making it is for whoever holds the right. Next: `coded`, the list.

use super::Store;
use crate::entry::Entry;
use bytes::Bytes;
use millstream_wire::{Coding, FieldId};
use std::sync::Arc;

/// The right to make a coded form of an entry's body; dropping it frees it for the next.
#[derive(Debug)]
pub struct CodingPermit {
    store: Arc<Store>,
    entry: Arc<Entry>,
    coding: Coding,
}

impl CodingPermit {
    /// For one thread at a time; only if the body is in memory and plain.
    pub fn claim(store: &Arc<Store>, entry: &Arc<Entry>, coding: Coding) -> Option<CodingPermit> {
        let plain = !entry.head().fields().has(FieldId::ContentEncoding);
        let is_worth_it = plain && entry.body_in_memory().is_some() && !entry.is_retired();
        let claimed = is_worth_it && entry.claim_coding(coding);
        claimed.then(|| CodingPermit { store: store.clone(), entry: entry.clone(), coding })
    }

    pub fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    /// Keeps the coded body beside the plain one, counted in the zone's bytes. False if there is no room or
    /// the entry has been replaced. A later round of tidying rewrites the file with all coded bodies made by
    /// then.
    pub fn set(self, body: Bytes) -> bool {
        let body = self.store.memory.shards.loans.hold(body);
        let kept = self.store.memory.shards.add_coded(&self.entry, self.coding, body);
        if kept && self.store.tier.is_some() {
            self.entry.marks.set_unwritten(true);
        }
        kept
    }
}

impl Drop for CodingPermit {
    fn drop(&mut self) {
        // Once there is a coded body a claim is refused anyhow.
        self.entry.marks.unclaim_coding(self.coding);
    }
}
