//! The static table (RFC 7541 appendix A), for decoding by index and encoding by name.
//!
//! Plain facts, each written once; lines and lookups are made of them by the compiler. Next: `dynamic_table`, whose
//! indices follow.

use super::line::{Line, LineName, Pseudo};
use crate::field_id::FieldId;

macro_rules! entries {
    ($($name:literal $value:literal $called:expr,)*) => {
        /// In the order of their indices, which start at 1.
        static LINES: &[Line<'static>] = &[$(Line::new(
            $called,
            None,
            concat!($name, ": ", $value, "\r\n").as_bytes(),
            $name.len() as u32,
        ),)*];

        /// In the order of their indices.
        const NAMES: &[(&str, LineName)] = &[$(($name, $called),)*];
    };
}

const fn pseudo(name: Pseudo) -> LineName {
    LineName::Pseudo(name)
}

const fn field(id: FieldId) -> LineName {
    LineName::Field(id)
}

entries! {
    ":authority" "" pseudo(Pseudo::Authority),
    ":method" "GET" pseudo(Pseudo::Method),
    ":method" "POST" pseudo(Pseudo::Method),
    ":path" "/" pseudo(Pseudo::Path),
    ":path" "/index.html" pseudo(Pseudo::Path),
    ":scheme" "http" pseudo(Pseudo::Scheme),
    ":scheme" "https" pseudo(Pseudo::Scheme),
    ":status" "200" pseudo(Pseudo::Status),
    ":status" "204" pseudo(Pseudo::Status),
    ":status" "206" pseudo(Pseudo::Status),
    ":status" "304" pseudo(Pseudo::Status),
    ":status" "400" pseudo(Pseudo::Status),
    ":status" "404" pseudo(Pseudo::Status),
    ":status" "500" pseudo(Pseudo::Status),
    "accept-charset" "" field(FieldId::Other),
    "accept-encoding" "gzip, deflate" field(FieldId::AcceptEncoding),
    "accept-language" "" field(FieldId::AcceptLanguage),
    "accept-ranges" "" field(FieldId::AcceptRanges),
    "accept" "" field(FieldId::Accept),
    "access-control-allow-origin" "" field(FieldId::Other),
    "age" "" field(FieldId::Age),
    "allow" "" field(FieldId::Allow),
    "authorization" "" field(FieldId::Authorization),
    "cache-control" "" field(FieldId::CacheControl),
    "content-disposition" "" field(FieldId::ContentDisposition),
    "content-encoding" "" field(FieldId::ContentEncoding),
    "content-language" "" field(FieldId::ContentLanguage),
    "content-length" "" field(FieldId::ContentLength),
    "content-location" "" field(FieldId::ContentLocation),
    "content-range" "" field(FieldId::ContentRange),
    "content-type" "" field(FieldId::ContentType),
    "cookie" "" field(FieldId::Cookie),
    "date" "" field(FieldId::Date),
    "etag" "" field(FieldId::ETag),
    "expect" "" field(FieldId::Expect),
    "expires" "" field(FieldId::Expires),
    "from" "" field(FieldId::Other),
    "host" "" field(FieldId::Host),
    "if-match" "" field(FieldId::IfMatch),
    "if-modified-since" "" field(FieldId::IfModifiedSince),
    "if-none-match" "" field(FieldId::IfNoneMatch),
    "if-range" "" field(FieldId::IfRange),
    "if-unmodified-since" "" field(FieldId::IfUnmodifiedSince),
    "last-modified" "" field(FieldId::LastModified),
    "link" "" field(FieldId::Link),
    "location" "" field(FieldId::Location),
    "max-forwards" "" field(FieldId::MaxForwards),
    "proxy-authenticate" "" field(FieldId::ProxyAuthenticate),
    "proxy-authorization" "" field(FieldId::ProxyAuthorization),
    "range" "" field(FieldId::Range),
    "referer" "" field(FieldId::Referer),
    "refresh" "" field(FieldId::Refresh),
    "retry-after" "" field(FieldId::RetryAfter),
    "server" "" field(FieldId::Server),
    "set-cookie" "" field(FieldId::SetCookie),
    "strict-transport-security" "" field(FieldId::StrictTransportSecurity),
    "transfer-encoding" "" field(FieldId::TransferEncoding),
    "user-agent" "" field(FieldId::UserAgent),
    "vary" "" field(FieldId::Vary),
    "via" "" field(FieldId::Via),
    "www-authenticate" "" field(FieldId::WwwAuthenticate),
}

/// The dynamic table starts after them.
pub const LENGTH: usize = NAMES.len();

const _: () = assert!(LENGTH == 61);

/// Field of the product's table → static index of its name, or 0.
static BY_FIELD: [u8; 256] = {
    let mut indices = [0u8; 256];
    let mut at = LENGTH;
    while at > 0 {
        if let LineName::Field(id) = NAMES[at - 1].1 {
            indices[id.number() as usize] = at as u8;
        }
        at -= 1;
    }
    indices[FieldId::Other.number() as usize] = 0;
    indices
};

/// Counted from 1.
#[inline]
pub fn line(index: usize) -> Option<Line<'static>> {
    LINES.get(index.wrapping_sub(1)).copied()
}

/// Of the first entry with the name.
#[inline]
pub(super) fn index_of_field(id: FieldId) -> Option<usize> {
    match BY_FIELD[usize::from(id.number())] {
        0 => None,
        index => Some(usize::from(index)),
    }
}

const UNKNOWN_FIELDS: [usize; 3] = [15, 20, 37];

/// Of the first entry; for a pseudo-header field, or a field that the product's table lacks.
#[inline]
pub(super) fn index_of_name(name: &[u8]) -> Option<usize> {
    if name.first() == Some(&b':') {
        return NAMES.iter().position(|&(known, _)| known.as_bytes() == name).map(|at| at + 1);
    }
    UNKNOWN_FIELDS.into_iter().find(|&index| NAMES[index - 1].0.as_bytes().eq_ignore_ascii_case(name))
}

/// `first` is the first entry of the same name.
#[inline]
pub(super) fn index_of_value(first: usize, value: &[u8]) -> Option<usize> {
    let same = line(first)?.called;
    (first..=LENGTH)
        .take_while(|&index| NAMES[index - 1].1 == same)
        .find(|&index| line(index).is_some_and(|line| line.value() == value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_called_what_its_name_says_and_is_found_by_it() {
        for (at, &(name, called)) in NAMES.iter().enumerate() {
            let line = line(at + 1).expect("the entry is there");
            assert_eq!(LineName::of(name.as_bytes()), (called, None), "{name}");
            assert_eq!((line.called, line.name()), (called, name.as_bytes()));
            let index = match called {
                LineName::Field(id) if id != FieldId::Other => index_of_field(id),
                _ => index_of_name(name.as_bytes()),
            };
            let first = NAMES.iter().position(|&(other, _)| other == name).map(|at| at + 1);
            assert_eq!(index, first, "{name}");
            assert_eq!(index.and_then(|first| index_of_value(first, line.value())), Some(at + 1), "{name}");
        }
        assert!(line(0).is_none() && line(62).is_none());
        assert_eq!(index_of_name(b"x-other"), None);
        assert_eq!(index_of_field(FieldId::XCache), None);
    }
}
