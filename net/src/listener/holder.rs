//! What has an address that could not be bound, as the kernel's tables of sockets tell it.
//!
//! The local port of a connection is in use as well, also for a minute after its end, though no process listens there. Nothing is sent to find out.

use crate::tcp_table::{self, LISTEN, Socket};
use std::net::SocketAddr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Listener,
    /// Established, or closed a moment ago.
    Connection,
    /// In no table: a socket that is bound and nothing else.
    Unknown,
}

pub(super) fn of(address: SocketAddr) -> Holder {
    among(tcp_table::all().into_iter(), address)
}

fn among(sockets: impl Iterator<Item = Socket>, address: SocketAddr) -> Holder {
    let mut holder = Holder::Unknown;
    for socket in sockets.filter(|socket| overlaps(socket.local, address)) {
        if socket.state == LISTEN {
            return Holder::Listener;
        }
        holder = Holder::Connection;
    }
    holder
}

fn overlaps(one: SocketAddr, other: SocketAddr) -> bool {
    let is_any = |address: SocketAddr| address.ip().is_unspecified();
    one.port() == other.port() && (one.ip() == other.ip().to_canonical() || is_any(one) || is_any(other))
}

#[cfg(test)]
mod tests {
    use super::{Holder, among};
    use crate::tcp_table;

    #[test]
    fn a_listener_is_told_from_a_connection_by_its_state() {
        let heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        let local = if cfg!(target_endian = "little") { "0100007F" } else { "7F000001" };
        let any6 = "0".repeat(32);
        let line = |local: &str, state: &str| {
            format!("   0: {local}:1F90 00000000:0000 {state} 00000000:00000000 00:00000000 0 0 0 1")
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
            assert_eq!(
                among(lines.iter().filter_map(|line| tcp_table::line(line)), address),
                expected,
                "{address} {lines:?}"
            );
        }
    }
}
