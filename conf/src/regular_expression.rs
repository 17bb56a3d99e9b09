//! Regular expressions as nginx users write them (PCRE), compiled to the product's engine.
//!
//! Expressions work on bytes, as nginx's do without `(*UTF8)`: match them against byte slices. Where the engine's
//! syntax means something else than PCRE's, the source is rewritten first; what it cannot do at all is an error
//! at load. One without look-around, back-reference, atomic group or call runs in time linear in the text. Any other is asked in a
//! looser form first, which is linear too (`loosened`), and backtracks within a bound where that matches; what follows from reaching it
//! is for `route` to say: never that there is no match. One difference is kept on purpose: `$` matches at the end only, never before a final line feed, so
//! `\.php$` cannot be met by `/a.php%0a`. Next: `features/` for `server_name`, `location` and the redirects.

use std::collections::HashSet;

use fancy_regex::{BytesMode, Captures, RegexBuilder};

use crate::diagnostics::Diagnostics;
use crate::source::Span;

mod pcre;
mod loosened;
#[cfg(test)]
mod tests;

/// In bytes (nginx's own bound on a word is 4096).
pub const MAX_LENGTH: usize = 16 << 10;

/// Bytes or steps of a compiled program; a nested repetition such as `((a{999}){999}){999}` would otherwise
/// exhaust memory.
const MAX_PROGRAM_BYTES: usize = 4 << 20;
const MAX_PROGRAM_STEPS: usize = 200_000;

/// Bytes of each compiled program, steps of the backtracking one, and how often it may go back.
#[derive(Debug, Clone, Copy)]
struct ExpressionLimits {
    program_bytes: usize,
    program_steps: usize,
    backtracks: usize,
}

const CONFIGURED: ExpressionLimits = ExpressionLimits {
    program_bytes: MAX_PROGRAM_BYTES,
    program_steps: MAX_PROGRAM_STEPS,
    backtracks: 200_000,
};
/// For expressions of pages. Zero steps: an expression that must backtrack is not linear.
const LINEAR: ExpressionLimits =
    ExpressionLimits { program_bytes: 32 << 10, program_steps: 0, backtracks: 0 };
const BACKTRACKING: ExpressionLimits =
    ExpressionLimits { program_bytes: 8 << 10, program_steps: 500, backtracks: 2_000 };

/// In bytes.
pub const MAX_PAGE_LENGTH: usize = 2 << 10;

#[derive(Debug, Clone)]
pub struct Regex {
    /// As written, without the leading `~` or `~*`.
    pub source: String,
    /// `~*`, and always in `server_name`.
    pub ignore_case: bool,
    /// Backtracking is bounded: 200,000 times, and 2,000 for an expression of a page.
    compiled: Box<fancy_regex::Regex>,
    /// Matches whatever `compiled` matches, and more; present if that backtracks.
    loose: Option<Box<fancy_regex::Regex>>,
    /// Name and group number, in order of number.
    pub names: Vec<(Box<str>, usize)>,
    /// Numbers in `Http::slots` of the variables that named groups set, with the group's number.
    pub slots: Vec<(u16, usize)>,
}

/// The bound on backtracking was reached: it is unknown whether the expression matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted;

impl Regex {
    /// The whole match and the groups; `None` if it does not match.
    pub fn captures<'t>(&self, text: &'t [u8]) -> Result<Option<Captures<'t, [u8]>>, Exhausted> {
        if self.is_out_of_question(text) {
            return Ok(None);
        }
        self.compiled.captures(text).map_err(|_| Exhausted)
    }

    pub fn is_match(&self, text: &[u8]) -> Result<bool, Exhausted> {
        if self.is_out_of_question(text) {
            return Ok(false);
        }
        self.compiled.is_match(text).map_err(|_| Exhausted)
    }

    pub fn groups(&self) -> usize {
        self.compiled.captures_len()
    }

    /// Whether not even its looser form matches.
    fn is_out_of_question(&self, text: &[u8]) -> bool {
        self.loose.as_ref().is_some_and(|loose| matches!(loose.is_match(text), Ok(false)))
    }
}

/// Takes it without its leading `~` or `~*`; an error is reported at `span` and gives `None`.
pub fn compile(source: &str, ignore_case: bool, span: Span, diagnostics: &mut Diagnostics) -> Option<Regex> {
    if source.len() > MAX_LENGTH {
        diagnostics.error(span, format!("the regular expression is longer than {MAX_LENGTH} bytes"));
        return None;
    }
    match build(source, ignore_case, CONFIGURED) {
        Ok(regex) => Some(regex),
        Err(reason) => {
            let reason = format!("invalid regular expression \"{source}\": {reason}");
            diagnostics.error(span, reason);
            None
        }
    }
}

#[derive(Debug)]
pub enum PageRegex {
    Linear(Regex),
    /// May backtrack, and look ahead at all of the text from each place.
    Backtracking(Regex),
}

/// For an expression in a response, with far smaller bounds: page authors may not be the server's operators.
pub fn compile_for_page(source: &str) -> Option<PageRegex> {
    if source.len() > MAX_PAGE_LENGTH {
        return None;
    }
    let linear = build(source, false, LINEAR).map(PageRegex::Linear);
    linear.or_else(|_| build(source, false, BACKTRACKING).map(PageRegex::Backtracking)).ok()
}

fn build(source: &str, ignore_case: bool, limits: ExpressionLimits) -> Result<Regex, String> {
    let pcre::Translated { pattern, utf8, same_names } = pcre::translate(source)?;
    let mode = if utf8 { BytesMode::UnicodeBytes } else { BytesMode::Ascii };
    let compiled = RegexBuilder::new(&pattern)
        .bytes_mode(mode)
        .unicode_mode(utf8)
        .case_insensitive(ignore_case)
        .delegate_size_limit(limits.program_bytes)
        .max_prog_size(limits.program_steps)
        .backtrack_limit(limits.backtracks)
        .build();
    let compiled = compiled.map_err(|error| {
        let reason = error.to_string();
        reason.lines().last().unwrap_or_default().trim().to_owned()
    })?;
    let names = compiled.capture_names().enumerate();
    let names: Vec<(Box<str>, usize)> =
        names.filter_map(|(group, name)| Some((name?.into(), group))).collect();
    if let Some(twice) = twice(&names).filter(|_| !same_names) {
        return Err(format!("two groups are named \"{twice}\""));
    }
    // What is compiled anew for each page is not worth another form.
    let loose = (limits.program_steps == MAX_PROGRAM_STEPS)
        .then(|| loosened::loosened(&pattern, utf8, ignore_case, limits.program_bytes))
        .flatten()
        .map(Box::new);
    Ok(Regex {
        source: source.to_string(),
        ignore_case,
        compiled: Box::new(compiled),
        loose,
        names,
        slots: Vec::new(),
    })
}

/// A name that two groups have, which PCRE refuses and the engine accepts.
fn twice(names: &[(Box<str>, usize)]) -> Option<&str> {
    let mut seen = HashSet::new();
    names.iter().map(|(name, _)| &**name).find(|name| !seen.insert(*name))
}
