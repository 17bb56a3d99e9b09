//! `slice`: large answers in pieces.
//!
//! What must fit together for it is checked where the cache is resolved, in `pass/cache`. Next: `millstream-server`'s `cached/slices`.

use super::context::HTTP_SERVER_LOCATION;
use super::level::level;
use super::{Apply, Feature, Place, Row, once};
use crate::reading::Reading;
use crate::source::Span;

level! {
    pub struct SliceLevel {
        /// In bytes, with its place; 0 = off.
        size: (u64, Span),
    }
}

impl Feature for SliceLevel {
    type Settings = u64;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> u64 {
        self.size.map_or(0, |(size, _)| size)
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("slice", HTTP_SERVER_LOCATION, (1, 1), "size", "0",
        "Requests and caches large responses in slices of this size; 0 disables this. Requests to the upstream need `proxy_set_header Range \
        $slice_range`. With a cache, the key must contain `$slice_range`, and `proxy_cache_valid` must include 206 if responses have no lifetime of \
        their own.",
        Apply::Level(|l, d, r| l.slice.size = r.size(&d.args[0]).map(|size| (size, d.span)))),
];
