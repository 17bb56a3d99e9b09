//! How a peer stands with the checks of its health: a verdict for each check, and the counts that are told of them; and whether it is
//! out as an outlier.
//!
//! ```text
//!                 `fails` failures in a row
//!        well ─────────────────────────────▶ ill
//!          ▲  ◀─────────────────────────────  ▲
//!     pass │      `passes` passes in a row    │ failure
//!          └────────── waiting ───────────────┘
//! ```
//!
//! A peer is asked while all its checks find it well and it is no outlier, which is one number that choices read. A check alone writes
//! here, after each answer, and the watch over outliers. Before: `millstream-conf`'s `declared/health`; next: `standing`, which holds it; `millstream-server`'s `health`,
//! which asks.

use millstream_conf::model::{BeforeFirst, HealthTerms};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

#[derive(Debug)]
pub(crate) struct Health {
    /// Checks that have failed it, plus one if it is ejected.
    out: AtomicU32,
    ledger: Mutex<Ledger>,
}

#[derive(Debug)]
struct Ledger {
    verdicts: Box<[Verdict]>,
    account: HealthAccount,
    ejection: Ejection,
}

/// Kept over reloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ejection {
    /// `None` if it is not out.
    pub until: Option<Instant>,
    /// Recent ejections, which determine the next duration.
    pub times: u32,
    pub count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Well {
        /// In a row.
        failed: u32,
    },
    /// Not checked yet, and not to be used before.
    Waiting,
    Ill {
        /// In a row.
        passed: u32,
    },
}

/// Kept over reloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HealthAccount {
    pub checks: u64,
    pub fails: u64,
    pub unhealthy: u64,
    /// `None` before the first.
    pub last_passed: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Diagnosis {
    Well,
    Waiting,
    Ill,
}

/// A change of a check's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Healthy,
    Unhealthy,
}

impl Health {
    /// `before` is the same peer's under the previous configuration, if any.
    pub(crate) fn new(checks: &[HealthTerms], before: Option<&Health>) -> Health {
        let found = before.and_then(Health::diagnosis);
        let account = before.map(Health::account).unwrap_or_default();
        let verdicts = checks.iter().map(|terms| Verdict::first(terms.before, found)).collect();
        let ejection = before.map(Health::ejection).unwrap_or_default();
        let ledger = Ledger { verdicts, account, ejection };
        Health { out: AtomicU32::new(ledger.out()), ledger: Mutex::new(ledger) }
    }

    pub(crate) fn is_well(&self) -> bool {
        self.out.load(Relaxed) == 0
    }

    pub(crate) fn checked(&self, check: usize, terms: &HealthTerms, passed: bool) -> Option<Change> {
        let mut ledger = self.ledger();
        let was_ill = ledger.diagnosis() == Some(Diagnosis::Ill);
        let verdict = ledger.verdicts.get_mut(check)?;
        let before = *verdict;
        *verdict = before.after(terms, passed);
        let change = match (before, *verdict) {
            (Verdict::Ill { .. } | Verdict::Waiting, Verdict::Well { .. }) => Some(Change::Healthy),
            (Verdict::Well { .. } | Verdict::Waiting, Verdict::Ill { .. }) => Some(Change::Unhealthy),
            _ => None,
        };
        let is_ill = ledger.diagnosis() == Some(Diagnosis::Ill);
        let account = &mut ledger.account;
        account.checks += 1;
        account.fails += u64::from(!passed);
        account.unhealthy += u64::from(is_ill && !was_ill);
        account.last_passed = Some(passed);
        self.out.store(ledger.out(), Relaxed);
        change
    }

    pub(crate) fn ejection(&self) -> Ejection {
        self.ledger().ejection
    }

    pub(crate) fn eject(&self, ejection: Ejection) {
        let mut ledger = self.ledger();
        ledger.ejection = ejection;
        self.out.store(ledger.out(), Relaxed);
    }

    /// An interval has passed, which counts if it was not out.
    pub(crate) fn forgive(&self) {
        let Ejection { until, times, .. } = &mut self.ledger().ejection;
        if until.is_none() {
            *times = times.saturating_sub(1);
        }
    }

    /// `None` without checks.
    pub(crate) fn diagnosis(&self) -> Option<Diagnosis> {
        self.ledger().diagnosis()
    }

    pub(crate) fn account(&self) -> HealthAccount {
        self.ledger().account
    }

    /// Nothing panics under it, so a poisoned lock is used as it is.
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    fn out(&self) -> u32 {
        let ill = self.verdicts.iter().filter(|verdict| !matches!(verdict, Verdict::Well { .. })).count();
        ill as u32 + u32::from(self.ejection.until.is_some())
    }

    fn diagnosis(&self) -> Option<Diagnosis> {
        let found = |verdict: &Verdict| match verdict {
            Verdict::Well { .. } => Diagnosis::Well,
            Verdict::Waiting => Diagnosis::Waiting,
            Verdict::Ill { .. } => Diagnosis::Ill,
        };
        self.verdicts.iter().map(found).max()
    }
}

impl Verdict {
    /// Of a check that has not run yet, given what was found before.
    fn first(before: BeforeFirst, found: Option<Diagnosis>) -> Verdict {
        match (before, found) {
            (_, Some(Diagnosis::Ill)) => Verdict::Ill { passed: 0 },
            (BeforeFirst::Used, _) | (BeforeFirst::WaitsOnce, Some(Diagnosis::Well)) => {
                Verdict::Well { failed: 0 }
            }
            (BeforeFirst::Waits | BeforeFirst::WaitsOnce, _) => Verdict::Waiting,
        }
    }

    fn after(self, terms: &HealthTerms, passes: bool) -> Verdict {
        match (self, passes) {
            (Verdict::Well { .. } | Verdict::Waiting, true) => Verdict::Well { failed: 0 },
            (Verdict::Waiting | Verdict::Ill { .. }, false) => Verdict::Ill { passed: 0 },
            (Verdict::Well { failed }, false) if failed + 1 >= terms.fails => Verdict::Ill { passed: 0 },
            (Verdict::Well { failed }, false) => Verdict::Well { failed: failed + 1 },
            (Verdict::Ill { passed }, true) if passed + 1 >= terms.passes => Verdict::Well { failed: 0 },
            (Verdict::Ill { passed }, true) => Verdict::Ill { passed: passed + 1 },
        }
    }
}

#[cfg(test)]
mod tests;
