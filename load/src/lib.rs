//! What measures Millstream: so far the slow API to put behind it.
//!
//! Floor 5, a stranger to `server`: it talks HTTP over sockets as everybody else does.
//! The door is [`origin::start`].

pub mod origin;
