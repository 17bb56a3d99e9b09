//! `split_clients`: which share a client is in, by nginx's hash (MurmurHash2 of Austin Appleby, which is in the public domain).

use crate::request::Request;
use crate::variables::evaluate;
use millstream_conf::model::SplitClients;

/// Appends nothing if no share matches.
pub(super) fn append(split: &SplitClients, request: &Request, out: &mut Vec<u8>) {
    let start = out.len();
    evaluate(&split.key, request, out);
    let hash = murmur2(&out[start..]);
    out.truncate(start);
    if let Some(share) = split.shares.iter().find(|share| share.below.is_none_or(|below| hash < below)) {
        out.extend_from_slice(share.value.as_bytes());
    }
}

/// MurmurHash2, 32 bits, seed 0.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = data.len() as u32;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut word = u32::from_le_bytes(*word).wrapping_mul(M);
        word ^= word >> 24;
        hash = hash.wrapping_mul(M) ^ word.wrapping_mul(M);
    }
    if !rest.is_empty() {
        for (at, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * at);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 15
}
