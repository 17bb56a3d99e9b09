//! TLS to upstream servers: from `proxy_ssl_*` to a configuration, and from a plain stream to an encrypted one.
//!
//! A certificate is verified only where the configuration asks for it, as in nginx. No timeout of its own: the caller holds the
//! deadline and drops the future. Before: `certificates` and `ciphers`, which the clients' side shares.

use super::{TlsError, acceptor, certificates, ciphers, versions};
use crate::stream::{Encrypted, Stream, Transport};
use millstream_conf::model::UpstreamTls;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

/// Speaks TLS to upstream servers, with one memory of sessions for all of them.
#[derive(Debug)]
pub struct TlsConnector {
    config: Arc<ClientConfig>,
    verifies: bool,
}

impl TlsConnector {
    /// Reads the files that the settings name; for start and reload only.
    ///
    /// # Errors
    /// What is wrong with a file or with the settings.
    pub fn new(settings: &UpstreamTls) -> Result<Self, TlsError> {
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites = ciphers::offered(&settings.ciphers, &settings.protocols);
        if provider.cipher_suites.is_empty() {
            return Err(TlsError::NoCiphers);
        }
        let versions = versions(&provider, &settings.protocols);
        let provider = Arc::new(provider);
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(TlsError::Library)?
            .dangerous()
            .with_custom_certificate_verifier(verifier(settings, &provider)?);
        let mut config = match &settings.certificate {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let own = certificates::pair(certificate, key, &provider)?;
                builder.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(own)))
            }
        };
        config.enable_sni = settings.sends_name;
        if !settings.reuses_sessions {
            config.resumption = Resumption::disabled();
        }
        Ok(TlsConnector { config: Arc::new(config), verifies: settings.verifies })
    }

    /// Performs the handshake with the server of a name, in which a port may stand.
    ///
    /// # Errors
    /// As the connection has it; `InvalidInput` for a name that no certificate can have, where it is verified.
    pub async fn connect(&self, stream: Stream, name: &str) -> io::Result<Stream> {
        let name = match server_name(name) {
            Some(name) => name,
            None if self.verifies => {
                let what = format!("\"{name}\" is no name that a certificate can have");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            // It is neither compared nor sent.
            None => ServerName::IpAddress(IpAddr::V4(Ipv4Addr::UNSPECIFIED).into()),
        };
        let connector = tokio_rustls::TlsConnector::from(self.config.clone());
        let session = Box::pin(connector.connect(name, Transport::new(stream))).await?;
        let info = acceptor::info(session.get_ref().1, None);
        Ok(Stream::Tls(Box::new(Encrypted::new(session.into(), info))))
    }
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
        return Ok(Arc::new(Anybody(provider.clone())));
    }
    let mut roots = RootCertStore::empty();
    if let Some(trusted) = &settings.trusted {
        roots.add_parsable_certificates(items::<CertificateDer<'static>>(trusted)?);
    }
    let mut builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    if let Some(revoked) = &settings.revoked {
        builder = builder.with_crls(items::<CertificateRevocationListDer<'static>>(revoked)?);
    }
    let built = builder.build().map_err(|error| TlsError::Library(Error::General(error.to_string())))?;
    Ok(built)
}

fn items<T: PemObject>(file: &Path) -> Result<Vec<T>, TlsError> {
    let text = certificates::read(file)?;
    let items: Result<Vec<T>, _> = T::pem_slice_iter(&text).collect();
    items.map_err(|error| TlsError::Pem(file.to_path_buf(), error.to_string()))
}

/// `proxy_ssl_verify off`: whoever answers is the server. Its signatures are not looked at either: they would only show that
/// it has the key of a certificate that anybody can make.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
