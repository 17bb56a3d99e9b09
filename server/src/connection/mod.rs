//! Connections: from accept to close, one task each.
//!
//! Next: `h1`, HTTP/1.0 and 1.1.

mod h1;
mod lingering;

pub use h1::serve;
