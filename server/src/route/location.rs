//! The location of a request: exact, then the longest prefix with what is nested in it, then the first expression.
//!
//! As in nginx, expressions nested in the longest prefix are tried before those of the level above, and a `^~` prefix
//! keeps expressions of its own level from being tried.

use super::{Captured, capture};
use millstream_conf::model::{Http, LocationId, LocationMatch, LocationTree};

/// Finds the location for a normalised path; `None` means the server's own level.
pub fn find(http: &Http, tree: &LocationTree, path: &[u8]) -> Option<(LocationId, Option<Captured>)> {
    if let Ok(at) = tree.exact.binary_search_by(|(name, _)| name.as_bytes().cmp(path)) {
        return Some((tree.exact[at].1, None));
    }
    let prefix = longest_prefix(tree, path);
    if let Some(id) = prefix {
        let location = http.location(id);
        if let Some(found) = find(http, &location.nested, path) {
            return Some(found);
        }
        if matches!(location.matches, LocationMatch::Prefix { no_regex: true, .. }) {
            return Some((id, None));
        }
    }
    for &id in &tree.regexes {
        let location = http.location(id);
        let LocationMatch::Regex(regex) = &location.matches else { continue };
        if let Some(captured) = capture(regex, path) {
            // What is nested in an expression is searched too; its own captures win where an expression matches.
            return Some(match find(http, &location.nested, path) {
                Some((nested, Some(inner))) => (nested, Some(inner)),
                Some((nested, None)) => (nested, Some(captured)),
                None => (id, Some(captured)),
            });
        }
    }
    prefix.map(|id| (id, None))
}

/// The location of a `@name`.
pub fn named(tree: &LocationTree, name: &str) -> Option<LocationId> {
    tree.named.iter().find(|(known, _)| known == name).map(|&(_, id)| id)
}

fn longest_prefix(tree: &LocationTree, path: &[u8]) -> Option<LocationId> {
    // Sorted by path: every prefix of `path` sorts at or before it, longer ones later.
    let end = tree.prefixes.partition_point(|(name, _)| name.as_bytes() <= path);
    tree.prefixes[..end].iter().rev().find(|(name, _)| path.starts_with(name.as_bytes())).map(|&(_, id)| id)
}
