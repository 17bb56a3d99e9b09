//! A socket that never waits, plain or under TLS: one type for every connection of the load.
//!
//! Owned here: connecting, and moving bytes between a socket, rustls and the caller's buffer. What the bytes mean is
//! `exchange`'s; when to try again is `drive`'s. Over TLS one protocol alone is offered, HTTP/1.1 or HTTP/2, and each connection
//! makes a full handshake as a new client does.

use crate::exchange::{Asked, Exchange};
use crate::plan::{PlanError, Way};
use millstream_net::tls::{Anybody, system_authorities};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType,
    sockopt,
};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;

/// What TLS begins with: the configuration, and the server's name.
pub type Secure<'a> = (&'a Arc<ClientConfig>, &'a ServerName<'static>);

pub struct Stream {
    /// One of the file system is read and written alike.
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
    is_connected: bool,
}

impl Stream {
    /// Begins to connect; the socket is writable once that has ended, well or not. Errors: no socket could be had, the
    /// connection was refused at once, or rustls refuses the configuration.
    pub fn connect(address: &SocketAddr, way: &Way, secure: Option<Secure<'_>>) -> io::Result<Stream> {
        let begin = |(with, name): Secure<'_>| ClientConnection::new(Arc::clone(with), name.clone());
        let tls = secure.map(begin).transpose().map_err(io::Error::other)?.map(Box::new);
        let to: SocketAddrAny = match &way.unix_socket {
            Some(path) => SocketAddrUnix::new(&**path)?.into(),
            None => (*address).into(),
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(to.address_family(), SocketType::STREAM, flags, None)?;
        if to.address_family() != AddressFamily::UNIX {
            sockopt::set_tcp_nodelay(&socket, true)?;
        }
        match net::connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {
                Ok(Stream { socket: socket.into(), tls, is_connected: false })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Goes on, first when the socket is writable, then with the handshake. It is over once the stream [is
    /// open](Stream::is_open). Errors: there is no connection, or it ended, or TLS could not be agreed on.
    pub fn advance(&mut self) -> io::Result<()> {
        if !self.is_connected {
            self.socket.take_error()?.map_or(Ok(()), Err)?;
            self.is_connected = true;
        }
        while let Some(tls) = self.tls.as_mut().filter(|tls| tls.is_handshaking()) {
            if let Err(error) = tls.complete_io(&mut self.socket) {
                return if error.kind() == ErrorKind::WouldBlock { Ok(()) } else { Err(error) };
            }
        }
        self.flush()
    }

    pub fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Whether something can be sent: it is connected, and TLS is agreed on.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.is_connected && self.tls.as_ref().is_none_or(|tls| !tls.is_handshaking())
    }

    /// Whether HTTP/2 was agreed on; plain connections have it by prior knowledge (RFC 9113 §3.3).
    pub fn is_http2(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| tls.alpn_protocol() == Some(b"h2"))
    }

    /// Reads what is there; 0 is the end. A read that fills less than the buffer of a plain stream has emptied it. Errors:
    /// `WouldBlock` where nothing is there; `UnexpectedEof` where TLS ended without saying so.
    #[inline]
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // By rustix, which calls the system without the library's detour, as this is where a plain load's time goes.
        let Some(tls) = &mut self.tls else {
            return Ok(net::recv(&self.socket, into, RecvFlags::empty())?.0);
        };
        loop {
            match tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            // A 0 here is the end of the socket, which the reader above turns into the right end or error.
            tls.read_tls(&mut self.socket)?;
            tls.process_new_packets().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
    }

    /// Whether a read of `length` bytes into `room` may have left some behind.
    #[inline]
    pub fn may_have_more(&self, length: usize, room: usize) -> bool {
        length == room || self.tls.is_some()
    }

    /// Sends what fits; `WouldBlock` where nothing does.
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return Ok(net::send(&self.socket, bytes, SendFlags::NOSIGNAL)?);
        };
        let taken = tls.writer().write(bytes)?;
        self.flush()?;
        if taken == 0 && !bytes.is_empty() { Err(ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.wants_write() {
            if let Err(error) = tls.write_tls(&mut self.socket) {
                return if error.kind() == ErrorKind::WouldBlock { Ok(()) } else { Err(error) };
            }
        }
        Ok(())
    }

    /// Whether TLS holds what the socket did not take.
    pub fn is_held_up(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Sends what waits on a connection until the socket takes no more: how many bytes went out, and how many requests are
    /// whole with them. An error is that the connection is no more; what went out before it is told, too.
    #[inline]
    pub fn send_all<'a, Protocol: Exchange>(
        &mut self,
        exchange: &mut Protocol,
        asked: &impl Asked<'a>,
        room: &mut Protocol::Room,
    ) -> (usize, usize, io::Result<()>) {
        let (mut written, mut whole) = (0, 0);
        loop {
            let bytes = exchange.unsent(asked, room);
            if bytes.is_empty() {
                // TLS may hold the end of what it has taken.
                return (written, whole, self.flush());
            }
            match self.send(bytes) {
                Ok(count) => {
                    written += count;
                    whole += exchange.sent(count, asked);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return (written, whole, Ok(())),
                Err(error) => return (written, whole, Err(error)),
            }
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The configuration of all connections of a run. With `verify`, trusted is what the file in `SSL_CERT_FILE` or the system's
/// bundle lists. With `http2` that is what is offered (RFC 9113 §3.2), else HTTP/1.1. Errors: `verify` is asked for, and
/// there is no such list.
pub fn client_configuration(verify: bool, http2: bool) -> Result<Arc<ClientConfig>, PlanError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> =
        if verify { trusted(&provider)? } else { Arc::new(Anybody::of(&provider)) };
    let mut configuration = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| PlanError(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    configuration.alpn_protocols = vec![if http2 { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
    configuration.resumption = Resumption::disabled();
    Ok(Arc::new(configuration))
}

/// The same file with its whole path, for a program that is started elsewhere. Errors: there is none.
pub fn absolute_authorities() -> Result<PathBuf, PlanError> {
    let file = authorities()?;
    std::path::absolute(&file).map_err(|error| PlanError(format!("{}: {error}", file.display())))
}

/// The file of the authorities that are trusted: what `SSL_CERT_FILE` names, or the system's. Errors: there is none.
fn authorities() -> Result<PathBuf, PlanError> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let none = "no list of trusted certificate authorities was found: specify one in SSL_CERT_FILE";
    let file = named.or_else(|| system_authorities().map(PathBuf::from));
    file.ok_or_else(|| PlanError(none.to_owned()))
}

fn trusted(provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, PlanError> {
    let file = authorities()?;
    let unreadable = |error: &dyn fmt::Display| PlanError(format!("{}: {error}", file.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(&file).map_err(|error| unreadable(&error))? {
        // Old bundles hold some that nobody can read any more; the rest is still good.
        _ = roots.add(certificate.map_err(|error| unreadable(&error))?);
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| unreadable(&error))
}
