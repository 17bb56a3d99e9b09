//! Numbers as people read them: each has its unit, and one shape in which it is told, in tables and in sentences, in text and on
//! pages.
//!
//! Three digits at the most are significant, as in the histograms, and zeros at the end are left out. Decimal points only, no locale.

use millstream_wire::date;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

pub use Quantity::{Bytes, Count, Number, Rate, Share, Time, Times, Unknown};

/// A number with its unit; its `Display` is how it is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// A whole number: `91,387`.
    Count(u64),
    /// A number without a unit, or one that its sentence names: `0.94`, `1.3`, `12.5`, `91,387`.
    Number(f64),
    /// So many times as much, which two digits tell well enough of what was measured: `0.94`, `1.3`, `19`, `1,200`.
    Times(f64),
    /// So many per second: `91,387/s`.
    Rate(f64),
    /// A share of 1, in percent: `0 %`, `0.0013 %`, `7.4 %`, `48 %`, `98.6 %`, `100 %`.
    Share(f64),
    /// Bytes, in powers of ten as networks count: `512B`, `1.2kB`, `3.4GB`.
    Bytes(f64),
    /// A time, in microseconds: `250us`, `1.23ms`, `10s`, `1.5h`.
    Time(f64),
    /// There is none: `-`.
    Unknown,
}

/// Units of a quantity with the size of each, the smallest first; a value is told in the first whose next one it does not reach.
type Units = [(f64, &'static str)];

const TIMES: &Units = &[(1.0, "us"), (1e3, "ms"), (1e6, "s"), (6e7, "m"), (3.6e9, "h")];
const BYTES: &Units = &[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")];

/// A [`Time`] of so many seconds.
pub fn seconds(seconds: f64) -> Quantity {
    Time(seconds * 1e6)
}

impl From<Duration> for Quantity {
    fn from(time: Duration) -> Quantity {
        Time(time.as_nanos() as f64 / 1e3)
    }
}

impl Display for Quantity {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.pad(&match *self {
            Count(value) => thousands(value),
            Number(value) => digits(value),
            Times(value) => digits(match value {
                9.95.. => value.round(),
                1.095.. => (value * 10.0).round() / 10.0,
                _ => value,
            }),
            Rate(value) => digits(value) + "/s",
            Share(value) => percent(value * 100.0) + " %",
            Bytes(value) => in_unit(value.round(), BYTES),
            Time(value) if sound(value) == 0.0 => "0s".to_owned(),
            Time(value) => in_unit(value, TIMES),
            Unknown => "-".to_owned(),
        })
    }
}

/// What is not a number, or below 0, is none.
fn sound(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}

fn decimals(value: f64) -> usize {
    match value {
        99.95.. => 0,
        9.995.. => 1,
        0.1.. => 2,
        _ => 4,
    }
}

fn digits(value: f64) -> String {
    let value = sound(value);
    match decimals(value) {
        0 => thousands(value.round() as u64),
        decimals => format!("{value:.decimals$}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// Whole in the middle, tenths towards both ends, and as many digits as what is less than one needs.
fn percent(value: f64) -> String {
    let tenths = match value {
        _ if value > 0.0 && value < 0.0001 => return "under 0.0001".to_owned(),
        9.95..90.0 => 1.0,
        1.0.. => 10.0,
        _ => 1e6,
    };
    digits((value * tenths).round_ties_even() / tenths)
}

/// A value in its unit. What its digits would round up into the next unit is told in that.
fn in_unit(value: f64, units: &Units) -> String {
    let value = sound(value);
    let fits = |pair: &&Units| {
        let (own, next) = (value / pair[0].0, pair[1].0 / pair[0].0);
        own + 0.5 / 10f64.powi(decimals(own) as i32) < next
    };
    let (size, name) = units.windows(2).find(fits).map_or(units[units.len() - 1], |pair| pair[0]);
    digits(value / size) + name
}

/// Thousands apart: `1,234,567`.
fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or("")).collect();
    groups.join(",")
}

/// `one` or more after its number: `1 connection`, `12 connections`.
pub fn plural(value: u64, one: &str) -> String {
    numbered(Count(value), one)
}

/// The same behind any quantity: `1.3 requests`.
pub fn numbered(quantity: Quantity, one: &str) -> String {
    let told = quantity.to_string();
    let s = if told == "1" { "" } else { "s" };
    format!("{told} {one}{s}")
}

/// When, in UTC: `2026-11-21 17:30:05 UTC`, from milliseconds since 1970.
pub fn moment(unix_milliseconds: u64) -> String {
    let seconds = (unix_milliseconds / 1000).try_into().unwrap_or(i64::MAX);
    String::from_utf8_lossy(&date::format_error_log(seconds, 0)).replace('/', "-") + " UTC"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_rounds_up_into_a_thousand_of_its_unit() {
        let cases = [
            (0.0, "0s"),
            (250.0, "250us"),
            (12.34, "12.3us"),
            (999.4, "999us"),
            (999.999, "1ms"),
            (1_234.0, "1.23ms"),
            (999_400.0, "999ms"),
            (999_996.0, "1s"),
            (59_900_000.0, "59.9s"),
            (59_999_000.0, "1m"),
            (90_000_000.0, "1.5m"),
            (3_599_999_000.0, "1h"),
            (f64::NAN, "0s"),
        ];
        for (microseconds, text) in cases {
            assert_eq!(Time(microseconds).to_string(), text, "{microseconds}");
        }
        assert_eq!(seconds(2.5).to_string(), "2.5s");
        assert_eq!(Quantity::from(Duration::from_nanos(85_300)).to_string(), "85.3us");
    }

    #[test]
    fn numbers_are_written_as_people_read_them() {
        let told =
            [0.0, 0.94, 1.304, 12.46, 99.96, 91_234.4, 1_234_567.0, -1.0].map(|n| Number(n).to_string());
        assert_eq!(told, ["0", "0.94", "1.3", "12.5", "100", "91,234", "1,234,567", "0"]);
        let told = [0.944, 1.31, 19.2, 1_200.0].map(|times| Times(times).to_string());
        assert_eq!(told, ["0.94", "1.3", "19", "1,200"]);
        assert_eq!([Count(1_234), Unknown].map(|quantity| quantity.to_string()), ["1,234", "-"]);
        assert_eq!([Rate(12.0), Rate(45_600.0)].map(|rate| rate.to_string()), ["12/s", "45,600/s"]);
        let told = [512.0, 999.9, 1.2e6, 4.55e12].map(|bytes| Bytes(bytes).to_string());
        assert_eq!(told, ["512B", "1kB", "1.2MB", "4.55TB"]);
        let told = [0.0, 0.000_013, 0.002_326, 0.0742, 0.4812, 0.9864, 1.0, 1e-9]
            .map(|share| Share(share).to_string());
        assert_eq!(told, ["0 %", "0.0013 %", "0.23 %", "7.4 %", "48 %", "98.6 %", "100 %", "under 0.0001 %"]);
        assert_eq!(format!("{:>8}|{:<6}|", Time(1e3), Number(7.0)), "     1ms|7     |");
        assert_eq!([plural(1, "run"), plural(1_200, "run")], ["1 run", "1,200 runs"]);
        assert_eq!(
            [0.44, 0.999, 1.0, 1.3].map(|times| numbered(Times(times), "request")),
            ["0.44 requests", "1 request", "1 request", "1.3 requests"]
        );
    }

    #[test]
    fn moments_follow_the_calendar() {
        assert_eq!(moment(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(moment(951_782_400_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(moment(1_767_225_599_000), "2025-12-31 23:59:59 UTC");
        assert_eq!(moment(1_795_282_205_000), "2026-11-21 17:30:05 UTC");
    }
}
