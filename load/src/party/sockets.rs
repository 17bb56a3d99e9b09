//! The kernel's tables of TCP sockets: who listens, and what closed connections leave behind.
//!
//! A connection that one side closed first stays in TIME_WAIT there for a minute and holds its pair of ports; a proxy
//! that opens a connection for every request runs out of them at some 28,000 a minute per address.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// TCP_LISTEN and TCP_TIME_WAIT of the kernel.
pub(super) const LISTEN: u8 = 0x0a;
pub(super) const TIME_WAIT: u8 = 0x06;

/// One line of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) state: u8,
    pub(super) inode: u64,
    /// Until its timer ends, in hundredths of a second.
    pub(super) timer: u64,
}

/// Calls `each` for every socket of both tables.
pub(super) fn each(mut each: impl FnMut(Socket)) {
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = fs::read_to_string(table).unwrap_or_default();
        text.lines().filter_map(line).for_each(&mut each);
    }
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
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (place, at) in bytes.chunks_exact_mut(4).zip([0, 8, 16, 24]) {
                place.copy_from_slice(&word(at)?);
            }
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// Connections in TIME_WAIT with this address on either side.
pub fn time_wait(address: SocketAddr) -> u64 {
    let mut count = 0;
    each(|socket| {
        let meets = socket.local == address || socket.remote == address;
        count += u64::from(socket.state == TIME_WAIT && meets);
    });
    count
}

/// Connections with one of these addresses on either side that went into TIME_WAIT within the last so many seconds, 60 at
/// the most: each is there for a minute, and its timer says how much of it is left.
pub fn time_wait_of_late(addresses: &[SocketAddr], seconds: f64) -> u64 {
    const MINUTE: u64 = 60 * 100;
    let latest = (seconds.clamp(0.0, 60.0) * 100.0) as u64;
    let mut count = 0;
    each(|socket| {
        let meets = addresses.contains(&socket.local) || addresses.contains(&socket.remote);
        let is_new = MINUTE.saturating_sub(socket.timer) <= latest;
        count += u64::from(socket.state == TIME_WAIT && meets && is_new);
    });
    count
}
