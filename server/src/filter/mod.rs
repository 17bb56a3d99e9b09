//! What is done to an answer on its way out: its body is changed and coded, its head written.
//!
//! Filters decide from the request, the location and the answer's fields alone; they do no I/O. Next: `chain`, the filters of a body.

mod stored_blocks;
pub mod encoder;
pub mod compressor;
pub mod coding;
pub mod backlog;
pub mod body;
mod gunzip;
mod sub_filter;
pub mod addition;
pub mod ssi;
mod recode;
pub mod charset;
pub mod chain;
mod sink;
pub mod expires;
pub mod head;
pub mod trailers;
#[cfg(test)]
mod tests;
