//! TLS to upstream servers: from `proxy_ssl_*` to a configuration, and from a plain stream to an encrypted one.
//!
//! A certificate is verified only where the configuration asks for it, as in nginx. No timeout of its own: the caller holds the
//! deadline and drops the future. Before: `pem` and `ciphers`, which the clients' side shares.

use super::anybody::Anybody;
use super::authorities::{Authorities, system_authorities};
use super::pair_reader::PairReader;
use super::usage::Purpose;
use super::{TlsError, acceptor, ciphers, key_exchange, key_log, pem, versions};
use crate::blocking;
use crate::certificate::Certificate;
use crate::stream::{Encrypted, Stream, Transport};
use millstream_conf::model::{PemSource, TlsVersion, UpstreamTls};
use millstream_wire::other_protocol::is_plain_http;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption, Tls12Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use webpki::EndEntityCert;

/// Bytes that tell what a server speaks.
const BEGINNING: usize = 16;

/// A handshake failed because the server speaks plain HTTP.
#[derive(Debug)]
pub struct PlainHttp(io::Error);

impl fmt::Display for PlainHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for PlainHttp {}

/// Speaks TLS to upstream servers, with one memory of sessions for all of them.
#[derive(Debug, Clone)]
pub struct TlsConnector {
    config: Arc<ClientConfig>,
    verifies: bool,
    /// Reads certificates of ours that are known at a handshake alone. One that is kept is the same value each time, so that
    /// sessions are resumed under it and under no other.
    own: Option<Arc<PairReader<Arc<dyn ResolvesClientCert>>>>,
}

impl TlsConnector {
    /// Reads the files that the settings name; for start and reload only.
    ///
    /// # Errors
    /// What is wrong with a file or with the settings.
    pub fn new(settings: &UpstreamTls) -> Result<Self, TlsError> {
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites =
            ciphers::offered(&settings.ciphers, settings.tls13_suites.as_deref(), &settings.protocols);
        if provider.cipher_suites.is_empty() {
            return Err(TlsError::NoCiphers);
        }
        if !settings.groups.is_empty() {
            provider.kx_groups = settings.groups.iter().map(|group| key_exchange(*group)).collect();
        }
        let versions = versions(&provider, &settings.protocols);
        let provider = Arc::new(provider);
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(TlsError::Library)?
            .dangerous()
            .with_custom_certificate_verifier(verifier(settings, &provider)?);
        let mut own = None;
        let mut config = match &settings.certificate {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let passwords = pem::passwords(settings.passwords.as_deref())?;
                if certificate.is_variable() || key.is_variable() {
                    let cache = settings.certificate_cache;
                    own = Some(Arc::new(PairReader::new(cache, passwords, provider.clone(), shown)));
                    builder.with_no_client_auth()
                } else {
                    let pair = pem::pair(certificate, key, &passwords, &provider)?;
                    builder.with_client_cert_resolver(shown(pair))
                }
            }
        };
        if let Some(file) = &settings.key_log {
            config.key_log = key_log::open(file)?;
        }
        config.enable_sni = settings.sends_name;
        if !settings.reuses_sessions {
            config.resumption = Resumption::disabled();
        } else if !settings.session_tickets {
            config.resumption = Resumption::default().tls12_resumption(Tls12Resumption::SessionIdOnly);
        }
        Ok(TlsConnector { config: Arc::new(config), verifies: settings.verifies, own })
    }

    /// The same with a certificate of ours that is known now; `None` shows none. What is read blocks nobody.
    ///
    /// # Errors
    /// What is wrong with its files.
    pub async fn showing(&self, certificate: Option<&(PemSource, PemSource)>) -> Result<Self, TlsError> {
        let (Some(own), Some(sources)) = (&self.own, certificate) else { return Ok(self.clone()) };
        let read = match own.known(sources) {
            Some(known) => known,
            None => {
                let (own, sources) = (own.clone(), sources.clone());
                blocking::run(move || own.read(sources)).await?
            }
        };
        let mut shows = self.clone();
        Arc::make_mut(&mut shows.config).client_auth_cert_resolver = read;
        Ok(shows)
    }

    /// For calls of our own: whom the system trusts is trusted, where no file names others; `verifies` is false for tests alone. Reads files, as
    /// [`TlsConnector::new`] does.
    ///
    /// # Errors
    /// What is wrong with the authorities.
    pub fn own(trusted: Option<&Path>, verifies: bool) -> Result<Self, TlsError> {
        TlsConnector::new(&UpstreamTls {
            sends_name: true,
            verifies,
            trusted: trusted.or(system_authorities()).filter(|_| verifies).map(Path::to_owned),
            revoked: None,
            depth: 8,
            certificate: None,
            certificate_cache: None,
            passwords: None,
            key_log: None,
            protocols: vec![TlsVersion::Tls12, TlsVersion::Tls13],
            ciphers: Vec::new(),
            tls13_suites: None,
            groups: Vec::new(),
            reuses_sessions: true,
            session_tickets: true,
        })
    }

    /// The same, which offers these protocols for what is spoken inside (ALPN, RFC 7301).
    #[must_use]
    pub fn offering(mut self, protocols: &[&[u8]]) -> Self {
        Arc::make_mut(&mut self.config).alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        self
    }

    /// Performs the handshake with the server of a name, in which a port may stand.
    ///
    /// # Errors
    /// As the connection has it; [`PlainHttp`] within where the server speaks that instead of TLS; `InvalidInput` for a name that no certificate can have, where it is verified.
    pub async fn connect(&self, stream: Stream, name: &str) -> io::Result<Stream> {
        let name = match server_name(name) {
            Some(name) => name,
            None if self.verifies => {
                let what = format!("\"{name}\" is not a valid name for a certificate");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            // It is neither compared nor sent.
            None => ServerName::IpAddress(IpAddr::V4(Ipv4Addr::UNSPECIFIED).into()),
        };
        let connector = tokio_rustls::TlsConnector::from(self.config.clone());
        let mut handshake = Box::pin(connector.connect(name, Transport::new(stream)));
        // What is no TLS is lost in the session, which reads it.
        let (mut beginning, mut came) = ([0; BEGINNING], 0);
        let session = poll_fn(|context| {
            if let (0, Some(transport)) = (came, handshake.get_ref()) {
                came = transport.stream().peek(&mut beginning);
            }
            handshake.as_mut().poll(context)
        });
        let session = session.await.map_err(|error| match is_plain_http(&beginning[..came]) {
            true => io::Error::new(error.kind(), PlainHttp(error)),
            false => error,
        })?;
        let info = acceptor::info(session.get_ref().1, None);
        Ok(Stream::Tls(Box::new(Encrypted::new(session.into(), info))))
    }
}

/// How a certificate of ours is shown.
fn shown(pair: CertifiedKey) -> Arc<dyn ResolvesClientCert> {
    Arc::new(SingleCertAndKey::from(pair))
}

/// The name without its port, and without the brackets of an address.
fn server_name(name: &str) -> Option<ServerName<'static>> {
    let host = match name.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => name.split(':').next().unwrap_or_default(),
    };
    ServerName::try_from(host.to_owned()).ok()
}

fn verifier(
    settings: &UpstreamTls,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    if !settings.verifies {
        return Ok(Arc::new(Anybody::of(provider)));
    }
    let mut authorities = Authorities::new(settings.depth, provider.signature_verification_algorithms);
    if let Some(trusted) = &settings.trusted {
        authorities.know(trusted)?;
    }
    if let Some(revoked) = &settings.revoked {
        authorities.revoke(revoked)?;
    }
    Ok(Arc::new(Somebody(authorities)))
}

/// `proxy_ssl_verify on`: the server is one that an authority has named.
#[derive(Debug)]
struct Somebody(Authorities);

impl ServerCertVerifier for Somebody {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let chain: Vec<CertificateDer<'_>> = std::iter::once(leaf).chain(others).cloned().collect();
        self.0.judge(&chain, Purpose::Server).map_err(|why| {
            Error::General(format!("upstream SSL certificate verify error: ({})", why.text()))
        })?;
        match is_of(leaf, name) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(Error::InvalidCertificate(CertificateError::NotValidForName)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.check_tls12(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.check_tls13(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.schemes()
    }
}

/// Whether a certificate is of a name: by its alternative names, or else by its common name (RFC 6125 §6.4.4), as nginx has it.
fn is_of(leaf: &CertificateDer<'_>, name: &ServerName<'_>) -> bool {
    let Some(certificate) = Certificate::read(leaf) else { return false };
    if certificate.has_alternative_names() {
        return EndEntityCert::try_from(leaf)
            .is_ok_and(|leaf| leaf.verify_is_valid_for_subject_name(name).is_ok());
    }
    let name = name.to_str();
    certificate.common_names().any(|common| is_named(common, &name))
}

/// Whether a common name is the name, or stands for it: an asterisk is one whole label, the first of three or more.
fn is_named(common: &str, name: &str) -> bool {
    let rest = |text: &str| text.split_once('.').map(|(_, rest)| rest.to_owned());
    common.eq_ignore_ascii_case(name)
        || common.strip_prefix("*.").is_some_and(|domain| {
            let is_address = name.parse::<IpAddr>().is_ok();
            domain.contains('.')
                && !is_address
                && rest(name).is_some_and(|rest| rest.eq_ignore_ascii_case(domain))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_name_stands_for_itself_or_for_one_label() {
        for (common, name, expected) in [
            ("api.example", "API.example", true),
            ("127.0.0.1", "127.0.0.1", true),
            ("*.api.example", "a.api.example", true),
            ("*.api.example", "a.b.api.example", false),
            ("*.api.example", "api.example", false),
            ("*.example", "api.example", false),
            ("*.0.0.1", "127.0.0.1", false),
            ("*", "api", false),
            ("other.example", "api.example", false),
        ] {
            assert_eq!(is_named(common, name), expected, "{common} {name}");
        }
    }

    #[test]
    fn a_name_loses_its_port_and_an_address_its_brackets() {
        let shown = |name: &str| server_name(name).map(|name| name.to_str().into_owned());
        assert_eq!(shown("api.example:8443").as_deref(), Some("api.example"));
        assert_eq!(shown("my_backend").as_deref(), Some("my_backend"));
        assert_eq!(shown("[::1]:8443").as_deref(), Some("::1"));
        assert_eq!(shown("127.0.0.1:1").as_deref(), Some("127.0.0.1"));
        assert_eq!(shown(""), None);
    }
}
