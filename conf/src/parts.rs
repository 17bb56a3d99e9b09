//! What a configuration is made of, for whoever moves it to another place: the paths that it names, and the directives that were left out.
//!
//! Noted while it is read, and never asked by who serves. Files that include each other are in `source`. Before: `tree`; next: `reading`,
//! which notes; `millstream`'s `import`, which asks.

use crate::source::Span;
use crate::tree::Directive;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The prefix (`-p`).
    Prefix,
    MainFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// A file of the configuration's own, such as a list of passwords.
    Own,
    Certificate,
    /// A file that only the process that starts may be able to read.
    Secret,
    Served,
    /// Responses kept as files that nothing removes.
    Stored,
    Log,
    Cache,
    State,
    Temporary,
    Pid,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPath {
    pub span: Span,
    /// As written; may have variables.
    pub written: String,
    pub base: Base,
    pub used: PathUse,
}

#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// All directives, with includes spliced.
    pub tree: Vec<Directive>,
    /// In the order of reading; a path that several levels read is here once for each.
    pub paths: Vec<NamedPath>,
    pub left_out: Vec<Span>,
}
