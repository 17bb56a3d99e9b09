//! What a value looks like: the current time, a number, a random token, or plain text.
//!
//! Before: `names`; next: `json` and `text`, which find values.

use millstream_wire::date;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The time at which the response was made, within [`CLOCK_TOLERANCE`].
    Clock,
    Integer,
    Decimal,
    /// Random enough to be an id or a secret.
    Token,
    Plain,
}

/// Milliseconds between a time in a response and its arrival.
const CLOCK_TOLERANCE: u64 = 5_000;

/// `now`: milliseconds since 1970.
pub(crate) fn shape(text: &[u8], now: u64) -> Shape {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return if is_token(text, digits) { Shape::Token } else { Shape::Plain };
    }
    match moment(text, digits) {
        Some(moment) if moment.abs_diff(now) <= CLOCK_TOLERANCE => Shape::Clock,
        _ if digits == text.len() || (text[0] == b'-' && digits + 1 == text.len()) => Shape::Integer,
        _ if digits + 1 >= text.len() && text.contains(&b'.') => Shape::Decimal,
        _ if is_token(text, digits) => Shape::Token,
        _ => Shape::Plain,
    }
}

/// Milliseconds since 1970 of a time in one of the usual forms.
fn moment(text: &[u8], digits: usize) -> Option<u64> {
    let text_digits = std::str::from_utf8(text).ok()?;
    if digits == text.len() {
        let number: u64 = text_digits.parse().ok()?;
        return match digits {
            9..=11 => number.checked_mul(1_000),
            12..=14 => Some(number),
            15..=17 => Some(number / 1_000),
            18..=19 => Some(number / 1_000_000),
            _ => None,
        };
    }
    if digits + 1 == text.len() && text.get(10) == Some(&b'.') {
        return Some((text_digits.parse::<f64>().ok()? * 1_000.0) as u64);
    }
    let seconds = match text.len() >= 19 && text[4] == b'-' {
        true => iso8601(text_digits)?,
        false => date::parse_http(text).or_else(|| of_mail(text_digits))?,
    };
    u64::try_from(seconds).ok()?.checked_mul(1_000)
}

/// `2024-05-06T07:08:09` with or without a fraction and an offset.
fn iso8601(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let seconds = date::unix(
        number(0..4)?,
        number(5..7)?,
        number(8..10)?,
        number(11..13)?,
        number(14..16)?,
        number(17..19)?,
    )?;
    let rest = text.get(19..)?.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let offset = match rest.as_bytes().first() {
        Some(sign @ (b'+' | b'-')) => {
            let hours: i64 = rest.get(1..3)?.parse().ok()?;
            let minutes: i64 = rest.get(rest.len() - 2..)?.parse().ok()?;
            (hours * 3_600 + minutes * 60) * if *sign == b'+' { 1 } else { -1 }
        }
        _ => 0,
    };
    Some(seconds - offset)
}

/// A date as in mail and feeds (RFC 5322 §3.3): `Tue, 14 Nov 2023 22:13:20 +0000`, with or without the day of the week.
fn of_mail(text: &str) -> Option<i64> {
    let mut words = text.split(' ').map(str::as_bytes);
    let first = words.next()?;
    let day = if first.ends_with(b",") { words.next()? } else { first };
    let local = local_time([day, words.next()?, words.next()?], words.next()?)?;
    let offset = zone(words.next()?)?;
    words.next().is_none().then_some(local - offset)
}

/// Seconds since 1970 of such a date, by the clocks of its zone.
pub(crate) fn local_time([day, month, year]: [&[u8]; 3], time: &[u8]) -> Option<i64> {
    const MONTHS: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<i64>().ok();
    let is_time = time.len() == 8 && time[2] == b':' && time[5] == b':';
    if !is_time || !(1..=2).contains(&day.len()) || year.len() != 4 {
        return None;
    }
    let month = MONTHS.iter().position(|of| of.eq_ignore_ascii_case(month))? as i64 + 1;
    date::unix(
        number(year)?,
        month,
        number(day)?,
        number(&time[..2])?,
        number(&time[3..5])?,
        number(&time[6..])?,
    )
}

/// Seconds by which the clocks of a zone are ahead, with the names that it may have (RFC 5322 §4.3).
pub(crate) fn zone(text: &[u8]) -> Option<i64> {
    const NAMES: [(&[u8], i64); 12] = [
        (b"GMT", 0),
        (b"UT", 0),
        (b"UTC", 0),
        (b"Z", 0),
        (b"EDT", -4),
        (b"EST", -5),
        (b"CDT", -5),
        (b"CST", -6),
        (b"MDT", -6),
        (b"MST", -7),
        (b"PDT", -7),
        (b"PST", -8),
    ];
    if let Some((_, hours)) = NAMES.iter().find(|(name, _)| *name == text) {
        return Some(hours * 3_600);
    }
    let (sign, digits) = match text.split_first()? {
        (b'+', digits) => (1, digits),
        (b'-', digits) => (-1, digits),
        _ => return None,
    };
    if digits.len() != 4 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: i64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(sign * (number / 100 * 3_600 + number % 100 * 60))
}

/// Whether a time in a response, in seconds since 1970, is that of the response.
pub(crate) fn is_now(seconds: i64, now: u64) -> bool {
    let milliseconds = u64::try_from(seconds).ok().and_then(|seconds| seconds.checked_mul(1_000));
    milliseconds.is_some_and(|moment| moment.abs_diff(now) <= CLOCK_TOLERANCE)
}

/// At least 12 letters and digits without a space, that change between kinds as no word does.
fn is_token(text: &[u8], digits: usize) -> bool {
    const SHORTEST: usize = 12;
    if text.len() < SHORTEST || text.iter().any(|byte| !byte.is_ascii_graphic()) {
        return false;
    }
    if is_uuid(text) {
        return true;
    }
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        b'a'..=b'z' => 2,
        _ => 3,
    };
    let changes = text.windows(2).filter(|pair| kind(pair[0]) != kind(pair[1])).count();
    let others = text.iter().filter(|byte| kind(**byte) == 3).count();
    let mut seen = [false; 256];
    text.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    let distinct = seen.iter().filter(|seen| **seen).count();
    let is_mixed = digits > 0 || text.iter().any(u8::is_ascii_uppercase);
    is_mixed && others * 6 <= text.len() && distinct >= 7 && changes * 5 >= text.len()
}

pub(crate) fn is_uuid(text: &[u8]) -> bool {
    text.len() == 36
        && text.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_shape_of_what_they_are() {
        let now = 1_700_000_000_000;
        for (text, expected) in [
            ("1700000001", Shape::Clock),
            ("1700000000123", Shape::Clock),
            ("1700000000.25", Shape::Clock),
            ("2023-11-14T22:13:20Z", Shape::Clock),
            ("2023-11-14T23:13:21.5+01:00", Shape::Clock),
            ("Tue, 14 Nov 2023 22:13:20 GMT", Shape::Clock),
            ("Tue, 14 Nov 2023 23:13:20 +0100", Shape::Clock),
            ("14 Nov 2023 14:13:22 PST", Shape::Clock),
            ("Tue, 14 Nov 2023 22:13:20 +0100", Shape::Plain),
            ("Tue, 14 Nov 2023 22:13:20 -13", Shape::Plain),
            ("1600000000", Shape::Integer),
            ("-17", Shape::Integer),
            ("12.5", Shape::Decimal),
            ("9f86d081884c7d659a2feaa0c55ad015", Shape::Token),
            ("6ba7b810-9dad-11d1-80b4-00c04fd430c8", Shape::Token),
            ("kR7xQ2mZp9Lw", Shape::Token),
            ("a plain sentence of 7 words it is", Shape::Plain),
            ("https://example.com/path/to/item", Shape::Plain),
            ("international", Shape::Plain),
        ] {
            assert_eq!(shape(text.as_bytes(), now), expected, "{text}");
        }
    }
}
