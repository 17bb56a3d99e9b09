//! A beat: what a node lets the others know about itself, once a second and when it has carried out what someone waits for.
//!
//! ```text
//! | version u8 | issuer 16 | process u64 | count u64 | published u64 | sequence u64 | token: length u8, text | name: length u8, text | has left u8 |
//! | cut off after u64, milliseconds; the greatest number: it serves | key print u64 | marks, 24 bytes each |
//! ```
//! It is sealed. No bytes make the decoder panic. Next: `peers`.

use crate::held::Held;
use crate::key_print::KeyPrint;
use crate::order::Issuer;
use crate::settings::Settings;
use std::time::Duration;

const VERSION: u8 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Beat {
    /// Whose it is: that of another node is not taken for it.
    pub(crate) issuer: Issuer,
    /// Random bits of the process: two that beat as one node have one journal.
    pub(crate) process: u64,
    /// Of the beats of the process: an earlier one is not taken for the latest.
    pub(crate) count: u64,
    /// The greatest number of its own orders that was in a log.
    pub(crate) published: u64,
    /// How far it has read the log.
    pub(crate) sequence: u64,
    /// Token of the epoch for whose log it has published whatever it holds that was missing; empty while it has not.
    pub(crate) settled: String,
    pub(crate) name: String,
    /// It has ended on purpose, and serves nothing.
    pub(crate) has_left: bool,
    /// After how long without the engine it revalidates what it has stored; `None` if it serves it.
    pub(crate) cut_off: Option<Duration>,
    pub(crate) keys: KeyPrint,
    /// How far it has carried out the orders of others.
    pub(crate) marks: Vec<(Issuer, u64)>,
}

impl Beat {
    pub(crate) fn of(
        held: &Held,
        settings: &Settings,
        (process, count): (u64, u64),
        (is_settled, keys): (bool, KeyPrint),
    ) -> Beat {
        let token = held.epoch.as_ref().filter(|_| is_settled).map_or("", |epoch| epoch.token());
        Beat {
            issuer: held.issuer,
            process,
            count,
            published: held.published,
            sequence: held.cursor.sequence,
            settled: token.to_owned(),
            name: settings.node.clone(),
            has_left: false,
            cut_off: (!settings.serves).then_some(settings.cut_off),
            keys,
            marks: held.marks.iter().map(|(issuer, mark)| (issuer, mark.number)).collect(),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.issuer.0);
        for number in [self.process, self.count, self.published, self.sequence] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for text in [&self.settled, &self.name] {
            let text = &text.as_bytes()[..text.len().min(255)];
            out.push(text.len() as u8);
            out.extend_from_slice(text);
        }
        out.push(u8::from(self.has_left));
        let cut_off = self.cut_off.map_or(u64::MAX, |time| time.as_millis() as u64);
        out.extend_from_slice(&cut_off.to_le_bytes());
        out.extend_from_slice(&self.keys.0.to_le_bytes());
        for (issuer, number) in &self.marks {
            out.extend_from_slice(&issuer.0);
            out.extend_from_slice(&number.to_le_bytes());
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Beat> {
        let rest = bytes.strip_prefix(&[VERSION])?;
        let (issuer, rest) = rest.split_first_chunk::<16>()?;
        let (process, rest) = rest.split_first_chunk::<8>()?;
        let (count, rest) = rest.split_first_chunk::<8>()?;
        let (published, rest) = rest.split_first_chunk::<8>()?;
        let (sequence, rest) = rest.split_first_chunk::<8>()?;
        let (settled, rest) = text(rest)?;
        let (name, rest) = text(rest)?;
        let (has_left, rest) = rest.split_first()?;
        let has_left = *has_left != 0;
        let (cut_off, rest) = rest.split_first_chunk::<8>()?;
        let cut_off = Some(u64::from_le_bytes(*cut_off)).filter(|time| *time < u64::MAX);
        let cut_off = cut_off.map(Duration::from_millis);
        let (keys, rest) = rest.split_first_chunk::<8>()?;
        let keys = KeyPrint(u64::from_le_bytes(*keys));
        let mut marks = Vec::with_capacity(rest.len() / 24);
        for mark in rest.chunks(24) {
            let (issuer, number) = mark.split_first_chunk::<16>()?;
            marks.push((Issuer(*issuer), u64::from_le_bytes(number.try_into().ok()?)));
        }
        let issuer = Issuer(*issuer);
        let (process, count) = (u64::from_le_bytes(*process), u64::from_le_bytes(*count));
        let (published, sequence) = (u64::from_le_bytes(*published), u64::from_le_bytes(*sequence));
        Some(Beat {
            issuer,
            process,
            count,
            published,
            sequence,
            settled,
            name,
            has_left,
            cut_off,
            keys,
            marks,
        })
    }

    /// Whether the node has carried out an order of another.
    pub(crate) fn has(&self, issuer: Issuer, number: u64) -> bool {
        self.marks.iter().any(|(of, mark)| *of == issuer && *mark >= number)
    }
}

fn text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (text, rest) = rest.split_at_checked(*length as usize)?;
    Some((String::from_utf8_lossy(text).into_owned(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_survives_its_bytes_and_no_part_of_it_is_one() {
        let beat = Beat {
            issuer: Issuer([5; 16]),
            process: 7,
            count: 12,
            published: 3,
            sequence: 9,
            settled: "abc".to_owned(),
            name: "a.example".to_owned(),
            has_left: true,
            cut_off: Some(Duration::from_secs(9)),
            keys: KeyPrint(77),
            marks: vec![(Issuer([1; 16]), 4)],
        };
        let bytes = beat.encode();
        assert_eq!(Beat::decode(&bytes), Some(beat.clone()));
        let serves = Beat { cut_off: None, ..beat.clone() };
        assert_eq!(Beat::decode(&serves.encode()), Some(serves));
        for cut in 0..bytes.len() {
            assert!(Beat::decode(&bytes[..cut]).is_none_or(|beat| beat.marks.is_empty()));
        }
        assert!(beat.has(Issuer([1; 16]), 4) && !beat.has(Issuer([1; 16]), 5));
    }
}
