//! How many connections a proxy keeps to its API, by Little's law: requests per second times the time that each takes are
//! so many requests on their way at once, each of which has a connection to itself (HTTP/1.1).
//!
//! `keepalive N` of an upstream bounds how many connections may be idle. In a lull all connections in use become idle, so a bound
//! below that number closes some which the next requests open again. The bound is therefore never below what is in use, with room
//! for peaks. Pure; `capacity` measures what happens below it.

/// Room for peaks, as a share of what is in use on average.
const PEAKS: f64 = 0.3;

#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Pool {
    /// Requests at the API at once, on average: as many connections are in use.
    pub in_use: f64,
    /// The smallest `keepalive` to be set: what is in use, and room for peaks.
    pub keepalive: u64,
}

impl Pool {
    /// For so many requests per second that each take so many seconds at the API, of `most` at once. Nothing asked needs one connection.
    pub fn needed(rate: f64, response_seconds: f64, most: u32) -> Pool {
        let product = rate * response_seconds;
        let in_use = if product.is_finite() { product.clamp(0.0, most.into()) } else { 0.0 };
        Pool { in_use, keepalive: ((in_use * (1.0 + PEAKS)).ceil() as u64).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_rate_times_time_and_room_for_peaks() {
        // Requests per second, seconds, in use, keepalive.
        for (rate, seconds, in_use, keepalive) in [
            (10_000.0, 0.1, 1_000.0, 1_300),
            // Answers that came at once, of requests before: no load has more on its way than it has connections.
            (850_000.0, 0.1, 2_000.0, 2_600),
            (316.0, 0.2, 63.2, 83),
            (530.0, 0.1, 53.0, 69),
            (100.0, 0.001, 0.1, 1),
            (0.0, 1.0, 0.0, 1),
            (f64::NAN, 1.0, 0.0, 1),
        ] {
            let pool = Pool::needed(rate, seconds, 2_000);
            assert!((pool.in_use - in_use).abs() < 1e-9, "{rate} x {seconds}: {pool:?}");
            assert_eq!(pool.keepalive, keepalive, "{rate} x {seconds}");
            assert!(pool.keepalive as f64 >= pool.in_use, "{pool:?}: fewer than are in use");
        }
    }
}
