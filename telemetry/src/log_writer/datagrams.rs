//! Lines to a log service, a datagram each.
//!
//! Nothing connects and nothing waits: a service that is away or takes no more loses the lines that are sent meanwhile, and has the next ones as
//! soon as it is back. Before: `output`, which has what waits.

use crate::syslog::LogService;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sendto, socket_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// In bytes; longer lines are cut: UDP over IPv4 allows 65,507 (RFC 768).
const LONGEST: usize = 65_000;

pub(super) struct Datagrams {
    socket: OwnedFd,
    service: LogService,
}

impl Datagrams {
    pub(super) fn open(service: &LogService) -> io::Result<Datagrams> {
        let family = match service {
            LogService::Udp(address) if address.is_ipv4() => AddressFamily::INET,
            LogService::Udp(_) => AddressFamily::INET6,
            LogService::Unix(_) => AddressFamily::UNIX,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
        Ok(Datagrams { socket, service: service.clone() })
    }

    /// The first line, without its newline; returns its bytes with it.
    pub(super) fn send_one(&self, lines: &[u8]) -> io::Result<usize> {
        let end = lines.iter().position(|byte| *byte == b'\n').unwrap_or(lines.len());
        let line = &lines[..end.min(LONGEST)];
        let sent = match &self.service {
            LogService::Udp(address) => sendto(&self.socket, line, SendFlags::NOSIGNAL, address),
            LogService::Unix(path) => {
                sendto(&self.socket, line, SendFlags::NOSIGNAL, &SocketAddrUnix::new(path.as_path())?)
            }
        };
        match sent {
            Ok(_) => Ok((end + 1).min(lines.len())),
            // Nobody waits for a service that takes no more.
            Err(Errno::AGAIN) => Err(Errno::NOBUFS.into()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn name(&self) -> String {
        match &self.service {
            LogService::Udp(address) => format!("syslog:server={address}"),
            LogService::Unix(path) => format!("syslog:server=unix:{}", path.display()),
        }
    }
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
