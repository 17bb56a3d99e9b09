//! A figure of a run that something is decided by: by a bound (`threshold`), or by a comparison (`compare`).

use crate::outcome::Outcome;
use crate::report::quantity::{Count, Quantity, Rate, Share, Time};
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    Rate,
    /// A percentile of latency, microseconds; 100 is the longest.
    Latency(f64),
    Mean,
    /// The share of errors, 0 to 1.
    ErrorShare,
    Errors,
}

impl Metric {
    pub fn of(self, outcome: &Outcome) -> f64 {
        match self {
            Metric::Rate => outcome.rate(),
            Metric::Latency(percent) => outcome.latency.percentile(percent) as f64,
            Metric::Mean => outcome.latency.mean,
            Metric::ErrorShare => outcome.error_share(),
            Metric::Errors => outcome.counts.errors.total() as f64,
        }
    }

    pub fn unit(self) -> &'static str {
        match self {
            Metric::Rate => "per_second",
            Metric::Latency(_) | Metric::Mean => "us",
            Metric::ErrorShare => "share",
            Metric::Errors => "count",
        }
    }

    /// Whether a run says how large it is; else it is at least so large.
    pub fn is_known(self, outcome: &Outcome) -> bool {
        match self {
            Metric::Latency(percent) => outcome.latency.is_known(percent),
            Metric::Mean => outcome.latency.is_known(100.0),
            Metric::Rate | Metric::ErrorShare | Metric::Errors => true,
        }
    }

    pub fn told(self, value: f64) -> Quantity {
        match self {
            Metric::Rate => Rate(value),
            Metric::Latency(_) | Metric::Mean => Time(value),
            Metric::ErrorShare => Share(value),
            Metric::Errors => Count(value as u64),
        }
    }
}
