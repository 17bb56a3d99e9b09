//! TLS on both sides: to clients from `ssl_*` directives to a configuration, and from a plain stream to an
//! encrypted one.
//!
//! The protocol itself is rustls's. Here are read the PEM files, chosen the cipher suites and the
//! certificate, and sessions given their lifetime; nothing of a key is ever printed.
//! Next: `tls/held`, `tls/certificates`, `tls/ciphers`, `tls/sessions`; `stream::Encrypted` is what comes out.

mod unverified;
mod ciphers;
mod keys;
mod stamp;
mod pem;
mod held;
mod certificates;
mod compression;
mod key_log;
mod schemes;
mod certificate_issuer;
mod issued;
mod challenges;
mod usage;
mod scope;
mod revocation;
mod direct;
mod authorities;
mod clients;
mod sessions;
mod session_cache;
mod kept_pairs;
mod pair_reader;
mod evaluated;
mod acceptor;
mod anybody;
mod connector;

#[cfg(test)]
mod tests;

pub use crate::stream::{Offered, TlsInfo};
pub use acceptor::{HandshakeError, TlsAcceptor};
pub use anybody::Anybody;
pub use authorities::system_authorities;
pub use certificate_issuer::CertificateIssuer;
pub use challenges::{Challenges, OpenChallenge};
pub use clients::Clients;
pub use connector::{PlainHttp, TlsConnector};
pub use held::{Leaf, ReadAgain};
pub use issued::Issued;
pub use rustls_pki_types::CertificateDer;
pub use unverified::Unverified;

use certificates::Certificates;
use evaluated::Evaluated;
use issued::IssuedHere;
use millstream_conf::model::{ClientCertificates, PemSource, Tls, TlsGroup, TlsVersion};
use pair_reader::PairReader;
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, StoresServerSessions};
use rustls::{ServerConfig, SupportedProtocolVersion};
use session_cache::SessionCache;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// What is wrong with the TLS settings of a server.
#[derive(Debug)]
pub enum TlsError {
    /// A file cannot be read.
    Read(PathBuf, io::Error),
    /// A file is not well-formed PEM.
    Pem(PathBuf, String),
    /// A file holds no certificate.
    NoCertificate(PathBuf),
    /// A file holds no private key.
    NoKey(PathBuf),
    /// A key is of a kind or size that is not supported, or broken.
    BadKey(PathBuf, rustls::Error),
    /// The certificate of the first file is broken, or not the one for the key of the second.
    Mismatch(PathBuf, PathBuf, rustls::Error),
    /// No certificate is named.
    NoneNamed,
    /// No cipher suite is left for the offered protocols.
    NoCiphers,
    /// A file for `ssl_session_ticket_key` is not as long as a key.
    TicketKey(PathBuf),
    /// A key is kept by a password, and none is written.
    NeedsPassword(PathBuf),
    /// None of the passwords opens a key.
    WrongPassword(PathBuf),
    /// A key is kept by a cipher that is not known here.
    UnknownCipher(PathBuf, String),
    /// A file for `ssl_key_log` cannot be opened.
    KeyLog(PathBuf, io::Error),
    /// A revocation list is broken.
    BadRevocationList(PathBuf, String),
    /// The library refuses the settings.
    Library(rustls::Error),
}

/// What the library signs with.
const KEY_KINDS: &str =
    "RSA keys of 2048 to 8192 bits, ECDSA keys on P-256, P-384 and P-521, and Ed25519 keys";

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Read(file, error) => write!(f, "cannot read \"{}\": {error}", file.display()),
            TlsError::Pem(file, error) => write!(f, "\"{}\" is not well-formed PEM: {error}", file.display()),
            TlsError::NoCertificate(file) => write!(f, "\"{}\" contains no certificate", file.display()),
            TlsError::NoKey(file) => {
                write!(f, "\"{}\" contains no usable private key (PKCS#8, PKCS#1 or SEC1)", file.display())
            }
            TlsError::BadKey(file, error) => {
                let file = file.display();
                write!(f, "the private key in \"{file}\" cannot be used ({error}); supported are {KEY_KINDS}")
            }
            TlsError::Mismatch(certificate, key, rustls::Error::InconsistentKeys(_)) => write!(
                f,
                "the private key in \"{}\" does not match the certificate in \"{}\"",
                key.display(),
                certificate.display()
            ),
            TlsError::Mismatch(certificate, _, error) => {
                write!(f, "the certificate in \"{}\" cannot be used: {error}", certificate.display())
            }
            TlsError::NoneNamed => f.write_str("no \"ssl_certificate\" is defined"),
            TlsError::NoCiphers => {
                f.write_str("\"ssl_ciphers\" leaves no cipher suite for \"ssl_protocols\"")
            }
            TlsError::TicketKey(file) => {
                write!(f, "\"{}\" must be 48 or 80 bytes", file.display())
            }
            TlsError::NeedsPassword(file) => write!(
                f,
                "the private key in \"{}\" is encrypted; set ssl_password_file to a file with its password",
                file.display()
            ),
            TlsError::WrongPassword(file) => {
                write!(f, "no password decrypts the private key in \"{}\"", file.display())
            }
            TlsError::UnknownCipher(file, cipher) => write!(
                f,
                "the private key in \"{}\" is encrypted with {cipher}, which is not supported; encrypt it again with \
                 openssl pkcs8 -topk8",
                file.display()
            ),
            TlsError::KeyLog(file, error) => write!(f, "cannot open key log \"{}\": {error}", file.display()),
            TlsError::BadRevocationList(file, error) => {
                write!(f, "the revocation list in \"{}\" cannot be used: {error}", file.display())
            }
            TlsError::Library(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TlsError {}

/// The TLS side of a server, ready for handshakes.
#[derive(Debug)]
pub struct ServerTls {
    /// Without HTTP/2, and with it.
    configs: [Arc<ServerConfig>; 2],
    /// The same for clients that prefer ChaCha20, where they are to have it.
    for_chacha: Option<[Arc<ServerConfig>; 2]>,
    /// Whether HTTP/2 is offered wherever the server listens.
    offers_http2: bool,
    /// What was read of its files.
    certificates: Arc<Certificates>,
    /// Its certificates, where they are known at a handshake alone.
    evaluated: Option<Evaluated>,
    /// What is issued to it.
    issued: Option<Arc<IssuedHere>>,
    /// Whether it has a certificate besides, or one that is known at a handshake.
    has_others: bool,
}

impl ServerTls {
    /// Reads the certificate and key files of a server; for start and reload only. `clients`: what it knows of its clients, where it asks them for
    /// certificates.
    pub fn read(tls: &Tls, clients: Option<Arc<Clients>>) -> Result<Arc<Self>, TlsError> {
        Self::read_with(tls, clients, None, false)
    }

    /// The same for a server to which a certificate is issued. `offers_http2`: wherever it listens its clients may choose HTTP/2.
    pub fn read_with(
        tls: &Tls,
        clients: Option<Arc<Clients>>,
        issued: Option<Arc<Issued>>,
        offers_http2: bool,
    ) -> Result<Arc<Self>, TlsError> {
        let provider = provider(tls)?;
        let passwords = pem::passwords(tls.passwords.as_deref())?;
        let is_evaluated = tls.certificates.iter().any(|(one, key)| one.is_variable() || key.is_variable());
        // Where nothing is asked for, none will ever be there.
        let is_issued = |(one, _): &(PemSource, PemSource)| *one == PemSource::Issued;
        let wants_issued = tls.certificates.iter().any(is_issued);
        let issued = wants_issued.then(|| issued.unwrap_or_else(|| Issued::new("")));
        let names_issued = issued.iter().map(|issued| issued.name().as_bytes());
        let (certificates, context) = if is_evaluated {
            // As in nginx the names stand for what is not known yet.
            let names: Vec<PathBuf> = tls.certificates.iter().map(|(one, _)| one.name()).collect();
            let names = names.iter().map(|name| name.as_os_str().as_bytes()).chain(names_issued);
            (Certificates::of(Vec::new(), &provider), sessions::context(names, clients.as_deref()))
        } else {
            let certificates = Certificates::read(tls, &passwords, &provider)?;
            let identity = certificates.identity();
            let identity = identity.iter().map(|certificate| certificate.as_ref());
            let context = sessions::context(identity.chain(names_issued), clients.as_deref());
            (certificates, context)
        };
        let certificates = Arc::new(certificates);
        let issued = issued.clone().map(IssuedHere::new);
        let has_others = !tls.certificates.iter().chain(&tls.replacing).all(is_issued);
        let evaluated = is_evaluated.then(|| Evaluated {
            // As in nginx those that are read for a connection come before those that are there for all.
            pairs: tls
                .certificates
                .iter()
                .filter(|pair| !is_issued(pair))
                .chain(&tls.replacing)
                .cloned()
                .collect(),
            reader: PairReader::new(tls.certificate_cache, passwords, provider.clone(), Arc::new),
            issued: issued.clone(),
        });
        let resolver = issued::resolver(certificates.clone(), issued.as_ref());
        let config = config(tls, provider, clients, resolver, context)?;
        let for_chacha = (tls.prioritizes_chacha && tls.prefer_server_ciphers).then(|| {
            // The first that both have is the one that such a client prefers.
            let mut config = config.clone();
            config.ignore_client_order = false;
            offering(config)
        });
        let configs = offering(config);
        Ok(Arc::new(ServerTls {
            configs,
            for_chacha,
            offers_http2,
            certificates,
            evaluated,
            issued,
            has_others,
        }))
    }

    /// What a client's handshake goes by; `http2`: it may choose HTTP/2.
    fn config(&self, client: &ClientHello<'_>, http2: bool) -> Arc<ServerConfig> {
        let for_chacha = self.for_chacha.as_ref().filter(|_| ciphers::prefers_chacha(client.cipher_suites()));
        for_chacha.unwrap_or(&self.configs)[usize::from(http2)].clone()
    }

    /// The files that certificates are read from, and what is sent with them.
    pub fn files(&self) -> Vec<PathBuf> {
        self.certificates.held.files()
    }

    /// Reads the files again that have changed, for the next handshakes. It blocks.
    pub fn read_again(&self) -> Vec<ReadAgain> {
        let read_again = self.certificates.held.read_again();
        if !read_again.is_empty() {
            self.certificates.publish();
        }
        read_again
    }

    /// Whether its only certificate has not been issued yet.
    fn is_waiting(&self) -> bool {
        !self.has_others && self.issued.as_ref().is_some_and(|here| here.issued.is_empty())
    }

    /// The certificates in use that were read of files, or issued.
    pub fn leaves(&self) -> Vec<Leaf> {
        let held = &self.certificates.held;
        let issued = self.issued.as_ref().and_then(|issued| issued.leaf(held.authorities()));
        held.leaves().into_iter().chain(issued).collect()
    }

    /// With this certificate goes what its authority says of it, or nothing, from the next handshake on.
    pub fn staple(&self, leaf: &CertificateDer<'_>, response: Option<&[u8]>) {
        if self.certificates.held.staple(leaf, response) {
            self.certificates.publish();
        }
        if let Some(issued) = &self.issued {
            issued.staple(leaf, response);
        }
    }
}

/// What is offered where nothing is written, with one that no quantum computer will open later (draft-ietf-tls-ecdhe-mlkem). The library takes the first of
/// the client's groups that is among them.
const GROUPS: [TlsGroup; 4] = [TlsGroup::X25519MlKem768, TlsGroup::X25519, TlsGroup::P256, TlsGroup::P384];

/// Bytes before what is in a record, which the library counts in (RFC 8446 §5.1).
const RECORD_HEAD: usize = 5;

/// The names of protocols in handshakes (RFC 7301 §6, RFC 9113 §3.1).
const HTTP_1: &[u8] = b"http/1.1";
const HTTP_2: &[u8] = b"h2";

/// What is offered: suites and groups.
fn provider(tls: &Tls) -> Result<Arc<CryptoProvider>, TlsError> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = ciphers::offered(&tls.ciphers, tls.tls13_suites.as_deref(), &tls.protocols);
    if provider.cipher_suites.is_empty() {
        return Err(TlsError::NoCiphers);
    }
    let groups = if tls.groups.is_empty() { &GROUPS[..] } else { &tls.groups };
    provider.kx_groups = groups.iter().map(|group| key_exchange(*group)).collect();
    Ok(Arc::new(provider))
}

/// How handshakes go, without HTTP/2. `context` is what servers have in common that resume each other's sessions.
fn config(
    tls: &Tls,
    provider: Arc<CryptoProvider>,
    clients: Option<Arc<Clients>>,
    resolver: Arc<dyn ResolvesServerCert>,
    context: sessions::Context,
) -> Result<ServerConfig, TlsError> {
    let versions = versions(&provider, &tls.protocols);
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(TlsError::Library)?;
    let builder = match clients {
        Some(clients) => builder.with_client_cert_verifier(clients),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(resolver);
    config.ignore_client_order = tls.prefer_server_ciphers;
    config.alpn_protocols = vec![HTTP_1.to_vec()];
    config.max_fragment_size = Some(tls.record_size + RECORD_HEAD);
    if tls.compresses_certificates {
        config.cert_compressors = compression::ALL.to_vec();
    }
    if let Some(file) = &tls.key_log {
        config.key_log = key_log::open(file)?;
    }
    config.session_storage = session_storage(tls);
    if tls.session_tickets {
        config.ticketer = sessions::tickets(tls.session_timeout, &tls.ticket_keys, context)?;
    }
    config.send_tls13_tickets = tls.tickets;
    Ok(config)
}

/// A configuration without HTTP/2, and the same with it. Both have one store of sessions.
fn offering(config: ServerConfig) -> [Arc<ServerConfig>; 2] {
    let mut with_http2 = config.clone();
    with_http2.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1.to_vec()];
    [Arc::new(config), Arc::new(with_http2)]
}

/// What a server knows of its clients' authorities; nothing where it asks for no certificates. Reads files; for start and reload only.
pub fn clients(settings: &ClientCertificates) -> Result<Option<Arc<Clients>>, TlsError> {
    let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
    Ok(Clients::read(settings, algorithms)?.map(Arc::new))
}

fn key_exchange(group: TlsGroup) -> &'static dyn SupportedKxGroup {
    match group {
        TlsGroup::X25519 => kx_group::X25519,
        TlsGroup::P256 => kx_group::SECP256R1,
        TlsGroup::P384 => kx_group::SECP384R1,
        TlsGroup::X25519MlKem768 => kx_group::X25519MLKEM768,
    }
}

/// A version whose suites are all left out is not offered; the library refuses it otherwise.
fn versions(provider: &CryptoProvider, wanted: &[TlsVersion]) -> Vec<&'static SupportedProtocolVersion> {
    [(TlsVersion::Tls13, &rustls::version::TLS13), (TlsVersion::Tls12, &rustls::version::TLS12)]
        .into_iter()
        .filter(|(version, _)| wanted.contains(version))
        .map(|(_, version)| version)
        .filter(|version| provider.cipher_suites.iter().any(|suite| suite.version() == *version))
        .collect()
}

fn session_storage(tls: &Tls) -> Arc<dyn StoresServerSessions> {
    match tls.session_cache {
        0 => Arc::new(NoServerSessionStorage {}),
        sessions => SessionCache::new(sessions, tls.session_timeout),
    }
}
