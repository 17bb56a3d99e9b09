//! `hash KEY`: one server for one key, the same as nginx and Cache::Memcached choose.
//!
//! A number is made of the CRC-32 of the key; where its server cannot be asked, one more is added to it, of the key with
//! the count of rounds before it.

use super::shares::Shares;
use super::{Ask, MOST_MISSES, Set};

/// The server of the key; `None`: let the others take turns.
pub(super) fn choose(shares: &Shares, set: Set<'_>, ask: &mut Ask<'_>) -> Option<usize> {
    if ask.key.is_empty() {
        return None;
    }
    let mut search = ask.tried.search.clone();
    let mut found = None;
    while found.is_none() && search.misses <= MOST_MISSES {
        let mut crc = crc32fast::Hasher::new();
        if search.rounds > 0 {
            crc.update(search.rounds.to_string().as_bytes());
        }
        crc.update(ask.key);
        search.hash = search.hash.wrapping_add((crc.finalize() >> 16) & 0x7fff);
        search.rounds += 1;
        let index = shares.find(u64::from(search.hash));
        if set.is_open(index, ask) {
            found = Some(set.first + index);
        } else {
            search.misses += 1;
        }
    }
    ask.tried.search = search;
    found
}
