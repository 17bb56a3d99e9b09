//! An nginx.conf as text → tree → typed model, with every error located.
//!
//! Floor 1: no I/O but reading the named files, no clock, no runtime. Modules stand lowest floor first: text and tree
//! (`lexer`, `parser`, `include`), the table of `directives`, then levels and their inheritance (`inherit`, `resolve`,
//! `locations`, `configuration`). The door is [`load()`]; engines take parts of [`model`].

pub mod source;
pub mod diagnostics;
pub mod tree;
pub mod variables;
pub mod nginx_variables;
pub mod model;
pub mod value;
pub mod expires;
pub mod network;
pub mod suggest;
pub mod regular_expression;
pub mod template;
pub mod lexer;
pub mod parser;
pub mod include;
pub mod dump;
pub mod nginx_names;
pub mod foreign;
pub mod captures;
pub mod reading;
pub mod inherit;
pub mod directives;
pub mod resolve;
pub mod listeners;
pub mod check;
pub mod block;
pub mod locations;
pub mod control_socket;
pub mod configuration;
pub mod manual;
pub mod load;

pub use load::{Loaded, Options, load, load_text};
