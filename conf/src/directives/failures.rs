//! The words of `proxy_next_upstream` and `proxy_cache_use_stale`.
//!
//! Both list failures in the same words, which stand in `model::failures`. Next: `proxy` and `proxy_cache`, which hold the rows.

use crate::model::FailureWords;
use crate::reading::Reading;
use crate::tree::Directive;

/// The words that only one of the two goes by. nginx reads both with one table, so they may stand in either.
const OWN: [&str; 2] = ["updating", "non_idempotent"];

/// Adds a directive's words to those that were written before; `off` wins over every other word.
pub(super) fn words<T: FailureWords>(
    before: Option<T>,
    directive: &Directive,
    reading: &mut Reading<'_>,
) -> T {
    let mut failures = before.unwrap_or_default();
    let mut off = false;
    for word in &directive.args {
        let text = word.text.to_ascii_lowercase();
        if text == "off" {
            off = true;
        } else if let Some(switch) = failures.switch(&text) {
            *switch = true;
        } else if OWN.contains(&text.as_str()) {
            let message =
                format!("\"{text}\" has no effect in \"{}\", in nginx neither", directive.name.text);
            reading.diagnostics.idle(word.span, message);
        } else {
            let choices: Vec<&str> = std::iter::once("off").chain(T::WORDS.iter().copied()).collect();
            reading.not_one_of(word, &choices);
        }
    }
    if off { T::default() } else { failures }
}
