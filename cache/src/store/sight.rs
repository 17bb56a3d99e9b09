//! What a zone has under a key, for whoever asks why: a look that counts as no use, waits for nobody and changes nothing.
//!
//! It gives what there is; what a request would get of it is `policy`'s to say. Next: `memory/lookup`, which looks, and
//! `store/tier/look` for what is in files.

use super::Store;
use crate::entry::Entry;
use crate::key;
use crate::line::Purpose;
use crate::now::Now;
use crate::policy::Reason;
use crate::purges::{How, Ruling, Scope, number_of_key};
use crate::tags::Tags;
use crate::variants;
use millstream_conf::model::ProxyCache;
use millstream_wire::Fields;
use std::sync::Arc;

/// What is stored under a key.
#[derive(Debug, Clone, Default)]
pub struct Sight {
    /// All variants, as purges have left them.
    pub entries: Vec<Arc<Entry>>,
    /// Which of them this request would get; `None` if its variant is not stored.
    pub chosen: Option<usize>,
    /// Requests for this variant since it was last stored.
    pub uses: u32,
    /// Whether `proxy_cache_min_uses` prevents storing the next response.
    pub is_scarce: bool,
    /// Why the last response was not stored, unless that was forgotten.
    pub refused: Option<Refusal>,
    /// Until when requests do not wait for each other because of that, in milliseconds since 1970; 0 = they
    /// do.
    pub uncacheable_until: i64,
    pub line: Option<LineSight>,
    /// The latest purge that applied to it, as far as known: one by tag only if an entry with the tag is
    /// here.
    pub purge: Option<Ruling>,
    /// The latest unsafe request that invalidated it, in milliseconds since 1970.
    pub invalidated_at: Option<i64>,
    /// The latest failure of the upstream, and the status of the response.
    pub failed: Option<(i64, u16)>,
    /// [`Sight::on_disk`] reads the file.
    pub may_be_on_disk: bool,
}

/// A response that was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    pub reason: Reason,
    /// In milliseconds since 1970.
    pub at: i64,
}

/// The line of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineSight {
    /// The disk is read; otherwise the upstream is asked.
    pub is_reading: bool,
    /// The response has begun to arrive: new requests read along.
    pub is_streaming: bool,
    pub waiting: usize,
}

impl Sight {
    pub fn of(store: &Store, key: &[u8], request: Fields<'_>, conf: &ProxyCache, now: Now) -> Sight {
        let mut sight = Sight::default();
        let mut absent = false;
        if let Some(seen) = store.memory.look_at(key, request, now) {
            absent = seen.absent_on_disk;
            sight.refused = seen.refused.map(|(reason, at)| Refusal { reason, at });
            sight.line = seen.line.map(|(purpose, is_streaming, waiting)| LineSight {
                is_reading: purpose == Purpose::Probe,
                is_streaming,
                waiting,
            });
            (sight.entries, sight.chosen) = (seen.entries, seen.chosen);
            (sight.uses, sight.uncacheable_until) = (seen.uses, seen.uncacheable_until);
        }
        sight.is_scarce = sight.chosen.is_none() && sight.uses.saturating_add(1) < conf.min_uses;
        sight.may_be_on_disk =
            !absent && store.tier.as_ref().is_some_and(|tier| tier.may_have(&variants::own(key)));
        sight.purge = ruling_of(store, &sight.entries, key);
        let number = number_of_key(key::text(key));
        sight.invalidated_at = store.unsafe_requests.find(number).map(|(at, _)| at);
        sight.failed = store.failures.find(number);
        sight
    }
}

/// The latest purge that applies to these entries or to their key, as far as known.
fn ruling_of(store: &Store, entries: &[Arc<Entry>], key: &[u8]) -> Option<Ruling> {
    let heads: Vec<_> = entries.iter().map(|entry| entry.head()).collect();
    let tags = Tags::of_all(heads.iter().map(|head| head.tags));
    let by_rule = store.memory.purges.rules().ruling(&tags, key::text(key));
    let number = number_of_key(key::text(key));
    match store.recent.find(number) {
        Some((at, _)) if by_rule.as_ref().is_none_or(|ruling| ruling.at < at) => {
            let scope = Scope::Key(number);
            Some(Ruling { number: at.unsigned_abs(), at, how: How::Hard, scope })
        }
        _ => by_rule,
    }
}
