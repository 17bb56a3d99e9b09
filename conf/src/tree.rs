//! A configuration as directives and blocks, nothing understood yet: what `parser` makes and `directives` reads.

use crate::source::Span;

/// One word of a directive, unescaped and without its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Its text. Bytes that are not UTF-8 are an error of the lexer, located.
    pub text: String,
    /// Where it stands, quotes included.
    pub span: Span,
    /// Whether it was quoted (`""` is a word, nothing is not).
    pub quoted: bool,
}

/// `name arg arg;` or `name arg { … }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// The first word.
    pub name: Word,
    /// The words after it.
    pub args: Vec<Word>,
    /// What stands in its braces; `None` where it ended with a semicolon.
    pub block: Option<Vec<Directive>>,
    /// From its name to its semicolon or opening brace.
    pub span: Span,
}
