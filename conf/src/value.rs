//! Words as values: sizes, offsets, times, flags and numbers, written as nginx writes them.
//!
//! Pure functions of text; an error says what was expected and what to write. Nothing here knows a directive.
//! Next: `directives/`, which calls these with the word's span.

use std::time::Duration;

use crate::diagnostics::Diagnostics;
use crate::source::Span;

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueError {
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    pub help: Option<String>,
}

impl ValueError {
    pub fn report(self, span: Span, diagnostics: &mut Diagnostics) {
        let diagnostic = diagnostics.error(span, self.message);
        diagnostic.help = self.help;
    }

    fn new(message: String, help: impl Into<String>) -> Self {
        ValueError { message, help: Some(help.into()) }
    }
}

/// In bytes: digits, then nothing, `k` or `m` (any case). As in nginx there is no `g`: sizes are of buffers
/// and memory zones. At most `i64::MAX`.
pub fn size(text: &str) -> Result<u64, ValueError> {
    scaled(text, "size", &[('k', 10), ('m', 20)])
}

/// A file size or offset in bytes: as [`size`], and `g` (`client_max_body_size`, `max_size=`).
pub fn offset(text: &str) -> Result<u64, ValueError> {
    scaled(text, "size", &[('k', 10), ('m', 20), ('g', 30)])
}

/// A share from 0 to 1: a percentage such as `0.1%`, or a fraction such as `0.001`, of digits and a decimal point alone.
pub fn share(text: &str) -> Option<f64> {
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let share = number.parse::<f64>().ok().filter(|_| is_plain)? / whole;
    (share <= 1.0).then_some(share)
}

/// To the millisecond: whole numbers with `y` (365 days), `M` (30 days), `w`, `d`, `h`, `m`, `s`, `ms`,
/// greatest unit first, each at most once; a last number without a unit counts seconds. `1h30m`, `1h 30m`,
/// `90`.
///
/// nginx has two kinds of time, one without `ms` and one without `y` and `M`; here every time takes all
/// units.
pub fn duration(text: &str) -> Result<Duration, ValueError> {
    let mut rest = text;
    let mut total: u64 = 0;
    let mut smallest = usize::MAX;
    if rest.is_empty() {
        return Err(bad_duration(text, "write a time such as \"30s\", \"10m\" or \"1h30m\""));
    }
    while !rest.is_empty() {
        let digits = digits_at_start(rest);
        if digits == 0 {
            return Err(bad_duration(text, duration_help(text)));
        }
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let Some(rank) = UNITS.iter().position(|&(name, _)| name == unit) else {
            return Err(bad_duration(text, duration_help(text)));
        };
        if smallest != usize::MAX && rank <= smallest {
            return Err(bad_duration(
                text,
                "write the largest unit first and each unit once, as in \"1h30m\"",
            ));
        }
        let next = after.trim_start_matches(' ');
        if unit.is_empty() && next.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(bad_duration(text, "only the last number may have no unit"));
        }
        if unit.is_empty() && !next.is_empty() {
            return Err(bad_duration(text, duration_help(text)));
        }
        smallest = rank;
        let milliseconds = parse_digits(number).and_then(|n| n.checked_mul(UNITS[rank].1));
        let sum = milliseconds.and_then(|n| total.checked_add(n)).filter(|&n| n <= i64::MAX as u64);
        total = sum.ok_or_else(|| bad_duration(text, "it is longer than the longest supported time"))?;
        rest = next;
    }
    Ok(Duration::from_millis(total))
}

/// In any case as in nginx.
pub fn flag(text: &str) -> Result<bool, ValueError> {
    if text.eq_ignore_ascii_case("on") {
        return Ok(true);
    }
    if text.eq_ignore_ascii_case("off") {
        return Ok(false);
    }
    let help = match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "1" | "enable" | "enabled" => "write \"on\"",
        "no" | "false" | "0" | "none" | "disable" | "disabled" => "write \"off\"",
        _ => "write \"on\" or \"off\"",
    };
    Err(ValueError::new(format!("invalid value \"{text}\", it must be \"on\" or \"off\""), help))
}

/// In decimal digits, at most `i64::MAX`.
pub fn number(text: &str) -> Result<u64, ValueError> {
    if !text.is_empty() && digits_at_start(text) == text.len() {
        return parse_digits(text).ok_or_else(|| {
            ValueError::new(
                format!("the number \"{text}\" is too large"),
                format!("the maximum is {}", i64::MAX),
            )
        });
    }
    let digits = digits_at_start(text);
    let help = if digits > 0 {
        format!("write only digits: \"{}\"", &text[..digits])
    } else {
        "write a whole number in digits, such as \"10\"".to_string()
    };
    Err(ValueError::new(format!("invalid number \"{text}\""), help))
}

/// Greatest first, in milliseconds; a bare number ranks with the seconds it counts.
const UNITS: &[(&str, u64)] = &[
    ("y", 365 * 24 * 3_600_000),
    ("M", 30 * 24 * 3_600_000),
    ("w", 7 * 24 * 3_600_000),
    ("d", 24 * 3_600_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
    ("", 1_000),
];

fn bad_duration(text: &str, help: impl Into<String>) -> ValueError {
    ValueError::new(format!("invalid time \"{text}\""), help)
}

/// For a unit in words, or a fraction.
fn duration_help(text: &str) -> String {
    let general = "a time is a number and y, M, w, d, h, m, s or ms";
    let digits = digits_at_start(text);
    let written = text[digits..].trim_start().to_ascii_lowercase();
    let unit = match written.as_str() {
        "sec" | "secs" | "second" | "seconds" => "s",
        "min" | "mins" | "minute" | "minutes" => "m",
        "hr" | "hrs" | "hour" | "hours" => "h",
        "day" | "days" => "d",
        "week" | "weeks" => "w",
        "mo" | "mon" | "month" | "months" => "M",
        "yr" | "year" | "years" => "y",
        "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => "ms",
        "d" | "h" | "m" | "s" | "ms" | "w" | "y" if digits == 0 => {
            return format!("{general}: the number is missing");
        }
        lower if UNITS.iter().any(|&(name, _)| name == lower) => lower,
        rest if rest.starts_with('.') => {
            return format!("{general}, without fractions: write \"1500ms\" for one and a half seconds");
        }
        _ => "",
    };
    if unit.is_empty() || digits == 0 {
        return general.to_string();
    }
    format!("{general}: write \"{}{unit}\"", &text[..digits])
}

fn scaled(text: &str, what: &str, units: &[(char, u32)]) -> Result<u64, ValueError> {
    let (number, unit) = text.split_at(digits_at_start(text));
    let lower = unit.to_ascii_lowercase();
    let shift = match lower.as_str() {
        "" => Some(0),
        _ => {
            units.iter().find(|&&(letter, _)| lower.len() == 1 && lower.starts_with(letter)).map(|&(_, s)| s)
        }
    };
    let wrong = |help: String| ValueError::new(format!("invalid {what} \"{text}\""), help);
    let letters: Vec<String> = units.iter().map(|(letter, _)| letter.to_string()).collect();
    let general = format!("a {what} is a number of bytes, or a number and {}", letters.join(" or "));
    let Some(shift) = shift.filter(|_| !number.is_empty()) else {
        return Err(wrong(scaled_help(number, &lower, units, general)));
    };
    let bytes =
        parse_digits(number).and_then(|n| n.checked_mul(1 << shift)).filter(|&n| n <= i64::MAX as u64);
    bytes.ok_or_else(|| wrong(format!("the maximum is {} bytes", i64::MAX)))
}

/// For `10mb`, `1GiB` or `2g`.
fn scaled_help(number: &str, unit: &str, units: &[(char, u32)], general: String) -> String {
    let Some(value) = parse_digits(number).filter(|_| !number.is_empty()) else { return general };
    let letter = match unit {
        "b" | "byte" | "bytes" => return format!("{general}: write \"{number}\""),
        "kb" | "kib" => 'k',
        "mb" | "mib" => 'm',
        "g" | "gb" | "gib" => 'g',
        _ => return general,
    };
    let known = units.iter().any(|&(known, _)| known == letter);
    match value.checked_mul(1024) {
        _ if known => format!("{general}: write \"{number}{letter}\""),
        Some(megabytes) => format!("{general}: write \"{megabytes}m\""),
        None => general,
    }
}

fn digits_at_start(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// `None` past `i64::MAX`, nginx's own bound on 64-bit machines.
fn parse_digits(digits: &str) -> Option<u64> {
    digits.parse::<u64>().ok().filter(|&n| n <= i64::MAX as u64)
}
