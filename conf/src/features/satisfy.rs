//! `satisfy`: whether a client must pass every check of its access, or any.
//!
//! Next: `millstream-server`'s `access`, which weighs them.

use super::context::HTTP_SERVER_LOCATION;
use super::templates::without_templates;
use super::{Apply, Feature, Place, Row, once};
use crate::reading::Reading;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Satisfy {
    #[default]
    All,
    Any,
}

without_templates!(Satisfy);

#[derive(Debug, Clone, Default)]
pub struct SatisfyLevel(Option<Satisfy>);

impl Feature for SatisfyLevel {
    type Settings = Satisfy;

    fn inherit(&mut self, above: &Self) {
        self.0 = self.0.or(above.0);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Satisfy {
        self.0.unwrap_or_default()
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("satisfy", HTTP_SERVER_LOCATION, (1, 1), "all | any", "all",
        "Allows access if all of `allow` and `deny`, `auth_basic` and `auth_request` allow it, or if any one of them does.",
        Apply::Level(|l, d, r| {
            l.satisfy.0 = r.one_of(&d.args[0], &["all", "any"]).map(|at| [Satisfy::All, Satisfy::Any][at]);
        })),
];
