//! What the founding article measured with two servers behind nginx, for the table beside ours: by service time, requests
//! per second of each server alone and of both. Its machine was another; what counts is the shape.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// How long its API slept.
    pub service: Duration,
    /// Each server alone.
    pub alone: [f64; 2],
    /// Both behind the proxy.
    pub together: f64,
}

/// Its four rows: doubled twice, then the proxy is the limit. Of the last only the sum of both is told.
pub const ARTICLE: [Published; 4] = [
    Published { service: Duration::from_millis(200), alone: [158.0, 158.0], together: 317.0 },
    Published { service: Duration::from_millis(70), alone: [454.0, 454.0], together: 905.0 },
    Published { service: Duration::from_millis(2), alone: [9_367.0, 9_335.0], together: 12_295.0 },
    Published { service: Duration::ZERO, alone: [18_829.0 / 2.0, 18_829.0 / 2.0], together: 12_408.0 },
];

impl Published {
    /// The row of a service time.
    pub fn of(service: Duration) -> Option<&'static Published> {
        ARTICLE.iter().find(|row| row.service == service)
    }
}
