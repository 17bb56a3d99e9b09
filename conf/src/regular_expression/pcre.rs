//! PCRE's syntax rewritten to the engine's, where the two read the same characters differently.
//!
//! Purely textual and never refusing: what is wrong with an expression the engine says. The list of differences is
//! the `match` below. Matching semantics are the engine's.

use std::iter::Peekable;
use std::str::Chars;

/// An expression for the engine.
pub(super) struct Translated {
    /// The rewritten source.
    pub(super) pattern: String,
    /// Whether it works on characters instead of bytes: asked for with `(*UTF8)`, or needed for its own letters.
    pub(super) utf8: bool,
}

pub(super) fn translate(source: &str) -> Translated {
    let mut rest = source;
    let mut utf8 = !source.is_ascii();
    while let Some((verb, after)) = rest.strip_prefix("(*").and_then(|rest| rest.split_once(')')) {
        match verb {
            "UTF8" | "UTF" | "UCP" => utf8 = true,
            _ => break,
        }
        rest = after;
    }
    let mut rewriter = Rewriter { rest: rest.chars().peekable(), out: String::with_capacity(rest.len() + 8) };
    rewriter.expression();
    Translated { pattern: rewriter.out, utf8 }
}

struct Rewriter<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
}

impl Rewriter<'_> {
    fn expression(&mut self) {
        while let Some(character) = self.rest.next() {
            match character {
                '\\' => self.escape(false),
                '[' => self.class(),
                // A brace that is no repetition stands for itself.
                '{' if !self.is_repetition() => self.out += r"\{",
                // `(?'name'…)` is `(?<name>…)`.
                '(' if self.ahead("?'") => self.quoted_name(),
                _ => self.out.push(character),
            }
        }
    }

    /// What follows a backslash. PCRE takes any punctuation for itself; the engine gives `\<` and others a meaning.
    fn escape(&mut self, in_class: bool) {
        let Some(character) = self.rest.next() else {
            self.out.push('\\');
            return;
        };
        let blank = |set: &str, negated: bool| match (in_class, negated) {
            (true, false) => set.to_string(),
            (_, false) => format!("[{set}]"),
            (_, true) => format!("[^{set}]"),
        };
        match character {
            'h' => self.out += &blank(r" \t", false),
            'H' => self.out += &blank(r" \t", true),
            'e' => self.out += r"\x1b",
            'Q' if !in_class => self.literal_text(),
            'E' => {}
            _ if character.is_ascii_punctuation() => self.literal(character),
            _ => {
                self.out.push('\\');
                self.out.push(character);
                // The brace of `\x{2f}` and `\p{L}` belongs to the escape.
                if matches!(character, 'x' | 'p' | 'P' | 'k' | 'g' | 'o') {
                    self.out.extend(self.rest.next_if_eq(&'{'));
                }
            }
        }
    }

    /// `\Q…\E`, or to the end where no `\E` comes.
    fn literal_text(&mut self) {
        while let Some(character) = self.rest.next() {
            if character == '\\' && self.rest.next_if_eq(&'E').is_some() {
                return;
            }
            self.literal(character);
        }
    }

    fn literal(&mut self, character: char) {
        if character.is_ascii_punctuation()
            && !matches!(character, '<' | '>' | '/' | '"' | '\'' | '_' | '`' | '%' | '@')
        {
            self.out.push('\\');
        }
        self.out.push(character);
    }

    /// A class. In PCRE a `[` in it is itself (unless it starts `[:alpha:]`), and there are no set operations.
    fn class(&mut self) {
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        if self.rest.next_if_eq(&']').is_some() {
            self.out += r"\]";
        }
        while let Some(character) = self.rest.next() {
            match character {
                ']' => return self.out.push(']'),
                '\\' => self.escape(true),
                '[' if self.ahead(":") => self.named_class(),
                '[' | '&' | '~' => self.literal(character),
                '-' if self.ahead("-") => self.out += r"\-",
                _ => self.out.push(character),
            }
        }
    }

    /// `[:alpha:]`, copied whole; a `[:` without its end is two characters.
    fn named_class(&mut self) {
        let name: String =
            self.rest.clone().skip(1).take_while(|c| c.is_ascii_alphabetic() || *c == '^').collect();
        let whole = format!(":{name}:]");
        if self.ahead(&whole) {
            self.out.push('[');
            self.out += &whole;
            self.rest.nth(whole.len() - 1);
        } else {
            self.out += r"\[";
        }
    }

    fn quoted_name(&mut self) {
        self.rest.nth(1);
        self.out += "(?<";
        for character in self.rest.by_ref() {
            if character == '\'' {
                break;
            }
            self.out.push(character);
        }
        self.out.push('>');
    }

    /// Whether `{2}`, `{2,}` or `{2,3}` follows, the brace taken already.
    fn is_repetition(&self) -> bool {
        let inside: String = self.rest.clone().take(16).take_while(|c| *c != '}').collect();
        let (least, most) = inside.split_once(',').unwrap_or((&inside, "0"));
        let closed = self.rest.clone().nth(inside.len()) == Some('}');
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        closed && !least.is_empty() && digits(least) && digits(most)
    }

    fn ahead(&self, text: &str) -> bool {
        let mut ahead = self.rest.clone();
        text.chars().all(|character| ahead.next() == Some(character))
    }
}
