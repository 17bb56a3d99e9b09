//! `Accept-Encoding` (RFC 9110 §12.5.3): which codings a client takes.
//!
//! The same few codings are told apart for deciding what to send and for folding the many spellings of the field
//! into one variant of a cache. Preference among codings is ours to choose; a weight only matters when it is zero.

use crate::list;

/// The codings a client takes, of those the product knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct AcceptEncoding {
    /// gzip, or its old name x-gzip.
    pub gzip: bool,
    /// br (RFC 7932).
    pub br: bool,
    /// zstd (RFC 8878).
    pub zstd: bool,
    /// deflate.
    pub deflate: bool,
    /// Codings that the field does not name (`*`).
    pub others: bool,
    /// Content without any coding is refused (`identity;q=0`, or `*;q=0` and no word of identity).
    pub refuses_plain: bool,
}

impl AcceptEncoding {
    const NONE: AcceptEncoding = AcceptEncoding {
        gzip: false,
        br: false,
        zstd: false,
        deflate: false,
        others: false,
        refuses_plain: false,
    };

    /// The set as a number below 64, to be part of a variant's key.
    pub fn bits(self) -> u8 {
        u8::from(self.gzip)
            | u8::from(self.br) << 1
            | u8::from(self.zstd) << 2
            | u8::from(self.deflate) << 3
            | u8::from(self.others) << 4
            | u8::from(self.refuses_plain) << 5
    }

    /// The set that has this number, as people write it.
    pub fn told(bits: u8) -> String {
        let names = ["gzip", "br", "zstd", "deflate", "*", "identity;q=0"].into_iter().enumerate();
        let taken: Vec<&str> = names.filter(|(at, _)| bits >> at & 1 == 1).map(|(_, name)| name).collect();
        if taken.is_empty() { "identity".to_owned() } else { taken.join(", ") }
    }
}

/// Whether a client that sent this value takes gzip.
#[inline]
pub fn accepts_gzip(value: &[u8]) -> bool {
    // The way the field is sent by nearly everybody.
    value.starts_with(b"gzip,") || value == b"gzip" || normalise(std::iter::once(value)).gzip
}

/// What browsers and common clients send, so that most requests need no parsing.
const COMMON: [(&[u8], AcceptEncoding); 4] = [
    (
        b"gzip, deflate, br, zstd",
        AcceptEncoding { gzip: true, br: true, zstd: true, deflate: true, ..AcceptEncoding::NONE },
    ),
    (b"gzip, deflate, br", AcceptEncoding { gzip: true, br: true, deflate: true, ..AcceptEncoding::NONE }),
    (b"gzip, deflate", AcceptEncoding { gzip: true, deflate: true, ..AcceptEncoding::NONE }),
    (b"gzip", AcceptEncoding { gzip: true, ..AcceptEncoding::NONE }),
];

/// Reads all lines of the field. A coding that is named counts by its own weight, others by that of `*`.
#[inline]
pub fn normalise<'a>(values: impl Iterator<Item = &'a [u8]> + Clone) -> AcceptEncoding {
    common(values.clone()).unwrap_or_else(|| parse(values).0)
}

/// As [`normalise`], where the set is all that the field says; `None` where it names a coding that is not known here,
/// says a thing twice, or has a weight that cannot be read: others may take such a field for more, or for less.
#[inline]
pub fn folded<'a>(values: impl Iterator<Item = &'a [u8]> + Clone) -> Option<AcceptEncoding> {
    common(values.clone()).or_else(|| Some(parse(values)).filter(|(_, is_all)| *is_all).map(|(set, _)| set))
}

fn common<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> Option<AcceptEncoding> {
    match (values.next(), values.next()) {
        (None, _) => Some(AcceptEncoding::NONE),
        (Some(only), None) => COMMON.iter().find(|(text, _)| *text == only).map(|(_, set)| *set),
        _ => None,
    }
}

/// The codings, and whether they are all that was said.
fn parse<'a>(values: impl Iterator<Item = &'a [u8]>) -> (AcceptEncoding, bool) {
    const NAMES: [&[u8]; 6] = [b"gzip", b"br", b"zstd", b"deflate", b"*", b"identity"];
    let mut named: [Option<bool>; NAMES.len()] = [None; NAMES.len()];
    let mut is_all = true;
    for element in values.flat_map(list::elements) {
        let mut parameters = list::parameters(element);
        let coding = parameters.next().unwrap_or_default();
        let slot = NAMES
            .iter()
            .position(|name| coding.eq_ignore_ascii_case(name))
            .or_else(|| coding.eq_ignore_ascii_case(b"x-gzip").then_some(0));
        let Some(slot) = slot else {
            is_all = false;
            continue;
        };
        let first = parameters.next();
        let weight = first.map_or(Some(true), is_positive_weight);
        is_all &= weight.is_some() && parameters.next().is_none() && named[slot].is_none();
        // Another parameter changes nothing; a weight that cannot be read counts as zero: to send the plain content is
        // never wrong. Named twice, a refusal wins for the same reason.
        let accepted = first
            .into_iter()
            .chain(parameters)
            .all(|parameter| !is_weight(parameter) || is_positive_weight(parameter) == Some(true));
        named[slot] = Some(named[slot].unwrap_or(true) && accepted);
    }
    let others = named[4].unwrap_or(false);
    let takes = |slot: usize| named[slot].unwrap_or(others);
    let set = AcceptEncoding {
        gzip: takes(0),
        br: takes(1),
        zstd: takes(2),
        deflate: takes(3),
        others,
        refuses_plain: !named[5].or(named[4]).unwrap_or(true),
    };
    (set, is_all)
}

fn is_weight(parameter: &[u8]) -> bool {
    list::pair(parameter).0.eq_ignore_ascii_case(b"q")
}

/// `q=0.5` → true, `q=0`, `q=0.0` → false (RFC 9110 §12.4.2); `None` for anything that is no weight.
fn is_positive_weight(parameter: &[u8]) -> Option<bool> {
    let (_, value) = list::pair(parameter);
    let (whole, digits) = match value.filter(|_| is_weight(parameter))? {
        [whole] => (whole, &[][..]),
        [whole, b'.', digits @ ..] => (whole, digits),
        _ => return None,
    };
    let is_zero = digits.iter().all(|&digit| digit == b'0');
    let is_number = digits.len() <= 3 && digits.iter().all(u8::is_ascii_digit);
    match whole {
        b'0' if is_number => Some(!is_zero),
        b'1' if is_number && is_zero => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_accepted_unless_its_weight_or_that_of_the_star_is_zero() {
        for (value, expected) in [
            ("gzip", true),
            ("gzip, deflate, br", true),
            ("GZIP;q=0.5", true),
            ("x-gzip", true),
            ("*", true),
            ("deflate, *;q=0.1", true),
            ("gzip;q=1.000", true),
            ("gzip ; q=0.001", true),
            ("", false),
            ("identity", false),
            ("gzip;q=0", false),
            ("gzip;q=0.000, *", false),
            ("*;q=0", false),
            ("gzip;q=0.0", false),
            ("gzip;q=x", false),
            ("gzip;q=2", false),
            ("gzip;q=-1", false),
            ("gzipp", false),
            ("deflate, br", false),
        ] {
            assert_eq!(accepts_gzip(value.as_bytes()), expected, "{value}");
        }
    }

    #[test]
    fn spellings_of_the_same_set_fold_into_one() {
        let fold = |text: &str| normalise(text.split('\n').map(str::as_bytes)).bits();
        assert_eq!(fold("gzip, deflate, br"), fold("br;q=1.0,\tgzip;q=0.8\ndeflate"));
        assert_eq!(fold("identity"), 0);
        assert_ne!(fold("gzip"), fold("br"));
        for (text, set) in COMMON {
            assert_eq!(parse(std::iter::once(text)), (set, true));
        }
    }

    #[test]
    fn only_fields_that_allow_the_same_fold_into_one() {
        let fold = |text: &'static str| folded(text.split('\n').map(str::as_bytes)).map(AcceptEncoding::bits);
        for (one, other) in [
            ("gzip, br;q=0", "gzip"),
            ("x-gzip", "GZIP;q=0.3"),
            ("", "identity"),
            ("identity, *;q=0", "identity;q=0.5"),
            ("gzip, *", "*"),
        ] {
            assert!(fold(one).is_some() && fold(one) == fold(other), "{one} {other}");
        }
        for (one, other) in [
            ("identity;q=0", "identity"),
            ("gzip, identity;q=0", "gzip"),
            ("*;q=0", ""),
            ("gzip, *;q=0", "gzip"),
            ("*", "gzip, deflate, br, zstd"),
            ("*, identity;q=0", "*"),
            ("*, gzip;q=0", "*"),
        ] {
            assert!(
                fold(one).is_some() && fold(other).is_some() && fold(one) != fold(other),
                "{one} {other}"
            );
        }
        for text in [
            "compress",
            "foo",
            "gzip, dcb",
            "gzip;q=x",
            "gzip;q",
            "gzip;q=2",
            "gzip;a=b",
            "gzip;q=1;q=0",
            "gzip, gzip;q=0",
            "gzip\ngzip",
            "gzip, foo;q=0",
            "gzip;q=0.0000",
        ] {
            assert_eq!(fold(text), None, "{text}");
        }
        assert_eq!(
            (AcceptEncoding::told(0), AcceptEncoding::told(33)),
            ("identity".into(), "gzip, identity;q=0".into())
        );
    }
}
