//! How many connections a proxy needs to its API, by Little's law: requests per second times the time that each takes are
//! so many requests on their way at once, each of which has a connection to itself (HTTP/1.1).
//!
//! `keepalive N` of an upstream says how many may be idle beside those in use. Requests do not come evenly: where hardly
//! any idle ones are allowed, each lull closes connections that the next rush opens again. The rule that the articles
//! give is to keep 10 to 30 % of those in use. Pure; `capacity` measures what happens below it.

/// Of the connections in use, so many are to be kept idle at the least.
const LEAST_IDLE: f64 = 0.1;
/// And so many at the most.
const MOST_IDLE: f64 = 0.3;

/// What a load needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Pool {
    /// Requests at the API at once, on average: as many connections are in use.
    pub in_use: f64,
    /// Connections to keep idle beside them, at the least (`keepalive`).
    pub idle_least: u64,
    /// The same, at the most.
    pub idle_most: u64,
}

impl Pool {
    /// For so many requests per second that each take so many seconds at the API, of `most` at once. Nothing asked needs one connection.
    pub fn needed(rate: f64, response_seconds: f64, most: u32) -> Pool {
        let product = rate * response_seconds;
        let in_use = if product.is_finite() { product.clamp(0.0, most.into()) } else { 0.0 };
        let idle = |share: f64| ((in_use * share).ceil() as u64).max(1);
        Pool { in_use, idle_least: idle(LEAST_IDLE), idle_most: idle(MOST_IDLE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_rate_times_time_and_ten_to_thirty_percent_of_it_idle() {
        // Requests per second, seconds, in use, idle from, to.
        for (rate, seconds, in_use, least, most) in [
            (10_000.0, 0.1, 1_000.0, 100, 300),
            // Answers that came at once, of requests before: no load has more on its way than it has connections.
            (850_000.0, 0.1, 2_000.0, 200, 600),
            (316.0, 0.2, 63.2, 7, 19),
            (100.0, 0.001, 0.1, 1, 1),
            (0.0, 1.0, 0.0, 1, 1),
            (f64::NAN, 1.0, 0.0, 1, 1),
        ] {
            let pool = Pool::needed(rate, seconds, 2_000);
            assert!((pool.in_use - in_use).abs() < 1e-9, "{rate} x {seconds}: {pool:?}");
            assert_eq!((pool.idle_least, pool.idle_most), (least, most), "{rate} x {seconds}");
        }
    }
}
