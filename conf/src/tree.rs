//! A configuration as directives and blocks, nothing understood yet: what `parser` makes and `directives` reads.

use crate::source::Span;

/// Unescaped and without its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Bytes that are not UTF-8 are an error of the lexer.
    pub text: String,
    /// Quotes included.
    pub span: Span,
    /// `""` is a word, nothing is not.
    pub quoted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    pub name: Word,
    pub args: Vec<Word>,
    /// `None` if it ended with a semicolon.
    pub block: Option<Vec<Directive>>,
    /// From its name to its semicolon or opening brace.
    pub span: Span,
}
