//! Talking to an upstream server, one file per protocol.
//!
//! So far there is one. Next: `h1`.

pub mod h1;
