//! The API and the dashboard: what an operator reads and changes while the process serves.
//!
//! `app` gives [`answer`] to `millstream-server`, which calls it for requests of locations with `api` or `dashboard`; nothing here is
//! on the path of other requests. Modules stand lowest floor first: refusals, what single paths respond with, and `api`, which decides
//! who may do what. Next: `endpoints`, the table of paths; `api`; `explain`.

pub mod refusal;
pub mod place;
pub mod caches;
pub mod status;
pub mod dashboard;
pub mod resource;
pub mod endpoints;
pub mod purging;
mod servers;
pub mod explain;
mod misses;
mod shadow;
mod cluster;
pub mod snapshot;
mod metrics;
mod readiness;
mod live;
mod api;

pub use api::answer;
pub use live::tables;
