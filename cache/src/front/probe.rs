//! A look at the disk for a key that memory does not have, off the loop, and what memory learns of it.
//!
//! The key's own file says what the key varies by; a request of another variant needs a second file. What a purge goes for is
//! not brought back. Next: `variants` (which file is whose), `disk/read`.

use super::{Hit, Lookup, Prepared, answer, look_up};
use crate::body::Body;
use crate::disk::{Disk, Loaded};
use crate::entry::{Entry, Variant};
use crate::memory::{Asked, Grant, Put};
use crate::now::Now;
use crate::permit::FillPermit;
use crate::policy::Asker;
use crate::purges::Verdict;
use crate::store::Store;
use crate::variants::{self, FileName, OwnFile, Wanted};
use millstream_conf::model::ProxyCache;
use millstream_net::blocking;
use millstream_wire::Fields;
use std::rc::Rc;
use std::sync::Arc;

/// Looks at the disk for one request; more are only needed where others change the key at the same time.
const PROBES: usize = 3;

/// The right to look for a key's file; others who ask for the key wait for it.
#[derive(Debug)]
pub struct DiskProbe {
    permit: FillPermit,
    asker: Asker,
}

impl DiskProbe {
    pub(super) fn new(permit: FillPermit, asker: Asker) -> DiskProbe {
        DiskProbe { permit, asker }
    }

    /// Looks, off the loop, and gives what there is for the request now. Never [`Lookup::Disk`].
    pub async fn load(self, request: Fields<'_>, conf: &ProxyCache, now: Now) -> Lookup {
        let DiskProbe { mut permit, asker } = self;
        for _ in 0..PROBES {
            let store = permit.store().clone();
            let grant = permit.grant().clone();
            let unkept = read(&store, &grant, request, now).await;
            // The line has ended; if this future was dropped before, the permit has given it back.
            drop(permit);
            if let Some(entry) = unkept {
                let is_fresh = entry.is_fresh(now);
                let hit = Rc::new(Hit { entry, prepared: Prepared::default() });
                return if is_fresh { Lookup::Fresh(hit) } else { Lookup::Scarce };
            }
            let (key, hash) = (grant.key.bytes(), grant.key.hash());
            let asked = Asked { key, hash, request, conf, now, asker, counts_use: false };
            let handle = |entry| Rc::new(Hit { entry, prepared: Prepared::default() });
            match answer(&store, &asked, look_up(&store, &asked), handle) {
                Lookup::Disk(again) => permit = again.permit,
                lookup => return lookup,
            }
        }
        Lookup::Scarce
    }
}

/// Reads what the disk has for a key and puts it in memory; gives it where memory has no room. The line has ended
/// afterwards.
async fn read(store: &Arc<Store>, grant: &Grant, request: Fields<'_>, now: Now) -> Option<Arc<Entry>> {
    let Some(disk) = store.disk.clone() else {
        store.memory.end(grant);
        return None;
    };
    let in_memory = store.largest_in_memory();
    let file = |name| {
        let (disk, key) = (disk.clone(), grant.key.clone());
        blocking::run(move || disk.read(&name, &key, in_memory, now))
    };
    let name = variants::own(grant.key.bytes());
    let Some(mut loaded) = file(name).await else {
        store.memory.absent_on_disk(grant);
        return None;
    };
    let own = OwnFile::of(loaded.epoch, loaded.head.vary.take());
    if own.variant.is_none() && !obeys(store, grant, &mut loaded, now) {
        remove(&disk, name, grant).await;
        store.memory.absent_on_disk(grant);
        return None;
    }
    store.memory.found_on_disk(grant, &own);
    let (name, wanted) = match own.wanted(grant.key.bytes(), request) {
        Wanted::Own => {
            let Some(variant) = own.variant else { return insert(store, grant, (&name, loaded), None, now) };
            // Where a purge goes for it, it stays all the same: variants that are in other files count only beside it.
            if !obeys(store, grant, &mut loaded, now) {
                absent(store, grant, &variant.values);
                return None;
            }
            return insert(store, grant, (&name, loaded), Some(variant), now);
        }
        Wanted::Beside(name, wanted) => (name, wanted),
    };
    let Some(mut other) = file(name).await else {
        absent(store, grant, &wanted);
        return None;
    };
    match own.beside(&wanted, other.epoch, other.head.vary.take()) {
        Some(variant) if obeys(store, grant, &mut other, now) => {
            insert(store, grant, (&name, other), Some(variant), now)
        }
        // Purged, or what it belonged to is gone, and so is what it says.
        _ => {
            remove(&disk, name, grant).await;
            absent(store, grant, &wanted);
            None
        }
    }
}

/// Brings what was read in line with the purges since it was stored. False where it is gone.
fn obeys(store: &Store, grant: &Grant, loaded: &mut Loaded, now: Now) -> bool {
    let purges = &store.memory.purges;
    purges.outnumber(loaded.born);
    let head = &mut loaded.head.head;
    match purges.verdict(loaded.born, &head.tags, grant.key.text()) {
        Verdict::Untouched(upto) => loaded.born = upto,
        Verdict::Soft { at, upto } => {
            let until = &mut head.lifetime.fresh_until;
            *until = (*until).min(at).min(now.unix_milliseconds);
            loaded.born = upto;
        }
        Verdict::Hard => return false,
    }
    true
}

/// Removes a file that was read; one that has taken its place meanwhile stays.
async fn remove(disk: &Arc<Disk>, name: FileName, grant: &Grant) {
    let (disk, order) = (disk.clone(), grant.order);
    blocking::run(move || disk.unlink(&name, order)).await;
}

/// The variant has no file. Where the request turned out to belong to another variant than it was taken for, the line
/// only ends: the next look-up knows better.
fn absent(store: &Store, grant: &Grant, wanted: &[u8]) {
    if grant.values.as_deref() == Some(wanted) {
        store.memory.absent_on_disk(grant);
    } else {
        store.memory.end(grant);
    }
}

/// Keeps what was read in memory, and ends the line. Gives it, with its body left in the file, where there is no room.
fn insert(
    store: &Store,
    grant: &Grant,
    (name, loaded): (&FileName, Loaded),
    variant: Option<Variant>,
    now: Now,
) -> Option<Arc<Entry>> {
    // What was read is as old as its file: whatever was asked for since then is newer.
    let order = store.disk.as_ref().map_or(0, |disk| disk.order(name));
    let variant = variant.map(Arc::new);
    let entry = |body: Body| {
        let head = loaded.head.head.view();
        Arc::new(Entry::new(grant.key.bytes(), variant.clone(), (order, loaded.born), head, body))
    };
    let body = match &loaded.body {
        Body::Memory(held) => Body::Memory(store.memory.loans.hold((**held).clone())),
        body => body.clone(),
    };
    let whole = entry(body);
    for (coding, body) in &loaded.coded {
        whole.keep_coded(*coding, store.memory.loans.hold(body.clone()));
    }
    match store.memory.put(grant, &whole, now) {
        Put::Stored => None,
        // Not asked of the disk again for this request: memory knows better.
        Put::Outdated => {
            store.memory.absent_on_disk(grant);
            None
        }
        // An answer all the same, and the file is there for the next one.
        Put::NoRoom => Some(entry(Body::File(loaded.file.clone()))),
    }
}
