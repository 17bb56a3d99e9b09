//! `empty_gif`: a picture of one pixel, which nobody sees.
//!
//! It stays where it is written, as whatever answers does. Next: `millstream-server`'s `content/empty_gif`.

use super::context::LOCATION;
use super::templates::without_templates;
use super::{Apply, Feature, Place, Row, once};
use crate::reading::Reading;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmptyGif;

without_templates!(EmptyGif);

#[derive(Debug, Clone, Copy, Default)]
pub struct EmptyGifLevel(pub bool);

impl Feature for EmptyGifLevel {
    type Settings = Option<EmptyGif>;

    fn inherit(&mut self, _: &Self) {}

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Option<EmptyGif> {
        self.0.then_some(EmptyGif)
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("empty_gif", LOCATION, (0, 0), "", "",
        "Responds with a transparent GIF of one pixel.",
        Apply::Level(|l, _, _| l.empty_gif.0 = true)),
];
