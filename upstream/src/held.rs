//! What is kept for as long as a connection lives, such as its place among a worker's connections.
//!
//! It is the caller's; here it is asked one thing. Next: `exchange/connection` and `h2`, which hold one.

use std::fmt;

/// What is kept for as long as a connection lives.
pub trait Held {
    /// Whether the connection may idle with it; otherwise it is closed after its exchange.
    fn may_idle(&self) -> bool;
}

impl fmt::Debug for dyn Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Held {{ may_idle: {} }}", self.may_idle())
    }
}
