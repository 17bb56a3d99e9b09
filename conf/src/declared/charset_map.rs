//! Conversions between two charsets, by byte or by character.

#[derive(Debug, Clone)]
pub struct Conversion {
    pub from: Box<str>,
    pub to: Box<str>,
    pub table: Table,
}

#[derive(Debug, Clone)]
pub enum Table {
    Bytes(Box<[u8; 256]>),
    ToUtf8(Box<[char; 256]>),
    FromUtf8(Box<[(char, u8)]>),
}

/// Replaces a byte that has no mapping.
const UNKNOWN: char = '?';

impl Table {
    /// Both directions of a map between two byte charsets: ASCII stays, the rest follows the pairs.
    pub fn of_bytes(pairs: &[(u8, u8)]) -> [Table; 2] {
        let plain: [u8; 256] =
            std::array::from_fn(|byte| if byte < 0x80 { byte as u8 } else { UNKNOWN as u8 });
        let (mut there, mut back) = (plain, plain);
        for &(one, other) in pairs {
            there[usize::from(one)] = other;
            back[usize::from(other)] = one;
        }
        [Table::Bytes(Box::new(there)), Table::Bytes(Box::new(back))]
    }

    pub fn of_characters(pairs: &[(u8, char)]) -> [Table; 2] {
        let mut there: [char; 256] =
            std::array::from_fn(|byte| if byte < 0x80 { char::from(byte as u8) } else { UNKNOWN });
        let mut back: Vec<(char, u8)> = Vec::new();
        for &(byte, character) in pairs {
            there[usize::from(byte)] = character;
            back.retain(|(known, _)| *known != character);
            back.push((character, byte));
        }
        back.sort_unstable();
        [Table::ToUtf8(Box::new(there)), Table::FromUtf8(back.into())]
    }
}
