//! One listening socket with the options of its `listen` directive.
//!
//! Every socket made here is non-blocking and close-on-exec. Buffer sizes and keep-alive are set on the
//! listening socket, whose connections inherit them (tcp(7)).

use crate::kernel;
use millstream_conf::model::{Listener, SocketKeepalive};
use rustix::process::{Pid, getppid};
use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a connection without data stays with the kernel under `deferred`, in seconds; nginx's value.
const DEFER_SECONDS: libc::c_int = 1;

/// Fails as listening would if another process listens at the address, even if that allows sharing.
pub(super) fn probe(listener: &Listener, at: SocketAddr) -> io::Result<()> {
    bind(listener, at, false).map(drop)
}

/// Shares its port with others of this process.
pub(super) fn tcp(listener: &Listener, at: SocketAddr) -> io::Result<Socket> {
    let socket = bind(listener, at, true)?;
    if let Some(size) = listener.sndbuf {
        socket.set_send_buffer_size(size)?;
    }
    if let Some(size) = listener.rcvbuf {
        socket.set_recv_buffer_size(size)?;
    }
    if let Some(keepalive) = listener.so_keepalive {
        set_keepalive(&socket, keepalive)?;
    }
    if listener.deferred {
        kernel::defer_accept(socket.as_fd(), DEFER_SECONDS)?;
    }
    socket.listen(backlog(listener))?;
    Ok(socket)
}

/// Anyone may connect to it, as in nginx, or only our user if it is `owner_only`. A file left by an ended
/// process is replaced; one in use is an error.
pub(super) fn unix(listener: &Listener, path: &Path) -> io::Result<(Socket, SocketFile)> {
    let socket = new_socket(Domain::UNIX)?;
    if let Some(size) = listener.sndbuf {
        socket.set_send_buffer_size(size)?;
    }
    if let Some(size) = listener.rcvbuf {
        socket.set_recv_buffer_size(size)?;
    }
    let address = SockAddr::unix(path)?;
    if listener.owner_only {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        // Linux gives the file the socket's own mode (less the umask) as it binds, so at no moment anybody else may
        // connect; and nobody connects before it listens.
        rustix::fs::fchmod(&socket, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
    }
    match socket.bind(&address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path, &address)? => {
            fs::remove_file(path)?;
            socket.bind(&address)?;
        }
        result => result?,
    }
    let file = SocketFile::of(path)?;
    let mode = if listener.owner_only { 0o600 } else { 0o666 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    socket.listen(backlog(listener))?;
    Ok((socket, file))
}

/// Applies the backlog of another configuration.
pub(super) fn listen_again(socket: &Socket, listener: &Listener) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.listen(backlog(listener))
}

fn bind(listener: &Listener, at: SocketAddr, share: bool) -> io::Result<Socket> {
    let socket = new_socket(Domain::for_address(at))?;
    // Without it the connections of a process that has just ended keep the port for a minute.
    socket.set_reuse_address(true)?;
    if share {
        socket.set_reuse_port(true)?;
    }
    if at.is_ipv6() {
        socket.set_only_v6(listener.ipv6only)?;
    }
    socket.bind(&at.into())?;
    Ok(socket)
}

fn new_socket(domain: Domain) -> io::Result<Socket> {
    Socket::new(domain, Type::STREAM.nonblocking(), None)
}

fn backlog(listener: &Listener) -> libc::c_int {
    libc::c_int::try_from(listener.backlog).unwrap_or(libc::c_int::MAX)
}

fn set_keepalive(socket: &Socket, keepalive: SocketKeepalive) -> io::Result<()> {
    let (idle, interval, count) = match keepalive {
        SocketKeepalive::Switch(on) => return socket.set_keepalive(on),
        SocketKeepalive::Times { idle, interval, count } => (idle, interval, count),
    };
    socket.set_keepalive(true)?;
    let mut times = TcpKeepalive::new();
    if let Some(idle) = idle {
        times = times.with_time(idle);
    }
    if let Some(interval) = interval {
        times = times.with_interval(interval);
    }
    if let Some(count) = count {
        times = times.with_retries(count);
    }
    socket.set_tcp_keepalive(&times)
}

/// A socket on which no one accepts. Any other kind of file is not ours to remove.
fn is_stale(path: &Path, address: &SockAddr) -> io::Result<bool> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Ok(false);
    }
    // Non-blocking: a live process with a full queue says EAGAIN.
    let attempt = new_socket(Domain::UNIX)?.connect(address);
    Ok(matches!(attempt, Err(error) if error.kind() == io::ErrorKind::ConnectionRefused))
}

/// Removed with the last owner unless it was handed over or belongs to another by now.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
    kept: AtomicBool,
    /// The process that handed the socket over, its parent: while it lives, it uses the file.
    predecessor: Option<Pid>,
}

impl SocketFile {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let identity = identity(path)?;
        Ok(SocketFile { path: path.to_path_buf(), identity, kept: AtomicBool::new(false), predecessor: None })
    }

    pub(super) fn inherited(path: &Path, predecessor: Option<Pid>) -> io::Result<Self> {
        let mut file = SocketFile::of(path)?;
        file.predecessor = predecessor;
        Ok(file)
    }

    /// Whether another process uses it. A process whose parent has ended gets another one.
    fn is_in_use(&self) -> bool {
        self.kept.load(Ordering::Relaxed) || (self.predecessor.is_some() && self.predecessor == getppid())
    }

    pub(super) fn keep(&self, kept: bool) {
        self.kept.store(kept, Ordering::Relaxed);
    }

    /// Unless another process uses it, or it belongs to another by now.
    pub(super) fn remove(&self) {
        if !self.is_in_use() && identity(&self.path).is_ok_and(|now| now == self.identity) {
            // A file that cannot be removed is found stale at the next start.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.remove();
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}
