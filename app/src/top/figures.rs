//! Numbers as people read them, in the words of the dashboard's page.

/// A count, short.
pub fn short(value: f64) -> String {
    for (size, unit) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value >= size * 10.0 || (value >= size && size > 1e3) {
            let digits = if value >= size * 100.0 { 0 } else { 1 };
            return format!("{:.digits$}{unit}", value / size);
        }
    }
    let is_whole = value.fract() == 0.0;
    let digits = if is_whole || value >= 10.0 { 0 } else { 1 };
    grouped(&format!("{value:.digits$}"))
}

/// A count, whole.
pub fn whole(value: u64) -> String {
    grouped(&value.to_string())
}

/// Puts a comma before each three digits of a whole number.
fn grouped(digits: &str) -> String {
    let is_short = digits.len() <= 3 || !digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_short {
        return digits.to_owned();
    }
    let mut told = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            told.push(',');
        }
        told.push(digit);
    }
    told
}

/// An amount of bytes.
pub fn bytes(value: f64) -> String {
    for (power, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        let size = f64::from(1 << power);
        if value >= size {
            let digits = if value >= size * 100.0 { 0 } else { 1 };
            return format!("{:.digits$} {unit}", value / size);
        }
    }
    format!("{value:.0} B")
}

/// A time given in milliseconds.
pub fn milliseconds(value: f64) -> String {
    match value {
        _ if value < 0.01 => "< 0.01 ms".to_owned(),
        _ if value >= 60_000.0 => format!("{} min", grouped(&format!("{:.0}", value / 60_000.0))),
        _ if value >= 10_000.0 => format!("{:.0} s", value / 1000.0),
        _ if value >= 1000.0 => format!("{:.1} s", value / 1000.0),
        _ if value >= 10.0 => format!("{value:.0} ms"),
        _ if value >= 1.0 => format!("{value:.1} ms"),
        _ => format!("{value:.2} ms"),
    }
}

/// A share of a whole; a dash where there is no whole.
pub fn percent(part: f64, whole: f64) -> String {
    if whole <= 0.0 {
        return "–".to_owned();
    }
    if part >= whole { "100 %".to_owned() } else { format!("{:.1} %", part / whole * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_have_units() {
        let counts = [0.0, 0.25, 9.96, 42.4, 999.0, 9999.0, 12_345.0, 345_678.0, 2_500_000.0, 7e9];
        let told = ["0", "0.2", "10.0", "42", "999", "9,999", "12.3k", "346k", "2.5M", "7.0G"];
        assert_eq!(counts.map(short), told);
        assert_eq!(
            [0.0, 1023.0, 1536.0, 250.0 * 1048576.0].map(bytes),
            ["0 B", "1023 B", "1.5 KiB", "250 MiB"]
        );
        let times = [0.001, 0.5, 2.25, 81.0, 1500.0, 42_000.0, 3_000_000.0];
        let told = ["< 0.01 ms", "0.50 ms", "2.2 ms", "81 ms", "1.5 s", "42 s", "50 min"];
        assert_eq!(times.map(milliseconds), told);
        assert_eq!([percent(1.0, 3.0), percent(3.0, 3.0), percent(0.0, 0.0)], ["33.3 %", "100 %", "–"]);
        assert_eq!(whole(1_234_567), "1,234,567");
    }
}
