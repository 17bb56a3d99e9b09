//! What has an address that could not be bound, as the kernel's tables of sockets tell it (proc_pid_net(5)).
//!
//! The local port of a connection is in use as well, also for a minute after its end, though no process listens there. Nothing is sent to find out.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// `st` of a listening socket.
const LISTEN: &str = "0A";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Listener,
    /// Established, or closed a moment ago.
    Connection,
    /// In no table: a socket that is bound and nothing else.
    Unknown,
}

pub(super) fn of(address: SocketAddr) -> Holder {
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
        .map(|path| fs::read_to_string(path).unwrap_or_default());
    among(tables.iter().flat_map(|table| table.lines()), address)
}

fn among<'a>(lines: impl Iterator<Item = &'a str>, address: SocketAddr) -> Holder {
    let mut holder = Holder::Unknown;
    for (_, state) in lines.filter_map(entry).filter(|(local, _)| overlaps(*local, address)) {
        if state == LISTEN {
            return Holder::Listener;
        }
        holder = Holder::Connection;
    }
    holder
}

/// Local address and state; `None` for the heading.
fn entry(line: &str) -> Option<(SocketAddr, &str)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (local, state) = (words.next()?, words.nth(1)?);
    let (ip, port) = local.split_once(':')?;
    Some((SocketAddr::new(ip_of(ip)?, u16::from_str_radix(port, 16).ok()?), state))
}

/// In words of 32 bits, each in the machine's order of bytes.
fn ip_of(digits: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(digits.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    match digits.len() {
        8 => word(0).map(|octets| Ipv4Addr::from(octets).into()),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let octets = <[u8; 16]>::try_from(words.as_flattened()).ok()?;
            Some(IpAddr::V6(Ipv6Addr::from(octets)).to_canonical())
        }
        _ => None,
    }
}

fn overlaps(one: SocketAddr, other: SocketAddr) -> bool {
    let is_any = |address: SocketAddr| address.ip().is_unspecified();
    one.port() == other.port() && (one.ip() == other.ip().to_canonical() || is_any(one) || is_any(other))
}

#[cfg(test)]
mod tests {
    use super::{Holder, among};

    #[test]
    fn a_listener_is_told_from_a_connection_by_its_state() {
        let heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        let local = if cfg!(target_endian = "little") { "0100007F" } else { "7F000001" };
        let any6 = "0".repeat(32);
        let line = |local: &str, state: &str| {
            format!("   0: {local}:1F90 00000000:0000 {state} 00000000:00000000 00:00000000 0 0 0")
        };
        for (lines, address, expected) in [
            (vec![], "127.0.0.1:8080", Holder::Unknown),
            (vec![line(local, "0A")], "127.0.0.1:8080", Holder::Listener),
            (vec![line(local, "01"), line(local, "0A")], "127.0.0.1:8080", Holder::Listener),
            (vec![line(local, "01")], "127.0.0.1:8080", Holder::Connection),
            (vec![line(local, "06")], "0.0.0.0:8080", Holder::Connection),
            (vec![line(local, "01")], "127.0.0.1:8081", Holder::Unknown),
            (vec![line(local, "0A")], "127.0.0.2:8080", Holder::Unknown),
            (vec![line("00000000", "0A")], "127.0.0.2:8080", Holder::Listener),
            (vec![line(&any6, "0A")], "127.0.0.1:8080", Holder::Listener),
            (vec![line(&any6, "0A")], "[::1]:8080", Holder::Listener),
        ] {
            let lines = [vec![heading.to_owned()], lines].concat();
            let address = address.parse().expect("an address");
            assert_eq!(among(lines.iter().map(String::as_str), address), expected, "{address} {lines:?}");
        }
    }
}
