//! /proc as a table of processes: parents, children, names. Reads only; a process that is gone is simply not in it.

use procfs::FromRead;
use procfs::process::{Process, Stat, all_processes};

/// The most processes of one party; what a fork bomb has beyond is not counted.
const MOST: usize = 4_096;

pub(super) fn stat(id: u32) -> Option<Stat> {
    Stat::from_file(format!("/proc/{id}/stat")).ok()
}

pub(super) fn parent(id: u32) -> Option<u32> {
    u32::try_from(stat(id)?.ppid).ok()
}

pub(super) fn all() -> impl Iterator<Item = Process> {
    all_processes().into_iter().flatten().flatten()
}

pub(super) fn process(id: u32) -> Option<Process> {
    Process::new(i32::try_from(id).ok()?).ok()
}

/// A process and all its descendants, itself first, but for this process and its own: where the API's process has started
/// this program, neither the load nor a proxy is the API.
pub(super) fn tree(root: u32) -> Vec<u32> {
    tree_without(root, std::process::id())
}

fn tree_without(root: u32, without: u32) -> Vec<u32> {
    // Kernels without the list of children make it necessary to look at every process there is.
    let parents: Vec<(u32, u32)> = match children(root) {
        Some(_) => Vec::new(),
        None => all().filter_map(|one| Some((one.pid as u32, parent(one.pid as u32)?))).collect(),
    };
    let mut family = vec![root];
    let mut next = 0;
    while next < family.len() && family.len() < MOST {
        let id = family[next];
        let of_parents = parents.iter().filter(|(_, parent)| *parent == id).map(|(child, _)| *child);
        let all = children(id).unwrap_or_default().into_iter().chain(of_parents);
        family.extend(all.filter(|id| *id != without));
        next += 1;
    }
    family
}

/// Each thread lists the children that it started; `None` where the kernel has no such list.
fn children(id: u32) -> Option<Vec<u32>> {
    let lists = process(id)?.tasks().ok()?.flatten().map(|thread| thread.children().ok());
    Some(lists.collect::<Option<Vec<_>>>()?.concat())
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
