//! What goes to an application: the beginning of a request, its parameters, and streams of records.
//!
//! Nothing is padded: the protocol only recommends it, and whoever reads records has to take any length.

use super::{HEADER, Kind, REQUEST, VERSION};

pub const MOST: usize = u16::MAX as usize;

/// `length` is at most [`MOST`].
pub fn header(kind: Kind, length: usize) -> [u8; HEADER] {
    debug_assert!(length <= MOST);
    let ([id_high, id_low], [high, low]) = (REQUEST.to_be_bytes(), (length as u16).to_be_bytes());
    [VERSION, kind as u8, id_high, id_low, high, low, 0, 0]
}

/// `keep` asks the application to leave the connection open after the response.
pub fn begin(out: &mut Vec<u8>, keep: bool) {
    const RESPONDER: u8 = 1;
    out.extend_from_slice(&header(Kind::BeginRequest, 8));
    out.extend_from_slice(&[0, RESPONDER, u8::from(keep), 0, 0, 0, 0, 0]);
}

/// A whole stream: its bytes in records, and the empty one that ends it.
pub fn stream(out: &mut Vec<u8>, kind: Kind, bytes: &[u8]) {
    for piece in bytes.chunks(MOST) {
        out.extend_from_slice(&header(kind, piece.len()));
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(&header(kind, 0));
}

/// A name or value of 2 GiB or more cannot be represented and is truncated.
pub fn pair(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let most = i32::MAX as usize;
    let (name, value) = (&name[..name.len().min(most)], &value[..value.len().min(most)]);
    length(out, name.len());
    length(out, value.len());
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

/// One byte up to 127, else four with the highest bit set.
fn length(out: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short @ ..=127) => out.push(short),
        _ => out.extend_from_slice(&(length as u32 | 0x8000_0000).to_be_bytes()),
    }
}
