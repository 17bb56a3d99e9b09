//! The right to look behind memory for a key that it does not have.
//!
//! Next: `store/tier/look`, the look itself.

use super::{Hit, Lookup, Prepared, answer, look_up};
use crate::memory::Asked;
use crate::now::Now;
use crate::permit::FillPermit;
use crate::policy::Asker;
use crate::store::Looking;
use millstream_conf::model::ProxyCache;
use millstream_wire::Fields;
use std::rc::Rc;

/// Most look-ups on disk for one request; more are only needed if others change the key at the same time.
const PROBES: usize = 3;

/// The right to look for a key's file; others wait for it.
#[derive(Debug)]
pub struct DiskProbe {
    permit: FillPermit,
    asker: Asker,
}

impl DiskProbe {
    pub(super) fn new(permit: FillPermit, asker: Asker) -> DiskProbe {
        DiskProbe { permit, asker }
    }

    /// Off the event loop. Never returns [`Lookup::Disk`].
    pub async fn load(self, request: Fields<'_>, conf: &ProxyCache, now: Now) -> Lookup {
        let DiskProbe { mut permit, asker } = self;
        for _ in 0..PROBES {
            let store = permit.store().clone();
            let grant = permit.grant().clone();
            let unkept = Looking::look(&store, &grant, request, now).await;
            // The line has ended; if this future was dropped before, the permit has given it back.
            drop(permit);
            if let Some(entry) = unkept {
                let is_fresh = entry.is_fresh(now);
                let hit = Rc::new(Hit { entry, prepared: Prepared::default() });
                return if is_fresh { Lookup::Fresh(hit) } else { Lookup::Scarce };
            }
            let (key, hash) = (grant.key.bytes(), grant.key.hash());
            let asked = Asked { key, hash, request, conf, now, asker, counts_use: false, since: 0 };
            let handle = |entry| Rc::new(Hit { entry, prepared: Prepared::default() });
            match answer(&store, &asked, look_up(&store, &asked), handle) {
                Lookup::Disk(again) => permit = again.permit,
                lookup => return lookup,
            }
        }
        Lookup::Scarce
    }
}
