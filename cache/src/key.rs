//! What an entry is found by: the evaluated `proxy_cache_key`, its hash for memory and its MD5 for the disk.
//!
//! ```text
//! | text                       | start, length of each variable's part (2 × u16 LE) | number of these (u32 LE) |
//! | http api.example/books?p=2 | 0,4  5,11  16,10                                   | 3                        |
//! ```
//! Two requests have the same key only where the same text was made of the same parts, so nothing that a client writes
//! into one variable can pass for a separator or for another variable: `$host|$uri` of `a|b` and `c` is not that of `a`
//! and `b|c`. The hash is seeded anew in every process, so nobody outside can aim at one bucket. The MD5 is nginx's
//! name of the file, of the text alone; it protects nothing, because a file states the whole key and that is compared.
//! Next: `vary`, the other half of what tells two answers apart.

use crate::footprint::{allocated, counted};
use md5::{Digest, Md5};
use millstream_conf::model::CacheZone;
use std::fmt;

#[cfg(test)]
mod tests;

/// In bytes. A request with a longer key bypasses the cache.
pub const LONGEST_TEXT: usize = 8 * 1024;

/// Parts whose places need no memory of their own.
const INLINE: usize = 15;
/// Bytes that state where one part is.
const PLACE: usize = 4;

/// Bytes of `keys_zone` per key: nginx keeps about 8,000 in a megabyte.
const KEY_SHARE: u64 = 128;

pub(crate) fn most_keys(zone: &CacheZone) -> u64 {
    (zone.keys_size / KEY_SHARE).max(1)
}

/// The text of a key is longer than [`LONGEST_TEXT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// Where the variable parts of a key's text are, recorded while the text is evaluated.
#[derive(Debug, Default)]
pub struct Parts {
    count: u32,
    places: [[u8; PLACE]; INLINE],
    /// Those beyond `places`: a key of more than fifteen variables allocates.
    more: Vec<u8>,
}

impl Parts {
    /// Records that a variable gave these bytes of the text. One without a value gave none, and is recorded
    /// all the same.
    #[inline]
    pub fn note(&mut self, start: usize, end: usize) {
        // Past the bound the numbers mean nothing; `close` refuses such a key.
        let [start, length] = [start as u16, end.saturating_sub(start) as u16];
        let ([a, b], [c, d]) = (start.to_le_bytes(), length.to_le_bytes());
        match self.places.get_mut(self.count as usize) {
            Some(place) => *place = [a, b, c, d],
            None => self.more.extend_from_slice(&[a, b, c, d]),
        }
        self.count += 1;
    }

    /// Completes the key after its text in the buffer. On an error the text stays as it is.
    #[inline]
    pub fn close(self, key: &mut Vec<u8>) -> Result<(), TooLong> {
        if key.len() > LONGEST_TEXT {
            return Err(TooLong);
        }
        key.extend_from_slice(self.places[..INLINE.min(self.count as usize)].as_flattened());
        key.extend_from_slice(&self.more);
        key.extend_from_slice(&self.count.to_le_bytes());
        Ok(())
    }
}

/// For people and file names. What was not made by [`Parts`] is all text.
pub fn text(key: &[u8]) -> &[u8] {
    let Some((rest, count)) = key.split_last_chunk() else { return key };
    let count = u32::from_le_bytes(*count) as usize;
    count
        .checked_mul(PLACE)
        .and_then(|places| rest.len().checked_sub(places))
        .map_or(key, |length| &rest[..length])
}

/// A key with its hash; shared by everything that belongs to it.
#[derive(Clone)]
pub struct Key {
    hash: u64,
    bytes: Box<[u8]>,
}

impl Key {
    /// `hash` must come from the store's own hasher.
    pub(crate) fn new(bytes: &[u8], hash: u64) -> Key {
        Key { hash, bytes: bytes.into() }
    }

    /// The whole key: what is compared, hashed and written into files.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What `proxy_cache_key` evaluated to: what people see, prefixes are compared with and files are named
    /// after.
    pub fn text(&self) -> &[u8] {
        text(&self.bytes)
    }

    /// Only meaningful within one store.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn cost(&self) -> u64 {
        counted::<Key>() + allocated(self.bytes.len())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.text().escape_ascii())
    }
}

/// nginx's file name: the MD5 of the text. Takes the whole key. Two keys of one text share the name; the file
/// belongs to the one that it states.
pub fn md5(key: &[u8]) -> [u8; 16] {
    Md5::digest(text(key)).into()
}

/// The file name of a variant. The key's length goes first, so that no key can imitate a key and a variant of
/// another.
pub fn md5_of_variant(key: &[u8], variant: &[u8]) -> [u8; 16] {
    let mut digest = Md5::new();
    digest.update(b"variant\0");
    digest.update((key.len() as u64).to_le_bytes());
    digest.update(key);
    digest.update(variant);
    digest.finalize().into()
}
