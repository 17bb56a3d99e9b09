//! One rule, and its bytes in the journal.
//!
//! ```text
//! | length u32 | CRC u32 of length and the rest | number u64 | moment i64 | how u8 | scope u8 | prefix, 8 bytes or none |
//! ```
//! All numbers are little-endian. It does no I/O; no bytes make it panic. Next: `rules`.

use super::How;
use crate::key;

/// In bytes; no key has a longer text.
pub(crate) const LONGEST_PREFIX: usize = 8 * 1024;
/// Magic and version of every journal.
pub(super) const MAGIC: &[u8; 12] = b"MILLPURG\x01\0\0\0";
/// Length and checksum.
const FRAME: usize = 8;
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
        let start = out.len();
        out.extend_from_slice(&((FIXED + bytes.len()) as u32).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.at.to_le_bytes());
        out.push(u8::from(self.how == How::Soft));
        out.push(scope);
        out.extend_from_slice(bytes);
        let sum = checksum(&out[start..]).to_le_bytes();
        out[start + 4..start + FRAME].copy_from_slice(&sum);
    }

    /// Also returns its length; `None` unless the bytes begin with a whole rule.
    fn decode(bytes: &[u8]) -> Option<(Rule, usize)> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        if !(FIXED..=FIXED + LONGEST_PREFIX).contains(&length) {
            return None;
        }
        let (sum, rest) = rest.split_first_chunk::<4>()?;
        let payload = rest.get(..length)?;
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
        let whole = &bytes[..FRAME + length];
        let rule = Rule { number: u64::from_le_bytes(*number), at: i64::from_le_bytes(*at), how, scope };
        (checksum(whole).to_le_bytes() == *sum).then_some((rule, whole.len()))
    }
}

/// Its own four bytes left out.
fn checksum(record: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&record[..4]);
    sum.update(&record[FRAME..]);
    sum.finalize()
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) rules: Vec<Rule>,
    /// It ends in the middle of a record: of a purge that was never acknowledged.
    pub(super) torn: bool,
    /// Something before its end cannot be read, so a promised purge may be missing.
    pub(super) damaged: bool,
}

pub(super) fn decode(bytes: &[u8]) -> Decoded {
    let mut decoded = Decoded::default();
    let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
        return Decoded { damaged: true, ..decoded };
    };
    while let Some((rule, length)) = Rule::decode(rest) {
        decoded.rules.push(rule);
        rest = &rest[length..];
    }
    decoded.torn = !rest.is_empty();
    // Whatever follows a torn record was never promised; a whole one behind a bad one says that it was not torn.
    decoded.damaged = (1..rest.len()).any(|from| Rule::decode(&rest[from..]).is_some());
    decoded
}
