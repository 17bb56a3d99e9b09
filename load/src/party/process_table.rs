//! /proc as a table of processes: parents, children, names. Reads only; a process that is gone is simply not in it.

use std::collections::HashMap;
use std::fs;

/// The most processes of one party; what a fork bomb has beyond is not counted.
const MOST: usize = 4_096;

/// The fields of a `stat` file after the command's name: state, parent, group, …
pub(super) fn stat_fields(text: &str) -> Vec<&str> {
    // The name stands in parentheses and may hold any byte, so the last one ends it.
    text.rsplit_once(") ").map_or_else(Vec::new, |(_, fields)| fields.split_ascii_whitespace().collect())
}

pub(super) fn parent(id: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat_fields(&text).get(1)?.parse().ok()
}

/// The command's name, at most 15 bytes of it; `?` where it is unknown.
pub(super) fn name(id: u32) -> String {
    let text = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    if text.is_empty() { "?".to_owned() } else { text.trim_end().to_owned() }
}

/// Ids of everything that runs.
pub(super) fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Threads of a process.
pub(super) fn threads(id: u32) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A process and all its descendants, itself first, but for this process and its own: where the API's process has started
/// this program, neither the load nor a proxy is the API.
pub(super) fn tree(root: u32) -> Vec<u32> {
    tree_without(root, std::process::id())
}

fn tree_without(root: u32, without: u32) -> Vec<u32> {
    // Kernels without this file make it necessary to look at every process there is.
    let is_listed = fs::exists(format!("/proc/{root}/task/{root}/children")).unwrap_or(false);
    let by_parent = if is_listed { HashMap::new() } else { parents() };
    let mut family = vec![root];
    let mut next = 0;
    while next < family.len() && family.len() < MOST {
        let id = family[next];
        let children = match by_parent.get(&id) {
            Some(children) => children.clone(),
            None if is_listed => listed_children(id),
            None => Vec::new(),
        };
        family.extend(children.into_iter().filter(|id| *id != without));
        next += 1;
    }
    family
}

/// Each thread lists the children that it started.
fn listed_children(id: u32) -> Vec<u32> {
    let texts = threads(id)
        .filter_map(|thread| fs::read_to_string(format!("/proc/{id}/task/{thread}/children")).ok());
    texts
        .flat_map(|text| text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

fn parents() -> HashMap<u32, Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for id in all() {
        if let Some(parent) = parent(id) {
            children.entry(parent).or_default().push(id);
        }
    }
    children
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_tree_is_without_this_process_and_what_it_has_started() {
        let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().unwrap();
        let (own, parent) = (std::process::id(), parent(std::process::id()).unwrap());
        let family = tree(parent);
        assert!(family.contains(&parent) && !family.contains(&own) && !family.contains(&child.id()));
        assert!(tree_without(parent, 0).contains(&child.id()));
        assert!(tree(own).contains(&child.id()), "it is what it has started itself that is asked about");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
