//! Requests that are sent once more without credentials, and what their responses show.
//!
//! A probe is no request of a client: it is only compared with what these got. Before: `credentials`; next: `millstream-server`'s
//! `exchange/probing`, which sends it.

use super::{Ending, Sampled, Shadow};
use crate::digest::BodyDigest;
use crate::mark::Marks;
use crate::response::Storable;
use crate::seen::Seen;
use crate::simulation::Entry;

/// When the next probe may be sent. They are spread, so that no second holds more than are allowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// In milliseconds.
    every: u64,
    last: u64,
}

impl Pace {
    /// Whether a probe is due that is `wanted`; if so, the next one is due later. A clock that was set back delays none.
    pub(super) fn take_if(&mut self, now: u64, wanted: impl FnOnce() -> bool) -> bool {
        let takes = now.wrapping_sub(self.last) >= self.every && wanted();
        if takes {
            self.last = now;
        }
        takes
    }
}

impl Sampled {
    /// The same request without credentials, if its response would show what they let through: [`Shadow::probed`] takes it. At
    /// most once.
    pub fn take_probe(&mut self) -> Option<Box<Sampled>> {
        std::mem::take(&mut self.wants_probe).then(|| {
            Box::new(Sampled {
                words: self.words.clone(),
                values: self.values.clone(),
                key: self.key.clone(),
                marks: Marks::default(),
                head: None,
                body: None,
                decoders: self.decoders.clone(),
                ..*self
            })
        })
    }
}

impl Shadow {
    /// Allows a probe every so many milliseconds: requests without credentials, to learn what these let through.
    pub fn allow_probes(&mut self, every: u64) {
        self.probes = Some(Pace { every, last: 0 });
    }

    /// The response to a request that a probe was taken for, sent without credentials, has ended. It is no request of a client: it
    /// is only compared with what these got. `now`: milliseconds since 1970.
    pub fn probed(&mut self, sampled: Sampled, ending: Ending, now: u64) {
        let Some(head) = sampled.head else { return };
        let is_comparable = ending == Ending::Whole
            && head.storable != Storable::Stream
            && !(head.status >= 500 || matches!(head.status, 304 | 206 | 408 | 425 | 429));
        let route = &mut self.routes[sampled.route as usize];
        let is_known = self.sample.entries.contains_key(&sampled.url);
        if !is_comparable || !is_known || route.generation != sampled.generation {
            return;
        }
        let body = sampled.body.map(BodyDigest::finish).unwrap_or_default();
        let seen = Seen {
            sent: sampled.sent,
            at: now,
            meaning: head.with(&self.key, body.meaning),
            marks: sampled.marks.before(body.marks),
            values: route.dimensions.of_url(sampled.values),
            url: sampled.exact,
            client: 0,
            identity: 0,
            explicit: head.explicit,
            is_storable: head.storable == Storable::Yes,
            is_unusual: false,
        };
        let (key, url) = (&self.key, sampled.url);
        let entry = || Entry::new(sampled.route, sampled.words.clone(), sampled.generation);
        self.sample.with(url, entry, |entry| {
            if entry.route == sampled.route && entry.generation == sampled.generation {
                route.compare_credentials(key, entry, url, &seen);
            }
        });
    }
}
