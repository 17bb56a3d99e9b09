//! The verbs that measure: `bench`, `ladder`, `demo` and `capacity`.
//!
//! Flags come in, text goes out, JSON and a page where they are asked for; what is measured and how is the crate `load`'s.
//! What the verbs share: `end` (how a command ends), `stop` (Ctrl-C), `output` (where the reports go).

// What goes to a terminal goes through `end` or `output`, which make it harmless.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod end;
mod stop;
pub mod output;
pub mod bench;
pub mod ladder;
pub mod demo;
pub mod capacity;
