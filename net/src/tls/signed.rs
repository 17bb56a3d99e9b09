//! Whether a key signed something: a certificate, or a list of what is revoked (RFC 5280 §6.1.3, §6.3.3).
//!
//! Next: `revocation` and `direct`, which check what the library does not look at.

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls_pki_types::SubjectPublicKeyInfoDer;
use webpki::RawPublicKeyEntity;

/// What is signed, and how.
#[derive(Debug)]
pub(super) struct Signed<'a> {
    pub(super) message: &'a [u8],
    /// The object identifier of the algorithm by which it says that it is signed.
    pub(super) algorithm: &'a [u8],
    pub(super) signature: &'a [u8],
}

/// Whether the key signed it by the algorithm that it names.
pub(super) fn is_signed(
    algorithms: &WebPkiSupportedAlgorithms,
    key: &SubjectPublicKeyInfoDer<'_>,
    signed: &Signed<'_>,
) -> bool {
    let Ok(key) = RawPublicKeyEntity::try_from(key) else { return false };
    algorithms.all.iter().any(|algorithm| {
        let id = algorithm.signature_alg_id();
        // Behind the tag and the length of the object identifier.
        id.as_ref().get(2..).is_some_and(|id| id.starts_with(signed.algorithm))
            && key.verify_signature(*algorithm, signed.message, signed.signature).is_ok()
    })
}
