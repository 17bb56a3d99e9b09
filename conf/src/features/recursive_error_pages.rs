//! `recursive_error_pages`: whether a page for an error may have one itself.
//!
//! Before: `error_pages`; next: `millstream-server`'s `drive`.

use super::context::HTTP_SERVER_LOCATION;
use super::level::level;
use super::{Apply, Feature, Place, Row, once};
use crate::reading::Reading;

level! {
    pub struct RecursiveErrorPagesLevel {
        recursive: bool,
    }
}

impl Feature for RecursiveErrorPagesLevel {
    type Settings = bool;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> bool {
        self.recursive.unwrap_or(false)
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("recursive_error_pages", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Applies `error_page` to requests that `error_page` has already redirected, too. A request may change its URI 10 times.",
        Apply::Level(|l, d, r| l.recursive_error_pages.recursive = r.flag(&d.args[0]))),
];
