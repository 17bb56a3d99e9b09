//! Numbers as people read them, in the shapes that `wrk` made usual: `1.23ms`, `45.60k`, `1.20GB`. Every text of this crate has
//! its numbers from here: tables with two decimals each, so that columns align, sentences without the zeros at the end.
//!
//! Decimal points only, no locale. Never more digits than were measured: three are significant.

pub mod prose;

use millstream_wire::date::{self, Civil};
use std::time::Duration;

/// Units of a quantity with the size of each, the smallest first; a value is told in the first whose next one it does not reach.
type Units = [(f64, &'static str)];

const TIME: &Units = &[(1.0, "us"), (1e3, "ms"), (1e6, "s"), (6e7, "m"), (3.6e9, "h")];
const THOUSANDS: &Units = &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")];
/// As `wrk` has them.
const BYTES: &Units =
    &[(1.0, "B"), (1024.0, "KB"), (1_048_576.0, "MB"), (1_073_741_824.0, "GB"), (1_099_511_627_776.0, "TB")];

/// A value in its unit. What would be rounded up into the next unit, with so many decimals, is told in that.
fn in_unit(value: f64, units: &Units, decimals: i32) -> (f64, &'static str) {
    let value = if value.is_finite() { value.max(0.0) } else { 0.0 };
    let fits = |pair: &&Units| value / pair[0].0 + 0.5 / 10f64.powi(decimals) < pair[1].0 / pair[0].0;
    let (size, name) = units.windows(2).find(fits).map_or(units[units.len() - 1], |pair| pair[0]);
    (value / size, name)
}

/// With so many decimals, without zeros at the end.
fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// With three significant digits at the most.
fn short(value: f64) -> String {
    trimmed(value, if value < 9.995 { 2 } else { usize::from(value < 99.95) })
}

/// A duration in microseconds: `0us`, `250us`, `1.23ms`, `2.50s`, `1.20m`.
pub fn duration(microseconds: f64) -> String {
    let (value, unit) = in_unit(microseconds, TIME, 2);
    if unit == "us" && value.fract() == 0.0 { format!("{value:.0}us") } else { format!("{value:.2}{unit}") }
}

/// The same of a [`Duration`].
pub fn took(time: Duration) -> String {
    duration(time.as_nanos() as f64 / 1e3)
}

/// A span in seconds as a name or in a sentence: `10s`, `2.5s`, `5m`, `1.5h`, `62.5ms`.
pub fn span(seconds: f64) -> String {
    let (value, unit) = in_unit(seconds * 1e6, TIME, 2);
    if value == 0.0 { "0s".to_owned() } else { short(value) + unit }
}

/// A number with a unit prefix of thousands: `12.00`, `45.60k`, `1.20M`.
pub fn scaled(value: f64) -> String {
    let (value, unit) = in_unit(value, THOUSANDS, 2);
    format!("{value:.2}{unit}")
}

/// The same beside an axis: `12`, `45.6k`.
pub(super) fn tick(value: f64) -> String {
    let (value, unit) = in_unit(value, THOUSANDS, 2);
    short(value) + unit
}

/// Bytes, with prefixes of 1,024: `512B`, `1.20KB`, `3.40GB`.
pub fn bytes(value: f64) -> String {
    let (value, unit) = in_unit(value.round(), BYTES, 2);
    if unit == "B" { format!("{value:.0}B") } else { format!("{value:.2}{unit}") }
}

/// A whole number with its thousands apart: `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or("")).collect();
    groups.join(",")
}

/// `one` or `many` after its number: `1 connection`, `12 connections`.
pub fn plural(value: u64, one: &str) -> String {
    format!("{} {one}{}", count(value), if value == 1 { "" } else { "s" })
}

/// A rate per second, thousands apart, with a tenth where it is small: `91,234`, `12.5`.
pub fn rate(value: f64) -> String {
    let value = if value.is_finite() { value.max(0.0) } else { 0.0 };
    if value < 99.95 { format!("{value:.1}") } else { count(value.round() as u64) }
}

/// A share of 1 in percent, with as many digits as a small one needs: `0 %`, `0.0013 %`, `12.5 %`, `100 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value {
        _ if value == 0.0 || value >= 99.95 => format!("{value:.0} %"),
        _ if value >= 9.95 => format!("{value:.1} %"),
        _ if value >= 0.1 => format!("{value:.2} %"),
        _ if value >= 0.0001 => format!("{value:.4} %"),
        _ => "under 0.0001 %".to_owned(),
    }
}

/// A percentile's name: `50%`, `99.9%`.
pub fn percentile(percent: f64) -> String {
    format!("{percent}%")
}

/// So many times as much: `×1.30`, `×23.0`, `×412`.
pub fn factor(value: f64) -> String {
    match value {
        _ if value < 9.995 => format!("×{value:.2}"),
        _ if value < 99.95 => format!("×{value:.1}"),
        _ => format!("×{}", count(value.round() as u64)),
    }
}

/// When, in UTC: `2026-11-21 17:30:05 UTC`, from milliseconds since 1970.
pub fn moment(unix_milliseconds: u64) -> String {
    let Civil { year, month, day, hour, minute, second, .. } =
        date::civil((unix_milliseconds / 1000).try_into().unwrap_or(i64::MAX), 0);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_never_round_up_into_a_thousand_of_their_unit() {
        let cases = [
            (0.0, "0us"),
            (250.0, "250us"),
            (250.5, "250.50us"),
            (999.0, "999us"),
            (999.999, "1.00ms"),
            (1_234.0, "1.23ms"),
            (999_994.0, "999.99ms"),
            (999_996.0, "1.00s"),
            (59_999_000.0, "1.00m"),
            (90_000_000.0, "1.50m"),
            (3_599_999_000.0, "1.00h"),
            (f64::NAN, "0us"),
        ];
        for (microseconds, text) in cases {
            assert_eq!(duration(microseconds), text, "{microseconds}");
        }
    }

    #[test]
    fn numbers_are_written_as_people_read_them() {
        assert_eq!(
            [span(0.0), span(10.0), span(2.5), span(0.1), span(300.0), span(5400.0)],
            ["0s", "10s", "2.5s", "100ms", "5m", "1.5h"]
        );
        assert_eq!(
            [scaled(12.0), scaled(45_600.0), scaled(999_999.0), tick(45_600.0)],
            ["12.00", "45.60k", "1.00M", "45.6k"]
        );
        assert_eq!(
            [bytes(512.0), bytes(1023.9), bytes(1.2 * 1048576.0), bytes(5e12)],
            ["512B", "1.00KB", "1.20MB", "4.55TB"]
        );
        assert_eq!(
            [count(0), count(999), count(1_000), count(1_234_567)],
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!([rate(12.46), rate(99.96), rate(91_234.4)], ["12.5", "100", "91,234"]);
        assert_eq!(
            [percent(0.0), percent(0.000_013), percent(0.5), percent(1.0), percent(1e-9)],
            ["0 %", "0.0013 %", "50.0 %", "100 %", "under 0.0001 %"]
        );
        assert_eq!([factor(1.3), factor(23.04), factor(412.0)], ["×1.30", "×23.0", "×412"]);
        assert_eq!([percentile(50.0), percentile(99.99)], ["50%", "99.99%"]);
    }

    #[test]
    fn moments_follow_the_calendar() {
        assert_eq!(moment(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(moment(951_782_400_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(moment(1_767_225_599_000), "2025-12-31 23:59:59 UTC");
        assert_eq!(moment(1_795_282_205_000), "2026-11-21 17:30:05 UTC");
    }
}
