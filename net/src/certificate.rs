//! What a certificate says of itself, as text in OpenSSL's forms, which nginx's variables have.
//!
//! The bytes come from whoever connects: nothing here trusts them, and what cannot be read is nothing. Whether a certificate is good is the
//! matter of `tls/clients`.

use std::io::Write;
use x509_parser::asn1_rs::{Any, Oid, Tag, ToDer};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Name;

#[cfg(test)]
mod tests;

/// How a name is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `CN=name,O=organisation`, the last part first (RFC 2253).
    Commas,
    /// `/O=organisation/CN=name`.
    Slashes,
}

/// A certificate that can be read.
#[derive(Debug)]
pub struct Certificate<'a>(X509Certificate<'a>);

impl<'a> Certificate<'a> {
    /// Reads one in DER.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        X509Certificate::from_der(bytes).ok().map(|(_, read)| Certificate(read))
    }

    /// Appends the name of whose it is.
    pub fn write_subject(&self, form: Form, out: &mut Vec<u8>) {
        write_name(self.0.subject(), form, out);
    }

    /// Appends the name of who issued it.
    pub fn write_issuer(&self, form: Form, out: &mut Vec<u8>) {
        write_name(self.0.issuer(), form, out);
    }

    /// Appends its number in hexadecimal digits.
    pub fn write_serial(&self, out: &mut Vec<u8>) {
        let digits = self.0.raw_serial();
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        match &digits[zeros.min(digits.len().saturating_sub(1))..] {
            [] => out.extend_from_slice(b"00"),
            digits => digits.iter().for_each(|digit| _ = write!(out, "{digit:02X}")),
        }
    }

    /// Appends when it begins.
    pub fn write_start(&self, out: &mut Vec<u8>) {
        write_time(&self.0.validity().not_before, out);
    }

    /// Appends when it ends.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        write_time(&self.0.validity().not_after, out);
    }

    /// Whole days until it ends, at that time in seconds since the epoch.
    pub fn days_left(&self, now: i64) -> u64 {
        let seconds = self.0.validity().not_after.timestamp().saturating_sub(now);
        u64::try_from(seconds).unwrap_or(0) / (24 * 3600)
    }

    /// Since when and until when it holds, in seconds since the epoch.
    pub fn validity(&self) -> (i64, i64) {
        let validity = self.0.validity();
        (validity.not_before.timestamp(), validity.not_after.timestamp())
    }

    /// Its number, as it is encoded.
    pub fn raw_serial(&self) -> &[u8] {
        self.0.raw_serial()
    }

    /// The identifier of the key that it was issued with (RFC 5280 §4.2.1.1).
    pub fn authority_key(&self) -> Option<&[u8]> {
        self.0.extensions().iter().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(authority) => Some(authority.key_identifier.as_ref()?.0),
            _ => None,
        })
    }

    /// The common names of who issued it, those that are text.
    pub fn issuer_common_names(&self) -> impl Iterator<Item = &str> {
        self.0.issuer().iter_common_name().filter_map(|name| name.as_str().ok())
    }

    /// The common names in its subject, those that are text.
    pub fn common_names(&self) -> impl Iterator<Item = &str> {
        self.0.subject().iter_common_name().filter_map(|name| name.as_str().ok())
    }

    /// Whether it says itself under which names it is reached, so that its common name is none (RFC 6125 §6.4.4).
    pub fn has_alternative_names(&self) -> bool {
        !matches!(self.0.subject_alternative_name(), Ok(None))
    }
}

/// `Nov 22 10:26:00 2026 GMT`, the day in two places.
fn write_time(time: &ASN1Time, out: &mut Vec<u8>) {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let time = time.to_datetime();
    let month = MONTHS[usize::from(u8::from(time.month())).clamp(1, 12) - 1];
    let (day, year) = (time.day(), time.year());
    _ = write!(
        out,
        "{month} {day:2} {:02}:{:02}:{:02} {year} GMT",
        time.hour(),
        time.minute(),
        time.second()
    );
}

/// OpenSSL's short names of what a name is made of.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.15", "businessCategory"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.20", "telephoneNumber"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.45", "x500UniqueIdentifier"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.65", "pseudonym"),
    ("2.5.4.72", "role"),
    ("2.5.4.97", "organizationIdentifier"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("1.2.840.113549.1.9.2", "unstructuredName"),
    ("1.2.840.113549.1.9.8", "unstructuredAddress"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.3", "mail"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.3.6.1.4.1.311.60.2.1.1", "jurisdictionL"),
    ("1.3.6.1.4.1.311.60.2.1.2", "jurisdictionST"),
    ("1.3.6.1.4.1.311.60.2.1.3", "jurisdictionC"),
];

fn short_name(kind: &Oid<'_>) -> Result<&'static str, String> {
    let dotted = kind.to_id_string();
    SHORT_NAMES.iter().find(|(known, _)| *known == dotted).map(|(_, name)| *name).ok_or(dotted)
}

fn write_name(name: &X509Name<'_>, form: Form, out: &mut Vec<u8>) {
    // Each with the number of its group: what is said together is joined by a plus sign.
    let parts =
        name.iter().enumerate().flat_map(|(group, parts)| parts.iter().map(move |part| (group, part)));
    let mut parts: Vec<_> = parts.collect();
    if form == Form::Commas {
        parts.reverse();
    }
    let mut before = None;
    for (group, part) in parts {
        match (form, before) {
            (_, Some(before)) if before == group => out.push(b'+'),
            (Form::Commas, None) => {}
            (Form::Commas, Some(_)) => out.push(b','),
            (Form::Slashes, _) => out.push(b'/'),
        }
        before = Some(group);
        let kind = short_name(part.attr_type());
        let said = kind.as_deref().unwrap_or_else(|dotted| dotted);
        out.extend_from_slice(said.as_bytes());
        out.push(b'=');
        match form {
            Form::Commas if kind.is_err() => write_encoded(part.attr_value(), out),
            Form::Commas => match text(part.attr_value()) {
                Some(text) => write_escaped(&text, out),
                None => write_encoded(part.attr_value(), out),
            },
            Form::Slashes => write_plain(part.attr_value().data, out),
        }
    }
}

/// A value as UTF-8; `None` of a kind that is no text. Bytes that are none although they should be stay as they are.
fn text(value: &Any<'_>) -> Option<Vec<u8>> {
    let units = |width: usize| {
        let character = |unit: &[u8]| {
            let number = unit.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
            char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        value.data.chunks(width).map(character).collect::<String>().into_bytes()
    };
    match value.tag() {
        Tag::Utf8String => Some(value.data.to_vec()),
        Tag::NumericString
        | Tag::PrintableString
        | Tag::T61String
        | Tag::Ia5String
        | Tag::VisibleString
        | Tag::UtcTime
        | Tag::GeneralizedTime => Some(units(1)),
        Tag::BmpString => Some(units(2)),
        Tag::UniversalString => Some(units(4)),
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
fn write_encoded(value: &Any<'_>, out: &mut Vec<u8>) {
    out.push(b'#');
    for byte in value.to_der_vec().unwrap_or_default() {
        _ = write!(out, "{byte:02X}");
    }
}
