//! `ip_hash`: one server for one client, the same as nginx chooses.
//!
//! An IPv4 address counts with its first three octets, an IPv6 address as a whole; all clients of unix sockets are one.

use super::shares::Shares;
use super::{Ask, Set};

/// Initial value of a request's first hash; nginx's numbers, here and below.
const START: u32 = 89;

/// By the binary address of the client; `None`: the others take turns.
pub(super) fn choose(shares: &Shares, set: Set<'_>, ask: &mut Ask<'_>) -> Option<usize> {
    let address: &[u8] = match ask.key {
        [network @ .., _] if network.len() == 3 => network,
        whole if whole.len() == 16 => whole,
        _ => &[0; 3],
    };
    shares.search(set, ask, |search| {
        let start = if search.rounds == 0 { START } else { search.hash };
        address.iter().fold(start, |hash, octet| (hash * 113 + u32::from(*octet)) % 6271)
    })
}
