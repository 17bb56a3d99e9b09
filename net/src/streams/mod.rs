//! The streams of an HTTP/2 connection, as those see them who answer on them (RFC 9113 §5).
//!
//! Answers are framed into one buffer that the connection writes, and bodies of requests wait with their streams until somebody
//! reads them; both have bounds. Nothing here touches a socket. Next: `stream`, one of them; `connection/h2`, which reads and writes.
//! `carrier` is what they have in common, `turns` who writes next, `incoming` what came of a body.

mod incoming;
mod turns;
mod carrier;
mod stream;
#[cfg(test)]
mod tests;

pub use carrier::{CONNECTION_WINDOW, Carrier, ROOM};
pub use incoming::BadBody;
pub use stream::{Beginning, Http2Stream};
