//! Outliers: which servers of a group are taken out for what they answer, and for how long. Pure but for the one mark that wakes whoever decides.
//!
//! The ideas are Envoy's: errors in a row, and a success rate below those of the others by so many standard deviations. Before:
//! `millstream-conf`'s `declared/outlier`, the terms; next: `standing`, which counts; `watch`, which carries out what is decided here.

use millstream_conf::model::OutlierEjection;
use std::fmt;
use std::time::Duration;
use tokio::sync::Notify;

/// Least servers whose rates are compared: of fewer, none can be far enough from the mean.
const LEAST_PEERS: usize = 5;
/// Standard deviations below the mean that make an outlier, as in Envoy.
const DEVIATIONS: f64 = 1.9;
/// … and the least distance: if all others are perfect, the smallest error would be far away.
const LEAST_GAP: f64 = 0.05;
/// Longest ejection, unless `time` itself is longer.
const LONGEST: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub struct Outliers {
    pub terms: OutlierEjection,
    woken: Notify,
}

impl Outliers {
    pub(crate) fn new(terms: OutlierEjection) -> Outliers {
        Outliers { terms, woken: Notify::new() }
    }

    /// A server has had its `in_a_row`-th consecutive error.
    pub(crate) fn note(&self, in_a_row: u32) {
        let most = self.terms.consecutive_errors;
        // Where it may not be taken out, it is looked at again after as many more.
        if most > 0 && in_a_row.is_multiple_of(most) {
            self.woken.notify_one();
        }
    }

    pub(crate) fn changed(&self) {
        self.woken.notify_one();
    }

    /// Ready when a server has had too many consecutive errors, or the group has changed.
    pub async fn woken(&self) {
        self.woken.notified().await;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Conduct {
    /// Responses, and failed exchanges.
    pub(crate) judged: u64,
    pub(crate) errors: u64,
}

impl Conduct {
    pub(crate) fn since(self, past: Conduct) -> Conduct {
        Conduct {
            judged: self.judged.saturating_sub(past.judged),
            errors: self.errors.saturating_sub(past.errors),
        }
    }

    fn rate(self) -> f64 {
        1.0 - self.errors as f64 / self.judged.max(1) as f64
    }
}

/// Why a server is ejected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Conviction {
    InARow(u32),
    Rate(f64, f64),
}

impl fmt::Display for Conviction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Conviction::InARow(errors) => write!(f, "{errors} errors in a row"),
            Conviction::Rate(own, mean) => {
                let (own, mean) = (own * 100.0, mean * 100.0);
                write!(f, "its success rate is {own:.1} %, the average of all servers {mean:.1} %")
            }
        }
    }
}

/// By index, with the reason.
pub(crate) fn by_rate(terms: &OutlierEjection, all: &[Conduct]) -> Vec<(usize, Conviction)> {
    if terms.requests == 0 {
        return Vec::new();
    }
    let is_known = |(_, conduct): &(usize, &Conduct)| conduct.judged >= terms.requests;
    let rates: Vec<(usize, f64)> =
        all.iter().enumerate().filter(is_known).map(|(place, conduct)| (place, conduct.rate())).collect();
    if rates.len() < LEAST_PEERS {
        return Vec::new();
    }
    let count = rates.len() as f64;
    let mean = rates.iter().map(|(_, rate)| rate).sum::<f64>() / count;
    let variance = rates.iter().map(|(_, rate)| (rate - mean).powi(2)).sum::<f64>() / count;
    let least = mean - (variance.sqrt() * DEVIATIONS).max(LEAST_GAP);
    let outliers = rates.into_iter().filter(|(_, rate)| *rate < least);
    outliers.map(|(place, rate)| (place, Conviction::Rate(rate, mean))).collect()
}

pub(crate) fn has_room(terms: &OutlierEjection, out: usize, all: usize) -> bool {
    (out + 1) * 100 <= all * terms.max as usize
}

/// `times` is the number of recent ejections, this one included.
pub(crate) fn sentence(terms: &OutlierEjection, times: u32) -> Duration {
    terms.time.saturating_mul(times).min(LONGEST.max(terms.time))
}

#[cfg(test)]
mod tests;
