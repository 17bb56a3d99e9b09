//! A row of the table of directives: what one is called and takes, what it means, what it does.
//!
//! The manual, the checks and the suggestions come from rows; nothing is read here. Next: the features, which write them.

use super::acme::IssuerDraft;
use super::context::{Context, Contexts};
use super::listen::ServerDraft;
use super::main::Main;
use super::pass::{CommonLevel, Family};
use super::{Level, made};
use crate::declared::upstream::Upstream;
use crate::reading::{Need, Reading};
use crate::tree::Directive;

/// How many words a directive takes after its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    pub least: usize,
    /// [`MANY`] = no bound.
    pub most: usize,
}

pub const MANY: usize = usize::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    Once,
    Often,
}

#[derive(Debug, Clone, Copy)]
pub enum Apply {
    /// Read by `configuration` or `locations`.
    Block(Context),
    /// `include`: spliced before the table is used.
    Spliced,
    /// Accepted, with no effect here; the text says why, as a sentence without a full stop.
    Idle(&'static str),
    Main(fn(&mut Main, &Directive, &mut Reading<'_>)),
    /// Declares a name for the whole http block, before any of its levels is read.
    Declare(fn(&Directive, &mut Reading<'_>)),
    /// The same with a block of free lines, which the table does not check.
    DeclareLines(fn(&Directive, &mut Reading<'_>)),
    /// Defines a variable; its last word is the variable's name.
    Make(made::Make),
    /// Sets something of the server block itself.
    Server(fn(&mut ServerDraft, &Directive, &mut Reading<'_>)),
    Level(fn(&mut Level, &Directive, &mut Reading<'_>)),
    /// The same with a block of free lines, which the table does not check.
    Lines(fn(&mut Level, &Directive, &mut Reading<'_>)),
    /// Sets something that every prefix family has.
    Pass(Family, fn(&mut CommonLevel, &Directive, &mut Reading<'_>)),
    Upstream(fn(&mut Upstream, &Directive, &mut Reading<'_>)),
    Issuer(fn(&mut IssuerDraft, &Directive, &mut Reading<'_>)),
}

/// One directive. Rows are laid out by hand, as the table that they are.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    pub contexts: Contexts,
    pub words: Words,
    pub repeat: Repeat,
    pub syntax: &'static str,
    /// The default as one would write it; empty = none.
    pub default: &'static str,
    /// What it means, in full sentences.
    pub doc: &'static str,
    pub apply: Apply,
    /// Whether it decides about the cache, so that `explain` names it.
    pub decides: bool,
    /// What it has no effect without. `None` for nginx's own directives: they are often written for locations
    /// added later.
    pub needs: Option<Need>,
}

impl Row {
    pub fn takes_block(&self) -> bool {
        matches!(self.apply, Apply::Block(_) | Apply::Lines(_) | Apply::DeclareLines(_) | Apply::Make(_))
    }

    pub(super) const fn deciding(self) -> Row {
        Row { decides: true, ..self }
    }

    /// The row of a directive that has no effect without another one.
    pub(super) const fn needing(self, need: Need) -> Row {
        Row { needs: Some(need), ..self }
    }
}

/// A row that may stand once; `syntax` is shown, `least` and `most` are checked.
pub(super) const fn once(
    name: &'static str,
    contexts: Contexts,
    (least, most): (usize, usize),
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
    apply: Apply,
) -> Row {
    Row {
        name,
        contexts,
        words: Words { least, most },
        repeat: Repeat::Once,
        syntax,
        default,
        doc,
        apply,
        decides: false,
        needs: None,
    }
}

pub(super) const fn often(
    name: &'static str,
    contexts: Contexts,
    words: (usize, usize),
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
    apply: Apply,
) -> Row {
    let row = once(name, contexts, words, syntax, default, doc, apply);
    Row { repeat: Repeat::Often, ..row }
}

/// A row of a directive that is accepted and has no effect.
pub(super) const fn idle(
    name: &'static str,
    contexts: Contexts,
    words: (usize, usize),
    syntax: &'static str,
    doc: &'static str,
    why: &'static str,
) -> Row {
    once(name, contexts, words, syntax, "", doc, Apply::Idle(why))
}
