//! HPACK (RFC 7541): field lines as compressed blocks, decoded with a table for each connection, encoded without one.
//!
//! [`HpackDecoder`] hands out one [`Line`] after the other, borrowed from its tables; it knows how a line is written, not
//! what a message may hold, which is for `crate::h2::request` and `crate::h2::response`. [`encoder`] keeps no state at
//! all, so that a block can be kept and sent on any connection.
//!
//! The order of the modules below is the order in which they may use each other, lowest first.

pub mod integer;
pub mod huffman;
pub mod line;
pub mod static_table;
pub mod dynamic_table;
pub mod decoder;
pub mod encoder;

#[cfg(test)]
mod tests;

pub use decoder::{CompressionError, Extent, HpackDecoder};
pub use line::{Flaw, Line, LineName, Pseudo};
