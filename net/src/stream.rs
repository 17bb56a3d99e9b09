//! A connection's bytes, plain or TLS, TCP or unix socket: one type for both sides of the proxy.
//!
//! Reads go into a `Vec` that is only there while bytes are: [`Stream::read_buffer`] waits without one.
//! A deadline is set by whoever waits; the clock is read only when the kernel makes us wait.
//! Next: `outlet`, through which all writing goes; `listener` and `connect`, which make these; `tls`, which wraps one.

mod plain;
mod encrypted;
mod hangup;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use encrypted::Transport;
pub use encrypted::{Encrypted, Offered, TlsInfo};
pub use hangup::Hangup;

use crate::address::Address;
use crate::buffers;
use crate::timer::{Deadline, Elapsed};
use bytes::BufMut;
use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// With the other end's address, which the kernel forgets once the connection is dead.
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
    Tls(Box<Encrypted>),
}

impl Stream {
    pub fn peer(&self) -> Address {
        match self {
            Stream::Tcp(_, peer) => Address::Tcp(*peer),
            Stream::Unix(socket) => Address::Unix(path_of(socket.peer_addr())),
            Stream::Tls(encrypted) => encrypted.transport().peer(),
        }
    }

    /// Asks the kernel. Fails if the connection is dead.
    pub fn local(&self) -> io::Result<Address> {
        match self {
            Stream::Tcp(socket, _) => socket.local_addr().map(Address::Tcp),
            Stream::Unix(socket) => Ok(Address::Unix(path_of(socket.local_addr()))),
            Stream::Tls(encrypted) => encrypted.transport().local(),
        }
    }

    /// `None` on a plain connection.
    pub fn tls(&self) -> Option<&TlsInfo> {
        match self {
            Stream::Tls(encrypted) => Some(encrypted.info()),
            _ => None,
        }
    }

    /// TCP_NODELAY; no-op on a unix socket.
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        match self {
            Stream::Tcp(socket, _) => socket.set_nodelay(on),
            Stream::Unix(_) => Ok(()),
            Stream::Tls(encrypted) => encrypted.transport().set_nodelay(on),
        }
    }

    /// Ready when a read may return bytes, the end or an error. It may still find nothing: a connection just
    /// accepted counts as readable until it was tried, and on TLS part of a record may have come. So use
    /// [`Stream::read_buffer`] rather than hold a buffer while waiting.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(socket, _) => socket.poll_read_ready(context),
            Stream::Unix(socket) => socket.poll_read_ready(context),
            Stream::Tls(encrypted) if encrypted.has_plaintext() => Poll::Ready(Ok(())),
            Stream::Tls(encrypted) => encrypted.transport().poll_readable(context),
        }
    }

    /// Fails as [`Elapsed`] at the deadline.
    pub async fn readable(&self, deadline: &mut Deadline) -> io::Result<()> {
        poll_fn(|context| match self.poll_readable(context) {
            Poll::Pending => deadline.poll(context).map(|()| Err(Elapsed.into())),
            ready => ready,
        })
        .await
    }

    /// Appends at most `at_most` bytes; 0 is the end of the stream (or an `at_most` of 0). The buffer grows
    /// only if it is full, so pass one with room.
    pub fn poll_read_into(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        at_most: usize,
    ) -> Poll<io::Result<usize>> {
        if let Stream::Tcp(socket, _) = self
            && buffer.capacity() - buffer.len() <= at_most
        {
            return plain::poll_receive(socket, context, buffer);
        }
        let mut room = buffer.limit(at_most);
        // The read future keeps no state between polls, so that a fresh one each time is the same.
        pin!(self.read_buf(&mut room)).poll(context)
    }

    /// Appends at most `at_most` bytes; 0 is the end. Fails as [`Elapsed`] at the deadline.
    pub async fn read_into(
        &mut self,
        buffer: &mut Vec<u8>,
        at_most: usize,
        deadline: &mut Deadline,
    ) -> io::Result<usize> {
        poll_fn(|context| match self.poll_read_into(context, buffer, at_most) {
            Poll::Pending => deadline.poll(context).map(|()| Err(Elapsed.into())),
            ready => ready,
        })
        .await
    }

    /// At most [`buffers::SIZE`] bytes in a buffer from this thread's pool; empty at the end. Holds no buffer
    /// while there is nothing.
    pub fn poll_read_buffer(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        let mut buffer = buffers::take();
        match self.poll_read_into(context, &mut buffer, buffers::SIZE) {
            Poll::Ready(Ok(count)) if count > 0 => Poll::Ready(Ok(buffer)),
            other => {
                buffers::give(buffer);
                other.map_ok(|_| Vec::new())
            }
        }
    }

    /// Waits without a buffer, see [`Stream::poll_read_buffer`]: for a connection that may idle. Return the
    /// buffer with [`buffers::give`]. Fails as [`Elapsed`] at the deadline.
    pub async fn read_buffer(&mut self, deadline: &mut Deadline) -> io::Result<Vec<u8>> {
        poll_fn(|context| match self.poll_read_buffer(context) {
            Poll::Pending => deadline.poll(context).map(|()| Err(Elapsed.into())),
            ready => ready,
        })
        .await
    }

    /// Ends our direction: the TLS close alert if any, then FIN. Reading continues.
    pub async fn shutdown_write(&mut self) -> io::Result<()> {
        self.shutdown().await
    }

    /// Whether the socket took bytes since the last call, if a write's result does not show it: a TLS session
    /// keeps records back.
    pub(crate) fn has_moved(&self) -> bool {
        match self {
            Stream::Tcp(..) | Stream::Unix(_) => false,
            Stream::Tls(encrypted) => encrypted.has_moved(),
        }
    }

    /// Whether bytes are unread: closing the socket now would reset the connection. Asks the kernel.
    pub fn has_unread(&self) -> bool {
        let waits = |socket: BorrowedFd<'_>| {
            recv(socket, &mut [0u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT)
                .is_ok_and(|(_, count)| count > 0)
        };
        match self {
            Stream::Tcp(socket, _) => waits(socket.as_fd()),
            Stream::Unix(socket) => waits(socket.as_fd()),
            Stream::Tls(encrypted) => encrypted.has_plaintext() || encrypted.transport().has_unread(),
        }
    }

    /// The first unread bytes, which stay unread; none under TLS. Asks the kernel.
    pub(crate) fn peek(&self, into: &mut [u8]) -> usize {
        let peek = |socket: BorrowedFd<'_>| {
            recv(socket, into, RecvFlags::PEEK | RecvFlags::DONTWAIT).map_or(0, |(_, count)| count)
        };
        match self {
            Stream::Tcp(socket, _) => peek(socket.as_fd()),
            Stream::Unix(socket) => peek(socket.as_fd()),
            Stream::Tls(_) => 0,
        }
    }

    /// Whether [`Stream::poll_write_with_file`] can be used: the kernel writes, not a cipher of ours.
    pub fn takes_files(&self) -> bool {
        matches!(self, Stream::Tcp(..))
    }

    /// Writes `head` and a part of a file, whose pages are sent without copying: two system calls. Returns
    /// how many bytes of both the socket took. 0 means that the file is shorter.
    pub fn poll_write_with_file(
        &self,
        context: &mut Context<'_>,
        head: &[u8],
        file: &impl AsFd,
        part: Range<u64>,
    ) -> Poll<io::Result<usize>> {
        let Stream::Tcp(socket, _) = self else { return Poll::Ready(Ok(0)) };
        let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
        let is_full = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        loop {
            ready!(socket.poll_write_ready(context))?;
            let mut sent = 0;
            if !head.is_empty() {
                match socket.try_io(Interest::WRITABLE, || Ok(send(socket, head, flags)?)) {
                    Err(error) if is_full(&error) => continue,
                    outcome => sent = outcome?,
                }
            }
            let (mut offset, mut full) = (part.start, sent < head.len());
            while !full && offset < part.end {
                let left = usize::try_from(part.end - offset).unwrap_or(usize::MAX);
                match socket
                    .try_io(Interest::WRITABLE, || Ok(sendfile(socket, file, Some(&mut offset), left)?))
                {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) if is_full(&error) => full = true,
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            let written = sent + (offset - part.start) as usize;
            if written > 0 || !full {
                return Poll::Ready(Ok(written));
            }
        }
    }

    /// Writes what the kernel accepts at once, without waiting. 0 also on failure, which the next write
    /// reports, and if it is not the kernel that writes.
    pub fn write_now(&self, parts: &[IoSlice<'_>]) -> usize {
        match self {
            Stream::Tcp(socket, _) => plain::send_now(socket, parts),
            Stream::Unix(_) | Stream::Tls(_) => 0,
        }
    }

    /// Acknowledges now instead of waiting for data to send along (TCP_QUICKACK), for when the peer is known
    /// to wait; the kernel falls back by itself.
    pub fn acknowledge_now(&self) {
        if let Stream::Tcp(tcp, _) = self {
            // Without it the peer waits for 40 ms; nothing is lost.
            _ = rustix::net::sockopt::set_tcp_quickack(tcp, true);
        }
    }

    /// Whether nothing has come since the last read, not even the end: a pooled connection that may be
    /// reused. Never waits and makes no system call while the runtime knows of nothing. Consumes what did
    /// come, so a connection that is not quiet must be closed.
    pub fn is_quiet(&self) -> bool {
        let nothing =
            |read: io::Result<usize>| matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        match self {
            Stream::Tcp(socket, _) => nothing(socket.try_read(&mut [0])),
            Stream::Unix(socket) => nothing(socket.try_read(&mut [0])),
            Stream::Tls(encrypted) => !encrypted.has_plaintext() && encrypted.transport().is_quiet(),
        }
    }

    /// [`Stream::is_quiet`], by the kernel's word: what came a moment ago counts too. Consumes nothing.
    pub fn is_silent(&self) -> bool {
        let silent = |socket: BorrowedFd<'_>| {
            matches!(recv(socket, &mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT), Err(Errno::AGAIN))
        };
        match self {
            Stream::Tcp(socket, _) => silent(socket.as_fd()),
            Stream::Unix(socket) => silent(socket.as_fd()),
            Stream::Tls(encrypted) => !encrypted.has_plaintext() && encrypted.transport().is_silent(),
        }
    }

    /// Closing becomes a reset (SO_LINGER of 0, and no TLS close alert), so that it is not mistaken for the
    /// end of a complete body.
    pub fn reset_on_close(&self) {
        match self {
            // Where the option cannot be set the connection is dead already.
            Stream::Tcp(socket, _) => drop(socket.set_zero_linger()),
            Stream::Unix(_) => {}
            Stream::Tls(encrypted) => encrypted.transport().reset_on_close(),
        }
    }

    /// For messages and per-socket facts; it stays owned by the stream.
    pub fn raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

fn path_of(address: io::Result<tokio::net::unix::SocketAddr>) -> Option<std::path::PathBuf> {
    address.ok()?.as_pathname().map(std::path::Path::to_path_buf)
}

impl From<UnixStream> for Stream {
    fn from(socket: UnixStream) -> Self {
        Stream::Unix(socket)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(socket, _) => socket.as_fd(),
            Stream::Unix(socket) => socket.as_fd(),
            Stream::Tls(encrypted) => encrypted.transport().as_fd(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(socket, _) => Pin::new(socket).poll_read(context, buffer),
            Stream::Unix(socket) => Pin::new(socket).poll_read(context, buffer),
            Stream::Tls(encrypted) => Pin::new(encrypted.session()).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(socket, _) => plain::poll_send(socket, context, bytes),
            Stream::Unix(socket) => Pin::new(socket).poll_write(context, bytes),
            Stream::Tls(encrypted) => Pin::new(encrypted.session()).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(socket, _) => Pin::new(socket).poll_write_vectored(context, parts),
            Stream::Unix(socket) => Pin::new(socket).poll_write_vectored(context, parts),
            Stream::Tls(encrypted) => Pin::new(encrypted.session()).poll_write_vectored(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            // The kernel flushes sockets.
            Stream::Tcp(..) | Stream::Unix(_) => Poll::Ready(Ok(())),
            Stream::Tls(encrypted) => Pin::new(encrypted.session()).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(socket, _) => Pin::new(socket).poll_shutdown(context),
            Stream::Unix(socket) => Pin::new(socket).poll_shutdown(context),
            Stream::Tls(encrypted) => Pin::new(encrypted.session()).poll_shutdown(context),
        }
    }
}
