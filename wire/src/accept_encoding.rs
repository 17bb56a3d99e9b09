//! `Accept-Encoding` (RFC 9110 §12.5.3): which codings a client takes.
//!
//! The same few codings are told apart for deciding what to send ([`Weights`]) and for folding the many spellings of the field
//! into one variant of a cache ([`folded`]), where a weight only matters when it is zero.

use crate::coding::Coding;
use crate::list;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct AcceptEncoding {
    pub gzip: bool,
    /// br (RFC 7932).
    pub br: bool,
    /// zstd (RFC 8878).
    pub zstd: bool,
    pub deflate: bool,
    /// Codings that the field does not name (`*`).
    pub others: bool,
    /// Content without a coding is refused (`identity;q=0`, or `*;q=0` without `identity`).
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

    /// Below 64; part of a variant's key.
    pub fn bits(self) -> u8 {
        u8::from(self.gzip)
            | u8::from(self.br) << 1
            | u8::from(self.zstd) << 2
            | u8::from(self.deflate) << 3
            | u8::from(self.others) << 4
            | u8::from(self.refuses_plain) << 5
    }

    /// The set that a cache requests and compares by instead: of gzip, br and zstd those a response may come
    /// in; zstd only without br, since every client with zstd accepts br; deflate only without the three.
    /// Clients that differ in what no response has thus share one. A set that refuses plain content stays as
    /// it is.
    #[must_use]
    pub fn class(self) -> AcceptEncoding {
        if self.refuses_plain {
            return self;
        }
        let AcceptEncoding { gzip, br, zstd, .. } = self;
        let deflate = self.deflate && !(gzip || br || zstd);
        AcceptEncoding { gzip, br, zstd: zstd && !br, deflate, ..AcceptEncoding::NONE }
    }

    /// The field that requests a class; `None` for a set that stands for itself alone.
    pub fn class_field(self) -> Option<&'static [u8]> {
        const FIELDS: [(u8, &[u8]); 7] = [
            (0, b"identity"),
            (1, b"gzip"),
            (2, b"br"),
            (3, b"gzip, br"),
            (4, b"zstd"),
            (5, b"gzip, zstd"),
            (8, b"deflate"),
        ];
        FIELDS.iter().find(|(bits, _)| *bits == self.bits()).map(|(_, field)| *field)
    }

    /// The set with this number, for people.
    pub fn told(bits: u8) -> String {
        let names = ["gzip", "br", "zstd", "deflate", "*", "identity;q=0"].into_iter().enumerate();
        let taken: Vec<&str> = names.filter(|(at, _)| bits >> at & 1 == 1).map(|(_, name)| name).collect();
        if taken.is_empty() { "identity".to_owned() } else { taken.join(", ") }
    }
}

/// The client's weight of each coding that can be made, in thousandths (RFC 9110 §12.4.2); 0 is a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weights {
    /// By number.
    codings: [u16; Coding::ALL.len()],
    /// Of the plain content, if the field names it; otherwise it is used when no coding is accepted.
    identity: u16,
}

impl Weights {
    #[inline]
    pub fn read<'a>(values: impl Iterator<Item = &'a [u8]> + Clone) -> Weights {
        match common(values.clone()) {
            Some(set) => Weights {
                codings: [set.gzip, set.br, set.zstd].map(|is_taken| u16::from(is_taken) * FULL),
                identity: 0,
            },
            None => Weights::of(&Said::read(values)),
        }
    }

    fn of(said: &Said) -> Weights {
        let others = said.weights[STAR].unwrap_or(0);
        let codings = std::array::from_fn(|slot| said.weights[slot].unwrap_or(others));
        Weights { codings, identity: said.weights[IDENTITY].unwrap_or(0) }
    }

    #[inline]
    pub fn is_none(&self) -> bool {
        self.codings == [0; Coding::ALL.len()]
    }

    #[inline]
    pub fn takes(&self, coding: Coding) -> bool {
        self.codings[usize::from(coding.number())] > 0
    }

    /// The client's favourite of these, the first of equals; `None` is the plain content: if it accepts none,
    /// or prefers the plain one.
    #[inline]
    pub fn best(&self, offered: impl Iterator<Item = Coding>) -> Option<Coding> {
        let (mut best, mut weight) = (None, self.identity.max(1) - 1);
        for coding in offered {
            let own = self.codings[usize::from(coding.number())];
            if own > weight {
                (best, weight) = (Some(coding), own);
            }
        }
        best
    }
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

/// Reads all lines of the field. A named coding counts by its own weight, others by that of `*`.
#[inline]
pub fn normalise<'a>(values: impl Iterator<Item = &'a [u8]> + Clone) -> AcceptEncoding {
    common(values.clone()).unwrap_or_else(|| Said::read(values).set())
}

/// The class of all lines of the field, if it has a field of its own to request it; `None` if there is no
/// line, or if the lines are passed on and compared as they came.
pub fn class<'a>(values: impl Iterator<Item = &'a [u8]> + Clone) -> Option<AcceptEncoding> {
    values.clone().next()?;
    folded(values).map(AcceptEncoding::class).filter(|class| class.class_field().is_some())
}

/// As [`normalise`], if the set is all that the field says; `None` if it names an unknown coding, repeats
/// itself, or has an unreadable weight: others may take such a field for more, or for less.
#[inline]
pub fn folded<'a>(values: impl Iterator<Item = &'a [u8]> + Clone) -> Option<AcceptEncoding> {
    common(values.clone())
        .or_else(|| Some(Said::read(values)).filter(|said| said.is_all).map(|said| said.set()))
}

fn common<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> Option<AcceptEncoding> {
    match (values.next(), values.next()) {
        (None, _) => Some(AcceptEncoding::NONE),
        (Some(only), None) => COMMON.iter().find(|(text, _)| *text == only).map(|(_, set)| *set),
        _ => None,
    }
}

/// The codings at the indices of their numbers.
const NAMES: [&[u8]; 6] = [b"gzip", b"br", b"zstd", b"deflate", b"*", b"identity"];
const DEFLATE: usize = 3;
const STAR: usize = 4;
const IDENTITY: usize = 5;
/// The default weight.
const FULL: u16 = 1000;

struct Said {
    weights: [Option<u16>; NAMES.len()],
    /// Whether the field says nothing else.
    is_all: bool,
}

impl Said {
    fn read<'a>(values: impl Iterator<Item = &'a [u8]>) -> Said {
        let (mut weights, mut is_all) = ([None; NAMES.len()], true);
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
            let is_plain = first.is_none_or(|first| weight(first).is_some());
            is_all &= is_plain && parameters.next().is_none() && weights[slot].is_none();
            // Another parameter changes nothing; a weight that cannot be read counts as zero: to send the plain content is
            // never wrong. Of two weights the lesser wins for the same reason.
            let own = list::parameters(element).skip(1).filter(|parameter| is_weight(parameter));
            let least = own.map(|parameter| weight(parameter).unwrap_or(0)).min().unwrap_or(FULL);
            weights[slot] = Some(weights[slot].unwrap_or(FULL).min(least));
        }
        Said { weights, is_all }
    }

    /// A named coding counts by its own weight, others by that of `*`.
    fn set(&self) -> AcceptEncoding {
        let is_positive = |slot: usize| self.weights[slot].map(|weight| weight > 0);
        let others = is_positive(STAR).unwrap_or(false);
        let takes = |coding: usize| is_positive(coding).unwrap_or(others);
        AcceptEncoding {
            gzip: takes(usize::from(Coding::Gzip.number())),
            br: takes(usize::from(Coding::Br.number())),
            zstd: takes(usize::from(Coding::Zstd.number())),
            deflate: takes(DEFLATE),
            others,
            refuses_plain: !is_positive(IDENTITY).or(is_positive(STAR)).unwrap_or(true),
        }
    }
}

fn is_weight(parameter: &[u8]) -> bool {
    list::pair(parameter).0.eq_ignore_ascii_case(b"q")
}

/// `q=0.5` → 500, `q=0.0` → 0 (RFC 9110 §12.4.2).
fn weight(parameter: &[u8]) -> Option<u16> {
    let (_, value) = list::pair(parameter);
    let (whole, digits) = match value.filter(|_| is_weight(parameter))? {
        [whole] => (whole, &[][..]),
        [whole, b'.', digits @ ..] => (whole, digits),
        _ => return None,
    };
    if digits.len() > 3 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let places = [100, 10, 1];
    let thousandths = digits.iter().zip(places).map(|(digit, place)| u16::from(digit - b'0') * place).sum();
    match whole {
        b'0' => Some(thousandths),
        b'1' if thousandths == 0 => Some(FULL),
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
            let weights = Weights::read(std::iter::once(value.as_bytes()));
            assert_eq!(weights.takes(Coding::Gzip), expected, "{value}");
        }
    }

    /// The coding chosen for these lines, of br, zstd and gzip in the server's order.
    fn best(lines: &str) -> &'static str {
        let weights = Weights::read(lines.split('\n').map(str::as_bytes));
        let chosen = weights.best([Coding::Br, Coding::Zstd, Coding::Gzip].into_iter());
        chosen.map_or("identity", Coding::name)
    }

    #[test]
    fn the_client_s_weights_choose_and_then_the_server_s_order() {
        for (lines, expected) in [
            // RFC 9110 §12.5.3: a weight says how much a coding is liked, and what has none weighs 1.
            ("gzip, deflate, br, zstd", "br"),
            ("zstd, gzip", "zstd"),
            ("gzip", "gzip"),
            ("x-gzip", "gzip"),
            ("br;q=0.5, gzip", "gzip"),
            ("br;q=0.5, gzip;q=0.501", "gzip"),
            ("br;q=0.8, zstd;q=0.9, gzip;q=0.8", "zstd"),
            ("gzip;q=0.001", "gzip"),
            ("br;q=0, gzip;q=0.1", "gzip"),
            ("GZIP; Q=0.7, BR;q=0.3", "gzip"),
            // `*` stands for what is not named, and for nothing else.
            ("*", "br"),
            ("*;q=0.1", "br"),
            ("br;q=0, *", "zstd"),
            ("br;q=0.4, *;q=0.5", "zstd"),
            ("gzip, *;q=0.5", "gzip"),
            ("gzip, *;q=0", "gzip"),
            ("*;q=0", "identity"),
            ("br;q=0, zstd;q=0, gzip;q=0, *", "identity"),
            // The plain content is what is left, unless it is named as better.
            ("", "identity"),
            ("identity", "identity"),
            ("identity, gzip;q=0.5", "identity"),
            ("identity;q=0.5, gzip;q=0.5", "gzip"),
            ("identity;q=0.5, gzip;q=0.4", "identity"),
            ("identity;q=0.5, gzip, br;q=0.4", "gzip"),
            ("identity;q=0, gzip;q=0.1", "gzip"),
            ("identity;q=0", "identity"),
            ("identity;q=0, deflate", "identity"),
            // What is not known, or cannot be read, is not taken.
            ("compress, deflate, dcb, foo", "identity"),
            ("foo;q=1, gzip;q=0.2", "gzip"),
            ("gzip;q=x", "identity"),
            ("gzip;q=2, br;q=0.0000", "identity"),
            ("gzip;q=-1, zstd;q=0.1", "zstd"),
            ("gzip;level=9", "gzip"),
            ("gzip;level=9;q=0", "identity"),
            ("gzip;q=1;q=0.2, zstd;q=0.3", "zstd"),
            ("gzip, gzip;q=0.2, zstd;q=0.3", "zstd"),
            (",, gzip ,,", "gzip"),
            // Several lines are one list (RFC 9110 §5.3).
            ("gzip;q=0.5\nbr;q=0.6", "br"),
            ("gzip\nbr;q=0", "gzip"),
            ("gzip\ngzip;q=0", "identity"),
            ("identity\ngzip;q=0.9", "identity"),
        ] {
            assert_eq!(best(lines), expected, "{lines}");
        }
    }

    #[test]
    fn spellings_of_the_same_set_fold_into_one() {
        let fold = |text: &str| normalise(text.split('\n').map(str::as_bytes)).bits();
        assert_eq!(fold("gzip, deflate, br"), fold("br;q=1.0,\tgzip;q=0.8\ndeflate"));
        assert_eq!(fold("identity"), 0);
        assert_ne!(fold("gzip"), fold("br"));
        for (text, set) in COMMON {
            let said = Said::read(std::iter::once(text));
            assert_eq!((said.set(), said.is_all), (set, true));
            assert_eq!(Weights::of(&said), Weights::read(std::iter::once(text)));
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

    #[test]
    fn clients_that_differ_in_what_no_response_comes_in_are_of_one_class() {
        let class = |text: &'static str| class(std::iter::once(text.as_bytes()));
        for (field, texts) in [
            (
                &b"gzip, br"[..],
                &[
                    "gzip, deflate, br, zstd",
                    "gzip, deflate, br",
                    "br;q=1.0, gzip;q=0.8, *;q=0.1",
                    "br, gzip",
                    "*",
                    "deflate, gzip, br, zstd;q=0",
                ][..],
            ),
            (b"gzip", &["gzip", "gzip, deflate", "GZIP;q=0.5", "x-gzip, br;q=0", "gzip, identity"]),
            (b"br", &["br", "br, deflate", "gzip;q=0, *"]),
            (b"zstd", &["zstd", "deflate, zstd"]),
            (b"gzip, zstd", &["gzip, zstd", "zstd, gzip, br;q=0"]),
            // What names a coding only to refuse it must not go on as it came: some look for the name alone.
            (b"identity", &["identity", "", "gzip;q=0", "identity, br;q=0", "gzip;q=0, br;q=0.0, zstd;q=0"]),
            (b"deflate", &["deflate", "deflate;q=0.5, gzip;q=0", "*, gzip;q=0, br;q=0, zstd;q=0"]),
        ] {
            for text in texts {
                assert_eq!(class(text).and_then(AcceptEncoding::class_field), Some(field), "{text}");
            }
            let field = std::str::from_utf8(field).expect("text");
            assert_eq!(class(field), class(texts[0]), "what is asked for is of the class itself");
        }
        for text in ["foo", "gzip, foo", "gzip, identity;q=0", "gzip, *;q=0", "*;q=0", "gzip;q=x"] {
            assert_eq!(class(text), None, "{text}");
        }
        assert_eq!(super::class(std::iter::empty()), None, "what asks for nothing is sent nothing");
    }
}
