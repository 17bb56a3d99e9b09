//! Tokens of one file as a tree of directives.
//!
//! Knows no directive: any name with any words is taken. What is missing (a `;`, a `}`) is reported and put in its
//! place, so that one slip does not hide the next. The tree is never deeper than [`MAX_DEPTH`].
//! Before: `lexer`; `braces`, which finds the brace that is missing. Next: `include`.

use crate::diagnostics::Diagnostics;
use crate::lexer::{self, Token};
use crate::source::{FileId, Sources, Span};
use crate::tree::{Directive, Word};

mod braces;
mod unterminated;
#[cfg(test)]
mod tests;

pub use unterminated::split_unterminated;

/// Deepest nesting of blocks in one file; nginx's own contexts reach ten.
pub const MAX_DEPTH: usize = 64;

/// After this many grammatical errors in a file the others are not reported.
pub const MAX_ERRORS: usize = 50;

/// Findings go to `diagnostics`, and what could be understood is returned. An `include` stays a directive.
pub fn parse(file: FileId, sources: &Sources, diagnostics: &mut Diagnostics) -> Vec<Directive> {
    let tokens = lexer::tokens(file, sources, diagnostics);
    let text = &sources.file(file).text;
    let repairs = if tokens.complete { braces::repairs(&tokens.list, text) } else { Vec::new() };
    let mut builder = Builder {
        words: Vec::new(),
        blocks: Vec::new(),
        top: Vec::new(),
        too_deep: false,
        errors: if tokens.complete { 0 } else { MAX_ERRORS },
        diagnostics,
    };
    let mut repairs = repairs.into_iter().peekable();
    for (index, token) in tokens.list.into_iter().enumerate() {
        let mut extra = false;
        while let Some(repair) = repairs.next_if(|repair| repair.at() == index) {
            match repair {
                braces::Repair::Extra { .. } => extra = true,
                braces::Repair::Unclosed { .. } => builder.close_implied(Some(token.span()), sources),
            }
        }
        match token {
            Token::Word(word) => builder.words.push(word),
            Token::Semicolon(span) => builder.semicolon(span),
            Token::Open(span) => builder.open(span),
            Token::Close(span) if extra => {
                builder.unterminated();
                builder.error(span, "unexpected \"}\"", "there is no block to close: remove it");
            }
            Token::Close(_) => builder.close(),
        }
    }
    builder.finish(sources)
}

struct OpenBlock {
    /// `None` if nothing stood before its brace.
    directive: Option<Directive>,
    children: Vec<Directive>,
    brace: Span,
}

struct Builder<'a> {
    /// Since the last `;`, `{` or `}`.
    words: Vec<Word>,
    blocks: Vec<OpenBlock>,
    top: Vec<Directive>,
    too_deep: bool,
    errors: usize,
    diagnostics: &'a mut Diagnostics,
}

impl Builder<'_> {
    fn semicolon(&mut self, span: Span) {
        match self.directive(span.end) {
            Some(directive) => self.add(directive),
            None => self.error(span, "unexpected \";\"", "a directive must precede it: remove it"),
        }
    }

    fn open(&mut self, brace: Span) {
        let directive = self.directive(brace.end);
        if directive.is_none() {
            self.error(brace, "unexpected \"{\"", "write the block's name before its brace");
        }
        if self.blocks.len() == MAX_DEPTH && !self.too_deep {
            self.too_deep = true;
            self.error(
                brace,
                format!("blocks are nested deeper than {MAX_DEPTH}"),
                "close the blocks before it",
            );
        }
        self.blocks.push(OpenBlock { directive, children: Vec::new(), brace });
    }

    fn close(&mut self) {
        self.unterminated();
        let Some(block) = self.blocks.pop() else { return };
        // What is too deep is dropped from the innermost on, so that no tree is ever deeper than the bound.
        if self.blocks.len() < MAX_DEPTH
            && let Some(directive) = block.directive
        {
            self.add(Directive { block: Some(block.children), ..directive });
        }
    }

    /// Closes the innermost block although no `}` stands here, and says so at its opening brace.
    fn close_implied(&mut self, before: Option<Span>, sources: &Sources) {
        self.unterminated();
        if let Some(block) = self.blocks.last() {
            let brace = block.brace;
            let name = block.directive.as_ref().map_or("", |directive| directive.name.text.as_str());
            let message = format!("the block \"{name}\" that opens here is not closed");
            let help = match before {
                Some(span) => format!("put a \"}}\" before line {}", sources.position(span).line),
                None => "the file ends before its \"}\"".to_string(),
            };
            self.error(brace, message, help);
        }
        self.close();
    }

    /// Ends a directive that a `}` or the end of the file follows instead of its `;`.
    fn unterminated(&mut self) {
        let Some(last) = self.words.last().map(|word| word.span) else { return };
        let Some(directive) = self.directive(last.end) else { return };
        let after = Span { start: last.end, ..last };
        self.error(
            after,
            format!("directive \"{}\" is not terminated by \";\"", directive.name.text),
            "put a \";\" here",
        );
        self.add(directive);
    }

    fn finish(mut self, sources: &Sources) -> Vec<Directive> {
        self.unterminated();
        while !self.blocks.is_empty() {
            self.close_implied(None, sources);
        }
        self.top
    }

    /// The words so far as a directive that ends at `end`; `None` if there are none.
    fn directive(&mut self, end: u32) -> Option<Directive> {
        let mut words = std::mem::take(&mut self.words).into_iter();
        let name = words.next()?;
        let span = Span { end, ..name.span };
        Some(Directive { name, args: words.collect(), block: None, span })
    }

    fn add(&mut self, directive: Directive) {
        match self.blocks.last_mut() {
            Some(block) => block.children.push(directive),
            None => self.top.push(directive),
        }
    }

    fn error(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.errors += 1;
        if self.errors <= MAX_ERRORS {
            self.diagnostics.error(span, message).help(help);
        }
    }
}

/// Column in bytes from 0 of a token that is the first on its line, else `None`.
fn indentation(text: &[u8], start: u32) -> Option<usize> {
    let before = &text[..start as usize];
    let line = before.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(0, |i| i + 1);
    (line == 0 || before[line - 1] == b'\n').then_some(before.len() - line)
}
