//! The key of an account: made or read, its public half as a JWK, and what it signs.
//!
//! ECDSA and RSA, by the algorithms of RFC 7518. Keys of certificates are made here too and used elsewhere. Nothing of a key is printed.
//! Next: `jws`, which puts signatures around what is asked.

use crate::failure::AcmeFailure;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair, RSA_PKCS1_SHA256,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use millstream_conf::model::KeyKind;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;

#[derive(Debug, Clone, Copy)]
struct Curve {
    signing: &'static EcdsaSigningAlgorithm,
    name: &'static str,
    algorithm: &'static str,
}

const CURVES: [Curve; 3] = [
    Curve { signing: &ECDSA_P256_SHA256_FIXED_SIGNING, name: "P-256", algorithm: "ES256" },
    Curve { signing: &ECDSA_P384_SHA384_FIXED_SIGNING, name: "P-384", algorithm: "ES384" },
    Curve { signing: &ECDSA_P521_SHA512_FIXED_SIGNING, name: "P-521", algorithm: "ES512" },
];

pub(crate) struct SigningKey(Kind);

enum Kind {
    Ecdsa(EcdsaKeyPair, Curve),
    Rsa(rsa::KeyPair),
}

impl SigningKey {
    /// Reads PEM: PKCS#8, PKCS#1 or SEC1.
    pub(crate) fn read(pem: &str) -> Result<SigningKey, AcmeFailure> {
        let unusable = || {
            AcmeFailure::Key(
                "the account key cannot be used: it is not an ECDSA or RSA key in PEM".to_owned(),
            )
        };
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| unusable())?;
        let bytes = der.secret_der();
        let ecdsa = CURVES.into_iter().find_map(|curve| {
            let key = EcdsaKeyPair::from_private_key_der(curve.signing, bytes).ok()?;
            Some(Kind::Ecdsa(key, curve))
        });
        let rsa =
            || rsa::KeyPair::from_pkcs8(bytes).or_else(|_| rsa::KeyPair::from_der(bytes)).ok().map(Kind::Rsa);
        ecdsa.or_else(rsa).map(SigningKey).ok_or_else(unusable)
    }

    /// The JWS algorithm (RFC 7518 §3.1).
    pub(crate) fn algorithm(&self) -> &'static str {
        match &self.0 {
            Kind::Ecdsa(_, curve) => curve.algorithm,
            Kind::Rsa(_) => "RS256",
        }
    }

    /// The public half, its members in the order of a thumbprint (RFC 7638 §3).
    pub(crate) fn jwk(&self) -> String {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.0 {
            Kind::Ecdsa(key, curve) => {
                // An uncompressed point: a four, then both coordinates (SEC 1 §2.3.3).
                let point = key.public_key().as_ref().get(1..).unwrap_or_default();
                let (x, y) = point.split_at(point.len() / 2);
                format!(r#"{{"crv":"{}","kty":"EC","x":"{}","y":"{}"}}"#, curve.name, encode(x), encode(y))
            }
            Kind::Rsa(key) => {
                let (n, e) = numbers(key.public_key().as_ref()).unwrap_or_default();
                format!(r#"{{"e":"{}","kty":"RSA","n":"{}"}}"#, encode(e), encode(n))
            }
        }
    }

    pub(crate) fn thumbprint(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest(&SHA256, self.jwk().as_bytes()))
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, AcmeFailure> {
        let random = SystemRandom::new();
        let unsigned = |_| AcmeFailure::Key("signing with the account key failed".to_owned());
        match &self.0 {
            Kind::Ecdsa(key, _) => Ok(key.sign(&random, message).map_err(unsigned)?.as_ref().to_vec()),
            Kind::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).map_err(unsigned)?;
                Ok(signature)
            }
        }
    }
}

/// Modulus and exponent of an RSA public key, without leading zeros (RFC 8017 §A.1.1).
fn numbers(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (inside, _) = element(der, 0x30)?;
    let (modulus, rest) = element(inside, 0x02)?;
    let (exponent, _) = element(rest, 0x02)?;
    let bare = |number: &'_ [u8]| number.iter().take_while(|byte| **byte == 0).count();
    Some((&modulus[bare(modulus)..], &exponent[bare(exponent)..]))
}

/// The first DER element, if it is of this kind, and what follows it (X.690 §8.1).
fn element(bytes: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, length], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    (found == kind).then_some(())?;
    rest.split_at_checked(length)
}

pub(crate) fn make(kind: KeyKind) -> Result<rcgen::KeyPair, AcmeFailure> {
    use rcgen::{
        KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_RSA_SHA256,
        RsaKeySize,
    };
    let made = match kind {
        KeyKind::Ecdsa256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
        KeyKind::Ecdsa384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
        KeyKind::Ecdsa521 => KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512),
        KeyKind::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
        KeyKind::Rsa3072 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_3072),
        KeyKind::Rsa4096 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
    };
    made.map_err(|error| AcmeFailure::Key(format!("cannot create a key of type {}: {error}", kind.text())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ES256: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjpsQnnGQmL+YBIff
H1136cspYG6+0iY7X1fCE9+E9LKhRANCAAR/zc4ncPbEXUGDy+5v20t7WAczNXvp
7xO6z248e9FURcfxRM0bvZt+hyzf7bnuufSzaV1uqQskrYpGIyiFiOWt
-----END PRIVATE KEY-----
";

    #[test]
    fn a_public_half_is_what_the_rfc_shows() {
        let key = SigningKey::read(ES256).expect("it is a key");
        assert_eq!(key.algorithm(), "ES256");
        assert_eq!(
            key.jwk(),
            r#"{"crv":"P-256","kty":"EC","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#
        );
    }

    #[test]
    fn every_kind_of_key_is_made_read_and_signs() {
        for (kind, algorithm, length) in [
            (KeyKind::Ecdsa256, "ES256", 64),
            (KeyKind::Ecdsa384, "ES384", 96),
            (KeyKind::Ecdsa521, "ES512", 132),
            (KeyKind::Rsa2048, "RS256", 256),
        ] {
            let pem = make(kind).expect("it can be made").serialize_pem();
            let key = SigningKey::read(&pem).expect("it can be read");
            assert_eq!(key.algorithm(), algorithm);
            assert_eq!(key.sign(b"text").expect("it signs").len(), length);
            let jwk: serde_json::Value = serde_json::from_str(&key.jwk()).expect("it is JSON");
            if algorithm == "RS256" {
                assert_eq!(jwk["e"], "AQAB");
                let modulus = URL_SAFE_NO_PAD.decode(jwk["n"].as_str().expect("a text")).expect("base64url");
                assert_eq!(modulus.len(), 256);
            }
            assert_eq!(URL_SAFE_NO_PAD.decode(key.thumbprint()).expect("base64url").len(), 32);
        }
        assert!(SigningKey::read("no key").is_err());
    }
}
