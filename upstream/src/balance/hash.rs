//! `hash KEY`: one server for one key, the same as nginx and Cache::Memcached choose.
//!
//! A number is made of the CRC-32 of the key; where its server cannot be asked, one more is added to it, of the key with
//! the count of rounds before it.

use super::shares::Shares;
use super::{Ask, Set};

/// `None`: the others take turns.
pub(super) fn choose(shares: &Shares, set: Set<'_>, ask: &mut Ask<'_>) -> Option<usize> {
    if ask.key.is_empty() {
        return None;
    }
    let key = ask.key;
    shares.search(set, ask, |search| {
        let mut crc = crc32fast::Hasher::new();
        if search.rounds > 0 {
            crc.update(search.rounds.to_string().as_bytes());
        }
        crc.update(key);
        search.hash.wrapping_add((crc.finalize() >> 16) & 0x7fff)
    })
}
