//! Listening sockets that came with the process: the other half of a binary upgrade, or a service manager's.
//!
//! At an upgrade they are named in one environment variable, `fd:address;fd:address;`. Its text comes from outside and is
//! not trusted: whatever is not a listening socket at that address is left out. A service manager's sockets have no names here: each
//! is for the address that it listens at.

use crate::kernel;
use crate::systemd;
use millstream_conf::model::ListenAddress;
use rustix::process::{Pid, getppid};
use socket2::Socket;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

pub const ENVIRONMENT: &str = "MILLSTREAM_LISTEN";
/// Sockets examined; more than any machine has addresses times cores in practice.
const MOST: usize = 16 * 1024;

/// Sockets that the process was started with and no configuration has taken yet. Dropping it closes them.
#[derive(Debug, Default)]
pub struct Inherited {
    sockets: Vec<(ListenAddress, Socket)>,
    predecessor: Option<Pid>,
}

impl Inherited {
    pub fn none() -> Self {
        Inherited::default()
    }

    /// Those of [`ENVIRONMENT`], else the service manager's; empty from the second call on, since a
    /// descriptor has one owner.
    pub fn from_environment() -> Self {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        if TAKEN.swap(true, Ordering::Relaxed) {
            return Inherited::none();
        }
        match std::env::var(ENVIRONMENT) {
            Ok(text) => Inherited { predecessor: getppid(), ..Inherited::from_text(&text) },
            Err(_) => Inherited { predecessor: getppid(), sockets: activated() },
        }
    }

    /// If not, another process manages this one, which stays in the foreground.
    pub fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    pub(super) fn predecessor(&self) -> Option<Pid> {
        self.predecessor
    }

    pub(super) fn take(&mut self, address: &ListenAddress) -> Option<Vec<Socket>> {
        let taken: Vec<Socket> =
            self.sockets.extract_if(.., |(of, _)| of == address).map(|(_, socket)| socket).collect();
        (!taken.is_empty()).then_some(taken)
    }

    pub(super) fn from_text(text: &str) -> Self {
        let mut seen: Vec<RawFd> = Vec::new();
        let mut sockets = Vec::new();
        for (fd, address) in text.split(';').take(MOST).filter_map(decode) {
            if seen.contains(&fd) {
                continue;
            }
            seen.push(fd);
            let Ok(owned) = kernel::adopt(fd) else { continue };
            let socket = Socket::from(owned);
            if is_listening_at(&socket, &address) && socket.set_cloexec(true).is_ok() {
                sockets.push((address, socket));
            }
        }
        Inherited { sockets, predecessor: None }
    }
}

/// Those of the service manager; what does not listen is not ours.
fn activated() -> Vec<(ListenAddress, Socket)> {
    let found = systemd::descriptors().into_iter().take(MOST).filter_map(|fd| {
        let socket = Socket::from(kernel::adopt(fd).ok()?);
        let is_ours = socket.is_listener().unwrap_or(false) && socket.set_nonblocking(true).is_ok();
        let local = socket.local_addr().ok().filter(|_| is_ours)?;
        let path = || local.as_pathname().map(|path| ListenAddress::Unix(path.into()));
        let address = local.as_socket().map(ListenAddress::Tcp).or_else(path)?;
        Some((address, socket))
    });
    found.collect()
}

fn is_listening_at(socket: &Socket, address: &ListenAddress) -> bool {
    if !socket.is_listener().unwrap_or(false) {
        return false;
    }
    let Ok(local) = socket.local_addr() else { return false };
    match address {
        // The kernel has put a number in place of port 0.
        ListenAddress::Tcp(wanted) => local.as_socket().is_some_and(|local| {
            local.ip() == wanted.ip() && (wanted.port() == 0 || local.port() == wanted.port())
        }),
        ListenAddress::Unix(wanted) => local.as_pathname() == Some(wanted),
    }
}

/// Ambiguous bytes of a path are written `%XX`.
pub(super) fn encode(address: &ListenAddress) -> String {
    match address {
        ListenAddress::Tcp(address) => address.to_string(),
        ListenAddress::Unix(path) => {
            let mut text = String::from("unix:");
            for &byte in path.as_os_str().as_bytes() {
                if byte.is_ascii_graphic() && !matches!(byte, b';' | b'%') {
                    text.push(char::from(byte));
                } else {
                    let _ = write!(text, "%{byte:02X}");
                }
            }
            text
        }
    }
}

fn decode(item: &str) -> Option<(RawFd, ListenAddress)> {
    let (fd, address) = item.split_once(':')?;
    let fd = fd.parse().ok()?;
    let Some(path) = address.strip_prefix("unix:") else {
        return Some((fd, ListenAddress::Tcp(address.parse::<SocketAddr>().ok()?)));
    };
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            bytes.push((high * 16 + low) as u8);
        } else {
            bytes.push(byte);
        }
    }
    Some((fd, ListenAddress::Unix(PathBuf::from(std::ffi::OsString::from_vec(bytes)))))
}
