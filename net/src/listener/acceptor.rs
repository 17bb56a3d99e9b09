//! A listening socket on a worker's loop.
//!
//! Holds its own duplicate of the socket, so that a worker can go while the address stays. Sets nothing on
//! the connections (`tcp_nodelay` is the caller's), which are non-blocking and close-on-exec.

use crate::address::Address;
use crate::stream::Stream;
use millstream_conf::model::ListenAddress;
use socket2::{SockAddr, SockRef, Socket};
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Accepts connections of one address on the runtime it was made on.
#[derive(Debug)]
pub struct Acceptor {
    socket: Kind,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Acceptor {
    pub(super) fn new(socket: Socket, address: &ListenAddress) -> io::Result<Self> {
        let socket = match address {
            ListenAddress::Tcp(_) => Kind::Tcp(TcpListener::from_std(socket.into())?),
            ListenAddress::Unix(_) => Kind::Unix(UnixListener::from_std(socket.into())?),
        };
        Ok(Acceptor { socket })
    }

    /// A connection that died in the queue is skipped. An error is about this process or machine (EMFILE,
    /// ENFILE, ENOBUFS, ENOMEM): the connection stays queued, so the caller must wait for a descriptor before
    /// it tries again.
    pub async fn accept(&self) -> io::Result<(Stream, Address)> {
        poll_fn(|context| self.poll_accept(context)).await
    }

    pub fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(Stream, Address)>> {
        // Ends: each round takes a connection off the queue, and an empty queue is pending.
        loop {
            let accepted = match &self.socket {
                Kind::Tcp(listener) => listener
                    .poll_accept(context)
                    .map_ok(|(socket, peer)| (Stream::Tcp(socket, peer), Address::Tcp(peer))),
                Kind::Unix(listener) => listener
                    .poll_accept(context)
                    .map_ok(|(socket, _)| (Stream::Unix(socket), Address::Unix(None))),
            };
            match accepted {
                Poll::Ready(Err(error)) if is_of_the_connection(&error) => {}
                accepted => return accepted,
            }
        }
    }
}

impl Acceptor {
    /// A queued connection, asked of the kernel and not of the runtime, which may not know of it yet: call it
    /// before closing the socket. `None` once the queue is empty.
    pub fn accept_queued(&self) -> io::Result<Option<(Stream, Address)>> {
        // Ends: each round takes a connection off the queue.
        loop {
            let accepted = match &self.socket {
                Kind::Tcp(listener) => SockRef::from(listener).accept(),
                Kind::Unix(listener) => SockRef::from(listener).accept(),
            };
            let (socket, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if is_of_the_connection(&error) => continue,
                Err(error) => return Err(error),
            };
            socket.set_nonblocking(true)?;
            return stream_of(socket, &peer).map(Some);
        }
    }
}

/// Without an internet address it came over a unix socket.
fn stream_of(socket: Socket, peer: &SockAddr) -> io::Result<(Stream, Address)> {
    match peer.as_socket() {
        Some(peer) => Ok((Stream::Tcp(TcpStream::from_std(socket.into())?, peer), Address::Tcp(peer))),
        None => Ok((Stream::Unix(UnixStream::from_std(socket.into())?), Address::Unix(None))),
    }
}

/// Errors that accept(2) passes on from the connection that it took off the queue.
fn is_of_the_connection(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ECONNABORTED
                | libc::EINTR
                | libc::EPROTO
                | libc::ENETDOWN
                | libc::ENOPROTOOPT
                | libc::EHOSTDOWN
                | libc::ENONET
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::ECONNRESET
                | libc::EPERM
        )
    )
}
