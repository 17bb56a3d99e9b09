//! Finds the commands of a text that comes in pieces: `<!--# name key="value" … -->`.
//!
//! What belongs to none goes on as it is, at once but for a beginning that may become one. A command that is written wrongly is
//! passed over to its end, and told. Names and values have bounds. Next: `command`, what a command does.

use memchr::{memchr_iter, memmem};

#[cfg(test)]
mod tests;

/// What a command begins with.
const BEGINNING: &[u8] = b"<!--#";
/// Bytes of the name of a command or a parameter.
const LONGEST_NAME: usize = 16;
/// Parameters of one command.
const MOST_PARAMETERS: usize = 16;

/// What stands in a text.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'p> {
    /// Bytes that are no command.
    Text(&'p [u8]),
    /// A command.
    Command(Written),
    /// One that is written wrongly, and how.
    Wrong(String),
}

/// A command as it is written.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its name.
    pub name: Vec<u8>,
    /// Names and values in their order; escapes are still in the values.
    pub parameters: Vec<(Vec<u8>, Vec<u8>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// So many bytes of [`BEGINNING`] have come.
    Beginning(usize),
    BeforeName,
    Name,
    BeforeParameter,
    Parameter,
    BeforeEqual,
    BeforeValue,
    /// Within this quote.
    Value(u8),
    /// Behind a backslash within this quote.
    Escaped(u8),
    BehindValue,
    /// So many bytes of `-->` have come.
    Ending(u8),
    /// The same of a command that is wrong.
    Wrong(u8),
}

/// A parser of one text.
#[derive(Debug)]
pub struct Parser {
    state: State,
    longest_value: usize,
    written: Written,
    wrong: String,
    line: usize,
}

impl Parser {
    /// A parser at the beginning of a text. Values have so many bytes at the most.
    pub fn new(longest_value: usize) -> Parser {
        Parser {
            state: State::Text,
            longest_value,
            written: Written::default(),
            wrong: String::new(),
            line: 1,
        }
    }

    /// The line of the text that has been read to.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The next of a piece, which becomes shorter; nothing once it is used up.
    pub fn next<'p>(&mut self, piece: &mut &'p [u8]) -> Option<Found<'p>> {
        loop {
            match self.state {
                State::Text => {
                    if piece.is_empty() {
                        return None;
                    }
                    let text = self.text(piece);
                    if !text.is_empty() {
                        return Some(Found::Text(text));
                    }
                }
                State::Beginning(known) => {
                    let (&byte, rest) = piece.split_first()?;
                    if byte != BEGINNING[known] {
                        self.state = State::Text;
                        return Some(Found::Text(&BEGINNING[..known]));
                    }
                    *piece = rest;
                    self.state = match known + 1 {
                        all if all == BEGINNING.len() => State::BeforeName,
                        known => State::Beginning(known),
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

    /// What is left at the end of the text. A command without an end is nothing.
    pub fn end(&mut self) -> &'static [u8] {
        match std::mem::replace(&mut self.state, State::Text) {
            State::Beginning(known) => &BEGINNING[..known],
            _ => b"",
        }
    }

    /// Takes what stands before the next command, or may stand before one.
    fn text<'p>(&mut self, piece: &mut &'p [u8]) -> &'p [u8] {
        let (end, used) = match memmem::find(piece, BEGINNING) {
            Some(at) => {
                self.state = State::BeforeName;
                (at, at + BEGINNING.len())
            }
            None => {
                let known = (1..BEGINNING.len()).rev().find(|&known| piece.ends_with(&BEGINNING[..known]));
                if let Some(known) = known {
                    self.state = State::Beginning(known);
                }
                (piece.len() - known.unwrap_or(0), piece.len())
            }
        };
        let text = &piece[..end];
        *piece = &piece[used..];
        self.line += memchr_iter(b'\n', text).count();
        self.written = Written::default();
        text
    }

    /// Takes a byte of a command.
    fn byte(&mut self, byte: u8) -> Option<Found<'static>> {
        let is_space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        self.state = match self.state {
            state
            @ (State::BeforeName | State::BeforeParameter | State::BeforeEqual | State::BeforeValue)
                if is_space =>
            {
                state
            }
            State::BeforeName => {
                self.written = Written { name: vec![byte], parameters: Vec::new() };
                State::Name
            }
            State::Name | State::BehindValue if is_space => State::BeforeParameter,
            State::Name | State::BeforeParameter | State::BehindValue if byte == b'-' => State::Ending(1),
            State::Name if self.written.name.len() == LONGEST_NAME => self.is_wrong(byte, "too long a name"),
            State::Name => {
                self.written.name.push(byte);
                State::Name
            }
            State::BeforeParameter if self.written.parameters.len() == MOST_PARAMETERS => {
                self.is_wrong(byte, "too many parameters")
            }
            State::BeforeParameter => {
                self.written.parameters.push((vec![byte], Vec::new()));
                State::Parameter
            }
            State::Parameter if is_space => State::BeforeEqual,
            State::Parameter | State::BeforeEqual if byte == b'=' => State::BeforeValue,
            State::Parameter if byte != b'-' => self.grow_parameter(byte),
            State::BeforeValue if matches!(byte, b'"' | b'\'') => State::Value(byte),
            State::Parameter | State::BeforeEqual => self.is_wrong(byte, "no \"=\" behind a parameter"),
            State::BeforeValue => self.is_wrong(byte, "a value without quotes"),
            State::BehindValue => self.is_wrong(byte, "something behind a value"),
            State::Value(quote) if byte == quote => State::BehindValue,
            State::Value(quote) if byte == b'\\' => self.grow_value(byte, State::Escaped(quote)),
            State::Value(quote) | State::Escaped(quote) => self.grow_value(byte, State::Value(quote)),
            State::Ending(1) if byte == b'-' => State::Ending(2),
            State::Ending(2) if byte == b'>' => {
                self.state = State::Text;
                return Some(Found::Command(std::mem::take(&mut self.written)));
            }
            State::Ending(_) => self.is_wrong(byte, "no \"-->\" behind a \"-\""),
            State::Wrong(2) if byte == b'>' => {
                self.state = State::Text;
                return Some(Found::Wrong(std::mem::take(&mut self.wrong)));
            }
            State::Wrong(known @ (0 | 1)) if byte == b'-' => State::Wrong(known + 1),
            State::Wrong(_) => State::Wrong(0),
            // Both are `next`'s.
            state @ (State::Text | State::Beginning(_)) => state,
        };
        None
    }

    fn grow_parameter(&mut self, byte: u8) -> State {
        match self.written.parameters.last_mut() {
            Some((name, _)) if name.len() < LONGEST_NAME => {
                name.push(byte);
                State::Parameter
            }
            _ => self.is_wrong(byte, "too long a parameter"),
        }
    }

    fn grow_value(&mut self, byte: u8, next: State) -> State {
        match self.written.parameters.last_mut() {
            Some((_, value)) if value.len() < self.longest_value => {
                value.push(byte);
                next
            }
            _ => self.is_wrong(byte, "too long a value"),
        }
    }

    /// The command is wrong here; it ends where it would if it were right.
    fn is_wrong(&mut self, byte: u8, what: &str) -> State {
        let name = self.written.name.escape_ascii();
        self.wrong = format!("{what} in \"{name}\" SSI command at \"{}\"", byte.escape_ascii());
        let may_end = matches!(self.state, State::Parameter | State::BeforeEqual | State::BeforeValue);
        State::Wrong(u8::from(may_end && byte == b'-'))
    }
}
