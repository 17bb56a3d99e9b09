//! Figures within a sentence: two or three digits that mean something, and a unit apart from them. `quantity` itself has what
//! aligns in tables.

use super::{Units, in_unit, trimmed};

const TIME: &Units = &[(1.0, "µs"), (1e3, "ms"), (1e6, "s")];
/// In powers of ten, as networks count.
const BYTES: &Units = &[(1.0, "bytes"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")];

/// `317`, `12,408`, `1.3` below ten.
pub fn count(value: f64) -> String {
    if value < 10.0 && value.fract() != 0.0 {
        return trimmed(value, 1);
    }
    super::count(value.max(0.0).round() as u64)
}

/// Seconds: `85 µs`, `1.2 ms`, `200 ms`, `3.4 s`.
pub fn duration(seconds: f64) -> String {
    let (value, unit) = in_unit(seconds * 1e6, TIME, 0);
    let has_tenths = unit == "s" || (unit == "ms" && value < 9.95);
    format!("{} {unit}", trimmed(value, has_tenths.into()))
}

/// A share of 0 to 1: `7 %`.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Bytes: `900 bytes`, `64 kB`, `1.2 MB`, `3 GB`.
pub fn volume(bytes: f64) -> String {
    let (value, unit) = in_unit(bytes, BYTES, 0);
    format!("{} {unit}", trimmed(value, (value < 9.95 && unit != "bytes").into()))
}

/// `1.3`, `0.94`, `19`, `1,200`: how many times.
pub fn factor(times: f64) -> String {
    match times {
        _ if times < 1.095 => trimmed(times, 2),
        _ if times < 9.95 => trimmed(times, 1),
        _ => count(times.round()),
    }
}
