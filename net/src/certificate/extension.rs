//! What a certificate or a list of what is revoked says beside its fields (RFC 5280 §4.2, §5.2, §5.3).
//!
//! Before: `element`; next: `certificate`, and `tls/usage` and `tls/revocation`, which judge by it.

use crate::element::{BIT_STRING, Element, OCTET_STRING, SEQUENCE};
use der::asn1::ObjectIdentifier;

pub(crate) const SUBJECT_KEY: ObjectIdentifier = id("2.5.29.14");
pub(crate) const KEY_USAGE: ObjectIdentifier = id("2.5.29.15");
pub(crate) const ALTERNATIVE_NAMES: ObjectIdentifier = id("2.5.29.17");
pub(crate) const BASIC_CONSTRAINTS: ObjectIdentifier = id("2.5.29.19");
pub(crate) const REASON: ObjectIdentifier = id("2.5.29.21");
pub(crate) const INVALIDITY_DATE: ObjectIdentifier = id("2.5.29.24");
pub(crate) const DELTA: ObjectIdentifier = id("2.5.29.27");
pub(crate) const ISSUING_DISTRIBUTION_POINT: ObjectIdentifier = id("2.5.29.28");
pub(crate) const CERTIFICATE_ISSUER: ObjectIdentifier = id("2.5.29.29");
pub(crate) const DISTRIBUTION_POINTS: ObjectIdentifier = id("2.5.29.31");
pub(crate) const AUTHORITY_KEY: ObjectIdentifier = id("2.5.29.35");
pub(crate) const EXTENDED_KEY_USAGE: ObjectIdentifier = id("2.5.29.37");
/// What Netscape had before the others.
pub(crate) const NETSCAPE_TYPE: ObjectIdentifier = id("2.16.840.1.113730.1.1");

const fn id(dotted: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(dotted)
}

#[derive(Debug)]
pub(crate) struct Extension<'a> {
    id: &'a [u8],
    pub(crate) is_critical: bool,
    pub(crate) value: &'a [u8],
}

impl<'a> Extension<'a> {
    /// Those of a list of them.
    pub(crate) fn all(list: Element<'a>) -> Option<Vec<Self>> {
        list.parts(SEQUENCE)?.into_iter().map(Extension::read).collect()
    }

    fn read(extension: Element<'a>) -> Option<Self> {
        let (id, is_critical, value) = match extension.parts(SEQUENCE)?[..] {
            [id, value] => (id, false, value),
            [id, critical, value] => (id, critical.truth()?, value),
            _ => return None,
        };
        Some(Extension { id: id.identifier()?, is_critical, value: value.tagged(OCTET_STRING)? })
    }

    pub(crate) fn is(&self, id: &ObjectIdentifier) -> bool {
        self.id == id.as_bytes()
    }

    pub(crate) fn is_any(&self, ids: &[ObjectIdentifier]) -> bool {
        ids.iter().any(|id| self.is(id))
    }

    /// Its elements, if it is a SEQUENCE.
    pub(crate) fn parts(&self) -> Option<Vec<Element<'a>>> {
        Element::read(self.value)?.parts(SEQUENCE)
    }

    /// Whether it is a BIT STRING with this bit.
    pub(crate) fn has_bit(&self, bit: usize) -> bool {
        let Some([unused, octets @ ..]) = Element::read(self.value).and_then(|bits| bits.tagged(BIT_STRING))
        else {
            return false;
        };
        let used = (octets.len() * 8).saturating_sub(usize::from(*unused));
        bit < used && octets[bit / 8] & 0x80 >> (bit % 8) != 0
    }

    /// What an identifier of the authority's key (RFC 5280 §4.2.1.1) says of the key itself.
    pub(crate) fn authority_key(&self) -> Option<&'a [u8]> {
        self.parts()?.into_iter().find_map(|part| part.tagged(0x80))
    }
}

/// The first of them that is of that kind.
pub(crate) fn find<'e, 'a>(all: &'e [Extension<'a>], id: &ObjectIdentifier) -> Option<&'e Extension<'a>> {
    all.iter().find(|extension| extension.is(id))
}
