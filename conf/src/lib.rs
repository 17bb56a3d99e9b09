//! An nginx.conf as text → tree → typed model, with every error located.
//!
//! Floor 1: no I/O but opening and reading the named files and asking for the names of `set_real_ip_from`, no clock, no runtime. Modules stand lowest floor first: words (`value` …
//! `template`), text and tree (`lexer`, `parser`, `include`), what is `declared`, the `features`, what comes of them (`model`), and
//! who reads a whole file (`locations`, `configuration`). The door is [`load()`]; engines take parts of [`model`].

pub mod source;
pub mod diagnostics;
pub mod tree;
pub mod parts;
pub mod variables;
pub mod nginx_variables;
pub mod slots;
pub mod address;
pub mod value;
pub mod suggest;
pub mod network;
pub mod host_names;
pub mod regular_expression;
pub mod template;
pub mod lexer;
pub mod parser;
pub mod files;
pub mod include;
pub mod dump;
pub mod nginx_names;
pub mod foreign;
pub mod declared;
pub mod reading;
pub mod features;
pub mod model;
pub mod block;
pub mod advise;
pub mod listeners;
pub mod check;
pub mod zones;
pub mod locations;
pub mod own_server;
pub mod configuration;
pub mod manual;
pub mod load;

pub use value::size;

pub use load::{Loaded, Options, load, load_text};
