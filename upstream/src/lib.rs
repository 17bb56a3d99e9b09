//! The upstream side: which server is asked, over which connection, and what one exchange with it looks like.
//!
//! It never sees a client, a cache or a location; it gets a head's bytes, moves them, and says in its errors whose
//! fault a failure was. Floors, lowest first: the pure decisions (`retry`, `balance`) with the error and what they go by,
//! the versions of a group, the exchange on one connection, the pool of idle ones, and a worker's way to it all.
//! Next: `group` (who there is), `balance` (whose turn), `pool` (connections), `exchange` (talking);
//! `millstream-server`'s `exchange`.

pub mod retry;
pub mod error;
pub mod health;
pub mod downtime;
mod times;
pub mod sessions;
pub mod queue;
pub mod outlier;
pub mod standing;
pub mod peer;
pub mod account;
pub mod secured;
pub mod dial;
pub mod tried;
pub mod balance;
pub mod peers;
pub mod group;
pub mod watch;
pub mod lease;
mod held;
mod h2;
pub mod exchange;
pub mod pool;
pub mod local;

pub use account::{PeerAccount, PeerState};
pub use balance::Ask;
pub use dial::Dial;
pub use error::ExchangeError;
pub use exchange::connection::{Connection, Part};
pub use exchange::{Complaints, Speaker};
pub use group::{Edit, Group, MOST_SERVERS, NotEdited, Server, ServerChange, Service, ServiceRecord};
pub use health::Change;
pub use held::Held;
pub use local::LocalGroup;
pub use outlier::{Conviction, Outliers};
pub use peer::Peer;
pub use peers::{NoPeer, Peers, Turn, Version};
pub use pool::Pool;
pub use queue::{Queue, QueueAccount, Waiting};
pub use retry::{Attempt, Condition, Decision, decide};
pub use secured::Secured;
pub use sessions::Sessions;
pub use tried::Tried;
pub use watch::{OutlierNews, OutlierWatch};
