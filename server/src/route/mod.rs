//! Which server and which location take a request.
//!
//! Pure functions of the configuration and the request's host and path; nginx's order of preference.
//! Next: `serve`, which asks both.

pub mod server_name;
pub mod location;
#[cfg(test)]
mod tests;

use millstream_conf::model::Regex;

/// What an expression captured: the groups' byte ranges in the text, and the named ones with their values.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Group 0 is the whole match.
    pub groups: Vec<(u32, u32)>,
    /// Names with their values.
    pub named: Vec<(Box<str>, Box<[u8]>)>,
}

/// Matches an expression; `None` where it does not match or its backtracking bound was hit.
pub fn capture(regex: &Regex, text: &[u8]) -> Option<Captured> {
    let captures = regex.compiled.captures(text).ok()??;
    let groups = captures
        .iter()
        .map(|group| group.map_or((0, 0), |found| (found.start() as u32, found.end() as u32)))
        .collect();
    let named = regex
        .names
        .iter()
        .filter_map(|(name, index)| {
            let found = captures.get(*index)?;
            Some((name.clone(), text[found.start()..found.end()].into()))
        })
        .collect();
    Some(Captured { groups, named })
}
