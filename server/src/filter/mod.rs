//! What is done to an answer on its way out: its head is written, its body compressed.
//!
//! Filters decide from the request, the location and the answer's fields alone; they do no I/O.

pub mod gzip;
pub mod expires;
pub mod head;
#[cfg(test)]
mod tests;
