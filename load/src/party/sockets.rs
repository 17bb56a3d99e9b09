//! TCP sockets of this machine: who listens, and what closed connections leave behind.
//!
//! Which process has a socket is found by its number in the table, which needs the right to look at other users' processes where the
//! server is one; without it the answer is `None`, and what the server costs stays unknown.
//!
//! A connection that one side closed first stays in TIME_WAIT there for a minute and holds its pair of ports; a proxy
//! that opens a connection for every request runs out of them at some 28,000 a minute per address.

use super::process_table;
use millstream_net::tcp_table::{LISTEN, Socket, TIME_WAIT, all};
use procfs::process::{FDTarget, Process};
use std::collections::HashSet;
use std::net::SocketAddr;

/// Connections with one of these addresses on either side that went into TIME_WAIT within the last so many seconds, 60 at
/// the most: each is there for a minute, and its timer says how much of it is left.
pub fn time_wait_of_late(addresses: &[SocketAddr], seconds: f64) -> u64 {
    const MINUTE: u64 = 60 * 100;
    let latest = (seconds.clamp(0.0, 60.0) * 100.0) as u64;
    let is_of_late = |socket: &&Socket| {
        let meets = addresses.contains(&socket.local) || addresses.contains(&socket.remote);
        socket.state == TIME_WAIT && meets && MINUTE.saturating_sub(socket.timer) <= latest
    };
    all().iter().filter(is_of_late).count() as u64
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// The eldest of them: a master where there are workers.
    pub id: u32,
    /// Its command's name, at most 15 bytes of it; `?` where it is unknown.
    pub name: String,
    /// All of them, lowest id first.
    pub processes: Vec<u32>,
}

impl std::fmt::Display for Listener {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} (process {})", self.name, self.id)
    }
}

impl Listener {
    /// Whether it only hands connections on to a server elsewhere (a container's port), so that its CPU is not the server's.
    pub fn is_relay(&self) -> bool {
        ["docker-proxy", "rootlessport", "pasta", "slirp4netns", "ssh", "sshd"].contains(&self.name.as_str())
    }
}

/// Who listens on an address of this machine, by name or on all addresses; `None`: nobody, or nobody that may be seen.
pub fn listener(address: SocketAddr) -> Option<Listener> {
    let inodes = listening(address);
    if inodes.is_empty() {
        return None;
    }
    let holders = process_table::all().filter(|process| holds(process, &inodes));
    let mut processes: Vec<u32> = holders.map(|process| process.pid as u32).collect();
    processes.sort_unstable();
    let is_child = |id: &&u32| process_table::parent(**id).is_some_and(|parent| processes.contains(&parent));
    let id = *processes.iter().find(|id| !is_child(id))?;
    let name = process_table::stat(id).map_or_else(|| "?".to_owned(), |stat| stat.comm);
    Some(Listener { id, name, processes })
}

/// Whether anybody listens on an address of this machine, seen or not.
pub fn is_taken(address: SocketAddr) -> bool {
    !listening(address).is_empty()
}

fn listening(address: SocketAddr) -> HashSet<u64> {
    let is_there = |socket: &Socket| {
        let is_wild = socket.local.ip().is_unspecified() && socket.local.port() == address.port();
        socket.state == LISTEN && (is_wild || socket.local == address)
    };
    all().into_iter().filter(is_there).map(|socket| socket.inode).collect()
}

fn holds(process: &Process, inodes: &HashSet<u64>) -> bool {
    let mut files = process.fd().into_iter().flatten().flatten();
    files.any(|file| matches!(file.target, FDTarget::Socket(inode) if inodes.contains(&inode)))
}
