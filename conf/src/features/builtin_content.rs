//! Directives that make a location respond by itself and have no settings: a row and a value each.
//!
//! They apply where they are written, not in inner locations; the last one in a location counts, as in nginx. Next:
//! `millstream-server`'s `content`, which has a file for each.

use super::context::{LOCATION, SERVER_LOCATION};
use super::templates::without_templates;
use super::{Apply, Feature, Place, Row, once};
use crate::reading::Reading;

macro_rules! builtin_content {
    ($($variant:ident $name:literal $contexts:ident $words:tt $syntax:literal $doc:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum BuiltinContent { $(#[doc = $doc] $variant,)* }

        pub const ROWS: &[Row] = &[$(once($name, $contexts, $words, $syntax, "", $doc,
            Apply::Level(|l, _, _| l.builtin_content.0 = Some(BuiltinContent::$variant))),)*];
    };
}

builtin_content! {
    StubStatus "stub_status" SERVER_LOCATION (0, 1) "[on]"
        "Responds with the numbers of connections and requests, in nginx's text format. The parameter has no effect.",
    EmptyGif "empty_gif" LOCATION (0, 0) ""
        "Responds with a transparent GIF of one pixel.",
}

without_templates!(BuiltinContent);

#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltinContentLevel(pub Option<BuiltinContent>);

impl Feature for BuiltinContentLevel {
    type Settings = Option<BuiltinContent>;

    fn inherit(&mut self, _: &Self) {}

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Option<BuiltinContent> {
        self.0
    }
}
