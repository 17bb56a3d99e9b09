//! What one zone's cluster has done, for people: counts, the time of the engine, and whose orders were carried out last.
//!
//! Nothing here decides anything. Next: `door`, which shows it.

use crate::order::What;
use millstream_telemetry::histogram::{Histogram, HistogramSnapshot, Steps};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Orders of other nodes that are remembered.
const MOST: usize = 256;

pub struct Account {
    carried_out: AtomicU64,
    zone_purges: AtomicU64,
    script_time: Histogram,
    /// The latest last.
    latest: Mutex<VecDeque<CarriedOut>>,
}

/// An order of another node. It was put in force between two moments, in milliseconds since 1970 by this node's clock.
struct CarriedOut {
    node: String,
    what: What,
    begun: i64,
    done: i64,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account({} carried out)", self.carried_out())
    }
}

impl Account {
    pub(crate) fn new() -> Account {
        let (carried_out, zone_purges, latest) = Default::default();
        Account { carried_out, zone_purges, script_time: Histogram::new(Steps::Fine), latest }
    }

    pub(crate) fn note(&self, node: String, what: &What, (begun, done): (i64, i64)) {
        self.carried_out.fetch_add(1, Ordering::Relaxed);
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.len() == MOST {
            latest.pop_front();
        }
        latest.push_back(CarriedOut { node, what: what.clone(), begun, done });
    }

    pub(crate) fn note_zone_purge(&self) {
        self.zone_purges.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_script(&self, time: Duration) {
        self.script_time.record(time.as_micros() as u64);
    }

    /// Orders of other nodes that this one has carried out.
    pub fn carried_out(&self) -> u64 {
        self.carried_out.load(Ordering::Relaxed)
    }

    /// Times that the zone was purged because orders were missing or could not be read.
    pub fn zone_purges(&self) -> u64 {
        self.zone_purges.load(Ordering::Relaxed)
    }

    /// Adds the time that scripts took, until their replies were there. In microseconds.
    pub fn add_script_time_to(&self, sum: &mut HistogramSnapshot) {
        self.script_time.add_to(sum);
    }

    /// The name of the other node whose order was put in force at a moment, in milliseconds since 1970; `None` if it was this
    /// node's own, or is not remembered.
    pub fn node_of(&self, at: i64, is_it: impl Fn(&What) -> bool) -> Option<String> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let mut latest = latest.iter().rev();
        let found = latest.find(|order| (order.begun..=order.done).contains(&at) && is_it(&order.what));
        found.map(|order| order.node.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_of_an_order_is_known_by_its_moment_and_what_it_is_about() {
        let account = Account::new();
        let tag = |name: &str| What::Tag(name.into());
        account.note("b".to_owned(), &tag("x"), (10, 11));
        account.note("c".to_owned(), &tag("y"), (11, 11));
        let of = |at, what: &What| account.node_of(at, |order| order == what);
        assert_eq!(of(11, &tag("x")).as_deref(), Some("b"));
        assert_eq!(of(11, &tag("y")).as_deref(), Some("c"));
        assert_eq!((of(12, &tag("x")), of(11, &What::All)), (None, None));
        (0..MOST).for_each(|_| account.note("d".to_owned(), &What::All, (20, 20)));
        assert_eq!(of(11, &tag("x")), None, "what is too long ago is forgotten");
        assert_eq!(account.carried_out(), MOST as u64 + 2);
    }
}
