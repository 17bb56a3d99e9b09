//! The ladder: every step in front of the user's own API, measured in turns, its answers checked, its worth in words.
//!
//! `result` is what it comes to (pure, serde), `course` in which order and for how long, `chance` which differences count, `gain` and
//! `problems` the sentences, `page` what is shown of it. `climb` does it: it starts what `stand` puts up, asks, measures, and ends everything again.

pub mod chance;
pub mod course;
pub mod result;
mod problems;
pub mod gain;
pub mod page;
mod stand;
mod direct;
mod measuring;
pub mod climb;
#[cfg(test)]
mod tests;
