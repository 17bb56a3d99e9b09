//! Structured fields (RFC 9651) as far as caching needs them: a dictionary is read, a string or token is written.
//!
//! Parsing is as strict as §4.2 asks: one character that does not belong there and the whole field counts for
//! nothing, which is what RFC 9213 builds on. Values are borrowed as they came; what a member means is for the
//! caller. Next: `cache_control`, which reads targeted fields with it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

#[cfg(test)]
mod tests;

/// Most members of a dictionary; §3.2 requires support of that many.
pub const MOST_MEMBERS: usize = 1024;

/// §3.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareItem<'a> {
    /// An integer of at most 15 digits.
    Integer(i64),
    /// As it came.
    Decimal(&'a [u8]),
    /// Without its quotes, escapes left as they are.
    String(&'a [u8]),
    Token(&'a [u8]),
    /// The base64 text between its colons.
    Bytes(&'a [u8]),
    /// `?0` or `?1`; a member without a value is true.
    Boolean(bool),
    /// `@` and seconds since 1970.
    Date(i64),
    /// As it came between its quotes.
    Display(&'a [u8]),
}

/// Parameters are checked and dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    Item(BareItem<'a>),
    /// As it came between its parentheses.
    List(&'a [u8]),
}

/// The text is no dictionary; nothing may be taken from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotStructured;

/// Members in order (§4.2.2); of a repeated key only the last. At most [`MOST_MEMBERS`].
pub fn dictionary(text: &[u8]) -> Result<Vec<(&[u8], Value<'_>)>, NotStructured> {
    let mut members: Vec<(&[u8], Value<'_>)> = Vec::new();
    // Who sends the field chooses how many keys there are and how often one comes again: none is looked for one by one.
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    let mut input = Input { rest: trim_spaces(text) };
    while !input.rest.is_empty() {
        let key = input.key()?;
        let value = match input.take(b'=') {
            true => input.member_value()?,
            false => Value::Item(BareItem::Boolean(true)),
        };
        input.parameters()?;
        match places.entry(key) {
            Entry::Occupied(place) => members[*place.get()].1 = value,
            Entry::Vacant(place) if members.len() < MOST_MEMBERS => {
                place.insert(members.len());
                members.push((key, value));
            }
            Entry::Vacant(_) => return Err(NotStructured),
        }
        input.skip(is_optional_space);
        if input.rest.is_empty() {
            break;
        }
        if !input.take(b',') {
            return Err(NotStructured);
        }
        input.skip(is_optional_space);
        if input.rest.is_empty() {
            // A comma must be followed by a member.
            return Err(NotStructured);
        }
    }
    Ok(members)
}

/// §3.3.4; written without quotes.
pub fn is_token(text: &[u8]) -> bool {
    matches!(text, [first, rest @ ..] if is_token_start(*first) && rest.iter().all(|byte| is_token_byte(*byte)))
}

/// Appends a text as a string (§4.1.6). Bytes that a string cannot hold become question marks.
pub fn append_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0x20..=0x7e => out.push(byte),
            _ => out.push(b'?'),
        }
    }
    out.push(b'"');
}

struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn skip(&mut self, belongs: fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().position(|&byte| !belongs(byte)).unwrap_or(self.rest.len());
        let (skipped, rest) = self.rest.split_at(end);
        self.rest = rest;
        skipped
    }

    fn key(&mut self) -> Result<&'a [u8], NotStructured> {
        match self.peek() {
            Some(b'a'..=b'z' | b'*') => Ok(self.skip(is_key_byte)),
            _ => Err(NotStructured),
        }
    }

    fn member_value(&mut self) -> Result<Value<'a>, NotStructured> {
        if self.peek() == Some(b'(') { self.list() } else { self.item().map(Value::Item) }
    }

    fn list(&mut self) -> Result<Value<'a>, NotStructured> {
        self.take(b'(');
        let start = self.rest;
        loop {
            self.skip(|byte| byte == b' ');
            let inside = &start[..start.len() - self.rest.len()];
            if self.take(b')') {
                return Ok(Value::List(inside));
            }
            self.item()?;
            self.parameters()?;
            if !matches!(self.peek(), Some(b' ' | b')')) {
                return Err(NotStructured);
            }
        }
    }

    fn parameters(&mut self) -> Result<(), NotStructured> {
        while self.take(b';') {
            self.skip(|byte| byte == b' ');
            self.key()?;
            if self.take(b'=') {
                self.item()?;
            }
        }
        Ok(())
    }

    fn item(&mut self) -> Result<BareItem<'a>, NotStructured> {
        match self.peek().ok_or(NotStructured)? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.quoted().map(BareItem::String),
            b':' => self.bytes(),
            b'?' => self.boolean(),
            b'@' => {
                self.take(b'@');
                match self.number()? {
                    BareItem::Integer(seconds) => Ok(BareItem::Date(seconds)),
                    _ => Err(NotStructured),
                }
            }
            b'%' => {
                self.take(b'%');
                self.display()
            }
            byte if is_token_start(byte) => Ok(BareItem::Token(self.skip(is_token_byte))),
            _ => Err(NotStructured),
        }
    }

    /// §4.2.4: an integer of up to 15 digits, or a decimal of up to 12 and 3.
    fn number(&mut self) -> Result<BareItem<'a>, NotStructured> {
        let start = self.rest;
        let negative = self.take(b'-');
        let whole = self.skip(|byte| byte.is_ascii_digit());
        if whole.is_empty() {
            return Err(NotStructured);
        }
        if self.take(b'.') {
            let fraction = self.skip(|byte| byte.is_ascii_digit());
            let text = &start[..start.len() - self.rest.len()];
            let fits = whole.len() <= 12 && (1..=3).contains(&fraction.len());
            return if fits { Ok(BareItem::Decimal(text)) } else { Err(NotStructured) };
        }
        if whole.len() > 15 {
            return Err(NotStructured);
        }
        let value = whole.iter().fold(0i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        Ok(BareItem::Integer(if negative { -value } else { value }))
    }

    /// §4.2.5: printable ASCII; only quote and backslash may be escaped.
    fn quoted(&mut self) -> Result<&'a [u8], NotStructured> {
        self.take(b'"');
        let mut at = 0;
        while let Some(&byte) = self.rest.get(at) {
            match byte {
                b'"' => {
                    let (inside, rest) = self.rest.split_at(at);
                    self.rest = &rest[1..];
                    return Ok(inside);
                }
                b'\\' if matches!(self.rest.get(at + 1), Some(b'"' | b'\\')) => at += 2,
                b'\\' => return Err(NotStructured),
                0x20..=0x7e => at += 1,
                _ => return Err(NotStructured),
            }
        }
        Err(NotStructured)
    }

    fn bytes(&mut self) -> Result<BareItem<'a>, NotStructured> {
        self.take(b':');
        let inside = self.skip(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
        if self.take(b':') { Ok(BareItem::Bytes(inside)) } else { Err(NotStructured) }
    }

    fn boolean(&mut self) -> Result<BareItem<'a>, NotStructured> {
        self.take(b'?');
        match (self.take(b'1'), self.take(b'0')) {
            (true, false) => Ok(BareItem::Boolean(true)),
            (false, true) => Ok(BareItem::Boolean(false)),
            // "?10" too, which took both.
            _ => Err(NotStructured),
        }
    }

    /// §4.2.10: percent-coded with two digits in lower case; UTF-8 is not checked.
    fn display(&mut self) -> Result<BareItem<'a>, NotStructured> {
        if !self.take(b'"') {
            return Err(NotStructured);
        }
        let mut at = 0;
        while let Some(&byte) = self.rest.get(at) {
            match byte {
                b'"' => {
                    let (inside, rest) = self.rest.split_at(at);
                    self.rest = &rest[1..];
                    return Ok(BareItem::Display(inside));
                }
                b'%' => {
                    let digits = self.rest.get(at + 1..at + 3).ok_or(NotStructured)?;
                    if !digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
                        return Err(NotStructured);
                    }
                    at += 3;
                }
                0x20..=0x7e => at += 1,
                _ => return Err(NotStructured),
            }
        }
        Err(NotStructured)
    }
}

fn trim_spaces(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&byte| byte != b' ').unwrap_or(text.len());
    let end = text.iter().rposition(|&byte| byte != b' ').map_or(start, |last| last + 1);
    &text[start..end]
}

fn is_optional_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_key_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*')
}

fn is_token_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'*'
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
        || matches!(byte, b':' | b'/')
}
