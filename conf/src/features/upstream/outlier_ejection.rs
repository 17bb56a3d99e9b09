//! `outlier_ejection`: servers are taken out for what they answer to requests.
//!
//! Next: `millstream-upstream`'s `outlier`, which judges.

use crate::declared::outlier::OutlierEjection;
use crate::declared::upstream::Upstream;
use crate::reading::{Reading, parameter};
use crate::suggest;
use crate::tree::{Directive, Word};
use std::time::Duration;

const KNOWN: [&str; 6] = ["consecutive_errors", "interval", "time", "max", "status", "requests"];

pub(super) fn read(upstream: &mut Upstream, directive: &Directive, reading: &mut Reading<'_>) {
    let mut terms = OutlierEjection::default();
    for word in &directive.args {
        read_parameter(&mut terms, word, reading);
    }
    if terms.consecutive_errors == 0 && terms.requests == 0 {
        reading
            .error(
                directive.span,
                "\"outlier_ejection\" ejects no server: neither errors nor rates are counted",
            )
            .help("write consecutive_errors=5 or requests=100");
    }
    upstream.outlier_ejection = Some(terms);
}

fn read_parameter(terms: &mut OutlierEjection, word: &Word, reading: &mut Reading<'_>) {
    match parameter(word) {
        Some(("consecutive_errors", value)) => {
            let number = reading.number(&value, 0, u64::from(u32::MAX));
            terms.consecutive_errors = number.map_or(terms.consecutive_errors, |number| number as u32);
        }
        Some(("interval", value)) => terms.interval = time(&value, reading).unwrap_or(terms.interval),
        Some(("time", value)) => terms.time = time(&value, reading).unwrap_or(terms.time),
        Some(("max", value)) => {
            let number = value.text.strip_suffix('%').and_then(|number| number.parse().ok());
            match number.filter(|number| (1..=100).contains(number)) {
                Some(number) => terms.max = number,
                None => {
                    reading
                        .error(
                            value.span,
                            format!("invalid share \"{}\" in \"outlier_ejection\"", value.text),
                        )
                        .help("write a percentage of the group between 1% and 100%, as in max=50%");
                }
            }
        }
        Some(("status", value)) => {
            terms.statuses = value.text.split(',').filter_map(|part| range(part, &value, reading)).collect();
        }
        Some(("requests", value)) => {
            terms.requests = reading.number(&value, 0, u64::from(u32::MAX)).unwrap_or(terms.requests);
        }
        other => {
            let name = other.map_or(word.text.as_str(), |(name, _)| name);
            let help = suggest::did_you_mean(name, KNOWN)
                .unwrap_or_else(|| "docs/directives.md lists the parameters of outlier_ejection".to_owned());
            reading.error(word.span, format!("invalid parameter \"{}\"", word.text)).help(help);
        }
    }
}

/// A non-zero time.
fn time(word: &Word, reading: &mut Reading<'_>) -> Option<Duration> {
    let time = reading.duration(word)?;
    if time.is_zero() {
        reading.error(word.span, "the time is zero").help("write a time such as 10s");
        return None;
    }
    Some(time)
}

/// `503`, `500-504` or `5xx`.
fn range(part: &str, word: &Word, reading: &mut Reading<'_>) -> Option<(u16, u16)> {
    let code = |text: &str| text.parse().ok().filter(|code| (100..=599).contains(code));
    let class = part.strip_suffix("xx").and_then(|class| code(&format!("{class}00")));
    let found = match (class, part.split_once('-')) {
        (Some(first), _) => Some((first, first + 99)),
        (None, Some((first, last))) => code(first).zip(code(last)).filter(|(first, last)| first <= last),
        (None, None) => code(part).map(|code| (code, code)),
    };
    if found.is_none() {
        reading
            .error(word.span, format!("invalid status \"{part}\" in \"outlier_ejection\""))
            .help("write statuses, ranges or classes, as in status=429,500-504 or status=5xx");
    }
    found
}
