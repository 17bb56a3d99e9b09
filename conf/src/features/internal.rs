//! `internal`: locations that no client reaches by a request of its own.
//!
//! Next: `millstream-server`'s `rewrite`, which finds the location and asks.

use super::context::LOCATION;
use super::{Apply, Feature, Place, Row, once};
use crate::reading::Reading;

/// Nested locations inherit it.
#[derive(Debug, Clone, Default)]
pub struct InternalLevel {
    is_internal: bool,
}

impl Feature for InternalLevel {
    type Settings = bool;

    fn inherit(&mut self, above: &Self) {
        self.is_internal |= above.is_internal;
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> bool {
        self.is_internal
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("internal", LOCATION, (0, 0), "", "",
        "Allows only internal requests to the location: those from `error_page`, `index`, `try_files`, `rewrite` or `X-Accel-Redirect`. Other \
        requests get 404.",
        Apply::Level(|level, _, _| level.internal.is_internal = true)),
];
