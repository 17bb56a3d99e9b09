//! The state machine on bytes, without sockets.
