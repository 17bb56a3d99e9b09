//! `outlier_ejection`: when a server of a group is taken out for what it answers.
//!
//! What was written, not what is. Next: `millstream-upstream`'s `outlier`, which judges by it.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlierEjection {
    /// Consecutive errors that take a server out; 0 = unlimited. Default 5.
    pub consecutive_errors: u32,
    /// Between two comparisons of the servers' success rates. Default 10 s.
    pub interval: Duration,
    /// How long a server is out the first time; doubled each further time. Default 30 s.
    pub time: Duration,
    /// Servers that may be out at a time, in per cent of the group. Default 50.
    pub max: u32,
    /// First and last of each range. Default 500 to 599.
    pub statuses: Vec<(u16, u16)>,
    /// Responses per interval below which a success rate is not judged; 0 = never compared. Default 100.
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
    pub fn is_error(&self, status: u16) -> bool {
        self.statuses.iter().any(|(first, last)| (*first..=*last).contains(&status))
    }
}
