//! The bytes of a journal: `net::records`, of two kinds.
//!
//! ```text
//! | kind u8 | body |
//! state:  issuer 16, issued u64, published u64, cursor 2 × u64, length u16 and text of the epoch, marks of 25 bytes
//! order:  sequence number u64 (0: in no log), the order
//! ```
//! A later state takes the place of an earlier one. No bytes make the decoder panic. Next: `journal`, which does the I/O.

use crate::epoch::Epoch;
use crate::held::{Cursor, Held};
use crate::marks::{Mark, Marks};
use crate::order::{self, Issuer, Order};
use millstream_net::records::{self, Magic, RecordsEnd};

const MAGIC: &Magic = b"MILLCLUS\x01\0\0\0";
/// A state with all marks is shorter, and so is an order.
const LONGEST: usize = order::LONGEST + 1024;
const STATE: u8 = 1;
const ORDER: u8 = 2;

pub(crate) fn state(held: &Held, out: &mut Vec<u8>) {
    records::append(out, |out| {
        out.push(STATE);
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
    records::append(out, |out| {
        out.push(ORDER);
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

enum Record {
    State(Held),
    Order(Option<u64>, Order),
}

fn record(payload: &[u8]) -> Option<Record> {
    let (kind, body) = payload.split_first()?;
    match *kind {
        STATE => Some(Record::State(read_state(body)?)),
        ORDER => {
            let (place, rest) = body.split_first_chunk::<8>()?;
            let place = u64::from_le_bytes(*place);
            Some(Record::Order((place > 0).then_some(place), Order::decode(rest)?))
        }
        _ => None,
    }
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
    pub(crate) end: RecordsEnd,
}

impl Decoded {
    /// What cannot be read at all.
    pub(crate) fn damaged() -> Decoded {
        Decoded { held: None, end: RecordsEnd { damaged: true, ..RecordsEnd::default() } }
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Decoded {
    let mut held: Option<Held> = None;
    let mut is_headless = false;
    let mut end = records::decode(bytes, MAGIC, LONGEST, |payload| {
        match (record(payload)?, &mut held) {
            (Record::State(state), Some(held)) => held.take_state(state),
            (Record::State(state), none) => *none = Some(state),
            (Record::Order(place, order), Some(held)) => held.add(place, order),
            (Record::Order(..), None) => is_headless = true,
        }
        Some(())
    });
    end.damaged |= is_headless;
    if let Some(held) = &mut held {
        let own = held.issuer;
        let last =
            held.orders().filter(|(_, order)| order.issuer == own).map(|(_, order)| order.number).max();
        held.issued = held.issued.max(last.unwrap_or(0));
    }
    Decoded { held, end }
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
            assert!(decoded.end == RecordsEnd::default());
            assert_eq!(decoded.held, Some(held.clone()));
        }
    }

    #[test]
    fn a_journal_cut_at_any_byte_is_torn_and_a_flipped_bit_before_its_end_is_damage() {
        let (_, bytes) = held();
        for cut in MAGIC.len()..bytes.len() {
            assert!(!decode(&bytes[..cut]).end.damaged, "{cut}");
        }
        let last = bytes.len() - records::FRAME - 1 - 16 - 34 - 17 - 25;
        for at in 0..last {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            assert!(decode(&bytes).end.damaged, "{at}");
        }
    }
}
