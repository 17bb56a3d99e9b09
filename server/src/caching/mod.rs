//! What the cache has to do with a request: whether it has a part in it, under which key, with which tags, and what of
//! others is untrue once it is answered.
//!
//! Nothing is looked up or answered here. Next: `keyed`; `cached`, which looks up; `exchange`, which stores.

pub mod query;
pub mod ignored_args;
pub mod noted;
pub mod keyed;
pub mod invalidation;
pub mod tagged;
