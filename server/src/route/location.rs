//! The location of a request: exact, then the longest prefix with what is nested in it, then the first expression.
//!
//! As in nginx, expressions nested in the longest prefix are tried before those of the level above; a prefix found among
//! the nested ones does not keep those above from being tried, but a `^~` of their own level does. Pure.

use super::{Captured, Undecided, capture};
use millstream_conf::model::{Http, Location, LocationId, LocationMatch, LocationTree};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathMatch {
    /// With the captures of the expressions on the way, the outermost first.
    Location(LocationId, Vec<Captured>),
    /// A location with `proxy_pass` whose prefix is the path and a slash: redirect there.
    Slash(LocationId),
    Server,
}

pub fn find(http: &Http, tree: &LocationTree, path: &[u8]) -> Result<PathMatch, Undecided> {
    Ok(match search(http, tree, path)? {
        LevelMatch::Settled(found) => found,
        LevelMatch::Prefix(id) => PathMatch::Location(id, Vec::new()),
        LevelMatch::Nothing => PathMatch::Server,
    })
}

enum LevelMatch {
    Settled(PathMatch),
    /// Unless an expression above matches.
    Prefix(LocationId),
    Nothing,
}

fn search(http: &Http, tree: &LocationTree, path: &[u8]) -> Result<LevelMatch, Undecided> {
    if let Ok(at) = tree.exact.binary_search_by(|(name, _)| name.as_bytes().cmp(path)) {
        return Ok(LevelMatch::Settled(PathMatch::Location(tree.exact[at].1, Vec::new())));
    }
    let mut best = longest_prefix(tree, path);
    let is_whole = best.is_some_and(|(length, _)| length == path.len());
    if !is_whole && let Some(id) = slash_missing(http, tree, path) {
        return Ok(LevelMatch::Settled(PathMatch::Slash(id)));
    }
    if let Some((_, id)) = best {
        let location = http.location(id);
        match search(http, &location.nested, path)? {
            LevelMatch::Settled(found) => return Ok(LevelMatch::Settled(found)),
            LevelMatch::Prefix(nested) => best = Some((0, nested)),
            LevelMatch::Nothing => {}
        }
        if matches!(location.matches, LocationMatch::Prefix { no_regex: true, .. }) {
            return Ok(best.map_or(LevelMatch::Nothing, |(_, id)| LevelMatch::Prefix(id)));
        }
    }
    for &id in &tree.regexes {
        let location = http.location(id);
        if let LocationMatch::Regex(regex) = &location.matches
            && let Some(captured) = capture(regex, path)?
        {
            return Ok(LevelMatch::Settled(within_expression(http, id, location, path, captured)?));
        }
    }
    Ok(best.map_or(LevelMatch::Nothing, |(_, id)| LevelMatch::Prefix(id)))
}

/// Searches locations nested in an expression. Named groups of both apply; numbered ones are the inner
/// expression's.
fn within_expression(
    http: &Http,
    id: LocationId,
    location: &Location,
    path: &[u8],
    captured: Captured,
) -> Result<PathMatch, Undecided> {
    Ok(match search(http, &location.nested, path)? {
        LevelMatch::Settled(PathMatch::Location(nested, mut inner)) => {
            inner.insert(0, captured);
            PathMatch::Location(nested, inner)
        }
        LevelMatch::Settled(found) => found,
        LevelMatch::Prefix(nested) => PathMatch::Location(nested, vec![captured]),
        LevelMatch::Nothing => PathMatch::Location(id, vec![captured]),
    })
}

pub fn named(tree: &LocationTree, name: &str) -> Option<LocationId> {
    tree.named.iter().find(|(known, _)| known == name).map(|&(_, id)| id)
}

fn longest_prefix(tree: &LocationTree, path: &[u8]) -> Option<(usize, LocationId)> {
    // Sorted by path: every prefix of `path` sorts at or before it, longer ones later.
    let end = tree.prefixes.partition_point(|(name, _)| name.as_bytes() <= path);
    let found = tree.prefixes[..end].iter().rev().find(|(name, _)| path.starts_with(name.as_bytes()));
    found.map(|(name, id)| (name.len(), *id))
}

/// The location with `proxy_pass` whose name is the path and a slash.
fn slash_missing(http: &Http, tree: &LocationTree, path: &[u8]) -> Option<LocationId> {
    if path.is_empty() {
        return None;
    }
    let first = |list: &[(String, LocationId)]| {
        let wanted = || path.iter().chain(b"/");
        list.binary_search_by(|(name, _)| name.as_bytes().iter().cmp(wanted())).ok().map(|at| list[at].1)
    };
    let found = first(&tree.exact).or_else(|| first(&tree.prefixes))?;
    http.location(found).settings.pass().is_some().then_some(found)
}
