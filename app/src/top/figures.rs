//! Numbers as people read them, in the words of the dashboard's page.

use millstream_load::report::quantity::Count;

/// A count in few digits.
pub fn short(value: f64) -> String {
    for (size, unit) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value >= size * 10.0 || (value >= size && size > 1e3) {
            let digits = if value >= size * 100.0 { 0 } else { 1 };
            return format!("{:.digits$}{unit}", value / size);
        }
    }
    let is_whole = value.fract() == 0.0 || value >= 10.0;
    if is_whole { rounded(value) } else { format!("{value:.1}") }
}

pub fn whole(value: u64) -> String {
    Count(value).to_string()
}

fn rounded(value: f64) -> String {
    whole(value.round_ties_even() as u64)
}

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

pub fn milliseconds(value: f64) -> String {
    match value {
        _ if value < 0.01 => "< 0.01 ms".to_owned(),
        _ if value >= 60_000.0 => rounded(value / 60_000.0) + " min",
        _ if value >= 10_000.0 => format!("{:.0} s", value / 1000.0),
        _ if value >= 1000.0 => format!("{:.1} s", value / 1000.0),
        _ if value >= 10.0 => format!("{value:.0} ms"),
        _ if value >= 1.0 => format!("{value:.1} ms"),
        _ => format!("{value:.2} ms"),
    }
}

/// A share of a whole; a dash if the whole is nothing.
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
        let expected = ["0", "0.2", "10.0", "42", "999", "9,999", "12.3k", "346k", "2.5M", "7.0G"];
        assert_eq!(counts.map(short), expected);
        assert_eq!(
            [0.0, 1023.0, 1536.0, 250.0 * 1048576.0].map(bytes),
            ["0 B", "1023 B", "1.5 KiB", "250 MiB"]
        );
        let times = [0.001, 0.5, 2.25, 81.0, 1500.0, 42_000.0, 3_000_000.0];
        let expected = ["< 0.01 ms", "0.50 ms", "2.2 ms", "81 ms", "1.5 s", "42 s", "50 min"];
        assert_eq!(times.map(milliseconds), expected);
        assert_eq!([percent(1.0, 3.0), percent(3.0, 3.0), percent(0.0, 0.0)], ["33.3 %", "100 %", "–"]);
        assert_eq!(whole(1_234_567), "1,234,567");
    }
}
