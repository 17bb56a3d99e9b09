//! `disable_symlinks`: which symbolic links on the way to a file are followed.
//!
//! Next: `millstream-server`'s `followed`, which opens files so.

use super::context::HTTP_SERVER_LOCATION;
use super::templates::{record, without_templates};
use super::{Apply, Feature, Level, Place, Row, once};
use crate::reading::{Reading, parameter};
use crate::template::Template;
use crate::tree::Directive;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    All,
    OfOthers,
}

without_templates!(Refused);

record! {
    pub struct Symlinks {
        pub refused: Refused,
        /// `from=`: the start of a path in which all links are followed.
        pub from: Option<Template>,
    }
}

/// The inner `None` is `off`.
#[derive(Debug, Clone, Default)]
pub struct SymlinksLevel(Option<Option<Symlinks>>);

impl Feature for SymlinksLevel {
    type Settings = Option<Symlinks>;

    fn inherit(&mut self, above: &Self) {
        if self.0.is_none() {
            self.0.clone_from(&above.0);
        }
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Option<Symlinks> {
        self.0.clone().flatten()
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("disable_symlinks", HTTP_SERVER_LOCATION, (1, 2), "off | on | if_not_owner [from=part]", "off",
        "Denies access (403) if the path of a file contains a symbolic link. With `if_not_owner`, only links whose owner differs from the owner of \
        their target are denied. Links in the initial part of the path set by `from` are allowed.",
        Apply::Level(symlinks)),
];

fn symlinks(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let choices = [("off", None), ("on", Some(Refused::All)), ("if_not_owner", Some(Refused::OfOthers))];
    let mut from = None;
    for word in &directive.args[1..] {
        match parameter(word) {
            Some(("from", part)) if !part.text.is_empty() => from = Some(reading.template(&part)),
            _ => {
                reading
                    .error(word.span, format!("invalid parameter \"{}\"", word.text))
                    .help("write from= and the beginning of the path, such as from=$document_root");
            }
        }
    }
    if let Some(refused) = reading.choice(&directive.args[0], &choices) {
        level.symlinks.0 = Some(refused.map(|refused| Symlinks { refused, from }));
    }
}
