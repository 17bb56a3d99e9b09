//! Conversions between two charsets, by byte or by character.

/// A `charset_map`, for one of its two ways.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The name of the charset that is converted.
    pub from: Box<str>,
    /// That of the charset that comes of it.
    pub to: Box<str>,
    /// What becomes of each character.
    pub table: Table,
}

/// What becomes of the characters of a text.
#[derive(Debug, Clone)]
pub enum Table {
    /// A byte becomes a byte.
    Bytes(Box<[u8; 256]>),
    /// A byte becomes a character of UTF-8.
    ToUtf8(Box<[char; 256]>),
    /// A character of UTF-8 becomes a byte: pairs in order of the characters.
    FromUtf8(Box<[(char, u8)]>),
}

/// What stands for a byte that has no other.
const UNKNOWN: char = '?';

impl Table {
    /// Both ways of a map between two charsets of bytes: ASCII stays, the rest is as the pairs have it.
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

    /// Both ways of a map from a charset of bytes to UTF-8.
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
