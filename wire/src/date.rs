//! Points in time as HTTP and logs write them, and back (RFC 9110 §5.6.7).
//!
//! Time comes in and goes out as seconds since 1970 in UTC; nobody here asks what time it is. Years outside of
//! 0 to 9999 are clamped, as no format here has room for them.

const DAY: i64 = 86_400;
const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
const LONG_DAYS: [&[u8]; 7] =
    [b"Thursday", b"Friday", b"Saturday", b"Sunday", b"Monday", b"Tuesday", b"Wednesday"];
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// First and last second that the formats can show: the years 0 to 9999.
const FIRST: i64 = -62_167_219_200;
const LAST: i64 = 253_402_300_799;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    /// 0 to 9999.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59; leap seconds are not represented.
    pub second: u8,
    /// 0 is Sunday.
    pub weekday: u8,
}

/// Date and time of the Gregorian calendar, `utc_offset_seconds` east of UTC.
pub fn civil(unix_seconds: i64, utc_offset_seconds: i32) -> Civil {
    let seconds = unix_seconds.saturating_add(i64::from(utc_offset_seconds)).clamp(FIRST, LAST);
    let (days, clock) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    // Count from 1 March of year 0, so that the leap day is the last day of a year; 400 years have 146,097 days.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    Civil {
        year: year as u16,
        month: month as u8,
        day: day as u8,
        hour: (clock / 3600) as u8,
        minute: (clock / 60 % 60) as u8,
        second: (clock % 60) as u8,
        weekday: (days + 4).rem_euclid(7) as u8,
    }
}

/// In UTC; `None` if there is no such day or time.
pub fn unix(year: i64, month: i64, day: i64, hour: i64, minute: i64, second: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        1..=12 => 31,
        _ => return None,
    };
    // A 60th second is a leap second, which the grammar allows; it is taken as the first of the next minute.
    if !(1..=length).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let march_year = if month <= 2 { year - 1 } else { year };
    let march_month = (month + 9) % 12;
    let era = march_year.div_euclid(400);
    let year_of_era = march_year.rem_euclid(400);
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let days =
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
    Some(days * DAY + hour * 3600 + minute * 60 + second)
}

#[inline]
fn two(out: &mut [u8], at: usize, number: u8) {
    out[at] = b'0' + number / 10 % 10;
    out[at + 1] = b'0' + number % 10;
}

#[inline]
fn four(out: &mut [u8], at: usize, number: u16) {
    two(out, at, (number / 100) as u8);
    two(out, at + 2, (number % 100) as u8);
}

#[inline]
fn clock(out: &mut [u8], at: usize, civil: &Civil) {
    two(out, at, civil.hour);
    two(out, at + 3, civil.minute);
    two(out, at + 6, civil.second);
}

/// `±hhmm`, or `±hh:mm` with `colon`.
fn offset(out: &mut [u8], at: usize, utc_offset_seconds: i32, colon: bool) {
    let minutes = utc_offset_seconds.unsigned_abs() / 60;
    out[at] = if utc_offset_seconds < 0 { b'-' } else { b'+' };
    two(out, at + 1, (minutes / 60 % 100) as u8);
    two(out, at + 3 + usize::from(colon), (minutes % 60) as u8);
}

/// `Sat, 21 Nov 2026 10:26:00 GMT`, the one format that is written (RFC 9110 §5.6.7).
pub fn format_http(unix_seconds: i64) -> [u8; 29] {
    let time = civil(unix_seconds, 0);
    let mut out = *b"Sat, 01 Jan 2000 00:00:00 GMT";
    out[..3].copy_from_slice(DAYS[(time.weekday as usize + 3) % 7]);
    two(&mut out, 5, time.day);
    out[8..11].copy_from_slice(MONTHS[time.month as usize - 1]);
    four(&mut out, 12, time.year);
    clock(&mut out, 17, &time);
    out
}

/// `Sat, 21-Nov-26 10:26:00 GMT`, as nginx writes dates of cookies: years from 2038 on with four digits.
pub fn format_cookie(unix_seconds: i64) -> Vec<u8> {
    let mut out = format_http(unix_seconds).to_vec();
    (out[7], out[11]) = (b'-', b'-');
    if civil(unix_seconds, 0).year <= 2037 {
        out.drain(12..14);
    }
    out
}

/// `21/Nov/2026:10:26:00 +0000`: nginx's `$time_local`.
pub fn format_clf(unix_seconds: i64, utc_offset_seconds: i32) -> [u8; 26] {
    let time = civil(unix_seconds, utc_offset_seconds);
    let mut out = *b"01/Jan/2000:00:00:00 +0000";
    two(&mut out, 0, time.day);
    out[3..6].copy_from_slice(MONTHS[time.month as usize - 1]);
    four(&mut out, 7, time.year);
    clock(&mut out, 12, &time);
    offset(&mut out, 21, utc_offset_seconds, false);
    out
}

/// `2026-11-21T10:26:00+00:00`: nginx's `$time_iso8601`.
pub fn format_iso8601(unix_seconds: i64, utc_offset_seconds: i32) -> [u8; 25] {
    let time = civil(unix_seconds, utc_offset_seconds);
    let mut out = *b"2000-01-01T00:00:00+00:00";
    four(&mut out, 0, time.year);
    two(&mut out, 5, time.month);
    two(&mut out, 8, time.day);
    clock(&mut out, 11, &time);
    offset(&mut out, 19, utc_offset_seconds, true);
    out
}

/// `2026/11/21 10:26:00`, as in nginx's error log.
pub fn format_error_log(unix_seconds: i64, utc_offset_seconds: i32) -> [u8; 19] {
    let time = civil(unix_seconds, utc_offset_seconds);
    let mut out = *b"2000/01/01 00:00:00";
    four(&mut out, 0, time.year);
    two(&mut out, 5, time.month);
    two(&mut out, 8, time.day);
    clock(&mut out, 11, &time);
    out
}

/// `Nov  6 10:26:00`, as in syslog messages (RFC 3164 §4.1.2).
pub fn format_syslog(unix_seconds: i64, utc_offset_seconds: i32) -> [u8; 15] {
    let time = civil(unix_seconds, utc_offset_seconds);
    let mut out = *b"Jan  1 00:00:00";
    out[..3].copy_from_slice(MONTHS[time.month as usize - 1]);
    two(&mut out, 4, time.day);
    if time.day < 10 {
        out[4] = b' ';
    }
    clock(&mut out, 7, &time);
    out
}

/// Reads any of the three formats of RFC 9110 §5.6.7: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94
/// 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`. A two-digit year from 70 on is of the last century, a
/// smaller one of this. The weekday must be valid, not correct. Case is ignored, as RFC 9111 §4.2 requires of
/// a cache.
pub fn parse_http(text: &[u8]) -> Option<i64> {
    let (date, rest) = match text.split_last_chunk::<4>() {
        Some((date, zone)) if is(zone, b" GMT") => (date, true),
        _ => (text, false),
    };
    let short = || date.get(..3).is_some_and(|name| DAYS.iter().any(|day| is(name, *day)));
    match (rest, memchr::memchr(b',', date)) {
        (true, Some(3)) if short() => fixed(&date[4..]),
        (true, Some(comma)) if LONG_DAYS.iter().any(|day| is(&date[..comma], day)) => {
            obsolete(&date[comma + 1..])
        }
        (false, None) if short() => asctime(&date[3..]),
        _ => None,
    }
}

fn is(text: &[u8], name: &[u8]) -> bool {
    text.eq_ignore_ascii_case(name)
}

/// ` 06 Nov 1994 08:49:37`
fn fixed(text: &[u8]) -> Option<i64> {
    if text.len() != 21 || text[0] != b' ' || text[3] != b' ' || text[7] != b' ' || text[12] != b' ' {
        return None;
    }
    let (hour, minute, second) = time(&text[13..])?;
    unix(number(&text[8..12])?, month(&text[4..7])?, number(&text[1..3])?, hour, minute, second)
}

/// ` 06-Nov-94 08:49:37`
fn obsolete(text: &[u8]) -> Option<i64> {
    if text.len() != 19 || text[0] != b' ' || text[3] != b'-' || text[7] != b'-' || text[10] != b' ' {
        return None;
    }
    let (hour, minute, second) = time(&text[11..])?;
    let year = number(&text[8..10])?;
    let year = if year >= 70 { 1900 + year } else { 2000 + year };
    unix(year, month(&text[4..7])?, number(&text[1..3])?, hour, minute, second)
}

/// ` Nov  6 08:49:37 1994`
fn asctime(text: &[u8]) -> Option<i64> {
    if text.len() != 21 || text[0] != b' ' || text[4] != b' ' || text[7] != b' ' || text[16] != b' ' {
        return None;
    }
    let (hour, minute, second) = time(&text[8..16])?;
    let day = if text[5] == b' ' { &text[6..7] } else { &text[5..7] };
    unix(number(&text[17..21])?, month(&text[1..4])?, number(day)?, hour, minute, second)
}

/// Reads what [`format_clf`] writes.
pub fn parse_clf(text: &[u8]) -> Option<i64> {
    if text.len() != 26 || text[2] != b'/' || text[6] != b'/' || text[11] != b':' || text[20] != b' ' {
        return None;
    }
    let (hour, minute, second) = time(&text[12..20])?;
    let local = unix(number(&text[7..11])?, month(&text[3..6])?, number(&text[..2])?, hour, minute, second)?;
    let offset = number(&text[22..24])? * 3600 + number(&text[24..])? * 60;
    match text[21] {
        b'+' => Some(local - offset),
        b'-' => Some(local + offset),
        _ => None,
    }
}

fn time(text: &[u8]) -> Option<(i64, i64, i64)> {
    match text {
        [_, _, b':', _, _, b':', _, _] => {
            Some((number(&text[..2])?, number(&text[3..5])?, number(&text[6..8])?))
        }
        _ => None,
    }
}

fn month(text: &[u8]) -> Option<i64> {
    MONTHS.iter().position(|month| is(text, *month)).map(|index| index as i64 + 1)
}

/// At most four digits and nothing else.
fn number(text: &[u8]) -> Option<i64> {
    text.iter()
        .try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
}

#[cfg(test)]
mod tests;
