//! Which server and which location take a request.
//!
//! Pure functions of the configuration and the request's host and path; nginx's order of preference.
//! Next: `admission` and `phase`, which ask both.

pub mod server_name;
pub mod last_host;
pub mod location;
#[cfg(test)]
mod tests;

use millstream_conf::model::Regex;
use std::fmt;

/// Byte ranges of the groups, and which are named.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Group 0 is the whole match; an unused group is empty.
    pub groups: Vec<(u32, u32)>,
    /// Variable and group; of two groups with one name the used one.
    pub named: Vec<(u16, u16)>,
}

/// An expression exceeded the backtracking limit. The response is 500, as in nginx: treating it as "no match"
/// might bypass what it protects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided {
    pub expression: Box<str>,
    pub text: Box<[u8]>,
}

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.text[..self.text.len().min(SHOWN)];
        let text = shown.escape_ascii();
        write!(f, "regular expression \"{}\" reached its backtracking limit on \"{text}\"", self.expression)
    }
}

const SHOWN: usize = 256;

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
