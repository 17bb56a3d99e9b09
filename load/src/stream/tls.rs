//! The client's TLS: one protocol alone is offered, HTTP/1.1 or HTTP/2; each connection makes a full handshake as a new client does.
//!
//! A certificate must be one that the system trusts, unless the user says otherwise: what is measured may be one's own server
//! with a certificate of its own.

use crate::plan::PlanError;
use millstream_net::tls::{Anybody, system_authorities};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The configuration of all connections of a run. With `verify`, trusted is what the file in `SSL_CERT_FILE` or the
/// system's bundle lists. With `http2` that is what is offered (RFC 9113 §3.2), else HTTP/1.1.
///
/// # Errors
/// `verify` is asked for, and there is no such list.
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

/// The same file with its whole path, for a program that is started elsewhere.
///
/// # Errors
/// There is none.
pub fn absolute_authorities() -> Result<PathBuf, PlanError> {
    let file = authorities()?;
    std::path::absolute(&file).map_err(|error| PlanError(format!("{}: {error}", file.display())))
}

/// The file of the authorities that are trusted: what `SSL_CERT_FILE` names, or the system's.
///
/// # Errors
/// There is none.
fn authorities() -> Result<PathBuf, PlanError> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let none = "no list of trusted certificates was found: name one in SSL_CERT_FILE";
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
