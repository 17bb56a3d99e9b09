//! Signature schemes: their names, which logs use, and the one by which a client signed.
//!
//! The library tells no connection's schemes. Which one a server takes follows from its key and what the client offers; that of a client is seen
//! where its signature is checked ([`note`]) and fetched by whoever drives that handshake ([`noted`]), on the same thread and before anything else runs
//! there. Next: `clients`, which notes; `acceptor`, which fetches.

use rustls::SignatureScheme as S;
use rustls::sign::CertifiedKey;
use std::cell::Cell;

/// The names of RFC 8446 §4.2.3, which are OpenSSL's too, and those of ML-DSA.
#[rustfmt::skip]
const NAMES: [(u16, &str); 27] = [
    (0x0201, "rsa_pkcs1_sha1"), (0x0202, "dsa_sha1"), (0x0203, "ecdsa_sha1"),
    (0x0301, "rsa_pkcs1_sha224"), (0x0302, "dsa_sha224"), (0x0303, "ecdsa_sha224"),
    (0x0401, "rsa_pkcs1_sha256"), (0x0402, "dsa_sha256"), (0x0403, "ecdsa_secp256r1_sha256"),
    (0x0501, "rsa_pkcs1_sha384"), (0x0502, "dsa_sha384"), (0x0503, "ecdsa_secp384r1_sha384"),
    (0x0601, "rsa_pkcs1_sha512"), (0x0602, "dsa_sha512"), (0x0603, "ecdsa_secp521r1_sha512"),
    (0x0804, "rsa_pss_rsae_sha256"), (0x0805, "rsa_pss_rsae_sha384"), (0x0806, "rsa_pss_rsae_sha512"),
    (0x0807, "ed25519"), (0x0808, "ed448"),
    (0x0809, "rsa_pss_pss_sha256"), (0x080a, "rsa_pss_pss_sha384"), (0x080b, "rsa_pss_pss_sha512"),
    (0x0904, "mldsa44"), (0x0905, "mldsa65"), (0x0906, "mldsa87"),
    (0x081a, "ecdsa_brainpoolP256r1tls13_sha256"),
];

/// The name of a scheme; nothing where it is not known.
pub(super) fn name(scheme: S) -> Option<&'static str> {
    NAMES.iter().find(|(code, _)| *code == u16::from(scheme)).map(|(_, name)| *name)
}

/// The scheme by which a key signs for a client with these, in TLS 1.3 or 1.2.
pub(super) fn taken(key: &CertifiedKey, offered: &[S], is_tls13: bool) -> Option<S> {
    // RFC 8446 §4.2.3: those of PKCS#1 and those with SHA-1 are for certificates alone.
    let fits = |scheme: &S| {
        !(is_tls13
            && matches!(
                *scheme,
                S::RSA_PKCS1_SHA1
                    | S::RSA_PKCS1_SHA256
                    | S::RSA_PKCS1_SHA384
                    | S::RSA_PKCS1_SHA512
                    | S::ECDSA_SHA1_Legacy
            ))
    };
    let fitting: Vec<S> = offered.iter().copied().filter(fits).collect();
    key.key.choose_scheme(&fitting).map(|signer| signer.scheme())
}

thread_local! {
    static NOTED: Cell<Option<S>> = const { Cell::new(None) };
}

/// A client's signature in the handshake that is driven now was made by this scheme.
pub(super) fn note(scheme: S) {
    NOTED.set(Some(scheme));
}

/// What was noted since this was asked last.
pub(super) fn noted() -> Option<S> {
    NOTED.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_told_once() {
        note(S::ED25519);
        assert_eq!(noted(), Some(S::ED25519));
        assert_eq!(noted(), None);
    }

    #[test]
    fn a_scheme_has_its_name_and_an_unknown_one_has_none() {
        assert_eq!(name(S::RSA_PSS_SHA256), Some("rsa_pss_rsae_sha256"));
        assert_eq!(name(S::ECDSA_NISTP256_SHA256), Some("ecdsa_secp256r1_sha256"));
        assert_eq!(name(S::from(0x0a0a)), None);
    }
}
