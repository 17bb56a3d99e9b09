//! A socket that never waits, plain or under TLS: one type for every connection of the load.
//!
//! Owned here: connecting, and moving bytes between a socket, rustls and the caller's buffer. What the bytes mean is
//! `exchange`'s; when to try again is `drive`'s.

mod tls;

pub use tls::{NoTrust, client_configuration};

use crate::plan::Way;
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A connection's socket and, where it has any, its TLS.
pub struct Stream {
    socket: OwnedFd,
    tls: Option<Box<ClientConnection>>,
}

impl Stream {
    /// Begins to connect; the socket is writable once that has ended, well or not.
    ///
    /// # Errors
    /// No socket could be had, or the connection was refused at once.
    pub fn connect(address: &SocketAddr, way: &Way) -> io::Result<Stream> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let open = |family| net::socket_with(family, SocketType::STREAM, flags, None);
        let (socket, begun) = if let Some(path) = &way.unix_socket {
            let socket = open(AddressFamily::UNIX)?;
            let begun = net::connect(&socket, &SocketAddrUnix::new(&**path)?);
            (socket, begun)
        } else {
            let socket = open(if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 })?;
            sockopt::set_tcp_nodelay(&socket, true)?;
            let begun = net::connect(&socket, address);
            (socket, begun)
        };
        match begun {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(Stream { socket, tls: None }),
            Err(error) => Err(error.into()),
        }
    }

    /// How connecting ended.
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn connected(&self) -> io::Result<()> {
        match sockopt::socket_error(&self.socket)? {
            Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// TLS begins on the connected socket.
    ///
    /// # Errors
    /// rustls refuses the configuration.
    pub fn begin_tls(&mut self, with: &Arc<ClientConfig>, name: &ServerName<'static>) -> io::Result<()> {
        let tls = ClientConnection::new(Arc::clone(with), name.clone()).map_err(io::Error::other)?;
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    /// Goes on with the handshake; whether it is over.
    ///
    /// # Errors
    /// TLS could not be agreed on, or the connection ended.
    pub fn shake_hands(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.is_handshaking() {
            if tls.wants_write() {
                match tls.write_tls(&mut Transport(self.socket.as_fd())) {
                    Ok(_) => continue,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                    Err(error) => return Err(error),
                }
            }
            match tls.read_tls(&mut Transport(self.socket.as_fd())) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            if let Err(error) = tls.process_new_packets() {
                // The alert tells the server why; that it arrives is not promised.
                _ = tls.write_tls(&mut Transport(self.socket.as_fd()));
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
        self.flush()?;
        Ok(true)
    }

    /// Whether HTTP/2 was agreed on; plain connections have it by prior knowledge (RFC 9113 §3.3).
    pub fn is_http2(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| tls.alpn_protocol() == Some(b"h2"))
    }

    /// Reads what is there; 0 is the end. A read that fills less than the buffer of a plain stream has emptied it.
    ///
    /// # Errors
    /// `WouldBlock` where nothing is there; `UnexpectedEof` where TLS ended without saying so.
    #[inline]
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return Ok(net::recv(&self.socket, into, RecvFlags::empty())?.0);
        };
        loop {
            match tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            // A 0 here is the end of the socket, which the reader above turns into the right end or error.
            tls.read_tls(&mut Transport(self.socket.as_fd()))?;
            tls.process_new_packets().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
    }

    /// Whether a read of `length` bytes into `room` may have left some behind.
    #[inline]
    pub fn may_have_more(&self, length: usize, room: usize) -> bool {
        length == room || self.tls.is_some()
    }

    /// Sends what fits; `WouldBlock` where nothing does.
    ///
    /// # Errors
    /// The connection is no more.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return Ok(net::send(&self.socket, bytes, SendFlags::NOSIGNAL)?);
        };
        let taken = tls.writer().write(bytes)?;
        self.flush()?;
        if taken == 0 && !bytes.is_empty() { Err(ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    /// Sends what TLS still holds; whether all is gone.
    ///
    /// # Errors
    /// The connection is no more.
    pub fn flush(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut Transport(self.socket.as_fd())) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket as rustls wants it.
struct Transport<'a>(BorrowedFd<'a>);

impl Read for Transport<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(net::recv(self.0, into, RecvFlags::empty())?.0)
    }
}

impl Write for Transport<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(net::send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
