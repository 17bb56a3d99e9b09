//! Connections: from accept to close, one task each.
//!
//! Next: `h1`, HTTP/1.0 and 1.1.

mod spare;
mod proxied;
mod lingering;
mod counted;
mod naming;
mod h1;
#[cfg(test)]
mod tests;

pub use h1::serve;
pub use spare::clear as clear_spare;
