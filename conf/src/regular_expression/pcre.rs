//! PCRE's syntax rewritten to the engine's, where the two read the same characters differently.
//!
//! The list of differences is the `match`es below. Without `(*UTF8)` an expression works on bytes, as in nginx: a letter
//! outside of ASCII is its bytes, and `.`, classes and repetitions are of single ones. What the engine would take for
//! something else, or cannot do, is refused here; all else that is wrong with an expression the engine says.
//! Next: `groups`, who knows the groups so far; `properties`, `\p{…}` of bytes.

mod groups;
mod properties;

use groups::Groups;
use std::fmt::Write;

pub(super) struct Translated {
    pub(super) pattern: String,
    /// `(*UTF8)`: works on characters instead of bytes.
    pub(super) utf8: bool,
    /// `(?J)`: several groups may share a name.
    pub(super) same_names: bool,
}

/// The error names what cannot be translated.
pub(super) fn translate(source: &str) -> Result<Translated, String> {
    let mut rest = source;
    let mut utf8 = false;
    while let Some((verb, after)) = rest.strip_prefix("(*").and_then(|rest| rest.split_once(')')) {
        match verb {
            "UTF8" | "UTF" | "UCP" => utf8 = true,
            // Bounds of PCRE's; the engine has its own.
            _ if verb.starts_with("LIMIT_") || verb.starts_with("NO_") => {}
            _ => break,
        }
        rest = after;
    }
    let mut rewriter = Rewriter {
        rest,
        out: String::with_capacity(rest.len() + 8),
        utf8,
        groups: Groups::default(),
        same_names: false,
    };
    rewriter.expression()?;
    Ok(Translated { pattern: rewriter.out, utf8, same_names: rewriter.same_names })
}

struct Rewriter<'a> {
    rest: &'a str,
    out: String,
    utf8: bool,
    groups: Groups,
    same_names: bool,
}

impl<'a> Rewriter<'a> {
    fn expression(&mut self) -> Result<(), String> {
        while let Some(character) = self.next() {
            match character {
                '\\' => self.escape()?,
                '[' => self.class()?,
                // A brace that is no repetition stands for itself.
                '{' if !self.is_repetition() => self.out += r"\{",
                '(' => self.open()?,
                ')' => self.groups.close(&mut self.out),
                _ => self.text(character),
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Option<char> {
        let first = self.rest.chars().next()?;
        self.rest = &self.rest[first.len_utf8()..];
        Some(first)
    }

    fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// The text before a mark; the mark is consumed too.
    fn up_to(&mut self, mark: char) -> Result<&'a str, String> {
        let (before, after) = self.rest.split_once(mark).ok_or_else(|| format!("\"{mark}\" is missing"))?;
        self.rest = after;
        Ok(before)
    }

    /// At most this many such characters.
    fn digits(&mut self, most: usize, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.chars().take(most).take_while(|digit| belongs(*digit)).count();
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits
    }

    /// A character outside of ASCII becomes its bytes.
    fn text(&mut self, character: char) {
        if self.utf8 || character.is_ascii() {
            self.out.push(character);
        } else {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                self.byte(byte);
            }
        }
    }

    fn byte(&mut self, byte: u8) {
        _ = write!(self.out, r"\x{byte:02X}");
    }

    fn code(&mut self, text: &str, radix: u32) -> Result<(), String> {
        match u32::from_str_radix(text, radix) {
            Ok(code @ ..0x80) => self.byte(code as u8),
            Ok(code) if self.utf8 => _ = write!(self.out, r"\x{{{code:X}}}"),
            Ok(code @ ..0x100) => self.byte(code as u8),
            _ => return Err(format!("character code \"{text}\" is too large")),
        }
        Ok(())
    }

    /// After a backslash outside of a class.
    fn escape(&mut self) -> Result<(), String> {
        let Some(character) = self.next() else {
            self.out.push('\\');
            return Ok(());
        };
        match character {
            'R' if !self.utf8 => self.out += r"(?>\r\n|[\n-\r\x85])",
            // A character with all that combines with it; of bytes, none do.
            'X' if !self.utf8 => self.out += r"(?>\r\n|(?s:.))",
            'C' if !self.utf8 => self.out += "(?s:.)",
            'Q' => self.literal_text(),
            'E' => {}
            'g' => self.reference_or_call()?,
            'k' => {
                let name = match self.next() {
                    Some('{') => self.up_to('}')?,
                    Some('<') => self.up_to('>')?,
                    Some('\'') => self.up_to('\'')?,
                    _ => return Err(r"\k is not followed by a name".into()),
                };
                _ = write!(self.out, r"\k<{name}>");
            }
            '1'..='9' => self.reference_or_octal(character)?,
            'R' | 'N' | 'A' | 'z' | 'Z' | 'B' | 'b' | 'G' | 'K' => self.kept(character),
            _ => self.escape_anywhere(character, false)?,
        }
        Ok(())
    }

    /// Escapes that mean the same in a class. PCRE takes any punctuation literally; the engine gives `\<` and
    /// others a meaning.
    fn escape_anywhere(&mut self, character: char, in_class: bool) -> Result<(), String> {
        match character {
            'h' | 'H' | 'v' | 'V' => {
                let set = match (character.to_ascii_lowercase(), self.utf8) {
                    ('h', false) => r" \t\xA0",
                    ('h', true) => r" \t\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}",
                    (_, false) => r"\n-\r\x85",
                    (_, true) => r"\n-\r\x{85}\x{2028}\x{2029}",
                };
                self.set(set, character.is_ascii_uppercase(), in_class);
            }
            'a' => self.byte(7),
            'e' => self.byte(0x1b),
            'b' if in_class => self.byte(8),
            'c' => match self.next() {
                Some(control) if control.is_ascii_graphic() => {
                    self.byte(control.to_ascii_uppercase() as u8 ^ 0x40);
                }
                _ => return Err(r"\c is not followed by a character".into()),
            },
            '0' => {
                let digits = self.digits(2, |digit| digit.is_digit(8));
                self.code(if digits.is_empty() { "0" } else { digits }, 8)?;
            }
            'o' if self.take("{") => {
                let digits = self.up_to('}')?;
                self.code(digits, 8)?;
            }
            'x' if self.take("{") => {
                let digits = self.up_to('}')?;
                self.code(digits, 16)?;
            }
            'x' => {
                let digits = self.digits(2, |digit| digit.is_ascii_hexdigit());
                self.code(if digits.is_empty() { "0" } else { digits }, 16)?;
            }
            'p' | 'P' => {
                let name = match self.next() {
                    Some('{') => self.up_to('}')?.to_owned(),
                    Some(letter) => letter.to_string(),
                    None => return Err(format!(r"malformed \{character}")),
                };
                let (name, negated) = match name.strip_prefix('^') {
                    Some(name) => (name, character == 'p'),
                    None => (name.as_str(), character == 'P'),
                };
                if self.utf8 {
                    _ = write!(self.out, r"\{}{{{name}}}", if negated { 'P' } else { 'p' });
                } else {
                    self.set(&properties::bytes(name)?, negated, in_class);
                }
            }
            'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'n' | 'r' | 't' | 'f' => self.kept(character),
            _ if character.is_ascii_alphanumeric() => {
                return Err(format!(r"unrecognized character follows \: {character}"));
            }
            _ if character.is_ascii() => self.literal(character),
            _ => self.text(character),
        }
        Ok(())
    }

    fn kept(&mut self, character: char) {
        self.out.push('\\');
        self.out.push(character);
    }

    fn set(&mut self, set: &str, negated: bool, in_class: bool) {
        match (in_class, negated) {
            (true, false) => self.out += set,
            (_, negated) => _ = write!(self.out, "[{}{set}]", if negated { "^" } else { "" }),
        }
    }

    /// `\1` and on: a reference if there are so many groups so far or it is a single digit, else up to three
    /// octal digits.
    fn reference_or_octal(&mut self, first: char) -> Result<(), String> {
        let more = self.rest.len() - self.rest.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
        let number = format!("{first}{}", &self.rest[..more]);
        let value: u32 = number.parse().map_err(|_| "a group's number is too large".to_owned())?;
        if value < 10 || first >= '8' || self.groups.count() >= value as usize {
            self.rest = &self.rest[more..];
            self.reference(value);
            return Ok(());
        }
        let digits = self.digits(2, |digit| digit.is_digit(8));
        self.code(&format!("{first}{digits}"), 8)
    }

    fn reference(&mut self, group: u32) {
        // A digit that follows is not the reference's.
        _ = write!(self.out, r"(?:\{group})");
    }

    /// `\g{…}` and `\g1` are references; `\g<…>` and `\g'…'` are calls.
    fn reference_or_call(&mut self) -> Result<(), String> {
        let target = match self.rest.chars().next() {
            Some('<') => {
                self.next();
                let name = self.up_to('>')?;
                return self.call(name);
            }
            Some('\'') => {
                self.next();
                let name = self.up_to('\'')?;
                return self.call(name);
            }
            Some('{') => {
                self.next();
                self.up_to('}')?
            }
            _ => {
                let sign = usize::from(self.rest.starts_with(['-', '+']));
                let digits = self.rest[sign..].chars().take_while(char::is_ascii_digit).count();
                let (target, rest) = self.rest.split_at(sign + digits);
                self.rest = rest;
                target
            }
        };
        match self.groups.number(target) {
            Some(number) => self.reference(number),
            None if target.is_empty() => return Err(r"\g is not followed by a group".into()),
            None => _ = write!(self.out, r"\k<{target}>"),
        }
        Ok(())
    }

    /// A call matches the group's pattern again.
    fn call(&mut self, target: &str) -> Result<(), String> {
        self.groups.call(target, &mut self.out)
    }

    fn open(&mut self) -> Result<(), String> {
        if !self.rest.starts_with('?') {
            self.groups.open_capture(None, &mut self.out);
            return Ok(());
        }
        for (opening, closing) in [("?<", '>'), ("?P<", '>'), ("?'", '\'')] {
            let rest = self.rest.strip_prefix(opening);
            if rest.is_some_and(|rest| !rest.starts_with(['=', '!'])) {
                self.take(opening);
                let name = self.up_to(closing)?;
                self.groups.open_capture(Some(name), &mut self.out);
                return Ok(());
            }
        }
        for (opening, kind) in [("?&", "call"), ("?P>", "call"), ("?P=", "reference"), ("?#", "comment")] {
            if self.take(opening) {
                let inside = self.up_to(')')?;
                match kind {
                    "call" => self.call(inside)?,
                    "reference" => _ = write!(self.out, r"\k<{inside}>"),
                    _ => {}
                }
                return Ok(());
            }
        }
        if self.take("?R)") {
            return self.call("0");
        }
        if let Some((number, _)) = self.rest[1..].split_once(')')
            && number.trim_start_matches(['+', '-']).parse::<u32>().is_ok()
        {
            self.rest = &self.rest[number.len() + 2..];
            return self.call(number);
        }
        if self.rest.starts_with("?(") {
            self.groups.open();
            self.out += "(?(";
            self.take("?(");
            if self.rest.starts_with(['?', '*']) || self.rest.starts_with('R') {
                return Err("this kind of condition is not supported".into());
            }
            let condition = self.up_to(')')?;
            _ = write!(self.out, "{condition})");
            return Ok(());
        }
        if self.rest.starts_with("?|") || self.rest.starts_with("?C") || self.rest.starts_with("?~") {
            return Err(format!("\"({}\" is not supported", &self.rest[..2]));
        }
        self.flags()
    }

    /// `(?i)`, `(?i:`, `(?:`, `(?=`, `(?>` and the like.
    fn flags(&mut self) -> Result<(), String> {
        let inside = self.rest[1..].find([')', ':', '=', '!', '>', '<']);
        let Some(end) = inside else { return Err("missing closing parenthesis".into()) };
        let flags = &self.rest[1..1 + end];
        if let Some(unknown) = flags.chars().find(|flag| !"imsxUJ-".contains(*flag)) {
            return Err(format!("\"(?{flags}\": \"{unknown}\" is not a supported option"));
        }
        self.same_names |= flags.split('-').next().unwrap_or_default().contains('J');
        let mut others: String = flags.chars().filter(|flag| *flag != 'J').collect();
        if others.ends_with('-') {
            others.pop();
        }
        self.rest = &self.rest[1 + end..];
        if self.take(")") {
            if !others.is_empty() {
                _ = write!(self.out, "(?{others})");
            }
            return Ok(());
        }
        self.groups.open();
        _ = write!(self.out, "(?{others}");
        Ok(())
    }

    /// `\Q…\E`, or to the end without `\E`.
    fn literal_text(&mut self) {
        let (text, rest) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
        self.rest = rest;
        text.chars().for_each(|character| self.literal(character));
    }

    fn literal(&mut self, character: char) {
        if character.is_ascii_punctuation()
            && !matches!(character, '<' | '>' | '/' | '"' | '\'' | '_' | '`' | '%' | '@')
        {
            self.out.push('\\');
        }
        self.text(character);
    }

    /// In PCRE a `[` in a class is literal (unless it starts `[:alpha:]`), and there are no set operations.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.take("^") {
            self.out.push('^');
        }
        if self.take("]") {
            self.out += r"\]";
        }
        while let Some(character) = self.next() {
            match character {
                ']' => {
                    self.out.push(']');
                    return Ok(());
                }
                '\\' => self.escape_in_class()?,
                '[' if self.rest.starts_with(':') => self.named_class(),
                '[' | '&' | '~' => self.literal(character),
                '-' if self.rest.starts_with('-') => self.out += r"\-",
                _ => self.text(character),
            }
        }
        Ok(())
    }

    fn escape_in_class(&mut self) -> Result<(), String> {
        let Some(character) = self.next() else {
            self.out.push('\\');
            return Ok(());
        };
        match character {
            'Q' => self.literal_text(),
            'E' => {}
            '1'..='7' => {
                let digits = self.digits(2, |digit| digit.is_digit(8));
                self.code(&format!("{character}{digits}"), 8)?;
            }
            _ => self.escape_anywhere(character, true)?,
        }
        Ok(())
    }

    /// `[:alpha:]`, copied whole; a `[:` without its end is two characters.
    fn named_class(&mut self) {
        let name = self.rest[1..].split(|c: char| !c.is_ascii_alphabetic() && c != '^').next();
        let whole = format!(":{}:]", name.unwrap_or_default());
        if self.take(&whole) {
            self.out.push('[');
            self.out += &whole;
        } else {
            self.out += r"\[";
        }
    }

    /// Whether `{2}`, `{2,}` or `{2,3}` follows, the brace already consumed.
    fn is_repetition(&self) -> bool {
        let Some((inside, _)) = self.rest.split_once('}') else { return false };
        let (least, most) = inside.split_once(',').unwrap_or((inside, "0"));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        inside.len() <= 16 && !least.is_empty() && digits(least) && digits(most)
    }
}
