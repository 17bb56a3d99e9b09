//! Talking to an upstream server, one file per protocol.

pub mod h1;
