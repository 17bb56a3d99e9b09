//! The TLS kind of stream: the session, and what its handshake agreed on.
//!
//! On the heap, because it is ten times the size of a plain one. Made by `tls` only, after a whole handshake.

use super::Stream;
use rustls::server::ServerConnection;
use tokio_rustls::server::TlsStream;

/// What a TLS handshake agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsInfo {
    /// `$ssl_protocol`: `TLSv1.2` or `TLSv1.3`.
    pub protocol: &'static str,
    /// `$ssl_cipher`, by OpenSSL's name.
    pub cipher: &'static str,
    /// `$ssl_server_name`: the name the client asked for (SNI), in lower case.
    pub server_name: Option<Box<str>>,
    /// `$ssl_session_reused`.
    pub resumed: bool,
}

/// A TLS session over a plain stream.
#[derive(Debug)]
pub struct Encrypted {
    session: TlsStream<Stream>,
    info: TlsInfo,
}

impl Encrypted {
    pub(crate) fn new(session: TlsStream<Stream>, info: TlsInfo) -> Self {
        Encrypted { session, info }
    }

    pub(super) fn info(&self) -> &TlsInfo {
        &self.info
    }

    pub(super) fn session(&mut self) -> &mut TlsStream<Stream> {
        &mut self.session
    }

    pub(super) fn transport(&self) -> &Stream {
        self.session.get_ref().0
    }

    pub(super) fn into_transport(self) -> Stream {
        self.session.into_inner().0
    }

    /// Whether decrypted bytes, or the end, wait inside the session.
    pub(super) fn has_plaintext(&self) -> bool {
        let connection: &ServerConnection = self.session.get_ref().1;
        !connection.wants_read()
    }
}
