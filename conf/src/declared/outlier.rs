//! `outlier_ejection`: when a server of a group is taken out for what it answers.
//!
//! What was written, not what is. Next: `millstream-upstream`'s `outlier`, which judges by it.

use std::time::Duration;

/// An `outlier_ejection`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlierEjection {
    /// Errors in a row that take a server out; 0 = however many. Default 5.
    pub consecutive_errors: u32,
    /// From one comparison of the servers' success rates to the next. Default 10 s.
    pub interval: Duration,
    /// How long a server is out for the first time; twice as long for the second, and so on. Default 30 s.
    pub time: Duration,
    /// Servers that may be out at a time, in per cent of the group. Default 50.
    pub max: u32,
    /// Statuses that are errors: first and last of each range. Default 500 to 599.
    pub statuses: Vec<(u16, u16)>,
    /// Answers of a server within an interval without which its success rate says nothing; 0 = rates are not compared. Default 100.
    pub requests: u64,
}

impl Default for OutlierEjection {
    fn default() -> Self {
        OutlierEjection {
            consecutive_errors: 5,
            interval: Duration::from_secs(10),
            time: Duration::from_secs(30),
            max: 50,
            statuses: vec![(500, 599)],
            requests: 100,
        }
    }
}

impl OutlierEjection {
    /// Whether an answer with this status is an error.
    pub fn is_error(&self, status: u16) -> bool {
        self.statuses.iter().any(|(first, last)| (*first..=*last).contains(&status))
    }
}
