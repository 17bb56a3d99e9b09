//! What a certificate may be used for, as its own extensions say it (RFC 5280 §4.2.1.3, §4.2.1.12).
//!
//! The library looks at extended uses alone. OpenSSL, and with it nginx, looks at all three: an authority must be one that signs
//! certificates, and whoever shows a certificate needs a key that proves it. Next: `direct` and `authorities`, which judge by it.

use super::unverified::Unverified;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;

/// What a certificate is shown as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A client's.
    Client,
    /// A server's.
    Server,
}

/// Whether an authority's key may sign certificates. One that says nothing of its key may.
pub(super) fn signs_certificates(authority: &X509Certificate<'_>) -> bool {
    !matches!(authority.key_usage(), Ok(Some(usage)) if !usage.value.key_cert_sign())
}

/// Whether it may sign lists of what is revoked.
pub(super) fn signs_lists(authority: &X509Certificate<'_>) -> bool {
    !matches!(authority.key_usage(), Ok(Some(usage)) if !usage.value.crl_sign())
}

/// Whether a certificate is for that purpose: where it says what it is for, this must be among it.
///
/// # Errors
/// [`Unverified::Purpose`].
pub(super) fn is_for(purpose: Purpose, shown: &X509Certificate<'_>) -> Result<(), Unverified> {
    let fits = shown.extensions().iter().all(|extension| match extension.parsed_extension() {
        ParsedExtension::ExtendedKeyUsage(usage) => match purpose {
            Purpose::Client => usage.client_auth || usage.any,
            Purpose::Server => usage.server_auth || usage.any,
        },
        // With RSA a server's key may also open what the client has sealed; a client's signs or agrees.
        ParsedExtension::KeyUsage(usage) => {
            usage.digital_signature()
                || usage.key_agreement()
                || purpose == Purpose::Server && usage.key_encipherment()
        }
        ParsedExtension::NSCertType(kind) => match purpose {
            Purpose::Client => kind.ssl_client(),
            Purpose::Server => kind.ssl_server(),
        },
        _ => true,
    });
    if fits { Ok(()) } else { Err(Unverified::Purpose) }
}
