//! Regular expressions as nginx users write them (PCRE), compiled to the product's engine.
//!
//! Expressions work on bytes, as nginx's do without `(*UTF8)`: match them against byte slices. Where the engine's
//! syntax means something else than PCRE's, the source is rewritten first; what it cannot do at all is an error
//! at load. One without look-around, back-reference, atomic group or call runs in time linear in the text; the others
//! backtrack within a bound, and what follows from reaching it is for `route` to say: never that there is no match. One difference is kept on purpose: `$` matches at the end only, never before a final line feed, so
//! `\.php$` cannot be met by `/a.php%0a`. Next: `features/` for `server_name`, `location` and the redirects.

use std::collections::HashSet;

use fancy_regex::{BytesMode, RegexBuilder};

use crate::diagnostics::Diagnostics;
use crate::source::Span;

mod pcre;
#[cfg(test)]
mod tests;

/// An expression has at most so many bytes (nginx's own bound on a word is 4096).
pub const MAX_LENGTH: usize = 16 << 10;

/// A compiled program has at most so many bytes or steps; a nested repetition such as `((a{999}){999}){999}`
/// would take the machine's memory otherwise.
const MAX_PROGRAM_BYTES: usize = 4 << 20;
const MAX_PROGRAM_STEPS: usize = 200_000;

/// A compiled expression with its source.
#[derive(Debug, Clone)]
pub struct Regex {
    /// The expression as written, without the leading `~` or `~*`.
    pub source: String,
    /// Whether case is ignored (`~*`, and always in `server_name`).
    pub ignore_case: bool,
    /// The compiled form. Backtracking is bounded by the library's default limit (1,000,000 steps).
    pub compiled: fancy_regex::Regex,
    /// Named captures: name and group number, in order of number.
    pub names: Vec<(Box<str>, usize)>,
    /// The variables that take what a named group captures: their numbers in `Http::slots`, and the group's.
    pub slots: Vec<(u16, usize)>,
}

/// Compiles an expression (without its leading `~` or `~*`); an error is reported at `span` and gives `None`.
pub fn compile(source: &str, ignore_case: bool, span: Span, diagnostics: &mut Diagnostics) -> Option<Regex> {
    if source.len() > MAX_LENGTH {
        diagnostics.error(span, format!("the regular expression is longer than {MAX_LENGTH} bytes"));
        return None;
    }
    let pcre::Translated { pattern, utf8, same_names } = match pcre::translate(source) {
        Ok(translated) => translated,
        Err(reason) => {
            diagnostics.error(span, format!("invalid regular expression \"{source}\": {reason}"));
            return None;
        }
    };
    let mode = if utf8 { BytesMode::UnicodeBytes } else { BytesMode::Ascii };
    let compiled = RegexBuilder::new(&pattern)
        .bytes_mode(mode)
        .unicode_mode(utf8)
        .case_insensitive(ignore_case)
        .delegate_size_limit(MAX_PROGRAM_BYTES)
        .max_prog_size(MAX_PROGRAM_STEPS)
        .build();
    match compiled {
        Ok(compiled) => {
            let names = compiled.capture_names().enumerate();
            let names: Vec<(Box<str>, usize)> =
                names.filter_map(|(group, name)| Some((name?.into(), group))).collect();
            if let Some(twice) = twice(&names).filter(|_| !same_names) {
                diagnostics.error(
                    span,
                    format!("invalid regular expression \"{source}\": two groups are named \"{twice}\""),
                );
                return None;
            }
            Some(Regex { source: source.to_string(), ignore_case, compiled, names, slots: Vec::new() })
        }
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or_default().trim();
            diagnostics.error(span, format!("invalid regular expression \"{source}\": {reason}"));
            None
        }
    }
}

/// A name that two groups have, which PCRE refuses and the engine takes.
fn twice(names: &[(Box<str>, usize)]) -> Option<&str> {
    let mut seen = HashSet::new();
    names.iter().map(|(name, _)| &**name).find(|name| !seen.insert(*name))
}
