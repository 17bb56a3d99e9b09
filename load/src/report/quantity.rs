//! Numbers as people read them, in the shapes that `wrk` made usual: `1.23ms`, `45.60k`, `1.20GB`.
//!
//! Decimal points only, no locale. Never more digits than were measured: three are significant.

/// A duration in microseconds: `0us`, `250us`, `1.23ms`, `2.50s`, `1.20m`.
pub fn duration(microseconds: f64) -> String {
    let value = if microseconds.is_finite() { microseconds.max(0.0) } else { 0.0 };
    // The bounds lie where the smaller unit would round up to the next one.
    match value {
        _ if value < 999.5 && value.fract() == 0.0 => format!("{value:.0}us"),
        _ if value < 999.995 => format!("{value:.2}us"),
        _ if value < 999_995.0 => format!("{:.2}ms", value / 1e3),
        _ if value < 59_995_000.0 => format!("{:.2}s", value / 1e6),
        _ if value < 3_599_700_000.0 => format!("{:.2}m", value / 6e7),
        _ => format!("{:.2}h", value / 3.6e9),
    }
}

/// A span of a run in seconds: `10s`, `2.5s`, `5m`, `1.5h`; short, because it names and does not measure.
pub fn span(seconds: f64) -> String {
    let shortest = |value: f64, unit: &str| {
        let text = format!("{value:.2}");
        format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
    };
    match seconds {
        _ if seconds < 60.0 => shortest(seconds, "s"),
        _ if seconds < 3600.0 => shortest(seconds / 60.0, "m"),
        _ => shortest(seconds / 3600.0, "h"),
    }
}

/// A number with a unit prefix of thousands: `12.00`, `45.60k`, `1.20M`.
pub fn scaled(value: f64) -> String {
    match value {
        _ if value < 999.995 => format!("{value:.2}"),
        _ if value < 999_995.0 => format!("{:.2}k", value / 1e3),
        _ if value < 999_995_000.0 => format!("{:.2}M", value / 1e6),
        _ => format!("{:.2}G", value / 1e9),
    }
}

/// Bytes, with prefixes of 1,024 as `wrk` has them: `512B`, `1.20KB`, `3.40GB`.
pub fn bytes(value: f64) -> String {
    const STEP: f64 = 1024.0;
    if value < 1023.5 {
        return format!("{value:.0}B");
    }
    let mut rest = value;
    for unit in ["KB", "MB", "GB"] {
        rest /= STEP;
        if rest < 1023.995 {
            return format!("{rest:.2}{unit}");
        }
    }
    format!("{:.2}TB", rest / STEP)
}

/// A whole number with its thousands apart: `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate per second, thousands apart, with a tenth where it is small: `91,234`, `12.5`.
pub fn rate(value: f64) -> String {
    let value = if value.is_finite() { value.max(0.0) } else { 0.0 };
    if value < 99.95 { format!("{value:.1}") } else { count(value.round() as u64) }
}

/// A share of 1 in percent, with as many digits as a small one needs: `0 %`, `0.0013 %`, `12 %`, `100 %`.
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
    let seconds = unix_milliseconds / 1000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // The civil calendar in eras of 400 years that begin on 1 March, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
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
            [span(10.0), span(2.5), span(0.1), span(300.0), span(5400.0)],
            ["10s", "2.5s", "0.1s", "5m", "1.5h"]
        );
        assert_eq!([scaled(12.0), scaled(45_600.0), scaled(999_999.0)], ["12.00", "45.60k", "1.00M"]);
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
