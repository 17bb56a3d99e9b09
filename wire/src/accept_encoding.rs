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
}

impl AcceptEncoding {
    /// The set as a number below 16, to be part of a variant's key.
    pub fn bits(self) -> u8 {
        u8::from(self.gzip) | u8::from(self.br) << 1 | u8::from(self.zstd) << 2 | u8::from(self.deflate) << 3
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
    (b"gzip, deflate, br, zstd", AcceptEncoding { gzip: true, br: true, zstd: true, deflate: true }),
    (b"gzip, deflate, br", AcceptEncoding { gzip: true, br: true, zstd: false, deflate: true }),
    (b"gzip, deflate", AcceptEncoding { gzip: true, br: false, zstd: false, deflate: true }),
    (b"gzip", AcceptEncoding { gzip: true, br: false, zstd: false, deflate: false }),
];

/// Reads all lines of the field. A coding that is named counts by its own weight, others by that of `*`.
#[inline]
pub fn normalise<'a>(mut values: impl Iterator<Item = &'a [u8]> + Clone) -> AcceptEncoding {
    let all = values.clone();
    match (values.next(), values.next()) {
        (None, _) => AcceptEncoding::default(),
        (Some(only), None) => match COMMON.iter().find(|(text, _)| *text == only) {
            Some((_, set)) => *set,
            None => parse(all),
        },
        _ => parse(all),
    }
}

fn parse<'a>(values: impl Iterator<Item = &'a [u8]>) -> AcceptEncoding {
    // gzip, br, zstd, deflate, and `*` for whatever was not named.
    let mut named: [Option<bool>; 5] = [None; 5];
    for element in values.flat_map(list::elements) {
        let mut parameters = list::parameters(element);
        let coding = parameters.next().unwrap_or_default();
        let accepted = !parameters.any(is_zero_weight);
        let known = [&b"gzip"[..], b"br", b"zstd", b"deflate", b"*"];
        let slot = known
            .iter()
            .position(|name| coding.eq_ignore_ascii_case(name))
            .or_else(|| coding.eq_ignore_ascii_case(b"x-gzip").then_some(0));
        if let Some(slot) = slot {
            // Named twice, a refusal wins: not to compress is never wrong.
            named[slot] = Some(named[slot].unwrap_or(true) && accepted);
        }
    }
    let others = named[4].unwrap_or(false);
    let takes = |slot: usize| named[slot].unwrap_or(others);
    AcceptEncoding { gzip: takes(0), br: takes(1), zstd: takes(2), deflate: takes(3) }
}

/// `q=0`, `q=0.0` … (RFC 9110 §12.4.2). A weight that cannot be read counts as zero: to send the plain content is
/// never wrong.
fn is_zero_weight(parameter: &[u8]) -> bool {
    let (name, value) = list::pair(parameter);
    if !name.eq_ignore_ascii_case(b"q") {
        return false;
    }
    match value {
        Some([b'1']) => false,
        Some([b'1', b'.', zeros @ ..]) => !(zeros.len() <= 3 && zeros.iter().all(|&digit| digit == b'0')),
        Some([b'0', b'.', digits @ ..]) => {
            let is_number = digits.len() <= 3 && digits.iter().all(u8::is_ascii_digit);
            !is_number || digits.iter().all(|&digit| digit == b'0')
        }
        _ => true,
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
        assert_eq!(fold("gzip, deflate, br, zstd"), fold("*"));
        assert_eq!(fold("identity"), 0);
        assert_ne!(fold("gzip"), fold("br"));
        for (text, set) in COMMON {
            assert_eq!(parse(std::iter::once(text)), set);
        }
    }
}
