//! The right to fill a key, for as long as nothing is stored: it is given back, lost, taken over, or ends with its line.
//!
//! Only the holder of the line's present right moves the line; waiters are woken after the lock. Before: `change`, what the holder
//! stores. Next: `permit`, whose values call these.

use super::Memory;
use super::change::end_line;
use super::lookup::Grant;
use crate::line::{Failure, WaiterSlot};
use crate::now::{Now, milliseconds};
use crate::policy::{Asker, Reason};
use std::time::{Duration, Instant};

/// How long after an answer that could not be stored requests do not wait for each other.
pub(super) const UNCACHEABLE_FOR: Duration = Duration::from_secs(10);

/// How long after two failures of the upstream in a row requests do not wait for each other.
const FAILING_FOR: Duration = Duration::from_secs(1);

impl Memory {
    /// The line ends with nothing stored; who waits looks up again.
    pub(crate) fn end(&self, grant: &Grant) {
        self.cell(grant, |cell, after| end_line(cell, grant, after));
    }

    /// The right is given back unused: the first waiter gets it, or the line ends.
    pub(crate) fn give_back(&self, grant: &Grant) {
        let (order, born) = (self.next_order(), self.purges.generation());
        self.cell(grant, |cell, after| {
            let Some(line) = cell.line.as_mut().filter(|line| Some(line.right) == grant.right) else {
                return;
            };
            if !line.pass_on(order, born, &mut after.wake) {
                cell.line = None;
            }
        });
    }

    /// The fill failed: the first waiter gets the right; after a second failure the line ends, and nobody waits for this
    /// key for a while, which each failure of that time prolongs. What failed for a credential may be well for others.
    pub(crate) fn failed(&self, grant: &Grant, told: Option<Failure>, now: Now) {
        let (order, born) = (self.next_order(), self.purges.generation());
        self.cell(grant, |cell, after| {
            let ours = cell.line.as_mut().filter(|line| Some(line.right) == grant.right);
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
            if is_over && grant.asker == Asker::Anybody {
                let until = now.unix_milliseconds.saturating_add(milliseconds(FAILING_FOR));
                if until > cell.uncacheable_until {
                    cell.uncacheable_until = until;
                    cell.refused = None;
                }
            }
        });
    }

    /// The answer could not be stored: nobody waits for another such, for a while. After one to somebody with a
    /// credential the line just ends: the others may be answered otherwise.
    pub(crate) fn uncacheable(&self, grant: &Grant, reason: Option<Reason>, now: Now) {
        if grant.asker == Asker::Known {
            return self.end(grant);
        }
        self.cell(grant, |cell, after| {
            cell.refused = reason;
            cell.uncacheable_until = now.unix_milliseconds.saturating_add(milliseconds(UNCACHEABLE_FOR));
            end_line(cell, grant, after);
        });
    }

    /// Whether somebody waits for the holder of this right.
    pub(crate) fn is_awaited(&self, grant: &Grant) -> bool {
        let mut awaited = false;
        self.cell(grant, |cell, _| {
            let ours = cell.line.as_ref().filter(|line| Some(line.right) == grant.right);
            awaited = ours.is_some_and(|line| line.waiting() > 0);
        });
        awaited
    }

    /// A waiter whose turn has not come takes over where the holder has had its time. `Some` is the new right.
    pub(crate) fn take_over(
        &self,
        grant: &Grant,
        waiter: &WaiterSlot,
        lock_age: Duration,
        now: Instant,
    ) -> Option<u64> {
        let (order, born) = (self.next_order(), self.purges.generation());
        let mut taken = None;
        self.cell(grant, |cell, _| {
            if let Some(line) = &mut cell.line
                && line.is_aged(lock_age, now)
                && !waiter.is_told()
            {
                line.pass_to((order, born), grant.asker, now);
                taken = Some(order);
            }
        });
        taken
    }

    /// A right that was passed on is taken, by a fill that was born with this purge; false where a purge of the time
    /// between has ended the line.
    pub(crate) fn take_right(&self, grant: &Grant, right: u64, born: u64) -> bool {
        let mut held = false;
        self.cell(grant, |cell, _| {
            if let Some(line) = cell.line.as_mut().filter(|line| line.right == right) {
                line.born = born;
                held = true;
            }
        });
        held
    }
}
