//! What may be stored, for how long, and what a request may get of it: pure functions of answer, request and moment.
//!
//! RFC 9111 for a shared cache with RFC 5861 and RFC 9213, and nginx's order of who decides: X-Accel-Expires, then the
//! answer's cache control and Expires, then `proxy_cache_valid`, last a guess. Where RFC 9111 forbids to share an
//! answer, `proxy_ignore_headers` is the only way to store it all the same. Nothing here looks at an entry's body or
//! changes anything. Begin with [`judge()`]; next: `head`, `entry`.

pub mod reason;
pub mod lifetime;
pub mod control;
pub mod arithmetic;
mod freshness;
mod media;
pub mod judge;
pub mod request;

#[cfg(test)]
mod tests;

pub use crate::vary::VaryRule;
pub use arithmetic::{Arithmetic, Source};
pub use judge::{Because, Judgement, RequestFacts, Storable, invalidates, judge, looks_up, storable};
pub use lifetime::{Asker, Lifetime, Needs, Revalidation, StaleCause};
pub use reason::Reason;
pub use request::{Usable, Why, Wish, may_use};
