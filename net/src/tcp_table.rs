//! The kernel's tables of TCP sockets (proc_pid_net(5)).
//!
//! It reads lines; what they mean is for who asks. Next: `listener`, which says what has an address in use.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// TCP_LISTEN and TCP_TIME_WAIT of the kernel.
pub const LISTEN: u8 = 0x0a;
pub const TIME_WAIT: u8 = 0x06;

/// A line of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub state: u8,
    pub inode: u64,
    /// Until its timer ends, in hundredths of a second.
    pub timer: u64,
}

/// All of this network namespace; none where the tables cannot be read.
pub fn all() -> Vec<Socket> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    tables.iter().flat_map(|table| table.lines()).filter_map(line).collect()
}

/// `sl local remote state queues timers retransmits uid timeout inode …`; `None` for the heading.
pub fn line(text: &str) -> Option<Socket> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_socket_tables_are_read() {
        let text = "   1: 0100007F:36ED 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4326557 1 x";
        let expected = Socket {
            local: "127.0.0.1:14061".parse().unwrap(),
            remote: "0.0.0.0:0".parse().unwrap(),
            state: LISTEN,
            inode: 4_326_557,
            timer: 0,
        };
        if cfg!(target_endian = "little") {
            assert_eq!(line(text), Some(expected));
            let six = "0: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000001000000:C001 06 0:0 00:0 0 0 0 0";
            let found = line(six).unwrap();
            assert_eq!(found.local, "127.0.0.1:8080".parse().unwrap(), "a mapped address is the one it maps");
            assert_eq!(found.remote, "[::1]:49153".parse().unwrap());
        }
        for wrong in [
            "",
            "sl local_address rem_address st",
            "0: 01:1 02:2 06",
            "0: 0100007F:36ED 0100007F: 0A 0 0 0 0 0 1",
        ] {
            assert_eq!(line(wrong), None, "{wrong}");
        }
    }
}
