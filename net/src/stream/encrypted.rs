//! The TLS kind of stream: the session, and what its handshake agreed on.
//!
//! On the heap, because it is ten times the size of a plain one. Made by `tls` only, after a whole handshake.

use super::Stream;
use rustls_pki_types::CertificateDer;
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsStream;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsInfo {
    /// `$ssl_protocol`: `TLSv1.2` or `TLSv1.3`.
    pub protocol: &'static str,
    /// `$ssl_cipher`, by OpenSSL's name.
    pub cipher: &'static str,
    /// `$ssl_server_name` (SNI), in lower case.
    pub server_name: Option<Box<str>>,
    /// `$ssl_alpn_protocol`: `h2` or `http/1.1`; empty if the client named none.
    pub alpn: &'static str,
    /// `$ssl_curve`, by OpenSSL's name.
    pub group: &'static str,
    /// `$ssl_session_reused`.
    pub resumed: bool,
    /// The client's certificates of this handshake, or of the one its session began with; its own first.
    pub certificates: Option<Arc<[CertificateDer<'static>]>>,
    pub offered: Option<Arc<Offered>>,
}

impl TlsInfo {
    /// Of a hypothetical connection.
    pub fn imagined(server_name: Option<Box<str>>) -> Self {
        TlsInfo {
            protocol: "TLSv1.3",
            cipher: "",
            server_name,
            alpn: "",
            group: "",
            resumed: false,
            certificates: None,
            offered: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// `$ssl_ciphers`.
    pub ciphers: Box<str>,
    /// `$ssl_curves`.
    pub groups: Box<str>,
    /// `$ssl_sigalgs`.
    pub schemes: Box<str>,
    /// `$ssl_sigalg`, the server's; empty if it did not sign, as in a resumed session.
    pub scheme: &'static str,
    /// `$ssl_client_sigalg`.
    pub client_scheme: &'static str,
    /// `$ssl_session_id`, constant while the session is resumed.
    pub session: [u8; 32],
}

#[derive(Debug)]
pub struct Encrypted {
    session: TlsStream<Transport>,
    info: TlsInfo,
}

impl Encrypted {
    pub(crate) fn new(session: TlsStream<Transport>, info: TlsInfo) -> Self {
        Encrypted { session, info }
    }

    pub(super) fn info(&self) -> &TlsInfo {
        &self.info
    }

    pub(super) fn session(&mut self) -> &mut TlsStream<Transport> {
        &mut self.session
    }

    pub(super) fn transport(&self) -> &Stream {
        &self.session.get_ref().0.stream
    }

    /// Since the last call.
    pub(super) fn has_moved(&self) -> bool {
        self.session.get_ref().0.moved.take()
    }

    /// Whether decrypted bytes, or the end, wait inside the session.
    pub(super) fn has_plaintext(&self) -> bool {
        !self.session.get_ref().1.wants_read()
    }
}

/// The plain stream, and whether it took any bytes, which the session does not report.
#[derive(Debug)]
pub(crate) struct Transport {
    stream: Stream,
    moved: Cell<bool>,
}

impl Transport {
    pub(crate) fn new(stream: Stream) -> Self {
        Transport { stream, moved: Cell::new(false) }
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    fn note(&self, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(1..)) = wrote {
            self.moved.set(true);
        }
        wrote
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.note(wrote)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = Pin::new(&mut this.stream).poll_write_vectored(context, parts);
        this.note(wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
