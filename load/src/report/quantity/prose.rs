//! The same as text, of bare numbers.

use super::{Bytes, Number, Share, Times, seconds};

/// A number.
pub fn count(value: f64) -> String {
    Number(value).to_string()
}

/// Seconds.
pub fn duration(time: f64) -> String {
    seconds(time).to_string()
}

/// A share of 0 to 1.
pub fn percent(share: f64) -> String {
    Share(share).to_string()
}

/// Bytes.
pub fn volume(bytes: f64) -> String {
    Bytes(bytes).to_string()
}

/// How many times.
pub fn factor(times: f64) -> String {
    Times(times).to_string()
}
