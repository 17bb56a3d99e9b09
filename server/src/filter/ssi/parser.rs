//! Finds the commands of a text that comes in pieces: `<!--# name key="value" … -->`.
//!
//! What belongs to none goes on as it is, at once but for a beginning that may become one. A command that is written wrongly is
//! passed over to its end, and told. Names and values have bounds. Next: `command`, what a command does.

use memchr::{memchr_iter, memmem};

#[cfg(test)]
mod tests;

const BEGINNING: &[u8] = b"<!--#";
const LONGEST_NAME: usize = 16;
const MOST_PARAMETERS: usize = 16;

#[derive(Debug, PartialEq, Eq)]
pub enum Fragment<'p> {
    Text(&'p [u8]),
    Command(WrittenCommand),
    Wrong(String),
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct WrittenCommand {
    pub name: Vec<u8>,
    /// In order; values still have their escapes.
    pub parameters: Vec<(Vec<u8>, Vec<u8>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParserState {
    Text,
    Beginning(usize),
    BeforeName,
    Name,
    BeforeParameter,
    Parameter,
    BeforeEqual,
    BeforeValue,
    Value(u8),
    Escaped(u8),
    BehindValue,
    Ending(u8),
    Wrong(u8),
}

#[derive(Debug)]
pub struct Parser {
    state: ParserState,
    longest_value: usize,
    written: WrittenCommand,
    wrong: String,
    line: usize,
}

impl Parser {
    pub fn new(longest_value: usize) -> Parser {
        Parser {
            state: ParserState::Text,
            longest_value,
            written: WrittenCommand::default(),
            wrong: String::new(),
            line: 1,
        }
    }

    pub fn line(&self) -> usize {
        self.line
    }

    pub fn next<'p>(&mut self, piece: &mut &'p [u8]) -> Option<Fragment<'p>> {
        loop {
            match self.state {
                ParserState::Text => {
                    if piece.is_empty() {
                        return None;
                    }
                    let text = self.text(piece);
                    if !text.is_empty() {
                        return Some(Fragment::Text(text));
                    }
                }
                ParserState::Beginning(known) => {
                    let (&byte, rest) = piece.split_first()?;
                    if byte != BEGINNING[known] {
                        self.state = ParserState::Text;
                        return Some(Fragment::Text(&BEGINNING[..known]));
                    }
                    *piece = rest;
                    self.state = match known + 1 {
                        all if all == BEGINNING.len() => ParserState::BeforeName,
                        known => ParserState::Beginning(known),
                    };
                }
                _ => {
                    let (&byte, rest) = piece.split_first()?;
                    *piece = rest;
                    self.line += usize::from(byte == b'\n');
                    if let Some(found) = self.byte(byte) {
                        return Some(found);
                    }
                }
            }
        }
    }

    /// The output at the end of the text; an unfinished command is dropped.
    pub fn end(&mut self) -> &'static [u8] {
        match std::mem::replace(&mut self.state, ParserState::Text) {
            ParserState::Beginning(known) => &BEGINNING[..known],
            _ => b"",
        }
    }

    fn text<'p>(&mut self, piece: &mut &'p [u8]) -> &'p [u8] {
        let (end, used) = match memmem::find(piece, BEGINNING) {
            Some(at) => {
                self.state = ParserState::BeforeName;
                (at, at + BEGINNING.len())
            }
            None => {
                let known = (1..BEGINNING.len()).rev().find(|&known| piece.ends_with(&BEGINNING[..known]));
                if let Some(known) = known {
                    self.state = ParserState::Beginning(known);
                }
                (piece.len() - known.unwrap_or(0), piece.len())
            }
        };
        let text = &piece[..end];
        *piece = &piece[used..];
        self.line += memchr_iter(b'\n', text).count();
        self.written = WrittenCommand::default();
        text
    }

    fn byte(&mut self, byte: u8) -> Option<Fragment<'static>> {
        let is_space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        self.state = match self.state {
            state @ (ParserState::BeforeName
            | ParserState::BeforeParameter
            | ParserState::BeforeEqual
            | ParserState::BeforeValue)
                if is_space =>
            {
                state
            }
            ParserState::BeforeName => {
                self.written = WrittenCommand { name: vec![byte], parameters: Vec::new() };
                ParserState::Name
            }
            ParserState::Name | ParserState::BehindValue if is_space => ParserState::BeforeParameter,
            ParserState::Name | ParserState::BeforeParameter | ParserState::BehindValue if byte == b'-' => {
                ParserState::Ending(1)
            }
            ParserState::Name if self.written.name.len() == LONGEST_NAME => {
                self.is_wrong(byte, "too long command name")
            }
            ParserState::Name => {
                self.written.name.push(byte);
                ParserState::Name
            }
            ParserState::BeforeParameter if self.written.parameters.len() == MOST_PARAMETERS => {
                self.is_wrong(byte, "too many parameters")
            }
            ParserState::BeforeParameter => {
                self.written.parameters.push((vec![byte], Vec::new()));
                ParserState::Parameter
            }
            ParserState::Parameter if is_space => ParserState::BeforeEqual,
            ParserState::Parameter | ParserState::BeforeEqual if byte == b'=' => ParserState::BeforeValue,
            ParserState::Parameter if byte != b'-' => self.grow_parameter(byte),
            ParserState::BeforeValue if matches!(byte, b'"' | b'\'') => ParserState::Value(byte),
            ParserState::Parameter | ParserState::BeforeEqual => {
                self.is_wrong(byte, "no \"=\" after a parameter")
            }
            ParserState::BeforeValue => self.is_wrong(byte, "unquoted value"),
            ParserState::BehindValue => self.is_wrong(byte, "unexpected character after a value"),
            ParserState::Value(quote) if byte == quote => ParserState::BehindValue,
            ParserState::Value(quote) if byte == b'\\' => self.grow_value(byte, ParserState::Escaped(quote)),
            ParserState::Value(quote) | ParserState::Escaped(quote) => {
                self.grow_value(byte, ParserState::Value(quote))
            }
            ParserState::Ending(1) if byte == b'-' => ParserState::Ending(2),
            ParserState::Ending(2) if byte == b'>' => {
                self.state = ParserState::Text;
                return Some(Fragment::Command(std::mem::take(&mut self.written)));
            }
            ParserState::Ending(_) => self.is_wrong(byte, "no \"-->\" after a \"-\""),
            ParserState::Wrong(2) if byte == b'>' => {
                self.state = ParserState::Text;
                return Some(Fragment::Wrong(std::mem::take(&mut self.wrong)));
            }
            ParserState::Wrong(known @ (0 | 1)) if byte == b'-' => ParserState::Wrong(known + 1),
            ParserState::Wrong(_) => ParserState::Wrong(0),
            // Both are `next`'s.
            state @ (ParserState::Text | ParserState::Beginning(_)) => state,
        };
        None
    }

    fn grow_parameter(&mut self, byte: u8) -> ParserState {
        match self.written.parameters.last_mut() {
            Some((name, _)) if name.len() < LONGEST_NAME => {
                name.push(byte);
                ParserState::Parameter
            }
            _ => self.is_wrong(byte, "too long parameter name"),
        }
    }

    fn grow_value(&mut self, byte: u8, next: ParserState) -> ParserState {
        match self.written.parameters.last_mut() {
            Some((_, value)) if value.len() < self.longest_value => {
                value.push(byte);
                next
            }
            _ => self.is_wrong(byte, "too long value"),
        }
    }

    /// A malformed command ends where it would if it were right.
    fn is_wrong(&mut self, byte: u8, what: &str) -> ParserState {
        let name = self.written.name.escape_ascii();
        self.wrong = format!("{what} in \"{name}\" SSI command at \"{}\"", byte.escape_ascii());
        let may_end = matches!(
            self.state,
            ParserState::Parameter | ParserState::BeforeEqual | ParserState::BeforeValue
        );
        ParserState::Wrong(u8::from(may_end && byte == b'-'))
    }
}
