//! A child process that cannot outlive its test, and what `/proc` says about it and its descendants.
//!
//! Signals go to ids that were started here or descend from them, never to a name.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::wait;

/// When dropped, it gets `TERM`, then `KILL`, and so do its remaining descendants.
pub struct Running {
    child: Child,
    stop: Signal,
}

impl Running {
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Running::of(command.spawn()?))
    }

    pub fn of(child: Child) -> Self {
        Running { child, stop: Signal::TERM }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// A process that has ended already is not an error.
    pub fn signal(&self, signal: Signal) {
        send(self.id(), signal);
    }

    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        wait::within(limit, || self.ended())
    }

    /// Itself first.
    pub fn tree(&self) -> Vec<u32> {
        tree(self.id())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let family = self.tree();
        if self.ended().is_none() {
            self.signal(self.stop);
            if self.wait(Duration::from_secs(5)).is_none() {
                self.signal(Signal::KILL);
                let _ = self.child.wait();
            }
        }
        // A worker whose master was killed would linger on its port. Its parent is gone now, which a reused id's is not.
        for id in family.into_iter().skip(1) {
            if parent(id) == Some(1) {
                send(id, Signal::KILL);
            }
        }
    }
}

/// Only for processes of this program; one that has ended is not an error.
pub fn send(id: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// A zombie does not.
pub fn is_alive(id: u32) -> bool {
    status_fields(id).is_some_and(|fields| fields.first().is_some_and(|state| state != "Z"))
}

pub fn is_stopped(id: u32) -> bool {
    status_fields(id).is_some_and(|fields| fields.first().is_some_and(|state| state == "T"))
}

/// After the command's name: state, parent, …
fn status_fields(id: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name stands in parentheses and may hold any byte, so the last one ends it.
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split_ascii_whitespace().map(str::to_owned).collect())
}

fn parent(id: u32) -> Option<u32> {
    status_fields(id)?.get(1)?.parse().ok()
}

pub fn children(root: u32) -> Vec<u32> {
    tree(root).into_iter().skip(1).filter(|&id| parent(id) == Some(root)).collect()
}

pub fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok())
            && let Some(parent) = parent(id)
        {
            children.entry(parent).or_default().push(id);
        }
    }
    let mut family = vec![root];
    let mut next = 0;
    while next < family.len() {
        family.extend(children.remove(&family[next]).unwrap_or_default());
        next += 1;
    }
    family
}

/// Its first child if it has any (an opener, nginx's master), else itself.
pub fn serving(root: u32) -> u32 {
    tree(root).get(1).copied().unwrap_or(root)
}

/// User and system time, with descendants and those that have ended.
pub fn cpu_time(root: u32) -> Duration {
    // Linux reports in hundredths of a second (USER_HZ) on every architecture that runs this.
    let ticks: u64 = tree(root)
        .into_iter()
        .filter_map(status_fields)
        .map(|fields| {
            fields.iter().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum::<u64>()
        })
        .sum();
    Duration::from_millis(ticks * 10)
}

pub fn waited_for_cpu_time() -> Duration {
    let fields = status_fields(std::process::id()).unwrap_or_default();
    let ticks: u64 = fields.iter().skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// With descendants: the private (anonymous) pages, which is what connections cost.
pub fn resident_bytes(root: u32) -> u64 {
    tree(root)
        .into_iter()
        .filter_map(|id| fs::read_to_string(format!("/proc/{id}/status")).ok())
        .map(|text| line_kib(&text, "RssAnon:") * 1024)
        .sum()
}

/// With descendants: entries of a folder of `/proc/ID`, such as `fd` or `task`.
pub fn entries(root: u32, folder: &str) -> usize {
    let count = |id| fs::read_dir(format!("/proc/{id}/{folder}")).map_or(0, Iterator::count);
    tree(root).into_iter().map(count).sum()
}

fn line_kib(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_ascii_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Children inherit it.
pub fn allow_open_files(wanted: u64) -> bool {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return true;
    }
    let maximum = limit.maximum.map(|maximum| maximum.max(wanted));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok()
}
