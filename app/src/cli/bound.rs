//! `--fail p99>50ms`: a bound out of its text, and where what is wrong with it stands.

use super::value;
use millstream_load::metric::Metric;
use millstream_load::threshold::Threshold;

/// An error says what to write instead, and at which character, from 1.
pub(super) fn bound(text: &str) -> Result<Threshold, String> {
    let at = |rest: &str, what: &str| {
        let column = text[..text.len() - rest.len()].chars().count() + 1;
        format!("column {column}: {what}")
    };
    let Some(sign) = text.find(['<', '>']) else {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
        let behind = text.trim_start_matches(is_name);
        return Err(at(behind, "a comparison is missing: write p99>50ms, errors>1% or rate<500"));
    };
    let (name, rest) = text.split_at(sign);
    let (is_above, limit) = (rest.starts_with('>'), &rest[1..]);
    let (or_equal, limit) = limit.strip_prefix('=').map_or((false, limit), |limit| (true, limit));
    let written = limit.trim_start();
    let limit = written.trim_end();
    let is_share = limit.ends_with('%');
    let (metric, limit, right) = match name.trim() {
        "errors" if is_share => {
            (Metric::ErrorShare, value::share(limit).ok(), "write a share from 0% to 100%, such as 1%")
        }
        "errors" => (Metric::Errors, value::number(limit).filter(|count| count.fract() == 0.0), SHARE),
        "rate" => (Metric::Rate, value::scaled(limit), "write responses per second, such as 500 or 2k"),
        name => {
            let metric = latency(name).ok_or_else(|| {
                at(text, "unknown figure: write p50, p99, p99.9 …, mean, max, errors or rate")
            })?;
            // A time without a unit could be any.
            let is_bare = limit.ends_with(|letter: char| letter.is_ascii_digit());
            let time = value::time_or_none(limit).ok().filter(|_| !is_bare);
            let microseconds = time.map(|time| time.as_nanos() as f64 / 1e3);
            (metric, microseconds, "write a time such as 50ms or 1.5s")
        }
    };
    let limit = limit.ok_or_else(|| at(written, right))?;
    Ok(Threshold { expression: text.to_owned(), metric, is_above, or_equal, limit })
}

const SHARE: &str = "write a share such as 1%, or a count such as 10";

/// `p99.9`, `mean`, `max`.
pub(super) fn latency(name: &str) -> Option<Metric> {
    match name {
        "mean" => Some(Metric::Mean),
        "max" => Some(Metric::Latency(100.0)),
        _ => {
            let percent = value::number(name.strip_prefix('p')?)?;
            (percent > 0.0 && percent < 100.0).then_some(Metric::Latency(percent))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_what_is_judged_a_comparison_and_a_limit_with_its_unit() {
        for (text, metric, is_above, or_equal, limit) in [
            ("errors>1%", Metric::ErrorShare, true, false, 0.01),
            ("errors > 0.2%", Metric::ErrorShare, true, false, 0.002),
            ("errors>=2126", Metric::Errors, true, true, 2126.0),
            ("rate<1k", Metric::Rate, false, false, 1e3),
            ("p95>1us", Metric::Latency(95.0), true, false, 1.0),
            ("p99.9>50µs", Metric::Latency(99.9), true, false, 50.0),
            ("max<=1m", Metric::Latency(100.0), false, true, 60e6),
            ("mean>=1.5s", Metric::Mean, true, true, 1.5e6),
        ] {
            let expected = Threshold { expression: text.to_owned(), metric, is_above, or_equal, limit };
            assert_eq!(bound(text), Ok(expected));
        }
    }

    #[test]
    fn what_is_no_bound_is_told_with_its_place() {
        for (text, said) in [
            ("", "column 1: a comparison is missing"),
            ("p99", "column 4: a comparison is missing"),
            ("p99=5ms", "column 4: a comparison is missing"),
            ("pp>5ms", "column 1: unknown figure"),
            ("p0>5ms", "column 1: unknown figure"),
            ("p99>5", "column 5: write a time"),
            ("p99 >= soon", "column 8: write a time"),
            ("é>1", "column 1: unknown figure"),
            ("errors>200%", "column 8: write a share from 0% to 100%"),
            ("errors>1.5", "column 8: write a share"),
            ("rate<-1", "column 6: write responses"),
            ("rate<inf", "column 6: write responses"),
        ] {
            let error = bound(text).expect_err(text);
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }
}
