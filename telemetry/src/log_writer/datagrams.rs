//! Lines to a log service, a datagram each.
//!
//! Nothing connects and nothing waits: a service that is away or takes no more loses the lines that are sent meanwhile, and has the next ones as
//! soon as it is back. Before: `output`, which has what waits.

use crate::syslog::LogService;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sendto, socket_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes of a line at the most, what is over is cut: UDP over IPv4 takes 65,507 (RFC 768).
const LONGEST: usize = 65_000;

/// A socket, and whom it sends to.
pub(super) struct Datagrams {
    socket: OwnedFd,
    service: LogService,
}

impl Datagrams {
    /// A socket to send from.
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

    /// Sends the first line of some, without its newline; gives back how many bytes that were with it.
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

    /// Its name in messages.
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
