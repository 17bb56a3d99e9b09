//! The values of flags that the measuring verbs share: counts, rates, times, shares and field lines, each with its bounds.

use millstream_conf::value;
use millstream_load::party;
use millstream_load::plan::RateStage;
use millstream_load::report::quantity::Quantity;
use millstream_load::target::ConnectTo;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// `10`, `10k`, `2m`, `1g`: powers of ten.
pub(super) fn count(text: &str) -> Result<u64, String> {
    match scaled(text).filter(|number| number.fract() == 0.0) {
        None => Err("write a whole number such as 200, 10k or 2m".to_owned()),
        Some(number) if number < 1.0 => Err("write a number of at least 1".to_owned()),
        Some(number) => Ok(number as u64),
    }
}

pub(super) fn within<N>(bounds: RangeInclusive<N>) -> impl Fn(&str) -> Result<N, String> + Clone
where
    N: FromStr + PartialOrd + Copy + Display,
{
    move |text| {
        let number = text.parse().ok().filter(|number| bounds.contains(number));
        let (least, most) = (bounds.start(), bounds.end());
        number.ok_or_else(|| format!("write a whole number from {least} to {most}"))
    }
}

pub(super) fn factor(text: &str) -> Result<f64, String> {
    above_zero(text, "write a factor such as 1, 10 or 0.5")
}

pub(super) fn rate(text: &str) -> Result<f64, String> {
    above_zero(text, "write requests per second, such as 500 or 2.5k")
}

fn above_zero(text: &str, otherwise: &str) -> Result<f64, String> {
    scaled(text).filter(|number| *number > 0.0).ok_or_else(|| otherwise.to_owned())
}

/// A number, also with `k`, `m` or `g` as powers of ten.
pub(super) fn scaled(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 4] = [("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9)];
    in_unit(&text.to_ascii_lowercase(), &UNITS).filter(|number| *number <= 1e15)
}

/// Digits with a decimal point, and nothing else that Rust parses as a number.
pub(super) fn number(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse::<f64>().ok().filter(|_| is_plain)
}

fn in_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let (_, size) = units.iter().find(|(unit, _)| *unit == &text[digits.len()..])?;
    number(digits).map(|number| number * size)
}

/// As in an nginx.conf: `200ms`, `2s`, `1m30s`; a plain number is seconds. Also a fraction of one unit:
/// `1.5s`.
pub(super) fn time_or_none(text: &str) -> Result<Duration, String> {
    value::duration(text)
        .ok()
        .or_else(|| fraction(text))
        .ok_or_else(|| "write a time such as 200ms, 30s or 5m".to_owned())
}

/// `1.5s`, `0.5m`, `20us`: not nginx's, but used with wrk and oha.
fn fraction(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 7] =
        [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("", 1.0), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    Duration::try_from_secs_f64(in_unit(text, &UNITS)?).ok()
}

/// Above zero.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    time_or_none(text).and_then(|time| match time {
        Duration::ZERO => Err("write a time above zero".to_owned()),
        time => Ok(time),
    })
}

/// The length of each of several measurements, long enough to find the bottleneck.
pub(super) fn measurement(text: &str) -> Result<Duration, String> {
    let (least, most) = (party::SHORTEST, Duration::from_secs(3600));
    time(text).and_then(|time| match time {
        time if time < least => {
            Err(format!("the time is too short to measure CPU use: write {} or more", Quantity::from(least)))
        }
        time if time > most => Err(format!("write a time of at most {}", Quantity::from(most))),
        time => Ok(time),
    })
}

/// `30s:1k`: a time, and the rate at its end, which may be 0.
pub(super) fn stage(text: &str) -> Result<RateStage, String> {
    let wrong = || "write a time and a rate such as 30s:1k".to_owned();
    let (length, rate) = text.split_once(':').ok_or_else(wrong)?;
    let rate = scaled(rate).filter(|rate| *rate >= 0.0).ok_or_else(wrong)?;
    Ok(RateStage { duration: time_or_none(length)?, rate })
}

/// `0.1%`, or `0.001`.
pub(super) fn share(text: &str) -> Result<f64, String> {
    value::share(text).ok_or_else(|| "write a share such as 0.1% or 0.001".to_owned())
}

/// A field line; the space around its value is cut (RFC 9110 §5.5).
pub(super) fn field(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write 'Name: value'".to_owned()),
    }
}

/// `HOST1:PORT1:HOST2:PORT2`, each of which may be empty; an IPv6 address needs brackets.
pub(super) fn connect_to(text: &str) -> Result<ConnectTo, String> {
    // A colon in brackets is of an address.
    let mut is_inside = false;
    let is_between = |letter: char| {
        is_inside = letter == '[' || (is_inside && letter != ']');
        letter == ':' && !is_inside
    };
    let parts: Vec<&str> = text.split(is_between).collect();
    if parts.len() != 4 {
        return Err(format!("found {} instead of 4 parts: write HOST1:PORT1:HOST2:PORT2", parts.len()));
    }
    let host = |place: usize| {
        let host = parts[place].trim_start_matches('[').trim_end_matches(']');
        (!host.is_empty()).then(|| host.to_owned())
    };
    let port = |place: usize| match parts[place].parse::<u16>() {
        _ if parts[place].is_empty() => Ok(None),
        Ok(port) if port > 0 => Ok(Some(port)),
        _ => {
            let column = parts[..place].iter().map(|part| part.len() + 1).sum::<usize>() + 1;
            Err(format!("column {column}: invalid port \"{}\": write a number from 1 to 65535", parts[place]))
        }
    };
    Ok(ConnectTo { from: (host(0), port(1)?), to: (host(2), port(3)?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_units_that_wrk_knows() {
        assert_eq!(
            (count("200"), count("10k"), count("2M"), count("1.5k")),
            (Ok(200), Ok(10_000), Ok(2_000_000), Ok(1500))
        );
        assert_eq!((rate("0.5"), rate("2.5k")), (Ok(0.5), Ok(2500.0)));
        for wrong in ["", "k", "0", "-1", "1.5", "1x", "nan", "inf", "1e99g", "é"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
        assert!(rate("0").is_err() && rate("nan").is_err());
        assert_eq!(count("0"), Err("write a number of at least 1".to_owned()));
        let status = within(100..=999_u16);
        assert_eq!((status("100"), status("999")), (Ok(100), Ok(999)));
        for wrong in ["", "99", "1000", "70000", "2xx", "+ 1"] {
            assert_eq!(status(wrong), Err("write a whole number from 100 to 999".to_owned()), "{wrong}");
        }
        assert_eq!(factor("0.5"), Ok(0.5));
        assert!(factor("0").is_err_and(|why| why.contains("factor")));
    }

    #[test]
    fn times_and_shares_have_their_bounds() {
        for (text, milliseconds) in
            [("1m30s", 90_000), ("250ms", 250), ("1.5s", 1_500), ("2", 2_000), (".5m", 30_000)]
        {
            assert_eq!(time(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        assert!(time_or_none("0").is_ok());
        for wrong in ["", "0", "s", ".", "-1s", "1e3s", "inf", "soon", "1.5x", "é"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert_eq!((share("0.1%"), share("0.5"), share("0")), (Ok(0.001), Ok(0.5), Ok(0.0)));
        for wrong in ["101%", "2", "nan", "%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_measurement_that_is_too_short_to_tell_anything_is_refused_with_the_least() {
        assert_eq!(measurement("450ms"), Ok(Duration::from_millis(450)));
        assert!(measurement("300ms").is_err_and(|why| why.ends_with("write 450ms or more")));
        assert!(measurement("5ms").is_err() && measurement("0").is_err() && measurement("2h").is_err());
    }

    #[test]
    fn a_stage_is_a_time_and_a_rate() {
        let stage = |text: &str| stage(text).map(|stage| (stage.duration.as_millis(), stage.rate));
        assert_eq!((stage("30s:1k"), stage("0s:0")), (Ok((30_000, 1_000.0)), Ok((0, 0.0))));
        for wrong in ["", "30s", ":1", "30s:", "30s:-1", "soon:1", "1:2:3"] {
            assert!(stage(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_in_brackets_is_one_part_of_four() {
        let to = connect_to("a:80:[::1]:81");
        let (from, there) = ((Some("a".to_owned()), Some(80)), (Some("::1".to_owned()), Some(81)));
        assert_eq!(to, Ok(ConnectTo { from, to: there }));
        assert_eq!(connect_to(":::"), Ok(ConnectTo { from: (None, None), to: (None, None) }));
        assert!(connect_to("a:b:c:1").is_err_and(|why| why.contains("column 3")));
        assert!(connect_to("a:80").is_err_and(|why| why.contains("4 parts")));
    }

    #[test]
    fn a_field_has_a_name_and_loses_the_space_around_its_value() {
        assert_eq!(field("X-Tenant:  7 "), Ok(("X-Tenant".to_owned(), "7".to_owned())));
        assert!(field("X-Tenant").is_err() && field(": 7").is_err());
    }
}
