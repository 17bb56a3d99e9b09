//! `ip_hash`: one server for one client, the same as nginx chooses.
//!
//! An IPv4 address counts with its first three octets, an IPv6 address as a whole; all clients of unix sockets are one.

use super::shares::Shares;
use super::{Ask, MOST_MISSES, Set};

/// What the first hash of a request starts from; nginx's numbers, here and below.
const START: u32 = 89;

/// The server of the client whose address in binary is the key; `None`: let the others take turns.
pub(super) fn choose(shares: &Shares, set: Set<'_>, ask: &mut Ask<'_>) -> Option<usize> {
    let address: &[u8] = match ask.key {
        [network @ .., _] if network.len() == 3 => network,
        whole if whole.len() == 16 => whole,
        _ => &[0; 3],
    };
    let mut search = ask.tried.search.clone();
    if search.rounds == 0 {
        search.hash = START;
    }
    let mut found = None;
    while found.is_none() && search.misses <= MOST_MISSES {
        search.hash = address.iter().fold(search.hash, |hash, octet| (hash * 113 + u32::from(*octet)) % 6271);
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
