//! Encodes header blocks without a dynamic table, so that a block is the same for every connection and can be kept.
//! [`kept_field`] and [`from_table`] are for who sends one and the same request again and again.
//!
//! Every function appends one line. A block that starts with [`size_update`] of 0 tells the peer that it needs no table
//! for this side. Names and values are written as given: they were checked when they were parsed or configured.
//! Next: `crate::h2::write`, which frames a block.

use super::{huffman, integer, static_table};
use crate::field_id::FieldId;
use std::ops::Range;

/// Static index of the first `:status` line.
const STATUS: usize = 8;

/// Prefix of a literal that is never indexed (RFC 7541 §6.2.2), neither here nor downstream (§6.2.3).
const NOT_INDEXED: u8 = 0x00;
const NEVER_INDEXED: u8 = 0x10;
/// Prefix of a literal that is put into the table (RFC 7541 §6.2.1).
const INDEXED: u8 = 0x40;

/// The table size that the sender uses from here on (RFC 7541 §6.3); only at the start of a block.
pub fn size_update(out: &mut Vec<u8>, size: usize) {
    integer::encode(out, 0x20, 5, size);
}

/// Three digits (RFC 9113 §8.3.2).
#[inline]
pub fn status(out: &mut Vec<u8>, status: u16) {
    let index = match status {
        200 => 8,
        204 => 9,
        206 => 10,
        304 => 11,
        400 => 12,
        404 => 13,
        500 => 14,
        _ => {
            integer::encode(out, NOT_INDEXED, 4, STATUS);
            return string(out, itoa::Buffer::new().format(status).as_bytes());
        }
    };
    indexed(out, index);
}

/// Uses the static table's index of the line, or else of its name. Capital letters of the name are lowered.
/// The value is Huffman-coded if that is shorter. Credentials are never indexed (RFC 7541 §7.1.3).
#[inline]
pub fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let known = StaticName::of(name);
    if let Some(index) = known.index.and_then(|first| static_table::index_of_value(first, value)) {
        return indexed(out, index);
    }
    known.literal(out, name);
    string(out, value);
}

/// A line that the peer puts into its table (RFC 7541 §6.2.1), for a sender that tracks it. Returns whether
/// it was: a line of the static table and a credential are written as [`field`] does instead.
pub fn kept_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> bool {
    let known = StaticName::of(name);
    let is_static = known.index.and_then(|first| static_table::index_of_value(first, value)).is_some();
    if known.is_secret || is_static {
        field(out, name, value);
        return false;
    }
    match known.index {
        Some(index) => integer::encode(out, INDEXED, 6, index),
        None => {
            out.push(INDEXED);
            lower_string(out, name);
        }
    }
    string(out, value);
    true
}

/// `age` is how many lines were added to the peer's table after it.
pub fn from_table(out: &mut Vec<u8>, age: usize) {
    indexed(out, static_table::LENGTH + 1 + age);
}

#[inline]
pub fn number_field(out: &mut Vec<u8>, name: &[u8], value: u64) {
    field(out, name, itoa::Buffer::new().format(value).as_bytes());
}

/// Never Huffman-coded, so that the value can be overwritten in place. Returns where it stands in `out`.
pub fn raw_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Range<usize> {
    StaticName::of(name).literal(out, name);
    raw_string(out, value);
    out.len() - value.len()..out.len()
}

/// `make` appends the value, and must leave what stands before alone. Not Huffman-coded.
pub fn made_field<R>(out: &mut Vec<u8>, name: &[u8], make: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    StaticName::of(name).literal(out, name);
    // One octet holds the length of most values; a longer length is moved in front of its value.
    let at = out.len();
    out.push(0);
    let result = make(out);
    debug_assert!(out.len() > at);
    let end = out.len();
    let length = end.saturating_sub(at + 1);
    integer::encode(out, 0, 7, length);
    let octets = out.len() - end;
    if octets == 1 {
        out.swap_remove(at);
    } else {
        out[at..].rotate_right(octets);
        out.remove(at + octets);
    }
    result
}

struct StaticName {
    /// The first entry with the name.
    index: Option<usize>,
    is_secret: bool,
}

impl StaticName {
    #[inline]
    fn of(name: &[u8]) -> StaticName {
        let id = FieldId::of(name);
        let index = if id == FieldId::Other {
            static_table::index_of_name(name)
        } else {
            static_table::index_of_field(id)
        };
        let is_secret = matches!(id, FieldId::Authorization | FieldId::ProxyAuthorization);
        StaticName { index, is_secret }
    }

    #[inline]
    fn literal(&self, out: &mut Vec<u8>, name: &[u8]) {
        let kind = if self.is_secret { NEVER_INDEXED } else { NOT_INDEXED };
        match self.index {
            Some(index) => integer::encode(out, kind, 4, index),
            None => {
                out.push(kind);
                lower_string(out, name);
            }
        }
    }
}

#[inline]
fn indexed(out: &mut Vec<u8>, index: usize) {
    integer::encode(out, 0x80, 7, index);
}

/// Coded in the shorter way (RFC 7541 §5.2).
#[inline]
fn string(out: &mut Vec<u8>, text: &[u8]) {
    let coded = huffman::encoded_length(text);
    if coded < text.len() {
        integer::encode(out, 0x80, 7, coded);
        huffman::encode(text, out);
    } else {
        raw_string(out, text);
    }
}

#[inline]
fn raw_string(out: &mut Vec<u8>, text: &[u8]) {
    integer::encode(out, 0, 7, text.len());
    out.extend_from_slice(text);
}

fn lower_string(out: &mut Vec<u8>, name: &[u8]) {
    const MOST: usize = 64;
    let mut buffer = [0u8; MOST];
    match buffer.get_mut(..name.len()) {
        Some(lower) => {
            lower.copy_from_slice(name);
            lower.make_ascii_lowercase();
            string(out, lower);
        }
        // So long a name is written as it is, where it is lowered in place.
        None => {
            raw_string(out, name);
            let start = out.len() - name.len();
            out[start..].make_ascii_lowercase();
        }
    }
}
