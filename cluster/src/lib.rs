//! The bus of a cluster: purges and invalidations of one node take effect on all, through a Redis or Valkey engine.
//!
//! Floor 4. It knows a zone as something that carries out orders ([`Zone`]), never the cache itself. Each zone has a log in the engine
//! with dense numbers; every node follows it, keeps a journal of where it is, and lets the others know. A node that cannot confirm the log's
//! head for a while is cut off: what it has stored must be confirmed with the upstream. No hit makes a network trip. Modules stand lowest
//! floor first; begin with [`bus`].

mod secret;
mod shared_logs;
mod order;
mod epoch;
mod key_print;
mod marks;
mod held;
mod record;
mod journal;
mod settings;
mod attempts;
mod metered;
mod engine;
mod script;
mod beat;
mod peers;
mod standing;
mod breaker;
mod account;
mod zone;
mod usage;
mod tally;
mod limit_door;
mod limit_script;
mod ledger;
mod door;
mod member;
mod limiter;
mod bell;
mod session;
mod reading;
mod publishing;
pub mod bus;

#[cfg(test)]
mod tests;

pub use account::Account;
pub use bus::Bus;
pub use door::{Door, NodeReport, NodeState, Publication, Reached, Shown, ShownNode};
pub use key_print::KeyPrint;
pub use limit_door::{ExactRequest, LimitDoor, RequestVerdict};
pub use order::{How, Issuer, Order, What};
pub use secret::{KeyHash, Secret};
pub use settings::{EngineSettings, LogBounds, Sentinel, Settings};
pub use zone::{Lasting, Limit, LimitKind, LimitedZone, Zone};
