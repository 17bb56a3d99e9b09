//! An nginx.conf as text → tree → typed model, with every error located.
//!
//! Floor 1: no I/O but reading the named files, no clock, no runtime. Modules stand lowest floor first.
//! The door is [`load`]; engines take parts of [`model`].

pub mod source;
pub mod diagnostics;
pub mod tree;
pub mod variables;
pub mod model;
