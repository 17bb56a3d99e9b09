//! Which server and which location take a request.
//!
//! Pure functions of the configuration and the request's host and path; nginx's order of preference.
//! Next: `admission` and `phase`, which ask both.

pub mod server_name;
pub mod location;
#[cfg(test)]
mod tests;

use millstream_conf::model::Regex;
use std::fmt;

/// What an expression captured: the groups' byte ranges in the text, and which of them have names.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Group 0 is the whole match; one that took no part is empty.
    pub groups: Vec<(u32, u32)>,
    /// The numbers of the variables that take a group's text, and the group's; of two groups the one that took part.
    pub named: Vec<(u16, u16)>,
}

/// An expression needed more backtracking than is allowed, so that nobody knows whether it matches. It is answered with
/// 500, as in nginx: what would follow from "no match" may be what the expression is there to keep from somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided {
    /// The expression as written.
    pub expression: Box<str>,
    /// What it was to be matched against.
    pub text: Box<[u8]>,
}

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.text[..self.text.len().min(SHOWN)];
        let text = shown.escape_ascii();
        write!(f, "regular expression \"{}\" reached its backtracking limit on \"{text}\"", self.expression)
    }
}

/// Bytes of a text that a line of the error log shows.
const SHOWN: usize = 256;

/// Matches an expression; `None` where it does not match.
pub fn capture(regex: &Regex, text: &[u8]) -> Result<Option<Captured>, Undecided> {
    let undecided = |_| Undecided { expression: regex.source.as_str().into(), text: text.into() };
    let Some(captures) = regex.captures(text).map_err(undecided)? else { return Ok(None) };
    let groups = captures
        .iter()
        .map(|group| group.map_or((0, 0), |found| (found.start() as u32, found.end() as u32)))
        .collect();
    let mut named: Vec<(u16, u16)> = Vec::new();
    for &(slot, group) in &regex.slots {
        let is_other = named.iter().any(|(known, _)| *known == slot);
        if captures.get(group).is_some() {
            named.retain(|(known, _)| *known != slot);
        } else if is_other {
            continue;
        }
        named.push((slot, group as u16));
    }
    Ok(Some(Captured { groups, named }))
}
