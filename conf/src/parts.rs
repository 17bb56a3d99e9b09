//! What a configuration is made of, for whoever moves it to another place: the paths that it names, and the directives that were left out.
//!
//! Noted while it is read, and never asked by who serves. Files that include each other are in `source`. Before: `tree`; next: `reading`,
//! which notes; `millstream`'s `import`, which asks.

use crate::source::Span;
use crate::tree::Directive;

/// What a relative path hangs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The prefix (`-p`).
    Prefix,
    /// The directory of the main file.
    MainFile,
}

/// What a path is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// A file of the configuration's own, such as a list of passwords.
    Own,
    /// A certificate, a key, or what belongs to one.
    Certificate,
    /// Files that are served.
    Served,
    /// Answers that are kept as files which nothing removes.
    Stored,
    /// A log.
    Log,
    /// A cache's directory.
    Cache,
    /// A directory of what is remembered over a restart.
    State,
    /// A directory for temporary files.
    Temporary,
    /// The pid file.
    Pid,
}

/// A path that a directive names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPath {
    /// The word that it is.
    pub span: Span,
    /// It, as it is written; it may have variables.
    pub written: String,
    /// What it hangs on where it is relative.
    pub base: Base,
    /// What it is for.
    pub used: PathUse,
}

/// The parts of one configuration.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// All directives, includes in their places.
    pub tree: Vec<Directive>,
    /// Paths, in the order of reading; one that several levels name in one place is here once for each reading of it.
    pub paths: Vec<NamedPath>,
    /// Directives that `--lenient` left out.
    pub left_out: Vec<Span>,
}
