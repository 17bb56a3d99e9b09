//! Why a certificate is not good, in OpenSSL's words: nginx's variables and logs have them.
//!
//! Next: `known` and `authorities`, which find it.

/// Why a certificate is not good, in OpenSSL's words, which `$ssl_client_verify` has in nginx.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unverified {
    SelfSigned,
    SelfSignedInChain,
    UnknownIssuer,
    UnknownIssuerOfLeaf,
    Expired,
    NotYetValid,
    Revoked,
    NoRevocationList,
    RevocationListExpired,
    RevocationListNotYetValid,
    RevocationListSignature,
    Authority,
    Purpose,
    ChainTooLong,
    Signature,
    Malformed,
}

impl Unverified {
    /// The words.
    pub fn text(self) -> &'static str {
        match self {
            Unverified::SelfSigned => "self-signed certificate",
            Unverified::SelfSignedInChain => "self-signed certificate in certificate chain",
            Unverified::UnknownIssuer => "unable to get local issuer certificate",
            Unverified::UnknownIssuerOfLeaf => "unable to verify the first certificate",
            Unverified::Expired => "certificate has expired",
            Unverified::NotYetValid => "certificate is not yet valid",
            Unverified::Revoked => "certificate revoked",
            Unverified::NoRevocationList => "unable to get certificate CRL",
            Unverified::RevocationListExpired => "CRL has expired",
            Unverified::RevocationListNotYetValid => "CRL is not yet valid",
            Unverified::RevocationListSignature => "CRL signature failure",
            Unverified::Authority => "invalid CA certificate",
            Unverified::Purpose => "unsuitable certificate purpose",
            Unverified::ChainTooLong => "certificate chain too long",
            Unverified::Signature => "certificate signature failure",
            Unverified::Malformed => "unspecified certificate verification error",
        }
    }

    /// Whether it is only that nobody knows the authority, which `ssl_verify_client optional_no_ca` lets pass.
    pub fn is_of_authority(self) -> bool {
        matches!(
            self,
            Unverified::SelfSigned
                | Unverified::SelfSignedInChain
                | Unverified::UnknownIssuer
                | Unverified::UnknownIssuerOfLeaf
        )
    }
}
