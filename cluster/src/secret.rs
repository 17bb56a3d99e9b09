//! The secret that the nodes share, and what is sealed with it: nothing reaches the engine in clear.
//!
//! Each zone has a key and a place in the engine of its own, derived from the secret and both names (HKDF, RFC 5869). What is
//! sealed as one kind of message cannot be opened as another. It does no I/O. Next: `order`, `beat`.

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use aws_lc_rs::hmac;
use std::fmt::{self, Write};
use std::io;

/// In bytes: 128 bits written as hexadecimal digits or base64 have more.
const SHORTEST: usize = 16;
/// In bytes.
const LONGEST: usize = 4096;

/// What a sealed text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Order,
    Beat,
    /// What shows whether two nodes have the same secret.
    Proof,
    /// What a node has counted in a zone of a limit.
    Usage,
}

/// Stands for a key of a limit, which does not leave the node.
pub type KeyHash = [u8; 16];

/// Makes hashes of keys that only this cluster's nodes can make.
pub(crate) struct KeyHasher(hmac::Key);

impl fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHasher")
    }
}

impl KeyHasher {
    pub(crate) fn hash(&self, key: &[u8]) -> KeyHash {
        let tag = hmac::sign(&self.0, key);
        *tag.as_ref().first_chunk().expect("a tag of SHA-256 has 32 bytes")
    }
}

/// The shared secret of a cluster.
pub struct Secret(Prk);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// White space around it does not count.
    ///
    /// # Errors
    /// It is shorter than 16 bytes or longer than 4,096.
    pub fn of(bytes: &[u8]) -> io::Result<Secret> {
        let secret = bytes.trim_ascii();
        if !(SHORTEST..=LONGEST).contains(&secret.len()) {
            let wrong = format!("the secret has {} bytes; it needs {SHORTEST} to {LONGEST}", secret.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, wrong));
        }
        Ok(Secret(Salt::new(HKDF_SHA256, b"millstream cluster 1").extract(secret)))
    }

    /// Of one zone of a cluster.
    pub(crate) fn seal(&self, cluster: &str, zone: &str) -> Option<Seal> {
        let mut key = [0; 32];
        self.expand(&[b"key", cluster.as_bytes(), zone.as_bytes()], &mut key)?;
        RandomizedNonceKey::new(&AES_256_GCM_SIV, &key).ok().map(Seal)
    }

    /// The beginning of the zone's keys in the engine, which shows neither name.
    pub(crate) fn place(&self, cluster: &str, zone: &str) -> Option<String> {
        let mut hash = [0; 16];
        self.expand(&[b"place", cluster.as_bytes(), zone.as_bytes()], &mut hash)?;
        Some(format!("ms:{{{}}}:", hexadecimal(&hash)))
    }

    /// Of the keys of one zone of a limit.
    pub(crate) fn hasher(&self, cluster: &str, zone: &str) -> Option<KeyHasher> {
        let mut key = [0; 32];
        self.expand(&[b"hash", cluster.as_bytes(), zone.as_bytes()], &mut key)?;
        Some(KeyHasher(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// Seals what shows whether two nodes of a cluster have the same secret.
    pub(crate) fn proof(&self, cluster: &str) -> Option<Seal> {
        self.seal(cluster, "")
    }

    /// Where that is: for every secret the same place.
    pub(crate) fn proof_place(cluster: &str) -> String {
        format!("ms:{{{}}}:proof", hexadecimal(&digest(&SHA256, cluster.as_bytes()).as_ref()[..16]))
    }

    fn expand(&self, about: &[&[u8]], out: &mut [u8]) -> Option<()> {
        // Names are at most 255 bytes here, so that no two pairs of them read alike.
        let lengths: Vec<u8> = about.iter().map(|part| part.len().min(255) as u8).collect();
        let info: Vec<&[u8]> = [lengths.as_slice()].into_iter().chain(about.iter().copied()).collect();
        self.0.expand(&info, Length(out.len())).ok()?.fill(out).ok()
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Seals and opens what one zone's nodes write.
pub(crate) struct Seal(RandomizedNonceKey);

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// `None` if the system gives no random bytes.
    pub(crate) fn close(&self, kind: Kind, plain: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = plain.to_vec();
        let nonce = self.0.seal_in_place_append_tag(Aad::from([kind as u8]), &mut sealed).ok()?;
        Some([nonce.as_ref().as_slice(), &sealed].concat())
    }

    /// `None` unless it was closed as this kind, with this secret, for this zone.
    pub(crate) fn open(&self, kind: Kind, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut sealed = sealed.to_vec();
        let plain = self.0.open_in_place(Nonce::from(nonce), Aad::from([kind as u8]), &mut sealed).ok()?;
        Some(plain.to_vec())
    }
}

/// Unpredictable bytes; `None` if the system gives none.
pub(crate) fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).ok()?;
    Some(bytes)
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_as_the_same_kind_in_the_same_zone_alone() {
        let secret = Secret::of(b"0123456789abcdef\n").expect("long enough");
        let other = Secret::of(b"0123456789abcdeX").expect("long enough");
        let seal = secret.seal("main", "api").expect("a key");
        let sealed = seal.close(Kind::Order, b"plain").expect("sealed");
        assert_eq!(seal.open(Kind::Order, &sealed).as_deref(), Some(&b"plain"[..]));
        assert_eq!(seal.open(Kind::Beat, &sealed), None);
        for wrong in [secret.seal("main", "web"), secret.seal("mai", "napi"), other.seal("main", "api")] {
            assert_eq!(wrong.expect("a key").open(Kind::Order, &sealed), None);
        }
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone();
            bytes[at] ^= 1;
            assert_eq!(seal.open(Kind::Order, &bytes), None, "{at}");
            assert_eq!(seal.open(Kind::Order, &sealed[..at]), None, "{at}");
        }
        assert!(!sealed.windows(5).any(|window| window == b"plain"));
    }

    #[test]
    fn a_short_secret_is_refused() {
        assert!(Secret::of(b"  0123456789abcde \n").is_err());
        assert!(Secret::of(&[b'x'; 4097]).is_err());
    }
}
