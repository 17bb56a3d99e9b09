//! Talking to an upstream server: a connection, and a file for each protocol that is spoken over it.
//!
//! What every exchange has (stream, buffer, time limits, traffic, place in the pool) is the connection's; what a protocol says
//! is its speaker's. Next: `connection`; `speaker`, the door to the protocols; `http1`, `fastcgi` and `cgi`, the protocols.

mod body;
mod http1;
mod fastcgi;
mod cgi;
mod speaker;
mod pace;
pub mod connection;

pub use fastcgi::Complaints;
pub use speaker::Speaker;
