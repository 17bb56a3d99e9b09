//! The name of whose a certificate is or who issued it, as text in OpenSSL's forms.
//!
//! Before: `element`; next: `certificate`.

use crate::element::{self, Element, SEQUENCE, SET};
use der::asn1::ObjectIdentifier;
use std::io::Write;

/// How a name is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `CN=name,O=organisation`, the last part first (RFC 2253).
    Commas,
    /// `/O=organisation/CN=name`.
    Slashes,
}

/// A name, with its parts in their order.
#[derive(Debug)]
pub(crate) struct Name<'a> {
    /// As it stands in the certificate.
    pub(crate) element: Element<'a>,
    parts: Vec<Part<'a>>,
}

/// One of its parts. Those of one group are given together.
#[derive(Debug)]
struct Part<'a> {
    group: usize,
    kind: &'a [u8],
    value: Element<'a>,
}

impl<'a> Name<'a> {
    pub(crate) fn read(element: Element<'a>) -> Option<Self> {
        let mut parts = Vec::new();
        for (group, members) in element.parts(SEQUENCE)?.into_iter().enumerate() {
            let members = members.parts(SET)?;
            members.first()?;
            for member in members {
                let [kind, value] = member.parts(SEQUENCE)?[..] else { return None };
                parts.push(Part { group, kind: kind.identifier()?, value });
            }
        }
        Some(Name { element, parts })
    }

    /// The common names, those that are text.
    pub(crate) fn common(&self) -> impl Iterator<Item = &'a str> {
        const COMMON: ObjectIdentifier = id("2.5.4.3");
        self.parts.iter().filter(|part| part.kind == COMMON.as_bytes()).filter_map(|part| {
            match part.value.tag {
                UTF8 | NUMERIC | PRINTABLE | IA5 => std::str::from_utf8(part.value.content).ok(),
                _ => None,
            }
        })
    }

    pub(crate) fn write(&self, form: Form, out: &mut Vec<u8>) {
        let mut parts: Vec<_> = self.parts.iter().collect();
        if form == Form::Commas {
            parts.reverse();
        }
        let mut before = None;
        for Part { group, kind, value } in parts {
            match (form, before) {
                (_, Some(before)) if before == group => out.push(b'+'),
                (Form::Commas, None) => {}
                (Form::Commas, Some(_)) => out.push(b','),
                (Form::Slashes, _) => out.push(b'/'),
            }
            before = Some(group);
            let known = SHORT_NAMES.iter().find(|(known, _)| known.as_bytes() == *kind);
            match known {
                Some((_, name)) => out.extend_from_slice(name.as_bytes()),
                None => write_dotted(kind, out),
            }
            out.push(b'=');
            match (form, text(value)) {
                (Form::Commas, Some(text)) if known.is_some() => write_escaped(&text, out),
                (Form::Commas, _) => write_encoded(value, out),
                (Form::Slashes, _) => write_plain(value.content, out),
            }
        }
    }
}

const fn id(dotted: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(dotted)
}

/// OpenSSL's short names of what a name is made of.
const SHORT_NAMES: &[(ObjectIdentifier, &str)] = &[
    (id("2.5.4.3"), "CN"),
    (id("2.5.4.4"), "SN"),
    (id("2.5.4.5"), "serialNumber"),
    (id("2.5.4.6"), "C"),
    (id("2.5.4.7"), "L"),
    (id("2.5.4.8"), "ST"),
    (id("2.5.4.9"), "street"),
    (id("2.5.4.10"), "O"),
    (id("2.5.4.11"), "OU"),
    (id("2.5.4.12"), "title"),
    (id("2.5.4.13"), "description"),
    (id("2.5.4.15"), "businessCategory"),
    (id("2.5.4.17"), "postalCode"),
    (id("2.5.4.20"), "telephoneNumber"),
    (id("2.5.4.41"), "name"),
    (id("2.5.4.42"), "GN"),
    (id("2.5.4.43"), "initials"),
    (id("2.5.4.44"), "generationQualifier"),
    (id("2.5.4.45"), "x500UniqueIdentifier"),
    (id("2.5.4.46"), "dnQualifier"),
    (id("2.5.4.65"), "pseudonym"),
    (id("2.5.4.72"), "role"),
    (id("2.5.4.97"), "organizationIdentifier"),
    (id("1.2.840.113549.1.9.1"), "emailAddress"),
    (id("1.2.840.113549.1.9.2"), "unstructuredName"),
    (id("1.2.840.113549.1.9.8"), "unstructuredAddress"),
    (id("0.9.2342.19200300.100.1.1"), "UID"),
    (id("0.9.2342.19200300.100.1.3"), "mail"),
    (id("0.9.2342.19200300.100.1.25"), "DC"),
    (id("1.3.6.1.4.1.311.60.2.1.1"), "jurisdictionL"),
    (id("1.3.6.1.4.1.311.60.2.1.2"), "jurisdictionST"),
    (id("1.3.6.1.4.1.311.60.2.1.3"), "jurisdictionC"),
];

/// An object identifier in numbers (X.690 §8.19), of which UUIDs have 128 bits; `der` knows 32.
fn write_dotted(kind: &[u8], out: &mut Vec<u8>) {
    for (at, octets) in kind.split_inclusive(|octet| octet & 0x80 == 0).enumerate() {
        let seven = |number: u128, octet: &u8| number.saturating_mul(0x80) | u128::from(octet & 0x7f);
        let number = octets.iter().fold(0, seven);
        _ = match (at, number) {
            (0, 0..80) => write!(out, "{}.{}", number / 40, number % 40),
            (0, _) => write!(out, "2.{}", number - 80),
            _ => write!(out, ".{number}"),
        };
    }
}

const UTF8: u8 = 0x0c;
const NUMERIC: u8 = 0x12;
const PRINTABLE: u8 = 0x13;
const T61: u8 = 0x14;
const IA5: u8 = 0x16;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VISIBLE: u8 = 0x1a;
const UNIVERSAL: u8 = 0x1c;
const BMP: u8 = 0x1e;

/// A value as UTF-8; `None` of a kind that is no text. Bytes that are none although they should be stay as they are.
fn text(value: &Element<'_>) -> Option<Vec<u8>> {
    let units = |width: usize| {
        let character = |unit: &[u8]| {
            let number = unit.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
            char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        value.content.chunks(width).map(character).collect::<String>().into_bytes()
    };
    match value.tag {
        UTF8 => Some(value.content.to_vec()),
        NUMERIC | PRINTABLE | T61 | IA5 | VISIBLE | UTC_TIME | GENERALIZED_TIME => Some(units(1)),
        BMP => Some(units(2)),
        UNIVERSAL => Some(units(4)),
        _ => None,
    }
}

/// RFC 2253 §2.4, with every byte that is not ASCII escaped too, as OpenSSL does.
fn write_escaped(text: &[u8], out: &mut Vec<u8>) {
    let last = text.len().saturating_sub(1);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => out.extend_from_slice(&[b'\\', *byte]),
            b'#' if at == 0 => out.extend_from_slice(b"\\#"),
            b' ' if at == 0 || at == last => out.extend_from_slice(b"\\ "),
            0..0x20 | 0x7f.. => _ = write!(out, "\\{byte:02X}"),
            _ => out.push(*byte),
        }
    }
}

fn write_plain(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'/' | b'+' => out.extend_from_slice(&[b'\\', *byte]),
            b' '..=b'~' => out.push(*byte),
            _ => _ = write!(out, "\\x{byte:02X}"),
        }
    }
}

/// What has no text is written as it is encoded (RFC 2253 §2.4).
fn write_encoded(value: &Element<'_>, out: &mut Vec<u8>) {
    out.push(b'#');
    for byte in element::write(value.tag, value.content) {
        _ = write!(out, "{byte:02X}");
    }
}
