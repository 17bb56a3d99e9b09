//! How reports say numbers and times.
//!
//! Before: `report`; next: `configuration`, whose comments they are in.

use crate::report::Report;

impl Report {
    /// One sentence: how much of the API's time a cache would save.
    pub fn summary(&self) -> String {
        let totals = &self.totals;
        if totals.requests == 0 {
            return "No requests received.".to_owned();
        }
        format!(
            "{} requests in {}: {} of {} routes can be cached. That would have saved {} of the API's {}.",
            grouped(totals.requests),
            time(self.duration_seconds),
            totals.cached_routes,
            totals.routes,
            time(totals.saved_seconds),
            time(totals.api_seconds),
        )
    }
}

/// Seconds, or minutes or hours if they are many.
pub fn time(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..7_200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3_600.0),
    }
}

/// With commas between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
