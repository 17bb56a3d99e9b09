//! The handshake: from a plain stream to an encrypted one, with the configuration that the client's SNI
//! chooses.
//!
//! No timeout of its own: the caller holds the deadline (`client_header_timeout`) and drops the future. The
//! handshake's state is on the heap and freed at its end, so that it adds nothing to an idle connection's
//! task.

use super::{Challenges, ServerTls, ciphers, evaluated, schemes};
use crate::stream::{Encrypted, Offered, Stream, TlsInfo, Transport};
use aws_lc_rs::rand;
use millstream_conf::model::Template;
use rustix::net::RecvFlags;
use rustls::server::{Acceptor, ClientHello, ServerConnection};
use rustls::sign::CertifiedKey;
use rustls::{CommonState, HandshakeKind, ProtocolVersion, ServerConfig, SignatureScheme};
use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncWriteExt, Interest};
use tokio_rustls::{LazyConfigAcceptor, StartHandshake};

/// A record with the fatal alert `unrecognized_name` (RFC 6066 §3), before anything is agreed on.
const UNRECOGNISED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// The same with `internal_error` (RFC 8446 §6.2).
const NO_CERTIFICATE: [u8; 7] = [21, 3, 3, 0, 2, 2, 80];

/// Why a handshake gave no encrypted stream.
#[derive(Debug)]
pub enum HandshakeError {
    /// The client speaks HTTP without TLS: the connection as it came, nothing read, for nginx's answer
    /// "400 The plain HTTP request was sent to HTTPS port".
    PlainHttp(Stream),
    /// The client is an authority that looks whose a name is; it has been shown (RFC 8737 §3), and there is nothing more to say.
    Challenged,
    /// The certificate that its name comes to by variables cannot be had, which is no fault of the client; it has been told.
    NoCertificate(io::Error),
    /// Anything else; the alert has been sent where there is one.
    Failed(io::Error),
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::PlainHttp(_) => f.write_str("client sent plain HTTP request to HTTPS port"),
            HandshakeError::Challenged => f.write_str("the connection was the response to an ACME challenge"),
            HandshakeError::Failed(error) if is_about_protocols(error) => f.write_str(
                "TLS handshake failed: the client offers no supported protocol (ALPN; \"h2\" requires \"http2 on;\")",
            ),
            HandshakeError::NoCertificate(error) | HandshakeError::Failed(error) => {
                write!(f, "TLS handshake failed: {error}")
            }
        }
    }
}

fn is_about_protocols(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::NoApplicationProtocol))
}

impl std::error::Error for HandshakeError {}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        HandshakeError::Failed(error)
    }
}

/// Makes encrypted streams; `choose` gives the configuration for the name a client asks for (lower case),
/// `None` to refuse the handshake.
#[derive(Debug, Clone)]
pub struct TlsAcceptor<C> {
    choose: C,
    keeps_offered: bool,
    offers_http2: bool,
    challenges: Option<Arc<Challenges>>,
}

impl<C> TlsAcceptor<C>
where
    C: Fn(Option<&str>) -> Option<Arc<ServerTls>>,
{
    /// With that way of choosing; `keeps_offered`: somebody wants to know what clients offer.
    pub fn new(choose: C, keeps_offered: bool) -> Self {
        TlsAcceptor { choose, keeps_offered, offers_http2: false, challenges: None }
    }

    /// The same, which answers handshakes of these challenges.
    #[must_use]
    pub fn answering(self, challenges: Arc<Challenges>) -> Self {
        TlsAcceptor { challenges: Some(challenges), ..self }
    }

    /// The same, with HTTP/2 for clients to choose whatever their server says.
    #[must_use]
    pub fn offering_http2(self, offers_http2: bool) -> Self {
        TlsAcceptor { offers_http2, ..self }
    }

    /// Performs the handshake.
    pub async fn accept(&self, stream: Stream) -> Result<Stream, HandshakeError> {
        self.accept_as(stream, |_, _| Vec::new()).await
    }

    /// Performs the handshake; `say` knows what a text with variables comes to for the name that the client asks for.
    pub async fn accept_as(
        &self,
        stream: Stream,
        say: impl Fn(&Template, Option<&str>) -> Vec<u8>,
    ) -> Result<Stream, HandshakeError> {
        Box::pin(self.handshake(stream, say)).await
    }

    async fn handshake(
        &self,
        stream: Stream,
        say: impl Fn(&Template, Option<&str>) -> Vec<u8>,
    ) -> Result<Stream, HandshakeError> {
        if first_byte(&stream).await?.is_some_and(|byte| byte.is_ascii_uppercase()) {
            return Err(HandshakeError::PlainHttp(stream));
        }
        let transport = Transport::new(stream);
        let start: StartHandshake<Transport> =
            LazyConfigAcceptor::new(Acceptor::default(), transport).await?;
        let name = start.client_hello().server_name().map(str::to_ascii_lowercase);
        let open = self.challenges.as_ref();
        if let Some(config) = open.and_then(|open| open.handshake(&start.client_hello(), name.as_deref())) {
            start.into_stream(config).await?.shutdown().await?;
            return Err(HandshakeError::Challenged);
        }
        let Some(server) = (self.choose)(name.as_deref()) else {
            let why = io::Error::new(io::ErrorKind::PermissionDenied, "no server for this name");
            refuse(start.io, UNRECOGNISED_NAME).await;
            return Err(why.into());
        };
        if server.is_waiting() {
            let name = name.as_deref().unwrap_or("no name");
            let why = format!("the certificate of this server has not been issued yet, for {name}");
            refuse(start.io, NO_CERTIFICATE).await;
            return Err(io::Error::other(why).into());
        }
        let known = server.config(&start.client_hello(), self.offers_http2 || server.offers_http2);
        let config = match &server.evaluated {
            None => known,
            Some(evaluated) => {
                let sources = evaluated.sources(|text| say(text, name.as_deref()));
                match evaluated::config(&server, known, sources).await {
                    Ok(config) => config,
                    Err(error) => {
                        refuse(start.io, NO_CERTIFICATE).await;
                        return Err(HandshakeError::NoCertificate(io::Error::other(error)));
                    }
                }
            }
        };
        let offered = self.keeps_offered.then(|| offered(&start.client_hello()));
        let signing = self.keeps_offered.then(|| Signing::new(&config, &start)).flatten();
        let mut called = NAMELESS;
        let mut handshake = start.into_stream_with(config, |session| {
            if offered.is_some() {
                called = call(session);
            }
        });
        let mut by_client = None;
        let driven = poll_fn(|context| {
            let polled = Pin::new(&mut handshake).poll(context);
            by_client = schemes::noted().or(by_client);
            polled
        });
        let session = driven.await?;
        let connection = session.get_ref().1;
        let mut info = info(connection, name);
        info.certificates = connection.peer_certificates().map(|chain| {
            chain.iter().map(|certificate| certificate.clone().into_owned()).collect::<Vec<_>>().into()
        });
        let named = |scheme: Option<SignatureScheme>| scheme.and_then(schemes::name).unwrap_or_default();
        let by_server = signing.filter(|_| !info.resumed).and_then(|signing| signing.scheme(connection));
        info.offered = offered.map(|offered| {
            let (scheme, client_scheme) = (named(by_server), named(by_client));
            Arc::new(Offered { session: called, scheme, client_scheme, ..offered })
        });
        Ok(Stream::Tls(Box::new(Encrypted::new(session.into(), info))))
    }
}

async fn refuse(mut transport: Transport, alert: [u8; 7]) {
    // The client may be gone; it is refused all the same.
    _ = transport.write_all(&alert).await;
}

/// The first byte, left where it is; `None` at the end of the stream. A handshake record starts with 0x16.
async fn first_byte(stream: &Stream) -> io::Result<Option<u8>> {
    let peek = || {
        let mut byte = [0; 1];
        let (count, _) = rustix::net::recv(stream.as_fd(), &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
        Ok((count > 0).then_some(byte[0]))
    };
    loop {
        poll_fn(|context| stream.poll_readable(context)).await?;
        let result = match stream {
            Stream::Tcp(socket, _) => socket.try_io(Interest::READABLE, peek),
            Stream::Unix(socket) => socket.try_io(Interest::READABLE, peek),
            Stream::Tls(_) => return Err(io::ErrorKind::InvalidInput.into()),
        };
        match result {
            // Readiness was stale; it is cleared now.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
    }
}

/// What a client offers, by OpenSSL's names where they are known.
fn offered(hello: &ClientHello<'_>) -> Offered {
    let join = |names: Vec<Cow<'static, str>>| names.join(":").into_boxed_str();
    let numbered = |number: u16| Cow::Owned(format!("0x{number:04x}"));
    let ciphers = hello.cipher_suites().iter().map(|suite| match ciphers::any_name(*suite) {
        Some(name) => Cow::Borrowed(name),
        None => numbered((*suite).into()),
    });
    let groups = hello.named_groups().unwrap_or_default().iter().map(|group| match ciphers::group(*group) {
        "" => numbered((*group).into()),
        name => Cow::Borrowed(name),
    });
    let schemes = hello.signature_schemes().iter().map(|scheme| match schemes::name(*scheme) {
        Some(name) => Cow::Borrowed(name),
        None => numbered((*scheme).into()),
    });
    Offered {
        ciphers: join(ciphers.collect()),
        groups: join(groups.collect()),
        schemes: join(schemes.collect()),
        scheme: "",
        client_scheme: "",
        session: NAMELESS,
    }
}

/// The key that a client's handshake is signed with, and what the client lets it be signed by.
struct Signing {
    key: Arc<CertifiedKey>,
    offered: Vec<SignatureScheme>,
}

impl Signing {
    fn new(config: &ServerConfig, start: &StartHandshake<Transport>) -> Option<Signing> {
        let key = config.cert_resolver.resolve(start.client_hello())?;
        Some(Signing { key, offered: start.client_hello().signature_schemes().to_vec() })
    }

    fn scheme(&self, connection: &CommonState) -> Option<SignatureScheme> {
        let is_tls13 = connection.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        schemes::taken(&self.key, &self.offered, is_tls13)
    }
}

/// Of a session that began when names were not wanted.
const NAMELESS: [u8; 32] = [0; 32];

/// Gives a session its name, which goes with it from one resumption to the next. The library has none that it tells.
fn call(session: &mut ServerConnection) -> [u8; 32] {
    let mut name = NAMELESS;
    match session.received_resumption_data() {
        Some(known) if known.len() == name.len() => name.copy_from_slice(known),
        // Without random bytes there would have been no handshake.
        _ => _ = rand::fill(&mut name),
    }
    session.set_resumption_data(&name);
    name
}

pub(super) fn info(connection: &CommonState, name: Option<String>) -> TlsInfo {
    TlsInfo {
        protocol: match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "TLSv1.2",
        },
        cipher: connection.negotiated_cipher_suite().map_or("", |suite| ciphers::name(suite.suite())),
        server_name: name.map(String::into_boxed_str),
        alpn: match connection.alpn_protocol() {
            Some(super::HTTP_2) => "h2",
            Some(_) => "http/1.1",
            None => "",
        },
        group: connection.negotiated_key_exchange_group().map_or("", |group| ciphers::group(group.name())),
        certificates: None,
        offered: None,
        resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
    }
}
