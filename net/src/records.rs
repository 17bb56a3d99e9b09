//! Files of records that are appended to, and whose end may be cut.
//!
//! ```text
//! | magic 12 | record … |   record: | length u32 | CRC u32 of length and payload | payload |
//! ```
//! Numbers are little-endian. No bytes make the decoder panic.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub type Magic = [u8; 12];

/// Length and checksum, in bytes.
pub const FRAME: usize = 8;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RecordsEnd {
    /// The file ends in the middle of a record.
    pub torn: bool,
    /// Something before its end cannot be read.
    pub damaged: bool,
}

/// Appends a record with the payload that `write` appends.
pub fn append(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME]);
    write(out);
    let length = (out.len() - start - FRAME) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    let sum = checksum(&out[start..]).to_le_bytes();
    out[start + 4..start + FRAME].copy_from_slice(&sum);
}

/// Gives the payload of each record, at most `longest` bytes, to `take`, which returns `None` if it cannot read it.
pub fn decode(
    bytes: &[u8],
    magic: &Magic,
    longest: usize,
    mut take: impl FnMut(&[u8]) -> Option<()>,
) -> RecordsEnd {
    let Some(mut rest) = bytes.strip_prefix(magic) else {
        return RecordsEnd { torn: false, damaged: true };
    };
    while let Some(payload) = first(rest, longest)
        && take(payload).is_some()
    {
        rest = &rest[FRAME + payload.len()..];
    }
    // A whole record behind a bad one shows that it was not torn.
    let damaged = (1..rest.len()).any(|from| first(&rest[from..], longest).is_some());
    RecordsEnd { torn: !rest.is_empty(), damaged }
}

/// Reads a file of at most `longest` bytes; `None` if there is none.
///
/// # Errors
/// It cannot be read, or is longer.
pub fn read(path: &Path, longest: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Some(bytes))
}

/// The payload of the record that the bytes begin with.
fn first(bytes: &[u8], longest: usize) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let payload = rest.get(..length).filter(|_| length <= longest)?;
    (checksum(&bytes[..FRAME + length]).to_le_bytes() == *sum).then_some(payload)
}

/// Its own four bytes left out.
fn checksum(record: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&record[..4]);
    sum.update(&record[FRAME..]);
    sum.finalize()
}
