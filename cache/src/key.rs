//! What an entry is found by: the evaluated `proxy_cache_key`, its hash for memory and its MD5 for the disk.
//!
//! The hash is seeded anew in every process, so nobody outside can aim at one bucket. The MD5 is nginx's name of the
//! file; it protects nothing, because a file states the whole key and that is compared. Next: `vary`, the other half
//! of what tells two answers apart.

use md5::{Digest, Md5};
use millstream_conf::model::CacheZone;
use std::fmt;

/// A key of `keys_zone`: nginx keeps about 8,000 in a megabyte.
const KEY_SHARE: u64 = 128;

/// How many keys `keys_zone` allows.
pub(crate) fn most_keys(zone: &CacheZone) -> u64 {
    (zone.keys_size / KEY_SHARE).max(1)
}

/// A key with its hash; made once per key and shared by everything that belongs to it.
#[derive(Clone)]
pub struct Key {
    hash: u64,
    text: Box<[u8]>,
}

impl Key {
    /// Takes a key together with the hash that the store's own hasher gave it.
    pub(crate) fn new(text: &[u8], hash: u64) -> Key {
        Key { hash, text: text.into() }
    }

    /// The key as evaluated.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Its hash, only meaningful within one store.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Bytes it occupies.
    pub(crate) fn cost(&self) -> u64 {
        (size_of::<Key>() + 16 + self.text.len()) as u64
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.text.escape_ascii())
    }
}

/// nginx's name for the file of a key: the MD5 of its text.
pub fn md5(key: &[u8]) -> [u8; 16] {
    Md5::digest(key).into()
}

/// The name for one of several variants of a key. The key's length goes first, so that no key can be made to look
/// like a key and a variant of another.
pub fn md5_of_variant(key: &[u8], variant: &[u8]) -> [u8; 16] {
    let mut digest = Md5::new();
    digest.update(b"variant\0");
    digest.update((key.len() as u64).to_le_bytes());
    digest.update(key);
    digest.update(variant);
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: [u8; 16]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_key_has_the_file_name_that_nginx_gives_it() {
        assert_eq!(hex(md5(b"httplocalhost:8080/")), hex(Md5::digest(b"httplocalhost:8080/").into()));
        assert_eq!(hex(md5(b"")), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(hex(md5(b"abc")), "900150983cd24fb0d6963f7d28e17f72");
    }

    #[test]
    fn a_border_between_key_and_variant_cannot_be_moved() {
        assert_ne!(md5_of_variant(b"ab", b"c"), md5_of_variant(b"a", b"bc"));
        assert_ne!(md5_of_variant(b"ab", b""), md5(b"ab"));
    }
}
