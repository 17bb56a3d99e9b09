//! `proxy_cache_verify` and its kind: which share of the hits is compared with what the upstream responds, and what a leak does.
//!
//! Before: `cache`, which has the row; next: `millstream-server`'s `cached/verify`, which asks and compares.

use std::time::Duration;

use crate::features::pass::CommonLevel;
use crate::features::pass::sharing::interval;
use crate::features::templates::without_templates;
use crate::reading::{Reading, parameter};
use crate::tree::{Directive, Word};
use crate::value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheVerify {
    /// Hits in 2³² that are checked; at least one.
    pub share: u32,
    /// The mean time between two checks of a location, over all workers.
    pub interval: Duration,
    pub on_leak: OnLeak,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLeak {
    /// The cache of the location goes off, and its zone is purged.
    Off,
    /// It is only reported.
    Warn,
}

without_templates!(CacheVerify, OnLeak);

/// Ten checks per second.
const INTERVAL: Duration = Duration::from_millis(100);

pub(in crate::features::pass) fn read(
    level: &mut CommonLevel,
    directive: &Directive,
    reading: &mut Reading<'_>,
) {
    let first = &directive.args[0];
    if first.text == "off" && directive.args.len() == 1 {
        level.cache.verify = Some(None);
        return;
    }
    let share = share(&first.text);
    if share.is_none() {
        reading
            .error(first.span, format!("invalid share \"{}\"", first.text))
            .help("write off, a percentage such as 1%, or a fraction such as 0.01");
    }
    let mut verify = CacheVerify { share: share.unwrap_or(1), interval: INTERVAL, on_leak: OnLeak::Off };
    for word in &directive.args[1..] {
        match read_parameter(word, &mut verify) {
            Ok(()) => {}
            Err(help) => {
                reading.error(word.span, format!("invalid parameter \"{}\"", word.text)).help(help);
            }
        }
    }
    level.cache.verify = share.map(|_| Some(verify));
}

fn read_parameter(word: &Word, verify: &mut CacheVerify) -> Result<(), &'static str> {
    match parameter(word) {
        Some(("sample", value)) => {
            verify.interval =
                interval(&value.text).ok_or("write a rate such as sample=10r/s or sample=30r/m")?;
        }
        Some(("on_leak", value)) => {
            verify.on_leak = match value.text.as_str() {
                "off" => OnLeak::Off,
                "warn" => OnLeak::Warn,
                _ => return Err("write on_leak=off or on_leak=warn"),
            };
        }
        _ => return Err("the parameters are sample=rate and on_leak=off or on_leak=warn"),
    }
    Ok(())
}

/// A percentage up to 100, or a fraction below 1, in 2³²; `None` unless it is one, and above zero.
fn share(text: &str) -> Option<u32> {
    let part = value::share(text)?;
    // A bare 1 would be read as a percentage by some, and as all by others.
    let is_clear = text.ends_with('%') || part < 1.0;
    (part > 0.0 && is_clear).then(|| ((part * 4_294_967_296.0) as u32).max(1))
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_share_is_a_percentage_or_a_fraction() {
        for (text, expected) in [
            ("1%", Some(42_949_672)),
            ("0.01", Some(42_949_672)),
            ("100%", Some(u32::MAX)),
            ("50%", Some(1 << 31)),
            ("0.00000000001%", Some(1)),
            ("0%", None),
            ("0", None),
            ("1", None),
            ("101%", None),
            ("-1%", None),
            ("1e-2", None),
            ("inf", None),
            ("%", None),
            ("", None),
            ("much", None),
        ] {
            assert_eq!(share(text), expected, "{text}");
        }
    }
}
