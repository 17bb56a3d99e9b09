//! `stub_status`: a page with the counts of connections.
//!
//! It stays where it is written, as whatever answers does. Next: `millstream-server`'s `content/stub_status`.

use super::context::SERVER_LOCATION;
use super::templates::without_templates;
use super::{Apply, Feature, Place, Row, once};
use crate::reading::Reading;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StubStatus;

without_templates!(StubStatus);

#[derive(Debug, Clone, Copy, Default)]
pub struct StubStatusLevel(pub bool);

impl Feature for StubStatusLevel {
    type Settings = Option<StubStatus>;

    fn inherit(&mut self, _: &Self) {}

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Option<StubStatus> {
        self.0.then_some(StubStatus)
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("stub_status", SERVER_LOCATION, (0, 1), "[on]", "",
        "Responds with the numbers of connections and requests, in nginx's text format. The parameter has no effect.",
        Apply::Level(|l, _, _| l.stub_status.0 = true)),
];
