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
    /// At least.
    pub least: usize,
    /// At most; [`MANY`] = no bound.
    pub most: usize,
}

/// No bound on the number of words.
pub const MANY: usize = usize::MAX;

/// Whether a directive may stand twice in one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Repeat {
    Once,
    Often,
}

/// What a directive does.
#[derive(Debug, Clone, Copy)]
pub enum Apply {
    /// A block of rows, which `configuration` or `locations` reads.
    Block(Context),
    /// `include`: spliced before the table is asked.
    Spliced,
    /// Accepted, and has no effect here; the text says why, as a sentence without a full stop.
    Idle(&'static str),
    /// Sets something of the main or events context.
    Main(fn(&mut Main, &Directive, &mut Reading<'_>)),
    /// Declares a name for the whole http block, before any level of it is read.
    Declare(fn(&Directive, &mut Reading<'_>)),
    /// The same with a block of free lines, which the table is not asked about.
    DeclareLines(fn(&Directive, &mut Reading<'_>)),
    /// Makes a variable out of others; its last word is the variable's name.
    Make(made::Make),
    /// Sets something of the server block itself.
    Server(fn(&mut ServerDraft, &Directive, &mut Reading<'_>)),
    /// Sets something that levels inherit.
    Level(fn(&mut Level, &Directive, &mut Reading<'_>)),
    /// The same with a block of free lines, which the table is not asked about.
    Lines(fn(&mut Level, &Directive, &mut Reading<'_>)),
    /// Sets something that every family of prefixes has.
    Pass(Family, fn(&mut CommonLevel, &Directive, &mut Reading<'_>)),
    /// Sets something of an upstream.
    Upstream(fn(&mut Upstream, &Directive, &mut Reading<'_>)),
    /// Sets something of an issuer.
    Issuer(fn(&mut IssuerDraft, &Directive, &mut Reading<'_>)),
}

/// One directive. Rows are laid out by hand, as the table that they are: what it is called and takes, what it means, what it does.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Where it may stand.
    pub contexts: Contexts,
    /// How many words it takes.
    pub words: Words,
    /// Whether it may be repeated.
    pub repeat: Repeat,
    /// Its words as the manual shows them.
    pub syntax: &'static str,
    /// What holds where it is not written, as one would write it; empty = nothing.
    pub default: &'static str,
    /// What it means, in full sentences.
    pub doc: &'static str,
    /// What it does.
    pub apply: Apply,
    /// Whether it decides about what the cache does, so that `explain` names it.
    pub decides: bool,
    /// What it has no effect without. Directives of nginx have none: they are often written for locations to come, and nobody
    /// wants to be told.
    pub needs: Option<Need>,
}

impl Row {
    /// Whether it ends with a block and not with a semicolon.
    pub fn takes_block(&self) -> bool {
        matches!(self.apply, Apply::Block(_) | Apply::Lines(_) | Apply::DeclareLines(_) | Apply::Make(_))
    }

    /// The row of a directive that decides about the cache.
    pub(super) const fn deciding(self) -> Row {
        Row { decides: true, ..self }
    }

    /// The row of a directive that has no effect without another one.
    pub(super) const fn needing(self, need: Need) -> Row {
        Row { needs: Some(need), ..self }
    }
}

/// Builds a row that may stand once; the words of `syntax` are shown, `least` and `most` are checked.
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

/// Builds a row that may be repeated.
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

/// Builds the row of a directive that is accepted and idle.
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
