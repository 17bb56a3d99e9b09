//! `early_hints`: whether 103 of an upstream is passed on (RFC 8297).
//!
//! Next: `millstream-server`'s `exchange/attempt`, which passes it on.

use super::context::HTTP_SERVER_LOCATION;
use super::level::level;
use super::templates::record;
use super::{Apply, Feature, MANY, Place, Row, often};
use crate::reading::Reading;
use crate::template::Template;

record! {
    /// The condition for sending 103.
    pub struct EarlyHints {
        /// `None` if the directive is not written.
        pub strings: Option<Vec<Template>>,
    }
}

level! {
    pub struct EarlyHintsLevel {
        strings: Vec<Template>,
    }
}

impl Feature for EarlyHintsLevel {
    type Settings = EarlyHints;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> EarlyHints {
        EarlyHints { strings: self.strings.clone() }
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("early_hints", HTTP_SERVER_LOCATION, (1, MANY), "string …", "",
        "Passes a 103 (Early Hints) response of the upstream to the client if one of the strings is neither empty nor `0`; otherwise, drops it. \
        Without this directive, 103 is passed on like all other interim responses.",
        Apply::Level(|l, d, r| {
            let strings = d.args.iter().map(|word| r.template(word));
            l.early_hints.strings.get_or_insert_default().extend(strings);
        })),
];
