//! One tree out of a configuration's files: includes put in place, and around it what its context needs.
//!
//! A repository has its files where it likes and says in a script where they go, so an include finds its file by the end
//! of its path, then by its name alone. A file that no include asked for is what a folder's pattern was for.

use super::nodes::{self, Node};
use super::{stock, template};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Nested includes, as nginx bounds them.
const DEEPEST: usize = 10;

struct Files {
    /// Path in the repository, and the text.
    all: Vec<(String, String)>,
    used: BTreeSet<String>,
}

/// The whole configuration: `path` and `further` are relative to `folder`; `NAME:SECTION` is a part of a
/// file.
pub(super) fn tree(
    folder: &Path,
    path: &str,
    further: &[&str],
    values: &[(&str, &str)],
) -> Result<Vec<Node>, String> {
    let first = text_of(folder, path, values)?;
    let all = further.iter().map(|path| Ok(((*path).to_owned(), text_of(folder, path, values)?)));
    let mut files = Files { all: all.collect::<Result<_, String>>()?, used: BTreeSet::new() };
    let mut tree = expanded(nodes::parse(path, &first)?, &mut files, 0)?;
    let left: Vec<_> = files.all.iter().filter(|(path, _)| !files.used.contains(path)).cloned().collect();
    let mut added = Vec::new();
    for (path, text) in left {
        let nodes = expanded(nodes::parse(&path, &text)?, &mut files, 1)?;
        added.push((path, nodes));
    }
    added.retain(|(path, _)| !files.used.contains(path));
    place(&mut tree, added.into_iter().flat_map(|(_, nodes)| nodes).collect());
    wrapped(tree)
}

fn text_of(folder: &Path, path: &str, values: &[(&str, &str)]) -> Result<String, String> {
    let (file, section) = path.split_once(':').map_or((path, None), |(file, section)| (file, Some(section)));
    let bytes = fs::read(folder.join(file)).map_err(|error| format!("{path}: {error}"))?;
    Ok(template::plain(file, section, &String::from_utf8_lossy(&bytes), values))
}

fn expanded(tree: Vec<Node>, files: &mut Files, depth: usize) -> Result<Vec<Node>, String> {
    let mut out = Vec::with_capacity(tree.len());
    for mut node in tree {
        if let Some(block) = node.block.take() {
            node.block = Some(expanded(block, files, depth)?);
        }
        match node.argument(1) {
            Some(pattern) if node.name() == "include" && node.block.is_none() && depth < DEEPEST => {
                for (path, text) in files.named(pattern) {
                    out.extend(expanded(nodes::parse(&path, &text)?, files, depth + 1)?);
                }
            }
            _ => out.push(node),
        }
    }
    Ok(out)
}

impl Files {
    /// The files that an include names; none if only the original machine has them.
    fn named(&mut self, pattern: &str) -> Vec<(String, String)> {
        let (parent, name) = parts(pattern);
        let fits = |path: &str| matches(name, parts(path).1);
        let near = |path: &str| fits(path) && parts(parts(path).0).1 == parts(parent).1;
        let found: Vec<_> = match self.all.iter().any(|(path, _)| near(path)) {
            true => self.all.iter().filter(|(path, _)| near(path)).cloned().collect(),
            // A name alone must be one: every folder's pattern would take everything.
            false if name.contains('*') => Vec::new(),
            false => self.all.iter().filter(|(path, _)| fits(path)).take(1).cloned().collect(),
        };
        self.used.extend(found.iter().map(|(path, _)| path.clone()));
        if found.is_empty() {
            return stock::include(name).map(|text| (name.to_owned(), text)).into_iter().collect();
        }
        found
    }
}

fn parts(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// With at most one asterisk; endings of templates and samples do not count.
fn matches(pattern: &str, name: &str) -> bool {
    let name = [".j2", ".jinja", ".template", ".tpl", ".sample", ".example", ".envsubst"]
        .iter()
        .fold(name, |name, end| name.strip_suffix(end).unwrap_or(name));
    match pattern.split_once('*') {
        Some((before, after)) => {
            name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
        }
        None => pattern == name,
    }
}

/// Inserts files that no include names: locations into the first server, the rest into `http`. Without one
/// they go to the front, because a log format is defined before it is used.
fn place(tree: &mut Vec<Node>, added: Vec<Node>) {
    let (whole, added): (Vec<_>, Vec<_>) =
        added.into_iter().partition(|node| matches!(node.name(), "http" | "events" | "stream"));
    let (locations, added): (Vec<_>, Vec<_>) = added.into_iter().partition(|node| node.name() == "location");
    let http = match tree.iter_mut().find(|node| node.name() == "http").and_then(|http| http.block.as_mut()) {
        Some(http) => {
            http.extend(added);
            http
        }
        None => {
            tree.splice(..0, added);
            &mut *tree
        }
    };
    if let Some(server) =
        http.iter_mut().find(|node| node.name() == "server").and_then(|node| node.block.as_mut())
    {
        server.extend(locations);
    }
    tree.extend(whole);
}

/// Adds `http` and `events` around a file that belongs inside them.
fn wrapped(tree: Vec<Node>) -> Result<Vec<Node>, String> {
    let has = |name: &str| tree.iter().any(|node| node.name() == name);
    if has("http") || has("stream") {
        let events = if has("events") {
            Vec::new()
        } else {
            vec![Node { block: Some(Vec::new()), ..Node::new(&["events"]) }]
        };
        return Ok(events.into_iter().chain(tree).collect());
    }
    let tree = match has("location") || has("listen") {
        true => vec![Node { block: Some(tree), ..Node::new(&["server"]) }],
        false => tree,
    };
    let (main, http) = stock::AROUND;
    let mut nothing = Files { all: Vec::new(), used: BTreeSet::new() };
    let mut inside = expanded(nodes::parse("stock", http)?, &mut nothing, 0)?;
    inside.retain(|node| node.block.is_some() || !tree.iter().any(|own| own.name() == node.name()));
    inside.extend(tree);
    let mut all = nodes::parse("stock", main)?;
    all.push(Node { block: Some(inside), ..Node::new(&["http"]) });
    Ok(all)
}
