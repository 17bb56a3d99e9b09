//! Who fills a key and who waits for it: the line behind `proxy_cache_lock`.
//!
//! ```text
//!            permit given                 begin(head)                  finish / drop
//!   no line ─────────────▶ asked, waiters ───────────▶ streaming ───────────────────▶ no line
//!                             │    ▲ permit dropped: the first waiter alive gets it
//!                             └────┘ lock_age passed: one more gets it, the old one lost the right to the line
//! ```
//! A fill that fails wakes the next one; where that fails too, the line ends and nobody forms another for a while, so that a
//! failing upstream is not asked by one after the other. A few who wait for a key of which nothing was ever stored leave it
//! soon, since what they wait for may be a long poll; a crowd stays together.
//! A purge that goes for what is being filled takes the line away from its holder: who joined before still reads along,
//! who comes after it begins a new line. A right is a number here: only who holds the line's present number may move it on. This file is plain data under
//! the shard's lock; the values that give a right back when they are dropped are in `permit`. Next: `memory`.

use crate::policy::{Asker, Needs, StaleCause};
use crate::progress::{Follower, Progress};
use crate::sync::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Probe,
    Fill,
}

/// Waiters that are no crowd, and the most that leave a line early: the load that a merely slow upstream has
/// to bear.
const FEW: usize = 8;

#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) right: u64,
    pub(crate) purpose: Purpose,
    /// Where the fill stands among the purges, see `purges`.
    pub(crate) born: u64,
    /// When the right was given; unknown while no one has looked since it was passed on.
    started: Option<Instant>,
    /// Bytes of the streaming body when it was last checked.
    seen: u64,
    pub(crate) progress: Option<Arc<Progress>>,
    asker: Asker,
    has_failed: bool,
    let_go: usize,
    waiters: VecDeque<Arc<WaiterSlot>>,
}

/// How an upstream failed, as far as other clients are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// Decides whether a stale response may be used.
    pub cause: StaleCause,
    pub status: u16,
    /// Who failed, as a number of the caller's choice: locations with one key may have several upstreams.
    pub upstream: u32,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Retry,
    Right(u64),
    Follow(Follower),
    Failed(Failure),
}

#[derive(Debug, Default)]
pub(crate) struct WaiterSlot {
    state: Mutex<WaiterState>,
    /// Where the waiting request stands among the purges: it must not get a response that an earlier one
    /// applies to.
    born: u64,
}

#[derive(Debug, Default)]
struct WaiterState {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
    gone: bool,
}

impl Line {
    pub(crate) fn new((right, born): (u64, u64), purpose: Purpose, asker: Asker, now: Instant) -> Line {
        Line {
            right,
            purpose,
            born,
            asker,
            started: Some(now),
            seen: 0,
            progress: None,
            has_failed: false,
            let_go: 0,
            waiters: VecDeque::new(),
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiters.iter().filter(|waiter| Arc::strong_count(waiter) > 1).count()
    }

    /// Whether the holder's response may be for it alone, from the view of a client without a credential,
    /// which then does not wait. Once a response streams to others, it is for all.
    pub(crate) fn is_of_another(&self, asker: Asker) -> bool {
        (self.asker, asker) == (Asker::Known, Asker::Anybody) && self.awaits_head()
    }

    pub(crate) fn awaits_head(&self) -> bool {
        self.purpose == Purpose::Fill && self.progress.is_none()
    }

    /// Releases a long-waiting waiter to ask beside the line. False if it stays.
    pub(crate) fn let_go(&mut self) -> bool {
        let alive = self.waiters.iter().filter(|waiter| Arc::strong_count(waiter) > 1);
        let goes = self.awaits_head() && self.let_go < FEW && alive.take(FEW + 1).count() <= FEW;
        self.let_go += usize::from(goes);
        goes
    }

    /// Whether a response is arriving that may be used for a request with these needs.
    pub(crate) fn streams_for(&self, needs: Needs) -> bool {
        self.progress.as_ref().is_some_and(|progress| progress.head.lifetime.meets(needs))
    }

    /// Whether the holder has had its time, so that one more may fill. A body that arrives slowly is no
    /// reason to ask again; one that has stopped arriving is.
    pub(crate) fn is_aged(&mut self, lock_age: Duration, now: Instant) -> bool {
        let total = self.progress.as_ref().map_or(0, |progress| progress.total());
        if total != self.seen {
            self.seen = total;
            self.started = Some(now);
        }
        let started = *self.started.get_or_insert(now);
        now.saturating_duration_since(started) >= lock_age
    }

    /// When the right will have been held for so long, if nothing moves.
    pub(crate) fn aged_at(&self, age: Duration, now: Instant) -> Instant {
        self.started.unwrap_or(now).checked_add(age).unwrap_or(now)
    }

    /// The previous holder loses the right.
    pub(crate) fn pass_to(&mut self, (right, born): (u64, u64), asker: Asker, now: Instant) {
        self.asker = asker;
        self.right = right;
        self.born = born;
        self.started = Some(now);
        self.seen = 0;
        self.purpose = Purpose::Fill;
        self.progress = None;
    }

    /// Adds a waiter, already settled if the response streams.
    pub(crate) fn join(&mut self, born: u64) -> Arc<WaiterSlot> {
        let slot = Arc::new(WaiterSlot { born, ..WaiterSlot::default() });
        if let Some(progress) = &self.progress {
            // A body whose beginning is forgotten has left its line, see `permit`.
            let outcome = progress.follow().map_or(Outcome::Retry, Outcome::Follow);
            let _ = slot.settle(outcome);
            return slot;
        }
        if self.waiters.len().is_power_of_two() {
            // Those who left are only referred to from here. Done at every doubling, it costs little per waiter.
            self.waiters.retain(|waiter| Arc::strong_count(waiter) > 1);
        }
        self.waiters.push_back(slot.clone());
        slot
    }

    /// Passes the right to the first waiter still present. False if there is none.
    pub(crate) fn pass_on(&mut self, right: u64, born: u64, wake: &mut Vec<Waker>) -> bool {
        while let Some(waiter) = self.waiters.pop_front() {
            if let Ok(waker) = waiter.settle(Outcome::Right(right)) {
                self.right = right;
                self.born = born;
                // Those with a credential wait for nobody's answer, but where it arrives already.
                self.asker = Asker::Anybody;
                self.started = None;
                self.purpose = Purpose::Fill;
                self.progress = None;
                wake.extend(waker);
                return true;
            }
        }
        false
    }

    /// Lets every waiter read along. If a purge applies to the fill, `purged` is where the fill stands among
    /// the purges: later waiters look up again, since what came between is not known individually.
    pub(crate) fn stream(&mut self, progress: &Arc<Progress>, purged: Option<u64>, wake: &mut Vec<Waker>) {
        self.progress = Some(progress.clone());
        self.has_failed = false;
        // The head is a sign of life: age counts anew from the next look.
        self.started = None;
        for waiter in self.waiters.drain(..) {
            let joins = purged.is_none_or(|born| waiter.born <= born);
            let follower = if joins { progress.follow() } else { None };
            let outcome = follower.map_or(Outcome::Retry, Outcome::Follow);
            // A waiter that has left drops its follower here, which is what leaving means.
            wake.extend(waiter.settle(outcome).unwrap_or(None));
        }
    }

    /// The holder's fill has failed. After a first failure the next waiter gets the right; a second one ends
    /// the line, and its waiters get the failure in `told`, or look up again. False if the line is over.
    pub(crate) fn fail(
        &mut self,
        right: u64,
        born: u64,
        told: Option<Failure>,
        wake: &mut Vec<Waker>,
    ) -> bool {
        if !self.has_failed {
            self.has_failed = true;
            return self.pass_on(right, born, wake);
        }
        for waiter in self.waiters.drain(..) {
            let outcome = told.map_or(Outcome::Retry, Outcome::Failed);
            wake.extend(waiter.settle(outcome).unwrap_or(None));
        }
        false
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    pub(crate) fn release(&mut self, wake: &mut Vec<Waker>) {
        for waiter in self.waiters.drain(..) {
            wake.extend(waiter.settle(Outcome::Retry).unwrap_or(None));
        }
    }
}

impl WaiterSlot {
    /// Settles once; returns the outcome if the waiter has left.
    fn settle(&self, outcome: Outcome) -> Result<Option<Waker>, Outcome> {
        let mut state = self.lock();
        if state.gone {
            return Err(outcome);
        }
        state.outcome = Some(outcome);
        Ok(state.waker.take())
    }

    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut state = self.lock();
        match state.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    pub(crate) fn is_told(&self) -> bool {
        self.lock().outcome.is_some()
    }

    /// The waiter leaves; an outcome that it has not taken is returned.
    pub(crate) fn leave(&self) -> Option<Outcome> {
        let mut state = self.lock();
        state.gone = true;
        state.waker = None;
        state.outcome.take()
    }

    fn lock(&self) -> MutexGuard<'_, WaiterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
