//! What somebody signed: a certificate, or a list of what is revoked (RFC 5280 §4.1.1, §5.1.1).
//!
//! Before: `element`; next: `certificate`, and `tls/revocation` and `tls/direct`, which check what the library does not look at.

use crate::element::{Element, SEQUENCE};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls_pki_types::SubjectPublicKeyInfoDer;
use webpki::RawPublicKeyEntity;

/// What is signed, and how.
#[derive(Debug)]
pub(crate) struct Signed<'a> {
    pub(crate) message: &'a [u8],
    /// The object identifier of the algorithm by which it says that it is signed.
    pub(crate) algorithm: &'a [u8],
    pub(crate) signature: &'a [u8],
}

impl<'a> Signed<'a> {
    /// Reads the whole, with the fields of what is signed.
    pub(crate) fn read(whole: Element<'a>) -> Option<(Self, Vec<Element<'a>>)> {
        let [message, algorithm, signature] = whole.parts(SEQUENCE)?[..] else { return None };
        let signed = Signed {
            message: message.whole,
            algorithm: algorithm_of(&algorithm)?,
            signature: signature.octets()?,
        };
        Some((signed, message.parts(SEQUENCE)?))
    }

    /// Whether the key signed it by the algorithm that it names.
    pub(crate) fn is_by(
        &self,
        key: &SubjectPublicKeyInfoDer<'_>,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> bool {
        let Ok(key) = RawPublicKeyEntity::try_from(key) else { return false };
        algorithms.all.iter().any(|algorithm| {
            let id = algorithm.signature_alg_id();
            // Behind the tag and the length of the object identifier.
            id.as_ref().get(2..).is_some_and(|id| id.starts_with(self.algorithm))
                && key.verify_signature(*algorithm, self.message, self.signature).is_ok()
        })
    }
}

/// The object identifier in an AlgorithmIdentifier (RFC 5280 §4.1.1.2).
pub(crate) fn algorithm_of<'a>(identifier: &Element<'a>) -> Option<&'a [u8]> {
    match identifier.parts(SEQUENCE)?[..] {
        [id] | [id, _] => id.identifier(),
        _ => None,
    }
}
