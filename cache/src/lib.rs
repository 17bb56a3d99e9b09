//! The cache: what may be stored and for how long, entries in memory and on disk, and one fill per key.
//!
//! Floor 4. It knows fields and bodies, never connections, locations or upstreams: the server asks with a key and gets
//! back a value that holds exactly what that case may do ([`Lookup`]). No hit writes to memory that another thread
//! reads, no decision reads a clock, no disk is touched on a worker's loop. Modules stand lowest floor first; begin
//! with [`front`] for the way a request takes, with [`policy`] for the rules.

mod sync;
mod footprint;
pub mod now;
pub mod key;
pub mod vary;
pub mod policy;
pub mod tags;
pub mod head;
mod kept_lifetime;
mod file_format;
mod loan;
mod coded;
pub mod body;
pub mod entry;
mod variants;
mod budget;
mod progress;
mod line;
mod purges;
mod memory;
mod disk;
pub mod store;
pub mod fill;
pub mod permit;
pub mod front;
#[cfg(test)]
mod samples;

pub use body::{Body, BodyReader, Piece, Span};
pub use entry::Entry;
pub use fill::{Fill, FillBounds};
pub use front::{DiskProbe, Front, Hit, Lookup, Moment, Prepared};
pub use head::{Head, Part, StoredHead};
pub use line::Failure;
pub use loan::{Held, Loan, Whereabouts};
pub use now::Now;
pub use permit::{Awaited, FillPermit, Waiter, Woken};
pub use policy::StaleCause;
pub use progress::{Aborted, Follower};
pub use purges::{How, Purge, Purged, Ruling, Scope, What};
pub use store::{
    CacheOpenError, Changed, CodingPermit, LineSight, Membership, OtherNodes, Purging, Refusal, Sight,
    Sliced, Store, StoreStats, Turn,
};
pub use tags::{Tag, Tags};
pub use vary::{ADDRESS, is_note};
