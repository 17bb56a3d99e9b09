//! Listening sockets: opened once, kept over reloads, handed over at a binary upgrade.
//!
//! Every worker accepts on a socket of its own where the kernel can spread connections (TCP with
//! SO_REUSEPORT), else on a duplicate of one socket (unix). An address is closed when its last [`Listening`] and its
//! last [`Acceptor`] are dropped; so a reload passes the old ones as `keep` and drops them only afterwards, and no
//! connection in an accept queue is lost.
//! Next: `listener/socket`, which makes one socket; `listener/acceptor`, which is what a worker's loop holds.

mod socket;
mod inherited;
mod acceptor;
mod holder;

#[cfg(test)]
mod tests;

pub use acceptor::Acceptor;
pub use holder::Holder;
pub use inherited::{ENVIRONMENT, Inherited};

use crate::address::Address;
use millstream_conf::model::{ListenAddress, Listener};
use rustix::process::Pid;
use socket::SocketFile;
use socket2::Socket;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

/// One address with its listening sockets, at least one.
#[derive(Debug)]
pub struct Listening {
    address: ListenAddress,
    sockets: Vec<Socket>,
    file: Option<Arc<SocketFile>>,
}

#[derive(Debug)]
pub struct OpenError {
    /// Index into the listeners passed to [`open`].
    pub index: usize,
    pub address: Address,
    pub error: io::Error,
    /// What has the address, if that is the error.
    pub holder: Option<Holder>,
}

impl OpenError {
    /// Looks up at once what has an address in use, as that may end soon.
    pub fn new(index: usize, address: Address, error: io::Error) -> Self {
        let is_taken = error.kind() == io::ErrorKind::AddrInUse;
        let holder = is_taken.then(|| match &address {
            Address::Tcp(address) => holder::of(*address),
            _ => Holder::Listener,
        });
        OpenError { index, address, error, holder }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}: ", self.address)?;
        match self.error.kind() {
            io::ErrorKind::AddrInUse => f.write_str(match self.holder {
                Some(Holder::Connection) => "no process listens there, but a connection uses this port",
                Some(Holder::Unknown) => "another process uses this address already",
                Some(Holder::Listener) | None => "another process listens there already",
            }),
            io::ErrorKind::AddrNotAvailable => f.write_str("this machine does not have this address"),
            io::ErrorKind::PermissionDenied => match &self.address {
                Address::Tcp(address) if address.port() < 1024 => {
                    f.write_str("ports below 1024 need root or the capability CAP_NET_BIND_SERVICE")
                }
                _ => write!(f, "{}", self.error),
            },
            _ => write!(f, "{}", self.error),
        }
    }
}

impl std::error::Error for OpenError {}

#[derive(Debug)]
pub struct Opened {
    /// One per address, in order; optional ones may be missing.
    pub listenings: Vec<Arc<Listening>>,
    /// Control sockets whose directory is missing or not ours, and optional addresses in use: the server runs
    /// without them.
    pub missing: Vec<OpenError>,
}

/// Opens every address, in order, with `sockets_per_address` sockets each for TCP and one for unix sockets.
/// An address in `keep` keeps its sockets (more are added if requested; none is closed, since its queue may
/// hold connections); one in `inherited` takes those. Reports all errors, and then closes what was newly
/// opened.
pub fn open(
    listeners: &[Listener],
    sockets_per_address: usize,
    mut inherited: Inherited,
    keep: &[Arc<Listening>],
) -> Result<Opened, Vec<OpenError>> {
    let mut opened: Vec<(usize, Arc<Listening>)> = Vec::with_capacity(listeners.len());
    let (mut errors, mut missing) = (Vec::new(), Vec::new());
    // What is new comes first: as long as it may fail, nothing is done to sockets that serve.
    for (index, listener) in listeners.iter().enumerate() {
        if keep.iter().any(|kept| kept.address == listener.address) {
            continue;
        }
        let all = || keep.iter().chain(opened.iter().map(|(_, listening)| listening));
        let ours = |port| all().any(|listening| listening.has_port(port));
        let result = match inherited.take(&listener.address) {
            Some(sockets) => {
                Listening::of_inherited(sockets, inherited.predecessor(), listener, sockets_per_address)
            }
            None => Listening::fresh(listener, sockets_per_address, ours),
        };
        match result {
            Ok(listening) => opened.push((index, Arc::new(listening))),
            Err(error) => {
                // Another process that listens at a control socket means that two run with one configuration.
                let is_taken = error.kind() == io::ErrorKind::AddrInUse;
                let is_needed = if is_taken { !listener.optional } else { !listener.owner_only };
                let list = if is_needed { &mut errors } else { &mut missing };
                list.push(OpenError::new(index, (&listener.address).into(), error));
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    for (index, listener) in listeners.iter().enumerate() {
        if let Some(kept) = keep.iter().find(|kept| kept.address == listener.address) {
            opened.push((index, kept.kept(listener, sockets_per_address)));
        }
    }
    opened.sort_by_key(|(index, _)| *index);
    Ok(Opened { listenings: opened.into_iter().map(|(_, listening)| listening).collect(), missing })
}

/// Prepares all for the next process: descriptors stay open over exec, unix sockets keep their files. Returns
/// the value of [`ENVIRONMENT`] for it. See [`Listening::take_back`] if the other process fails to start.
pub fn hand_over(listenings: &[Arc<Listening>]) -> io::Result<String> {
    let mut text = String::new();
    for listening in listenings {
        for (fd, address) in listening.hand_over()? {
            text.push_str(&format!("{fd}:{address};"));
        }
    }
    Ok(text)
}

impl Listening {
    pub fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// With the port that the kernel chose for 0.
    pub fn local(&self) -> Address {
        match self.tcp_local() {
            Some(address) => Address::Tcp(address),
            None => (&self.address).into(),
        }
    }

    pub fn sockets(&self) -> usize {
        self.sockets.len()
    }

    /// The sockets that worker `worker` of `workers` accepts on, registered with the current tokio runtime.
    /// With more sockets than workers each worker has several, with fewer some share; no socket is left
    /// without a worker, and no worker without a socket.
    pub fn acceptor(&self, worker: usize, workers: usize) -> io::Result<Vec<Acceptor>> {
        let sockets = self.sockets.len();
        let mine: Vec<&Socket> = if workers <= sockets {
            self.sockets.iter().skip(worker).step_by(workers.max(1)).collect()
        } else {
            vec![&self.sockets[worker % sockets]]
        };
        mine.into_iter().map(|socket| Acceptor::new(socket.try_clone()?, &self.address)).collect()
    }

    /// Makes the descriptors stay open over exec; returns each with its address, as text for [`ENVIRONMENT`].
    /// The file of a unix socket then outlives this process.
    pub fn hand_over(&self) -> io::Result<Vec<(RawFd, String)>> {
        if let Some(file) = &self.file {
            file.keep(true);
        }
        let text = inherited::encode(&self.address);
        self.sockets
            .iter()
            .map(|socket| socket.set_cloexec(false).map(|()| (socket.as_raw_fd(), text.clone())))
            .collect()
    }

    /// Undoes [`Listening::hand_over`]: the next process failed to start.
    pub fn take_back(&self) -> io::Result<()> {
        if let Some(file) = &self.file {
            file.keep(false);
        }
        self.sockets.iter().try_for_each(|socket| socket.set_cloexec(true))
    }

    /// From the process that opened them and keeps their file; at least one.
    pub fn of_sockets(address: ListenAddress, sockets: Vec<OwnedFd>) -> Listening {
        Listening { address, sockets: sockets.into_iter().map(Socket::from).collect(), file: None }
    }

    /// Leaves the file of a unix socket to the process that forked this one.
    pub fn leave_file(&self) {
        if let Some(file) = &self.file {
            file.keep(true);
        }
    }

    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(AsFd::as_fd)
    }

    fn fresh(listener: &Listener, sockets: usize, ours: impl Fn(u16) -> bool) -> io::Result<Listening> {
        let address = listener.address.clone();
        match &listener.address {
            ListenAddress::Tcp(at) => {
                // SO_REUSEPORT would let us share a port with another process of the same user unawares.
                // Where a socket of our own has the port, this would fail on that one.
                if !ours(at.port()) {
                    socket::probe(listener, *at)?;
                }
                let first = socket::tcp(listener, *at)?;
                let mut listening = Listening { address, sockets: vec![first], file: None };
                listening.grow(listener, sockets)?;
                Ok(listening)
            }
            ListenAddress::Unix(path) => {
                let (socket, file) = socket::unix(listener, path)?;
                Ok(Listening { address, sockets: vec![socket], file: Some(Arc::new(file)) })
            }
        }
    }

    fn of_inherited(
        sockets: Vec<Socket>,
        predecessor: Option<Pid>,
        listener: &Listener,
        wanted: usize,
    ) -> io::Result<Listening> {
        for socket in &sockets {
            socket::listen_again(socket, listener)?;
        }
        let file = match &listener.address {
            ListenAddress::Tcp(_) => None,
            ListenAddress::Unix(path) => Some(Arc::new(SocketFile::inherited(path, predecessor)?)),
        };
        let mut listening = Listening { address: listener.address.clone(), sockets, file };
        listening.grow_if_possible(listener, wanted);
        Ok(listening)
    }

    /// The same sockets for the next configuration, with its backlog, and more of them if possible: a
    /// listener in use is never a reason to refuse a configuration.
    fn kept(self: &Arc<Self>, listener: &Listener, wanted: usize) -> Arc<Listening> {
        for socket in &self.sockets {
            // It listens; only the length of its queue stays what it was.
            _ = socket::listen_again(socket, listener);
        }
        if self.file.is_some() || self.sockets.len() >= wanted {
            return Arc::clone(self);
        }
        let Ok(sockets) = self.sockets.iter().map(Socket::try_clone).collect() else {
            return Arc::clone(self);
        };
        let mut listening = Listening { address: self.address.clone(), sockets, file: None };
        listening.grow_if_possible(listener, wanted);
        Arc::new(listening)
    }

    /// Removes the file of a unix socket, unless the next process uses it: no one finds the socket any more,
    /// even if others hold it. Serving threads lack the rights.
    pub fn remove_file(&self) {
        if let Some(file) = &self.file {
            file.remove();
        }
    }

    /// Unix sockets stay at one.
    fn grow(&mut self, listener: &Listener, wanted: usize) -> io::Result<()> {
        // Port 0 was given a number with the first socket.
        let Some(at) = self.tcp_local() else { return Ok(()) };
        while self.sockets.len() < wanted {
            self.sockets.push(socket::tcp(listener, at)?);
        }
        Ok(())
    }

    /// The kernel lets only the user who bound a port first add sockets to it, which may have been root
    /// before `user` took effect. Then workers share the existing ones.
    fn grow_if_possible(&mut self, listener: &Listener, wanted: usize) {
        let _ = self.grow(listener, wanted);
    }

    fn tcp_local(&self) -> Option<SocketAddr> {
        self.sockets.first()?.local_addr().ok()?.as_socket()
    }

    fn has_port(&self, port: u16) -> bool {
        port != 0 && self.tcp_local().is_some_and(|address| address.port() == port)
    }
}
