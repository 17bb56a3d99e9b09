//! `charset_map`: how the bytes of one charset become those of another, and back.
//!
//! Before: `made`, whose lines it has; next: `charset`, which names the charsets.

use super::context::HTTP;
use super::made::lines;
use super::{Apply, Row, often};
use crate::declared::Kind;
use crate::declared::charset_map::{Conversion, Table};
use crate::reading::Reading;
use crate::tree::{Directive, Word};

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("charset_map", HTTP, (2, 2), "charset1 charset2 { code1 code2; … }", "",
        "Defines how characters of a single-byte charset are converted to another one and back, as in `C0 FE;`, or to UTF-8, as in `80 E282AC;`. \
        Codes are hexadecimal. ASCII is unchanged unless a line maps it. A character without a line becomes `?`, or `&#number;` when converted from \
        UTF-8. `include` reads lines from a file.",
        Apply::DeclareLines(read)),
];

fn read(directive: &Directive, reading: &mut Reading<'_>) {
    let [from, to] = &directive.args[..] else { return };
    let is_utf8 = |word: &Word| word.text.eq_ignore_ascii_case("utf-8");
    if from.text.eq_ignore_ascii_case(&to.text) {
        reading
            .error(directive.span, format!("\"charset_map\" between the same charsets \"{}\"", from.text))
            .help("name two different charsets");
        return;
    }
    if is_utf8(from) {
        reading
            .error(from.span, "\"charset_map\" with \"utf-8\" charset should be given in the second column")
            .help("exchange the two names and the two columns");
        return;
    }
    let (mut bytes, mut characters) = (Vec::new(), Vec::new());
    for (code, words) in lines(directive, reading) {
        let [other] = words else {
            reading.error(code.span, "invalid parameters number").help("write two codes, as in C0 FE;");
            continue;
        };
        let Some(byte) = byte(code, reading) else { continue };
        if is_utf8(to) {
            characters.extend(character(other, reading).map(|character| (byte, character)));
        } else {
            bytes.extend(self::byte(other, reading).map(|other| (byte, other)));
        }
    }
    let [there, back] = if is_utf8(to) { Table::of_characters(&characters) } else { Table::of_bytes(&bytes) };
    let mut names = [from.text.to_ascii_lowercase(), to.text.to_ascii_lowercase()];
    names.sort_unstable();
    let message = format!("duplicate \"charset_map\" between \"{}\" and \"{}\"", from.text, to.text);
    if reading.declare(Kind::CharsetMap, &names.join(" "), directive.span, message) {
        let conversions = &mut reading.declared.conversions;
        for (from, to, table) in [(from, to, there), (to, from, back)] {
            conversions.push(Conversion {
                from: from.text.as_str().into(),
                to: to.text.as_str().into(),
                table,
            });
        }
    }
}

fn byte(word: &Word, reading: &mut Reading<'_>) -> Option<u8> {
    let code = u32::from_str_radix(&word.text, 16).ok().and_then(|code| u8::try_from(code).ok());
    if code.is_none() {
        invalid(word, reading);
    }
    code
}

fn character(word: &Word, reading: &mut Reading<'_>) -> Option<char> {
    let pairs = word.text.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> =
        pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    let mut text =
        bytes.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default().chars();
    match (text.next(), text.next()) {
        (Some(character), None) => Some(character),
        _ => {
            invalid(word, reading);
            None
        }
    }
}

fn invalid(word: &Word, reading: &mut Reading<'_>) {
    reading
        .error(word.span, format!("invalid value \"{}\"", word.text))
        .help("write a byte in hexadecimal digits, or the bytes of a character in UTF-8");
}
