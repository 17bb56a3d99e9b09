//! Figures as people read them in a sentence: two or three digits that mean something, and a unit. Tables have
//! `report::quantity`, with more digits and columns that align.

use crate::report::quantity;

/// `317`, `12,408`, `1.3` below ten.
pub fn count(value: f64) -> String {
    if value < 10.0 && value.fract() != 0.0 {
        return trimmed(value, 1);
    }
    quantity::count(value.max(0.0).round() as u64)
}

/// Seconds: `85 µs`, `1.2 ms`, `200 ms`, `3.4 s`.
pub fn duration(seconds: f64) -> String {
    let microseconds = seconds * 1e6;
    if microseconds < 999.5 {
        format!("{microseconds:.0} µs")
    } else if microseconds < 9_950.0 {
        format!("{} ms", trimmed(microseconds / 1e3, 1))
    } else if microseconds < 999_500.0 {
        format!("{:.0} ms", microseconds / 1e3)
    } else {
        format!("{} s", trimmed(seconds, 1))
    }
}

/// A share of 0 to 1: `7 %`.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Bytes: `900 bytes`, `64 kB`, `1.2 MB`, `3 GB`, in powers of ten as networks count.
pub fn volume(bytes: f64) -> String {
    let scaled = |by: f64, unit: &str| {
        let value = bytes / by;
        if value < 9.95 { format!("{} {unit}", trimmed(value, 1)) } else { format!("{value:.0} {unit}") }
    };
    if bytes < 1e3 {
        format!("{bytes:.0} bytes")
    } else if bytes < 999_500.0 {
        scaled(1e3, "kB")
    } else if bytes < 999_500_000.0 {
        scaled(1e6, "MB")
    } else {
        scaled(1e9, "GB")
    }
}

/// `1.3`, `0.94`, `19`, `1,200`: how many times.
pub fn factor(times: f64) -> String {
    if times < 1.095 {
        trimmed(times, 2)
    } else if times < 9.95 {
        trimmed(times, 1)
    } else {
        count(times.round())
    }
}

/// So many decimals, without zeros at the end.
fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
