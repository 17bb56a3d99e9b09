//! The right to fill a key, for as long as nothing is stored: it is given back, lost, taken over, or ends with its line.
//!
//! Only the holder of the line's present right moves the line; waiters are woken after the lock. Before: `permit`, whose values
//! have one; next: `change`, what its holder stores.

use super::Memory;
use super::change::end_line;
use super::grant::Grant;
use crate::line::{Failure, WaiterSlot};
use crate::now::{Now, milliseconds};
use crate::policy::{Asker, Reason};
use std::time::{Duration, Instant};

/// How long after an uncacheable response requests do not wait for each other, if it came at once. Waiting
/// for such a one costs nothing, and soon the key is guarded again.
const UNCACHEABLE_FOR: Duration = Duration::from_secs(10);
/// Further multiples of the time it took: a client of a long poll must find the key still known after the
/// next one. With one of 7 s that is about Varnish's 120 s for a hit-for-miss.
const UNCACHEABLE_TIMES: u32 = 16;
/// The same if the request itself was the cause, so that the next response may well be stored.
const OWN_DOING_TIMES: u32 = 2;
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// How long after two failures of the upstream in a row requests do not wait for each other.
const FAILING_FOR: Duration = Duration::from_secs(1);

impl Grant {
    /// The line ends with nothing stored; waiters look up again.
    pub(crate) fn end(&self, memory: &Memory) {
        memory.shards.cell(self, |cell, after| end_line(cell, self, after));
    }

    /// The right is returned unused: the first waiter gets it, or the line ends.
    pub(crate) fn give_back(&self, memory: &Memory) {
        let (order, born) = (memory.next_order(), memory.purges.generation());
        memory.shards.cell(self, |cell, after| {
            let Some(line) = cell.line.as_mut().filter(|line| Some(line.right) == self.right) else {
                return;
            };
            if !line.pass_on(order, born, &mut after.wake) {
                cell.line = None;
            }
        });
    }

    /// The fill failed: the first waiter gets the right; after a second failure the line ends, and no one
    /// waits for this key for a while, which each failure in that time prolongs. A failure for a credential
    /// says nothing about others.
    pub(crate) fn failed(&self, memory: &Memory, told: Option<Failure>, now: Now) {
        let (order, born) = (memory.next_order(), memory.purges.generation());
        memory.shards.cell(self, |cell, after| {
            let ours = cell.line.as_mut().filter(|line| Some(line.right) == self.right);
            let is_over = match ours {
                Some(line) => {
                    let again = line.has_failed();
                    if !line.fail(order, born, told, &mut after.wake) {
                        cell.line = None;
                    }
                    again
                }
                // Beside a line, or in the time without one.
                None => now.unix_milliseconds < cell.uncacheable_until,
            };
            if is_over && self.asker == Asker::Anybody {
                let until = now.unix_milliseconds.saturating_add(milliseconds(FAILING_FOR));
                if until > cell.uncacheable_until {
                    cell.uncacheable_until = until;
                    cell.refused = None;
                }
            }
        });
    }

    /// The response could not be stored: no one waits for the key for a while, whoever holds the right. If
    /// the request had a credential the line just ends: other responses may differ.
    pub(crate) fn uncacheable(&self, memory: &Memory, reason: Option<Reason>, now: Now) {
        if self.asker == Asker::Known {
            return self.end(memory);
        }
        let pause = milliseconds(pause(self, reason, now));
        memory.shards.cell(self, |cell, after| {
            let until = now.unix_milliseconds.saturating_add(pause).max(cell.uncacheable_until);
            cell.refused = reason;
            cell.uncacheable_until = until;
            cell.paused_for = u16::try_from((until - now.unix_milliseconds) / 1000).unwrap_or(u16::MAX);
            end_line(cell, self, after);
            // It was asked as they were, beside them.
            if self.since.is_some()
                && let Some(mut line) = cell.line.take_if(|line| line.awaits_head())
            {
                line.release(&mut after.wake);
            }
        });
    }

    /// Whether the holder of this right has waiters.
    pub(crate) fn is_awaited(&self, memory: &Memory) -> bool {
        let mut awaited = false;
        memory.shards.cell(self, |cell, _| {
            let ours = cell.line.as_ref().filter(|line| Some(line.right) == self.right);
            awaited = ours.is_some_and(|line| line.waiting() > 0);
        });
        awaited
    }

    /// A waiter takes over after the holder has had its time. `Some` is the new right.
    pub(crate) fn take_over(
        &self,
        memory: &Memory,
        waiter: &WaiterSlot,
        lock_age: Duration,
        now: Instant,
    ) -> Option<u64> {
        let (order, born) = (memory.next_order(), memory.purges.generation());
        let mut taken = None;
        memory.shards.cell(self, |cell, _| {
            if let Some(line) = &mut cell.line
                && line.is_aged(lock_age, now)
                && !waiter.is_told()
            {
                line.pass_to((order, born), self.asker, now);
                taken = Some(order);
            }
        });
        taken
    }

    /// Whether a waiter may ask beside a slow holder, see [`Line::let_go`].
    ///
    /// [`Line::let_go`]: crate::line::Line::let_go
    pub(crate) fn let_go(&self, memory: &Memory, waiter: &WaiterSlot) -> bool {
        let mut goes = false;
        memory.shards.cell(self, |cell, _| {
            goes = !waiter.is_told() && cell.line.as_mut().is_some_and(|line| line.let_go());
        });
        goes
    }

    /// Takes a right that was passed on, for a fill born with this purge; false if a purge since has ended
    /// the line.
    pub(crate) fn take_right(&self, memory: &Memory, right: u64, born: u64) -> bool {
        let mut held = false;
        memory.shards.cell(self, |cell, _| {
            if let Some(line) = cell.line.as_mut().filter(|line| line.right == right) {
                line.born = born;
                held = true;
            }
        });
        held
    }
}

/// How long after an uncacheable response to this request others do not wait for each other.
fn pause(grant: &Grant, reason: Option<Reason>, now: Now) -> Duration {
    let took = grant.since.map_or(Duration::ZERO, |since| now.instant.saturating_duration_since(since));
    let times = if reason.is_some_and(Reason::is_of_request) { OWN_DOING_TIMES } else { UNCACHEABLE_TIMES };
    UNCACHEABLE_FOR.saturating_add(took.saturating_mul(times)).min(LONGEST_PAUSE)
}
