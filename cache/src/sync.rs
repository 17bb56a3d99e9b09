//! The locks that requests of several threads meet at, so that a model checker can put its own in their place.
//!
//! With the feature `loom`, which only `tests/loom.rs` asks for, every order in which threads may take them is tried.
//! Locks of the disk tier and of the rules of purges are not among them, nor is any atomic: those stay std's, and what
//! depends on their order alone is shown by long histories (`front/tests/simulation`), not by every history. Next: `line`, `progress` and `memory`, which use them.

#[cfg(feature = "loom")]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::{Mutex, MutexGuard};
