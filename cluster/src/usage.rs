//! What a node has counted in a zone of a limit since it last sent it, and its bytes.
//!
//! ```text
//! | version u8 | node 16 | number u64 | moment u64 | its counts: key 16, number u32 |
//! ```
//! All numbers are little-endian. No bytes make the decoder panic. Next: `ledger`, which sends and reads them.

use crate::order::Issuer;
use crate::secret::KeyHash;

const VERSION: u8 = 1;
/// Keys in one: 164 KB.
pub(crate) const MOST_KEYS: usize = 8192;
const HEAD: usize = 33;
const COUNT: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) node: Issuer,
    /// Grows by each of a node.
    pub(crate) number: u64,
    /// By the engine's clock, in milliseconds since 1970, when its node last asked.
    pub(crate) at: u64,
    /// Requests let in since the last, or those under way.
    pub(crate) counts: Vec<(KeyHash, u32)>,
}

impl Usage {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + COUNT * self.counts.len());
        bytes.push(VERSION);
        bytes.extend(self.node.0);
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.at.to_le_bytes());
        for (key, count) in &self.counts {
            bytes.extend(key);
            bytes.extend(count.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Usage> {
        let (head, counts) = bytes.split_first_chunk::<HEAD>()?;
        if head[0] != VERSION || !counts.len().is_multiple_of(COUNT) || counts.len() > COUNT * MOST_KEYS {
            return None;
        }
        let number = |at: usize| Some(u64::from_le_bytes(*head[at..].first_chunk()?));
        let count = |bytes: &[u8]| {
            let (key, count) = bytes.split_first_chunk::<16>()?;
            Some((*key, u32::from_le_bytes(*count.first_chunk()?)))
        };
        Some(Usage {
            node: Issuer(*head[1..].first_chunk()?),
            number: number(17)?,
            at: number(25)?,
            counts: counts.chunks_exact(COUNT).filter_map(count).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written_and_nothing_else_is() {
        let counts = vec![([7; 16], 3), ([8; 16], u32::MAX)];
        let usage = Usage { node: Issuer([9; 16]), number: 5, at: 1 << 40, counts };
        let bytes = usage.encode();
        assert_eq!(Usage::decode(&bytes), Some(usage));
        for length in (0..bytes.len()).filter(|length| *length != HEAD && *length != HEAD + COUNT) {
            assert_eq!(Usage::decode(&bytes[..length]), None, "{length}");
        }
        assert_eq!(Usage::decode(&[&[2], &bytes[1..]].concat()), None, "another version");
        assert_eq!(Usage::decode(&[bytes, vec![0; COUNT * MOST_KEYS]].concat()), None, "too much");
    }
}
