//! The upstream side: which server is asked, over which connection, and what one exchange with it looks like.
//!
//! It never sees a client, a cache or a location; it gets a head's bytes, moves them, and says in its errors whose
//! fault a failure was. Floors, lowest first: the pure decisions (`retry`, `balance`) with the error, the shared group,
//! the exchange on one connection, and the pool of idle ones.
//! Next: `group` (choosing), `pool` (connections), `exchange/h1` (talking); `millstream-server`'s `answer/proxied`.

pub mod retry;
pub mod error;
pub mod peer;
pub mod balance;
pub mod group;
pub mod lease;
pub mod exchange;
pub mod pool;

pub use error::ExchangeError;
pub use exchange::h1::{Connection, Held, Part};
pub use group::{Group, NoPeer, SharedTurn, Tried, Turn};
pub use peer::Peer;
pub use pool::Pool;
pub use retry::{Attempt, Condition, Decision, decide};
