//! The bytes of a journal: records, each with its length and checksum.
//!
//! ```text
//! | magic 12 | record … |   record: | length u32 | CRC u32 of length and the rest | kind u8 | body |
//! state:  issuer 16, issued u64, published u64, cursor 2 × u64, length u16 and text of the epoch, marks of 25 bytes
//! order:  sequence number u64 (0: in no log), the order
//! ```
//! A later state takes the place of an earlier one. No bytes make the decoder panic. Next: `journal`, which does the I/O.

use crate::epoch::Epoch;
use crate::held::{Cursor, Held};
use crate::marks::{Mark, Marks};
use crate::order::{self, Issuer, Order};

pub(crate) const MAGIC: &[u8; 12] = b"MILLCLUS\x01\0\0\0";
const FRAME: usize = 8;
/// A state with all marks is shorter, and so is an order.
const LONGEST: usize = order::LONGEST + 1024;
const STATE: u8 = 1;
const ORDER: u8 = 2;

pub(crate) fn state(held: &Held, out: &mut Vec<u8>) {
    framed(STATE, out, |out| {
        out.extend_from_slice(&held.issuer.0);
        for number in [held.issued, held.published, held.cursor.epoch, held.cursor.sequence] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let epoch = held.epoch.as_ref().map(Epoch::to_string).unwrap_or_default();
        out.extend_from_slice(&(epoch.len() as u16).to_le_bytes());
        out.extend_from_slice(epoch.as_bytes());
        for (issuer, mark) in held.marks.iter() {
            out.extend_from_slice(&issuer.0);
            out.extend_from_slice(&mark.number.to_le_bytes());
            out.push(u8::from(mark.open));
        }
    });
}

pub(crate) fn order(place: Option<u64>, order: &Order, out: &mut Vec<u8>) {
    framed(ORDER, out, |out| {
        out.extend_from_slice(&place.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&order.encode());
    });
}

pub(crate) fn whole(held: &Held) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    state(held, &mut bytes);
    held.orders().for_each(|(place, kept)| order(place, kept, &mut bytes));
    bytes
}

fn framed(kind: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME]);
    out.push(kind);
    write(out);
    let length = (out.len() - start - FRAME) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    let sum = checksum(&out[start..]).to_le_bytes();
    out[start + 4..start + FRAME].copy_from_slice(&sum);
}

/// Its own four bytes left out.
fn checksum(record: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&record[..4]);
    sum.update(&record[FRAME..]);
    sum.finalize()
}

enum Record {
    State(Held),
    Order(Option<u64>, Order),
}

fn record(bytes: &[u8]) -> Option<(Record, usize)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let payload = rest.get(..length).filter(|_| length <= LONGEST)?;
    let whole = &bytes[..FRAME + length];
    if checksum(whole).to_le_bytes() != *sum {
        return None;
    }
    let (kind, body) = payload.split_first()?;
    let record = match *kind {
        STATE => Record::State(read_state(body)?),
        ORDER => {
            let (place, rest) = body.split_first_chunk::<8>()?;
            let place = u64::from_le_bytes(*place);
            Record::Order((place > 0).then_some(place), Order::decode(rest)?)
        }
        _ => return None,
    };
    Some((record, whole.len()))
}

fn read_state(body: &[u8]) -> Option<Held> {
    let (issuer, rest) = body.split_first_chunk::<16>()?;
    let (numbers, rest) = rest.split_first_chunk::<32>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (epoch, rest) = rest.split_at_checked(u16::from_le_bytes(*length) as usize)?;
    let number = |at: usize| numbers[8 * at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let mut held = Held::new(Issuer(*issuer));
    (held.issued, held.published) = (number(0)?, number(1)?);
    held.cursor = Cursor { epoch: number(2)?, sequence: number(3)? };
    if !epoch.is_empty() {
        held.epoch = Some(Epoch::parse(std::str::from_utf8(epoch).ok()?)?);
    }
    let mut marks = Marks::default();
    for mark in rest.chunks(25) {
        let (issuer, mark) = mark.split_first_chunk::<16>()?;
        let (number, open) = mark.split_first_chunk::<8>()?;
        marks.set(Issuer(*issuer), Mark { number: u64::from_le_bytes(*number), open: *open.first()? == 1 });
    }
    held.marks = marks;
    Some(held)
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// `None` without a state.
    pub(crate) held: Option<Held>,
    pub(crate) records: usize,
    /// It ends in the middle of a record.
    pub(crate) torn: bool,
    /// Something before its end cannot be read.
    pub(crate) damaged: bool,
}

pub(crate) fn decode(bytes: &[u8]) -> Decoded {
    let mut decoded = Decoded::default();
    let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
        return Decoded { damaged: true, ..decoded };
    };
    while let Some((record, length)) = record(rest) {
        rest = &rest[length..];
        decoded.records += 1;
        match (record, &mut decoded.held) {
            (Record::State(state), Some(held)) => held.take_state(state),
            (Record::State(state), none) => *none = Some(state),
            (Record::Order(place, order), Some(held)) => held.add(place, order),
            (Record::Order(..), None) => decoded.damaged = true,
        }
    }
    decoded.torn = !rest.is_empty();
    // A whole record behind a bad one shows that it was not torn.
    decoded.damaged |= (1..rest.len()).any(|from| record(&rest[from..]).is_some());
    if let Some(held) = &mut decoded.held {
        let own = held.issuer;
        let last =
            held.orders().filter(|(_, order)| order.issuer == own).map(|(_, order)| order.number).max();
        held.issued = held.issued.max(last.unwrap_or(0));
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{How, What};

    fn held() -> (Held, Vec<u8>) {
        let mut held = Held::new(Issuer([1; 16]));
        let mut bytes = MAGIC.to_vec();
        held.epoch = Epoch::parse("3:abc:def:0123:17");
        held.marks.set(Issuer([2; 16]), Mark { number: 9, open: true });
        state(&held, &mut bytes);
        for number in 1..5 {
            let given = Order {
                issuer: held.issuer,
                number,
                at: 5,
                how: How::Soft,
                awaited: false,
                what: What::Prefix(b"http://a/".to_vec()),
            };
            let place = (number % 2 == 0).then_some(number);
            order(place, &given, &mut bytes);
            held.add(place, given);
            held.issued = number;
            held.cursor = Cursor { epoch: 3, sequence: number };
            state(&held, &mut bytes);
        }
        (held, bytes)
    }

    #[test]
    fn what_is_held_survives_its_bytes_appended_or_written_whole() {
        let (held, bytes) = held();
        for bytes in [bytes, whole(&held)] {
            let decoded = decode(&bytes);
            assert!(!decoded.torn && !decoded.damaged);
            assert_eq!(decoded.held, Some(held.clone()));
        }
    }

    #[test]
    fn a_journal_cut_at_any_byte_is_torn_and_a_flipped_bit_before_its_end_is_damage() {
        let (_, bytes) = held();
        for cut in MAGIC.len()..bytes.len() {
            assert!(!decode(&bytes[..cut]).damaged, "{cut}");
        }
        let last = bytes.len() - FRAME - 1 - 16 - 34 - 17 - 25;
        for at in 0..last {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            assert!(decode(&bytes).damaged, "{at}");
        }
    }
}
