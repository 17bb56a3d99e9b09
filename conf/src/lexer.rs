//! Bytes of one file as tokens: words with their quotes and escapes undone, `;`, `{`, `}`.
//!
//! nginx's grammar exactly, whose odd corners configurations rely on: a `#` starts a comment only where a word may
//! start, `}` is a brace only there, `${` does not open a block, and only a blank, `;`, `{` or `)` may follow a
//! closing quote. An error never stops the reading: each is reported and mended so that the next one can be found.
//! Next: `parser`, which takes the tokens.

use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::source::{FileId, Sources, Span};
use crate::tree::Word;

/// A word as a file holds it: in quotes where it has to be.
pub fn quoted(word: &str) -> String {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@,=~%*?[]$!^".contains(&byte) || byte >= 0x80;
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests;

/// After this many lexical errors the rest of a file is not read: it is no configuration.
pub const MAX_ERRORS: usize = 50;

/// What word processors make of quotes.
const TYPOGRAPHIC_QUOTES: [char; 8] = ['“', '”', '„', '‟', '‘', '’', '«', '»'];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    Word(Word),
    Semicolon(Span),
    Open(Span),
    Close(Span),
}

impl Token {
    pub fn span(&self) -> Span {
        match self {
            Token::Word(word) => word.span,
            Token::Semicolon(span) | Token::Open(span) | Token::Close(span) => *span,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    pub list: Vec<Token>,
    /// False if reading stopped early at [`MAX_ERRORS`]; what is missing then is not reported.
    pub complete: bool,
}

pub fn tokens(file: FileId, sources: &Sources, diagnostics: &mut Diagnostics) -> Tokens {
    let text = &sources.file(file).text;
    let mut lexer = Lexer { file, text, at: 0, list: Vec::new(), errors: 0, diagnostics };
    lexer.byte_order_mark();
    while lexer.errors < MAX_ERRORS {
        lexer.blanks_and_comments();
        let Some(&byte) = text.get(lexer.at) else {
            return Tokens { list: lexer.list, complete: true };
        };
        match byte {
            b';' => lexer.sign(Token::Semicolon),
            b'{' => lexer.sign(Token::Open),
            b'}' => lexer.sign(Token::Close),
            b'"' | b'\'' => lexer.quoted(byte),
            _ => lexer.bare(),
        }
    }
    let here = lexer.span(lexer.at, lexer.at);
    lexer.diagnostics.error(here, "too many errors, the rest of this file is not read");
    Tokens { list: lexer.list, complete: false }
}

/// Every step moves `at` forward.
struct Lexer<'a> {
    file: FileId,
    text: &'a [u8],
    at: usize,
    list: Vec<Token>,
    errors: usize,
    diagnostics: &'a mut Diagnostics,
}

impl Lexer<'_> {
    fn byte_order_mark(&mut self) {
        if self.text.starts_with(b"\xef\xbb\xbf") {
            self.error(0, 3, "the file starts with a byte order mark", "save it as UTF-8 without one");
            self.at = 3;
        }
    }

    fn blanks_and_comments(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                _ if is_blank(byte) => self.at += 1,
                b'#' => self.at = self.line_end(self.at),
                _ => return,
            }
        }
    }

    fn sign(&mut self, token: fn(Span) -> Token) {
        self.list.push(token(self.span(self.at, self.at + 1)));
        self.at += 1;
    }

    /// Up to a blank, `;` or `{`; a backslash takes the next byte with it, and a `{` right after a `$` is
    /// part of the word.
    fn bare(&mut self) {
        let start = self.at;
        let mut after_dollar = false;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'{' if after_dollar => {}
                b'\\' => {
                    self.at += 1;
                    after_dollar = false;
                }
                b';' | b'{' => break,
                _ if is_blank(byte) => break,
                _ => after_dollar = byte == b'$',
            }
            self.at += 1;
        }
        self.at = self.at.min(self.text.len());
        self.word(start, start..self.at, false);
        self.word_processed(start);
    }

    /// Warns of typographic quotes and blanks: here they are part of the word.
    fn word_processed(&mut self, start: usize) {
        let Ok(word) = std::str::from_utf8(&self.text[start..self.at]) else { return };
        let span = self.span(start, self.at);
        if word.starts_with(TYPOGRAPHIC_QUOTES) {
            let message = format!("{word} begins with a typographic quote, which is part of the word");
            self.diagnostics.warning(span, message).help("use \" or ' as quotes");
        } else if word.contains('\u{a0}') {
            let message = format!("\"{word}\" contains a no-break space, which does not separate words");
            self.diagnostics.warning(span, message).help("use an ordinary space");
        }
    }

    fn quoted(&mut self, quote: u8) {
        let start = self.at;
        let Some(close) = self.closing(start + 1, quote) else {
            return self.unclosed(start, quote);
        };
        let next = self.text.get(close + 1).copied();
        let follows_well = next.is_none_or(|byte| is_blank(byte) || matches!(byte, b';' | b'{' | b')'));
        let between = &self.text[start..=close];
        if !follows_well && (between.contains(&b'\n') || directive_end(between).is_some()) {
            // The quote that seems to close it opens the next string: the missing one comes before.
            return self.unclosed(start, quote);
        }
        self.at = close + 1;
        self.word(start, start + 1..close, true);
        if !follows_well {
            let (from, to) = (close + 1, self.character_end(close + 1));
            let shown = String::from_utf8_lossy(&self.text[from..to]).into_owned();
            let help =
                format!("put a space between two words, or write \\{0} for a {0} in the text", quote as char);
            self.error(from, to, format!("unexpected \"{shown}\" after the closing quote"), help)
                .garbles_its_line();
        }
    }

    fn closing(&self, from: usize, quote: u8) -> Option<usize> {
        let mut at = from;
        loop {
            match *self.text.get(at)? {
                b'\\' => at += 2,
                byte if byte == quote => return Some(at),
                _ => at += 1,
            }
        }
    }

    /// Reports a quote without its partner, and goes on as if it stood where the directive seems to end, or
    /// else at the end of the line.
    fn unclosed(&mut self, start: usize, quote: u8) {
        let help =
            format!("close it with {0} on this line, or write \\{0} for a {0} in the text", quote as char);
        self.error(start, start + 1, "this quote is not closed", help).garbles_its_line();
        let line = &self.text[start..self.line_end(start)];
        let mut length = directive_end(line).unwrap_or(line.len());
        while length > 1 && is_blank(line[length - 1]) {
            length -= 1;
        }
        self.at = start + length;
        self.word(start, start + 1..self.at, true);
    }

    fn word(&mut self, start: usize, content: std::ops::Range<usize>, quoted: bool) {
        let raw = &self.text[content.clone()];
        if let Err(wrong) = std::str::from_utf8(raw) {
            let at = content.start + wrong.valid_up_to();
            let byte = self.text[at];
            self.error(
                at,
                at + 1,
                format!("the byte 0x{byte:02x} here is not UTF-8"),
                "save the file as UTF-8",
            );
        }
        let text = match String::from_utf8(unescape(raw)) {
            Ok(text) => text,
            Err(bytes) => String::from_utf8_lossy(bytes.as_bytes()).into_owned(),
        };
        self.list.push(Token::Word(Word { text, span: self.span(start, self.at), quoted }));
    }

    fn error(
        &mut self,
        start: usize,
        end: usize,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> &mut Diagnostic {
        let span = self.span(start, end);
        self.errors += 1;
        self.diagnostics.error(span, message).help(help)
    }

    fn line_end(&self, from: usize) -> usize {
        self.text[from..].iter().position(|&byte| byte == b'\n').map_or(self.text.len(), |i| from + i)
    }

    /// One past the character at `from`, so that a message never shows half of one.
    fn character_end(&self, from: usize) -> usize {
        let tail = self.text[from + 1..].iter().take(3).take_while(|&&byte| byte & 0xc0 == 0x80).count();
        from + 1 + tail
    }

    /// Offsets fit: `include` reads at most 64 MiB.
    fn span(&self, start: usize, end: usize) -> Span {
        Span { file: self.file, start: start as u32, end: end as u32 }
    }
}

/// In text that starts with a quote: before the first `;`, or `{` after a blank, that ends its line or
/// precedes a blank.
fn directive_end(text: &[u8]) -> Option<usize> {
    (1..text.len()).find(|&at| {
        let ends = match text[at] {
            b';' => true,
            b'{' => is_blank(text[at - 1]),
            _ => false,
        };
        ends && text.get(at + 1).is_none_or(|&next| is_blank(next))
    })
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// nginx's escapes, the same inside and outside of quotes: `\"`, `\'`, `\\`, `\t`, `\r`, `\n`; before any
/// other byte the backslash stays, as regular expressions need it.
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        let escaped = match raw.get(at + 1) {
            Some(&next @ (b'"' | b'\'' | b'\\')) => Some(next),
            Some(b't') => Some(b'\t'),
            Some(b'r') => Some(b'\r'),
            Some(b'n') => Some(b'\n'),
            _ => None,
        };
        match escaped {
            Some(meant) if byte == b'\\' => {
                text.push(meant);
                at += 2;
            }
            _ => {
                text.push(byte);
                at += 1;
            }
        }
    }
    text
}
