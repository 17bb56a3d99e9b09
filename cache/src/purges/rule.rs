//! One rule, and its bytes in the journal.
//!
//! ```text
//! | number u64 | moment i64 | how u8 | scope u8 | prefix, 8 bytes or none |
//! ```
//! All numbers are little-endian; each rule is one of `net::records`. It does no I/O. Next: `rules`.

use super::How;
use crate::key;
use millstream_net::records::{self, Magic, RecordsEnd};

/// In bytes; no key has a longer text.
pub(crate) const LONGEST_PREFIX: usize = 8 * 1024;
/// Magic and version of every journal.
pub(super) const MAGIC: &Magic = b"MILLPURG\x01\0\0\0";
/// Number, moment, how, scope.
const FIXED: usize = 18;

/// What a rule applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    All,
    /// Keys whose text begins so.
    Prefix(Box<[u8]>),
    Tag(u64),
    Key(u64),
    /// Everything that is a slice of a response (`slice`).
    AllPieces,
    /// The slices of the response whose tag has this number.
    Pieces(u64),
}

/// What rules come from. Each kind has bounds and a journal of its own: what clients cause takes no room from
/// the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Purge,
    /// An unsafe request that changed what is stored in slices: as lasting as the removal of a file.
    Change,
}

impl Cause {
    pub(crate) fn widest(self) -> Scope {
        match self {
            Cause::Purge => Scope::All,
            Cause::Change => Scope::AllPieces,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) number: u64,
    /// Milliseconds since 1970.
    pub(crate) at: i64,
    pub(crate) how: How,
    pub(crate) scope: Scope,
}

/// The half of its MD5 that tags do not use; the same in every process.
pub(crate) fn number_of_key(text: &[u8]) -> u64 {
    let [.., a, b, c, d, e, f, g, h] = key::md5(text);
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

impl Rule {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let (scope, bytes): (u8, &[u8]) = match &self.scope {
            Scope::All => (0, &[]),
            Scope::Prefix(prefix) => (1, prefix),
            Scope::Tag(number) => (2, &number.to_le_bytes()),
            Scope::Key(number) => (3, &number.to_le_bytes()),
            Scope::AllPieces => (4, &[]),
            Scope::Pieces(number) => (5, &number.to_le_bytes()),
        };
        records::append(out, |out| {
            out.extend_from_slice(&self.number.to_le_bytes());
            out.extend_from_slice(&self.at.to_le_bytes());
            out.push(u8::from(self.how == How::Soft));
            out.push(scope);
            out.extend_from_slice(bytes);
        });
    }

    fn decode(payload: &[u8]) -> Option<Rule> {
        let (number, payload) = payload.split_first_chunk::<8>()?;
        let (at, payload) = payload.split_first_chunk::<8>()?;
        let ([how, scope], payload) = payload.split_first_chunk::<2>()?;
        let how = match how {
            0 => How::Hard,
            1 => How::Soft,
            _ => return None,
        };
        let eight = || payload.try_into().ok().map(u64::from_le_bytes);
        let scope = match scope {
            0 if payload.is_empty() => Scope::All,
            1 if !payload.is_empty() => Scope::Prefix(payload.into()),
            2 => Scope::Tag(eight()?),
            3 => Scope::Key(eight()?),
            4 if payload.is_empty() => Scope::AllPieces,
            5 => Scope::Pieces(eight()?),
            _ => return None,
        };
        Some(Rule { number: u64::from_le_bytes(*number), at: i64::from_le_bytes(*at), how, scope })
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) rules: Vec<Rule>,
    /// What was cut is a purge that was never acknowledged; what is damaged may be a promised one.
    pub(super) end: RecordsEnd,
}

pub(super) fn decode(bytes: &[u8]) -> Decoded {
    let mut rules = Vec::new();
    let end = records::decode(bytes, MAGIC, FIXED + LONGEST_PREFIX, |payload| {
        rules.push(Rule::decode(payload)?);
        Some(())
    });
    Decoded { rules, end }
}
