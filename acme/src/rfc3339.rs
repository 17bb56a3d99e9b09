//! Moments as text, in which servers say when to renew (RFC 3339): `2026-11-25T02:20:03Z`.
//!
//! Next: `renewal`, which reads them.

/// Seconds since 1970; fractions are cut.
pub(crate) fn seconds(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?
    };
    let marks = [(4, '-'), (7, '-'), (13, ':'), (16, ':')];
    let is_marked =
        marks.iter().all(|(at, mark)| text.get(*at..).is_some_and(|rest| rest.starts_with(*mark)));
    if !is_marked || !matches!(text.get(10..11)?, "T" | "t" | " ") {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let zone = text.get(19..)?.trim_start_matches(|rest: char| rest == '.' || rest.is_ascii_digit());
    Some(days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(zone)?)
}

/// Seconds that a zone is ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("Z") {
        return Some(0);
    }
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let number = |digits: &str| digits.parse::<u8>().ok().filter(|_| digits.len() == 2).map(i64::from);
    Some(sign * (number(hours)? * 3600 + number(minutes)? * 60))
}

/// Days since 1970 of a Gregorian date. Years start in March, so that the leap day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_in_any_zone() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00Z", Some(951_825_600)),
            ("2026-11-25T02:20:03Z", Some(1_795_573_203)),
            ("2026-11-25T02:20:03.999999999Z", Some(1_795_573_203)),
            ("2026-11-25T03:20:03+01:00", Some(1_795_573_203)),
            ("2026-11-24T21:50:03-04:30", Some(1_795_573_203)),
            ("2026-13-25T02:20:03Z", None),
            ("2026-11-25T02:20:03", None),
            ("2026-11-25", None),
            ("2026-11-25T02:20:0\u{fc}Z", None),
            ("", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}
