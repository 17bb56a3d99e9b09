//! Decodes header blocks (RFC 7541 §3.2, §6) line by line.
//!
//! A block is always decoded to its end, whatever whoever takes the lines thinks of them: the table must follow the
//! peer's. Lines are borrowed, from the tables where they stand there. What a line means is not known here. Next:
//! `crate::h2::request`.

use super::dynamic_table::{DEFAULT_SIZE, DynamicTable};
use super::line::{self, Flaw, Line, LineName};
use super::{huffman, integer, static_table};

/// Octets of memory for literals kept from block to block.
const KEPT: usize = 4096;

/// The text follows "client sent ": a connection error of type COMPRESSION_ERROR (RFC 9113 §4.3). The table
/// is then unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressionError(pub &'static str);

const CUT_OFF: CompressionError = CompressionError("a truncated header block");
const BAD_INTEGER: CompressionError = CompressionError("an invalid integer in a header block");
const BAD_HUFFMAN: CompressionError = CompressionError("invalid Huffman code in a header block");
const BAD_INDEX: CompressionError = CompressionError("an unknown index in a header block");
const BAD_SIZE: CompressionError = CompressionError("a header table size above the one advertised");
const LATE_SIZE: CompressionError = CompressionError("a header table size update within a header block");
const NO_SIZE: CompressionError =
    CompressionError("a header block without the required header table size update");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// Lines past the bound were dropped.
    Overlarge,
}

/// The receiving side's state for all blocks of one connection.
#[derive(Debug)]
pub struct HpackDecoder {
    table: DynamicTable,
    /// Upper bound of the peer's table size.
    advertised: usize,
    /// The table is larger than advertised, so the next block must start with a size update (RFC 9113
    /// §4.3.1).
    update_due: bool,
    literal: Vec<u8>,
}

impl Default for HpackDecoder {
    fn default() -> HpackDecoder {
        HpackDecoder {
            table: DynamicTable::default(),
            advertised: DEFAULT_SIZE,
            update_due: false,
            literal: Vec::new(),
        }
    }
}

impl HpackDecoder {
    /// The peer acknowledged SETTINGS_HEADER_TABLE_SIZE, which binds it from its next block on. Until then it
    /// is [`DEFAULT_SIZE`].
    pub fn advertised(&mut self, size: usize) {
        self.advertised = size;
        self.update_due = self.table.largest() > size;
    }

    /// Decodes a whole block and passes on its lines in order, until they count for more than `list` octets,
    /// 32 per line included (RFC 9113 §6.5.2). Before an error, earlier lines have been passed on.
    #[inline]
    pub fn decode(
        &mut self,
        block: &[u8],
        list: usize,
        mut give: impl FnMut(Line<'_>),
    ) -> Result<Extent, CompressionError> {
        let mut input = Octets { rest: block };
        self.size_updates(&mut input)?;
        let mut left = list;
        let mut extent = Extent::Whole;
        let mut give_within = |line: Line<'_>| match left.checked_sub(line.size()) {
            Some(rest) if extent == Extent::Whole => {
                left = rest;
                give(line);
            }
            _ => extent = Extent::Overlarge,
        };
        while let Some(&first) = input.rest.first() {
            if first >= 0x80 {
                let index = input.integer(7)?;
                give_within(lookup(&self.table, index)?);
                continue;
            }
            if first & 0xe0 == 0x20 {
                return Err(LATE_SIZE);
            }
            let is_kept = first & 0x40 != 0;
            let index = input.integer(if is_kept { 6 } else { 4 })?;
            let literal = self.literal(&mut input, index)?;
            let line = literal.line(&self.literal);
            if is_kept {
                self.table.insert(line);
            }
            give_within(line);
        }
        if self.literal.capacity() > KEPT {
            self.literal = Vec::new();
        }
        Ok(extent)
    }

    /// As RFC 7541 §4.1 counts it.
    pub fn table_size(&self) -> usize {
        self.table.size()
    }

    pub fn memory(&self) -> usize {
        self.table.memory() + self.literal.capacity()
    }

    /// Allowed only at the start of a block (RFC 7541 §4.2, §6.3).
    #[inline]
    fn size_updates(&mut self, input: &mut Octets<'_>) -> Result<(), CompressionError> {
        while let Some(&first) = input.rest.first()
            && first & 0xe0 == 0x20
        {
            let size = input.integer(5)?;
            if size > self.advertised {
                return Err(BAD_SIZE);
            }
            self.table.resize(size);
            self.update_due = false;
        }
        if self.update_due { Err(NO_SIZE) } else { Ok(()) }
    }

    /// Reads a literal (RFC 7541 §6.2) into `self.literal`; the name is that of line `index` unless that is
    /// 0.
    fn literal(&mut self, input: &mut Octets<'_>, index: usize) -> Result<Literal, CompressionError> {
        self.literal.clear();
        let (called, name_flaw) = if index == 0 {
            input.string(&mut self.literal)?;
            LineName::of(&self.literal)
        } else {
            let line = lookup(&self.table, index)?;
            self.literal.extend_from_slice(line.name());
            // The other line's value is nothing to this one.
            (line.called, line.flaw.filter(|&flaw| flaw == Flaw::Name))
        };
        let name_length = self.literal.len();
        self.literal.extend_from_slice(b": ");
        input.string(&mut self.literal)?;
        let flaw = name_flaw.or(line::flaw_of_value(&self.literal[name_length + 2..]));
        self.literal.extend_from_slice(b"\r\n");
        Ok(Literal { called, flaw, name_length: name_length as u32 })
    }
}

struct Literal {
    called: LineName,
    flaw: Option<Flaw>,
    name_length: u32,
}

impl Literal {
    fn line(self, text: &[u8]) -> Line<'_> {
        Line::new(self.called, self.flaw, text, self.name_length)
    }
}

/// `index` spans both tables (RFC 7541 §2.3.3).
#[inline]
fn lookup(table: &DynamicTable, index: usize) -> Result<Line<'_>, CompressionError> {
    match index.checked_sub(static_table::LENGTH + 1) {
        None => static_table::line(index),
        Some(age) => table.line(age),
    }
    .ok_or(BAD_INDEX)
}

struct Octets<'a> {
    rest: &'a [u8],
}

impl Octets<'_> {
    #[inline]
    fn integer(&mut self, prefix: u32) -> Result<usize, CompressionError> {
        let (value, length) = integer::decode(self.rest, prefix).map_err(|_| BAD_INTEGER)?;
        self.rest = self.rest.get(length..).unwrap_or_default();
        Ok(value as usize)
    }

    /// RFC 7541 §5.2.
    fn string(&mut self, out: &mut Vec<u8>) -> Result<(), CompressionError> {
        let is_coded = *self.rest.first().ok_or(CUT_OFF)? >= 0x80;
        let length = self.integer(7)?;
        let (text, rest) = self.rest.split_at_checked(length).ok_or(CUT_OFF)?;
        self.rest = rest;
        if is_coded {
            huffman::decode(text, out).map_err(|_| BAD_HUFFMAN)
        } else {
            out.extend_from_slice(text);
            Ok(())
        }
    }
}
