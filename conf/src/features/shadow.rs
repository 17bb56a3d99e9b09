//! `shadow`: whether requests of a location are observed, to find out what a cache in front of it could serve.
//!
//! Next: `millstream-server`'s `watched`, which observes; `millstream-shadow`, which judges.

use super::context::HTTP_SERVER_LOCATION;
use super::level::level;
use super::{Apply, Feature, Place, Row, once};
use crate::reading::Reading;
use crate::source::Span;

level! {
    pub struct ShadowLevel {
        enabled: (bool, Span),
    }
}

impl Feature for ShadowLevel {
    type Settings = bool;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    /// What a cache serves does not say what the upstream would have responded.
    fn resolve(&self, place: &Place<'_>, reading: &mut Reading<'_>) -> bool {
        let Some((true, span)) = self.enabled else { return false };
        let pass = &place.level.pass;
        let Some(draft) = &pass.draft else { return false };
        let is_cached = pass.common(draft.family).cache.zone_at().is_some();
        if is_cached {
            let (cache, verify) = (draft.family.directive("cache"), draft.family.directive("cache_verify"));
            reading.diagnostics.idle(
                span,
                format!(
                    "a location with {cache} is not observed; to check what its cache serves, use {verify}"
                ),
            );
        }
        !is_cached
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("shadow", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Observes requests to an upstream and their responses, and reports which of them a cache could serve, for how long, and what the responses vary \
        by. Requests are handled as without it, and no body is kept. The report is on the dashboard and at `/api/9/shadow`; `millstream shadow` does \
        the same without a configuration. A location with a cache is not observed.",
        Apply::Level(|l, d, r| l.shadow.enabled = r.flag(&d.args[0]).map(|flag| (flag, d.name.span)))),
];
