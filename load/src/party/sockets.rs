//! The kernel's tables of TCP sockets: who listens, and what closed connections leave behind.
//!
//! Which process has a socket is found by its number in the table, which needs the right to look at other users' processes where the
//! server is one; without it the answer is `None`, and what the server costs stays unknown.
//!
//! A connection that one side closed first stays in TIME_WAIT there for a minute and holds its pair of ports; a proxy
//! that opens a connection for every request runs out of them at some 28,000 a minute per address.

use super::process_table;
use procfs::process::{FDTarget, Process};
use std::collections::HashSet;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// TCP_LISTEN and TCP_TIME_WAIT of the kernel.
pub(super) const LISTEN: u8 = 0x0a;
const TIME_WAIT: u8 = 0x06;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) state: u8,
    pub(super) inode: u64,
    /// Until its timer ends, in hundredths of a second.
    pub(super) timer: u64,
}

fn all() -> Vec<Socket> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    tables.iter().flat_map(|table| table.lines()).filter_map(line).collect()
}

/// `sl local remote state queues timers retransmits uid timeout inode …`; `None` for the heading.
pub(super) fn line(text: &str) -> Option<Socket> {
    let mut words = text.split_ascii_whitespace().skip(1);
    let local = address(words.next()?)?;
    let remote = address(words.next()?)?;
    let state = u8::from_str_radix(words.next()?, 16).ok()?;
    let timer = words.nth(1).and_then(|timer| u64::from_str_radix(timer.split_once(':')?.1, 16).ok())?;
    let inode = words.nth(3)?.parse().ok()?;
    Some(Socket { local, remote, state, inode, timer })
}

/// `0100007F:1F90`: words of four bytes as the machine has them in memory, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let bytes = (0..ip.len()).step_by(8).map(word).collect::<Option<Vec<_>>>()?.concat();
    let four = || <[u8; 4]>::try_from(&bytes[..]).map(|bytes| Ipv4Addr::from(bytes).into());
    let sixteen = |_| <[u8; 16]>::try_from(&bytes[..]).map(|bytes| Ipv6Addr::from(bytes).to_canonical());
    Some(SocketAddr::new(four().or_else(sixteen).ok()?, port))
}

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
