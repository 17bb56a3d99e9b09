//! What the cache did for a request, and why.

use crate::cache_report::CacheReport;
use millstream_cache::Sliced;
use millstream_cache::policy::{Asker, Wish};
use millstream_telemetry::metrics::{CacheStatus, Cause};
use std::cell::Cell;
use std::rc::Rc;

#[derive(Default)]
pub struct CacheTrace {
    /// `$upstream_cache_status`.
    pub status: Option<CacheStatus>,
    /// Why the cache missed, and the location that counted it.
    pub missed: Option<(u32, Cause)>,
    /// The client's Cache-Control, if it counts.
    pub wish: Wish,
    pub asker: Asker,
    pub report: Option<Box<CacheReport>>,
    /// Start of the requested slice.
    pub slice: Option<u64>,
    /// The response that the slice belongs to.
    pub whole: Option<Rc<Sliced>>,
    /// Whether `$slice_range` was read, so that the upstream was asked for the slice.
    pub names_slice: Cell<bool>,
}
