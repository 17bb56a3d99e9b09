//! How a peer stands: its load and its failures, shared by all workers and by all versions of its group.
//!
//! A peer without failures is only read here, unless its group counts connections. Weights move under the group's lock
//! alone (`balance/round_robin`); counts are written without it. The marks of failures have a lock of their own, which
//! nobody takes for a peer that has not failed. Every decision takes `now`. Next: `balance`.

use crate::downtime::Downtime;
use crate::health::{Change, Ejection, Health};
use crate::times::Times;
use millstream_conf::model::HealthTerms;
use millstream_net::clock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
pub struct Parameters {
    /// At least 1.
    pub weight: i64,
    /// Failures within `fail_timeout` that take it out; 0 = never.
    pub max_fails: u32,
    pub fail_timeout: Duration,
    pub down: bool,
    /// Used only by requests of its own sessions.
    pub drain: bool,
    /// Zero = at once.
    pub slow_start: Duration,
    /// 0 = unlimited.
    pub max_conns: u32,
}

#[derive(Debug)]
pub(crate) struct Standing {
    /// Credit of smooth weighted round robin.
    current_weight: AtomicI64,
    effective_weight: AtomicI64,
    /// Since when its share grows (`slow_start`), in milliseconds since [`BEGINNING`]; 0 = complete.
    grows_since: AtomicU64,
    active: AtomicU32,
    fails: AtomicU32,
    /// In a row, if the group ejects outliers.
    errors: AtomicU32,
    /// In milliseconds since [`BEGINNING`]; 0 = never.
    selected: AtomicU64,
    health: Health,
    times: Times,
    marks: Mutex<Marks>,
}

/// The origin of moments that are kept as numbers.
static BEGINNING: LazyLock<Instant> = LazyLock::new(clock::now);
/// Parts of a unit of weight, in which growing shares are counted.
pub(crate) const WHOLE: i64 = 1000;
/// Milliseconds within which a repeated choice is not written, so that workers do not contend for the cache
/// line.
const SELECTED_AGAIN: u64 = 1000;

#[derive(Debug, Default)]
struct Marks {
    failed_at: Option<Instant>,
    /// Start of the window in which failures are counted, or of the attempt that tests a peer after its
    /// pause.
    checked_at: Option<Instant>,
    downtime: Downtime,
}

impl Standing {
    pub(crate) fn new(parameters: &Parameters, health: Health) -> Standing {
        Standing {
            current_weight: AtomicI64::new(0),
            effective_weight: AtomicI64::new(parameters.weight),
            grows_since: AtomicU64::new(0),
            active: AtomicU32::new(0),
            fails: AtomicU32::new(0),
            errors: AtomicU32::new(0),
            selected: AtomicU64::new(0),
            health,
            times: Times::default(),
            marks: Mutex::new(Marks::default()),
        }
    }

    pub(crate) fn is_live(&self, parameters: &Parameters, now: Instant) -> bool {
        if parameters.down || parameters.max_conns > 0 && self.active() >= parameters.max_conns {
            return false;
        }
        self.health.is_well() && !self.is_left_alone(parameters, now)
    }

    pub(crate) fn is_left_alone(&self, parameters: &Parameters, now: Instant) -> bool {
        self.is_failing(parameters) && self.marks().is_within(parameters, now)
    }

    fn is_failing(&self, parameters: &Parameters) -> bool {
        parameters.max_fails > 0 && self.fails.load(Relaxed) >= parameters.max_fails
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    pub(crate) fn times(&self) -> &Times {
        &self.times
    }

    pub(crate) fn checked(
        &self,
        parameters: &Parameters,
        (check, terms): (usize, &HealthTerms),
        passed: bool,
        now: Instant,
    ) -> Option<Change> {
        let change = self.health.checked(check, terms, passed)?;
        if change == Change::Healthy && self.health.is_well() {
            self.grow(parameters, now);
        }
        let out = !self.health.is_well() || self.is_failing(parameters);
        self.marks().downtime.note(out, now);
        Some(change)
    }

    /// Returns its consecutive errors. A success after a success writes nothing.
    pub(crate) fn judged(&self, is_error: bool) -> u32 {
        if is_error {
            return self.errors.fetch_add(1, Relaxed).wrapping_add(1);
        }
        if self.errors.load(Relaxed) != 0 {
            self.errors.store(0, Relaxed);
        }
        0
    }

    pub(crate) fn errors_in_a_row(&self) -> u32 {
        self.errors.load(Relaxed)
    }

    pub(crate) fn eject(&self, ejection: Ejection, now: Instant) {
        self.health.eject(ejection);
        self.marks().downtime.note(true, now);
    }

    /// Its errors are forgotten, and its share grows.
    pub(crate) fn readmit(&self, parameters: &Parameters, now: Instant) {
        self.errors.store(0, Relaxed);
        self.health.eject(Ejection { until: None, ..self.health.ejection() });
        if self.health.is_well() {
            self.grow(parameters, now);
        }
        let out = !self.health.is_well() || self.is_failing(parameters);
        self.marks().downtime.note(out, now);
    }

    /// Adds the effective weight to the credit and returns both, in parts of [`WHOLE`]. Call it under the
    /// group's lock.
    pub(crate) fn credit(&self, parameters: &Parameters, now: Instant) -> (i64, i64) {
        let effective = self.effective_weight();
        let added = effective * self.share(parameters, now);
        let current = self.current_weight.load(Relaxed) + added;
        self.current_weight.store(current, Relaxed);
        if effective < parameters.weight {
            self.effective_weight.fetch_add(1, Relaxed);
        }
        (current, added)
    }

    /// In parts of [`WHOLE`].
    pub(crate) fn current_weight(&self) -> i64 {
        self.current_weight.load(Relaxed)
    }

    /// In parts of [`WHOLE`]; never zero.
    pub(crate) fn weight(&self, parameters: &Parameters, now: Instant) -> i64 {
        parameters.weight * self.share(parameters, now)
    }

    /// In parts of [`WHOLE`]; never zero.
    fn share(&self, parameters: &Parameters, now: Instant) -> i64 {
        if parameters.slow_start.is_zero() {
            return WHOLE;
        }
        let since = self.grows_since.load(Relaxed);
        let grown = u128::from(since_beginning(now).saturating_sub(since));
        let whole = parameters.slow_start.as_millis().max(1);
        if since == 0 || grown >= whole { WHOLE } else { ((grown * WHOLE as u128 / whole) as i64).max(1) }
    }

    fn grow(&self, parameters: &Parameters, now: Instant) {
        if !parameters.slow_start.is_zero() {
            self.grows_since.store(since_beginning(now).max(1), Relaxed);
        }
    }

    /// Subtracts the sum of all weights from the chosen one's credit. Call it under the group's lock.
    pub(crate) fn debit(&self, total: i64) {
        self.current_weight.store(self.current_weight.load(Relaxed) - total, Relaxed);
    }

    pub(crate) fn is_lowered(&self, parameters: &Parameters) -> bool {
        self.effective_weight() < parameters.weight
    }

    /// The weight less what failures took off it.
    pub(crate) fn effective_weight(&self) -> i64 {
        self.effective_weight.load(Relaxed)
    }

    /// `false` if it is full, which [`Standing::is_live`] may have missed.
    pub(crate) fn enter(&self, parameters: &Parameters) -> bool {
        if parameters.max_conns == 0 {
            self.active.fetch_add(1, Relaxed);
            return true;
        }
        let more = |active| (active < parameters.max_conns).then_some(active + 1);
        self.active.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    pub(crate) fn leave(&self) {
        self.active.fetch_sub(1, Relaxed);
    }

    /// 0 unless its group counts them.
    pub(crate) fn active(&self) -> u32 {
        self.active.load(Relaxed)
    }

    pub(crate) fn select(&self, now: Instant) {
        let at = since_beginning(now);
        if at >= self.selected.load(Relaxed) + SELECTED_AGAIN || self.selected.load(Relaxed) == 0 {
            self.selected.store(at.max(1), Relaxed);
        }
    }

    pub(crate) fn selected(&self) -> Option<Instant> {
        let at = self.selected.load(Relaxed);
        (at > 0).then(|| *BEGINNING + Duration::from_millis(at))
    }

    pub(crate) fn downtime(&self, now: Instant) -> Downtime {
        self.marks().downtime.until(now)
    }

    /// A new window starts with the first choice after the last one ended; a success in it clears the
    /// failures.
    pub(crate) fn open_window(&self, parameters: &Parameters, now: Instant) {
        if self.fails.load(Relaxed) == 0 {
            return;
        }
        let mut marks = self.marks();
        if !marks.is_within(parameters, now) {
            marks.checked_at = Some(now);
        }
    }

    /// Live again if this request tested it after its pause.
    pub(crate) fn succeeded(&self, parameters: &Parameters) {
        if self.fails.load(Relaxed) == 0 {
            return;
        }
        let mut marks = self.marks();
        if let (failed_at, Some(checked_at)) = (marks.failed_at, marks.checked_at)
            && failed_at < Some(checked_at)
        {
            if self.is_failing(parameters) {
                self.grow(parameters, checked_at);
            }
            self.fails.store(0, Relaxed);
            // The try that went well began then.
            marks.downtime.note(!self.health.is_well(), checked_at);
        }
    }

    /// `None` if failures do not keep it out.
    pub(crate) fn returns_at(&self, parameters: &Parameters) -> Option<Instant> {
        if !self.is_failing(parameters) {
            return None;
        }
        self.marks().checked_at.map(|at| at + parameters.fail_timeout)
    }

    /// Returns whether the peer is out from now on.
    pub(crate) fn failed(&self, parameters: &Parameters, now: Instant) -> bool {
        let mut marks = self.marks();
        let fails = self.fails.load(Relaxed).saturating_add(1);
        self.fails.store(fails, Relaxed);
        (marks.failed_at, marks.checked_at) = (Some(now), Some(now));
        if self.is_failing(parameters) {
            marks.downtime.note(true, now);
        }
        drop(marks);
        if parameters.max_fails == 0 {
            return false;
        }
        let less = parameters.weight / i64::from(parameters.max_fails);
        let lower = |weight: i64| Some((weight - less).max(0));
        _ = self.effective_weight.fetch_update(Relaxed, Relaxed, lower);
        fails >= parameters.max_fails
    }

    /// Nothing panics under it, so a poisoned lock is used as it is.
    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn since_beginning(now: Instant) -> u64 {
    now.saturating_duration_since(*BEGINNING).as_millis() as u64
}

impl Marks {
    fn is_within(&self, parameters: &Parameters, now: Instant) -> bool {
        self.checked_at.is_some_and(|at| now.saturating_duration_since(at) <= parameters.fail_timeout)
    }
}
