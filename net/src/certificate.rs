//! What a certificate says of itself (RFC 5280 §4.1), some of it as text in OpenSSL's forms, which nginx's variables have.
//!
//! The bytes come from whoever connects: nothing here trusts them, and what cannot be read is nothing. Whether a certificate is good is the
//! matter of `tls/clients`. Before: `element`, of which it is made.

pub(crate) mod extension;
pub(crate) mod name;
pub(crate) mod signed;
pub(crate) mod time;

use crate::element::{Element, INTEGER, SEQUENCE};
use der::asn1::ObjectIdentifier;
use extension::{ALTERNATIVE_NAMES, AUTHORITY_KEY, BASIC_CONSTRAINTS, Extension};
use millstream_wire::date;
use name::Name;
use rustls_pki_types::SubjectPublicKeyInfoDer;
use signed::Signed;
use std::io::Write;

#[cfg(test)]
pub(crate) mod tests;

pub use name::Form;

/// A certificate that can be read, of any version.
#[derive(Debug)]
pub struct Certificate<'a> {
    /// The bytes that it is, without what follows them.
    pub(crate) whole: &'a [u8],
    pub(crate) signed: Signed<'a>,
    serial: &'a [u8],
    pub(crate) issuer: Name<'a>,
    validity: (i64, i64),
    pub(crate) subject: Name<'a>,
    key: Element<'a>,
    pub(crate) public_key: &'a [u8],
    pub(crate) extensions: Vec<Extension<'a>>,
}

impl<'a> Certificate<'a> {
    /// Reads one in DER, whatever follows it.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let whole = Element::first(bytes)?;
        let (signed, fields) = Signed::read(whole)?;
        let mut fields = fields.into_iter().peekable();
        if let Some(version) = fields.next_if(|field| field.tag == 0xa0) {
            number(Element::read(version.content)?)?;
        }
        let serial = fields.next()?.tagged(INTEGER)?;
        signed::algorithm_of(&fields.next()?)?;
        let issuer = Name::read(fields.next()?)?;
        let [start, end] = fields.next()?.parts(SEQUENCE)?[..] else { return None };
        let validity = (time::read(start)?, time::read(end)?);
        let subject = Name::read(fields.next()?)?;
        let key = fields.next()?;
        let [algorithm, public_key] = key.parts(SEQUENCE)?[..] else { return None };
        signed::algorithm_of(&algorithm)?;
        // Unique identifiers of the issuer and of the subject, which nobody has.
        fields.next_if(|field| field.tag == 0x81);
        fields.next_if(|field| field.tag == 0x82);
        let extensions = match fields.next() {
            Some(list) => Extension::all(Element::read(list.tagged(0xa3)?)?)?,
            None => Vec::new(),
        };
        fields.next().is_none().then_some(())?;
        let public_key = public_key.octets()?;
        let whole = whole.whole;
        Some(Certificate { whole, signed, serial, issuer, validity, subject, key, public_key, extensions })
    }

    /// Appends the name of whose it is.
    pub fn write_subject(&self, form: Form, out: &mut Vec<u8>) {
        self.subject.write(form, out);
    }

    /// Appends the name of who issued it.
    pub fn write_issuer(&self, form: Form, out: &mut Vec<u8>) {
        self.issuer.write(form, out);
    }

    /// Appends its number in hexadecimal digits.
    pub fn write_serial(&self, out: &mut Vec<u8>) {
        let zeros = self.serial.iter().take_while(|digit| **digit == 0).count();
        match &self.serial[zeros.min(self.serial.len().saturating_sub(1))..] {
            [] => out.extend_from_slice(b"00"),
            digits => digits.iter().for_each(|digit| _ = write!(out, "{digit:02X}")),
        }
    }

    /// Appends when it begins.
    pub fn write_start(&self, out: &mut Vec<u8>) {
        write_time(self.validity.0, out);
    }

    /// Appends when it ends.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        write_time(self.validity.1, out);
    }

    /// Whole days until it ends, at that time in seconds since the epoch.
    pub fn days_left(&self, now: i64) -> u64 {
        u64::try_from(self.validity.1.saturating_sub(now)).unwrap_or(0) / (24 * 3600)
    }

    /// Since when and until when it holds, in seconds since the epoch.
    pub fn validity(&self) -> (i64, i64) {
        self.validity
    }

    /// Its number, as it is encoded.
    pub fn raw_serial(&self) -> &[u8] {
        self.serial
    }

    /// The identifier of the key that it was issued with (RFC 5280 §4.2.1.1).
    pub fn authority_key(&self) -> Option<&[u8]> {
        self.all(&AUTHORITY_KEY).find_map(Extension::authority_key)
    }

    /// The common names of who issued it, those that are text.
    pub fn issuer_common_names(&self) -> impl Iterator<Item = &str> {
        self.issuer.common()
    }

    /// The common names in its subject, those that are text.
    pub fn common_names(&self) -> impl Iterator<Item = &str> {
        self.subject.common()
    }

    /// Whether it says itself under which names it is reached, so that its common name is none (RFC 6125 §6.4.4).
    pub fn has_alternative_names(&self) -> bool {
        self.all(&ALTERNATIVE_NAMES).next().is_some()
    }

    /// What it says of that.
    pub(crate) fn all(&self, id: &ObjectIdentifier) -> impl Iterator<Item = &Extension<'a>> {
        self.extensions.iter().filter(move |extension| extension.is(id))
    }

    /// Whether it is of an authority, by its own word.
    pub(crate) fn is_authority(&self) -> bool {
        let constraints = extension::find(&self.extensions, &BASIC_CONSTRAINTS).and_then(Extension::parts);
        constraints.is_some_and(|parts| parts.first().and_then(|first| first.truth()).unwrap_or(false))
    }

    /// Whether it was issued by whose it is.
    pub(crate) fn is_self_issued(&self) -> bool {
        self.subject.element == self.issuer.element
    }

    /// Its key, with what it is a key of.
    pub(crate) fn key(&self) -> SubjectPublicKeyInfoDer<'a> {
        SubjectPublicKeyInfoDer::from(self.key.whole)
    }
}

/// An INTEGER of 32 bits that is not negative.
pub(crate) fn number(element: Element<'_>) -> Option<u32> {
    let octets = element.tagged(INTEGER).filter(|octets| matches!(octets, [0..0x80, ..]))?;
    octets.iter().try_fold(0u32, |number, octet| number.checked_mul(0x100)?.checked_add(u32::from(*octet)))
}

/// `Nov 22 10:26:00 2026 GMT`, the day in two places.
fn write_time(seconds: i64, out: &mut Vec<u8>) {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let time = date::civil(seconds, 0);
    let month = MONTHS[usize::from(time.month).clamp(1, 12) - 1];
    let (day, hour, minute, second, year) = (time.day, time.hour, time.minute, time.second, time.year);
    _ = write!(out, "{month} {day:2} {hour:02}:{minute:02}:{second:02} {year} GMT");
}
