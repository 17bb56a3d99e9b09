//! `split_clients`: a variable that has each of its values for a share of all clients.
//!
//! The arithmetic is nginx's, so that the same client is in the same share. Next: `declared/made/split_clients`.

use super::context::HTTP;
use super::made::{lines, wrong_line};
use super::{Apply, Row, often};
use crate::declared::made::Making;
use crate::declared::made::split_clients::{Share, SplitClients};
use crate::reading::Reading;
use crate::tree::{Directive, Word};

/// All clients, in hundredths of a percent.
const ALL: u64 = 10_000;

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("split_clients", HTTP, (2, 2), "string $variable { percent value; … * value; }", "",
        "Creates a variable whose value depends on the client: each value is used for a percentage of clients. The string identifies a client, as in `split_clients $remote_addr \
        $variant { 0.5% .one; 20% .two; * \"\"; }`. The same string always gets the same value, and the same as in nginx. A percentage has at most \
        two decimals; `*` is the remainder.",
        Apply::Make(read)),
];

fn read(directive: &Directive, reading: &mut Reading<'_>) -> Option<(Making, bool)> {
    let key = reading.template(&directive.args[0]);
    let (mut shares, mut sum, mut last) = (Vec::new(), 0, 0);
    for (percent, values) in lines(directive, reading) {
        let [value] = values else {
            wrong_line(percent, directive, reading);
            continue;
        };
        let Some(part) = part(percent, reading) else { continue };
        sum = part.map_or(ALL, |part| sum + part);
        if sum > ALL {
            reading
                .error(percent.span, "percent total is greater than 100%")
                .help("write smaller percentages; \"*\" is the remainder and comes last");
            return None;
        }
        // The share that makes it full takes the last hash too, which rounding would leave out.
        let below = part.filter(|_| sum < ALL).map(|part| {
            last += (part * u64::from(u32::MAX) / ALL) as u32;
            last
        });
        shares.push(Share { below, value: value.text.as_str().into() });
    }
    Some((SplitClients { key, shares: shares.into() }.into(), false))
}

/// A share in hundredths of a percent; `Some(None)` is the rest.
fn part(word: &Word, reading: &mut Reading<'_>) -> Option<Option<u64>> {
    if word.text == "*" {
        return Some(None);
    }
    let part = word.text.strip_suffix('%').and_then(hundredths).filter(|part| *part > 0);
    if part.is_none() {
        reading
            .error(word.span, format!("invalid percent value \"{}\"", word.text))
            .help("write a percentage with at most two decimals, such as 0.5%, or * for the rest");
    }
    part.map(Some)
}

/// Digits with at most two after a dot, times a hundred.
fn hundredths(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if decimals.len() > 2 || whole.len() > 9 || !is_digits(whole) || !is_digits(decimals) || text.is_empty() {
        return None;
    }
    format!("0{whole}{decimals:0<2}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_at_most_two_decimals() {
        for (text, expected) in [
            ("51.2", Some(5120)),
            ("10", Some(1000)),
            ("0.01", Some(1)),
            (".5", Some(50)),
            ("1.", Some(100)),
            ("", None),
            ("1.234", None),
            ("-1", None),
            ("1.2.3", None),
            ("x", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(hundredths(text), expected, "{text}");
        }
    }
}
