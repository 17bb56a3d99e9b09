//! What is done to an answer on its way out: its head is written, its body coded.
//!
//! Filters decide from the request, the location and the answer's fields alone; they do no I/O.

pub mod compressor;
pub mod coding;
pub mod expires;
pub mod charset;
pub mod head;
pub mod trailers;
#[cfg(test)]
mod tests;
