//! The system calls of a plain TCP connection, made without the C library.
//!
//! Its `recv` and `send` are points at which a thread may be cancelled, and pay for that on every call; every request
//! makes both. As the runtime's own calls do, a short count tells it that the socket has no more for now, so that the next
//! poll waits for the kernel's word and does not ask it in vain.

use rustix::buffer::spare_capacity;
use rustix::io::writev;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::net::TcpStream;

const LEAST_ROOM: usize = 64;
/// Of one call: Linux's `IOV_MAX`.
const MOST_PARTS: usize = 1024;

/// As much as the buffer has room for; 0 is the end. A full buffer grows a little.
pub(super) fn poll_receive(
    socket: &TcpStream,
    context: &mut Context<'_>,
    buffer: &mut Vec<u8>,
) -> Poll<io::Result<usize>> {
    if buffer.len() == buffer.capacity() {
        buffer.reserve(LEAST_ROOM);
    }
    let room = buffer.capacity() - buffer.len();
    loop {
        ready!(socket.poll_read_ready(context))?;
        let call = || recv(socket, spare_capacity(buffer), RecvFlags::empty()).map(|(_, count)| count);
        if let Some(outcome) = attempt(socket, Interest::READABLE, room, call) {
            return Poll::Ready(outcome);
        }
    }
}

pub(super) fn poll_send(
    socket: &TcpStream,
    context: &mut Context<'_>,
    bytes: &[u8],
) -> Poll<io::Result<usize>> {
    loop {
        ready!(socket.poll_write_ready(context))?;
        let call = || send(socket, bytes, SendFlags::NOSIGNAL);
        if let Some(outcome) = attempt(socket, Interest::WRITABLE, bytes.len(), call) {
            return Poll::Ready(outcome);
        }
    }
}

/// At most [`MOST_PARTS`] parts, as far as the socket accepts them at once; 0 also on failure, which the next
/// send reports.
pub(super) fn send_now(socket: &TcpStream, parts: &[IoSlice<'_>]) -> usize {
    // More would make the count a short one, though the socket is not full.
    let parts = &parts[..parts.len().min(MOST_PARTS)];
    let all = parts.iter().map(|part| part.len()).sum();
    let sent = attempt(socket, Interest::WRITABLE, all, || writev(socket, parts));
    sent.and_then(Result::ok).unwrap_or(0)
}

/// A call that may move `all` bytes. `None`: the socket was not ready, and the runtime now knows.
fn attempt(
    socket: &TcpStream,
    interest: Interest,
    all: usize,
    call: impl FnOnce() -> rustix::io::Result<usize>,
) -> Option<io::Result<usize>> {
    let mut short = None;
    let outcome = socket.try_io(interest, || match call() {
        Ok(count) if (1..all).contains(&count) => {
            short = Some(count);
            Err(io::ErrorKind::WouldBlock.into())
        }
        Err(rustix::io::Errno::INTR) => Ok(None),
        outcome => Ok(Some(outcome?)),
    });
    match (short, outcome) {
        (Some(count), _) => Some(Ok(count)),
        (None, Ok(count)) => count.map(Ok),
        (None, Err(error)) if error.kind() == io::ErrorKind::WouldBlock => None,
        (None, Err(error)) => Some(Err(error)),
    }
}
