//! `Cache-Control` (RFC 9111 §5.2, RFC 5861, RFC 8246) as values.
//!
//! Directives are read leniently and valued conservatively: a lifetime that cannot be read is zero, a qualified
//! directive whose field names cannot be read covers everything, and in what is no directive at all (`private; a=b`)
//! every word that forbids something counts, and none that allows. A targeted field (RFC 9213) says the same as a
//! structured field, and counts whole or not at all. What follows from a directive is decided by the cache's policy,
//! not here.

use crate::list;
use crate::octets::{decimal, is_token, is_token_byte, trim};
use crate::structured::{self, BareItem, Value};

/// "2147483648 or the greatest positive integer" is what RFC 9111 §1.2.2 makes of an overflowing number.
pub const MAX_SECONDS: u64 = 1 << 31;

/// Directives that only ever forbid when they have no argument.
const RESTRICTING: [&[u8]; 11] = [
    b"no-store",
    b"no-cache",
    b"private",
    b"max-age",
    b"s-maxage",
    b"must-revalidate",
    b"proxy-revalidate",
    b"no-transform",
    b"min-fresh",
    b"stale-while-revalidate",
    b"stale-if-error",
];

/// A directive that may name the fields it is about: `no-cache="Set-Cookie"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Qualified<'a> {
    #[default]
    Absent,
    Whole,
    /// Present for the fields of this list only; see [`Qualified::names`].
    Fields(&'a [u8]),
}

impl<'a> Qualified<'a> {
    pub fn is_present(self) -> bool {
        self != Qualified::Absent
    }

    pub fn is_whole(self) -> bool {
        self == Qualified::Whole
    }

    /// Empty if it is absent or for the whole message.
    pub fn names(self) -> impl Iterator<Item = &'a [u8]> {
        let names = match self {
            Qualified::Fields(names) => names,
            Qualified::Absent | Qualified::Whole => &[],
        };
        list::elements(names)
    }

    fn add(&mut self, argument: Option<&'a [u8]>) {
        *self = match (*self, argument.map(|argument| trim(list::unquote(argument)))) {
            (Qualified::Absent, Some(names)) if !names.is_empty() => Qualified::Fields(names),
            // Named twice with different fields: the whole message is the safe reading.
            _ => Qualified::Whole,
        };
    }
}

/// All directives of all `Cache-Control` lines of a message. Lifetimes are seconds, at most [`MAX_SECONDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheControl<'a> {
    pub no_store: bool,
    pub no_cache: Qualified<'a>,
    pub private: Qualified<'a>,
    pub public: bool,
    pub max_age: Option<u64>,
    pub s_maxage: Option<u64>,
    pub must_revalidate: bool,
    pub proxy_revalidate: bool,
    pub must_understand: bool,
    pub no_transform: bool,
    pub only_if_cached: bool,
    pub min_fresh: Option<u64>,
    /// Without an argument (`Some(None)`) any age will do.
    pub max_stale: Option<Option<u64>>,
    /// `stale-while-revalidate` (RFC 5861 §3)
    pub stale_while_revalidate: Option<u64>,
    /// `stale-if-error` (RFC 5861 §4)
    pub stale_if_error: Option<u64>,
}

/// Reads all lines of the field. Unknown directives are ignored (RFC 9111 §5.2.3).
pub fn parse<'a>(values: impl Iterator<Item = &'a [u8]>) -> CacheControl<'a> {
    let mut control = CacheControl::default();
    for value in values {
        for element in list::elements(value) {
            let (name, argument) = list::pair(element);
            if is_token(name) && argument.is_none_or(is_argument) {
                control.add(name, argument);
            } else {
                control.restrict(element);
            }
        }
    }
    control
}

/// A token, a whole quoted string, or empty.
fn is_argument(text: &[u8]) -> bool {
    match text {
        [] => true,
        [b'"', rest @ ..] => closing_quote(rest) == rest.len().checked_sub(1),
        _ => is_token(text),
    }
}

/// `text` starts inside of the string.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Reads all lines of a targeted field such as `CDN-Cache-Control` (RFC 9213 §2.1). `None` if it is empty, no
/// dictionary, or gives a known directive a value of the wrong type: such a field is ignored.
pub fn targeted<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<CacheControl<'a>> {
    let mut control = CacheControl::default();
    let mut is_empty = true;
    for value in values {
        for (name, value) in structured::dictionary(value).ok()? {
            is_empty = false;
            control.set(name, value)?;
        }
    }
    if is_empty { None } else { Some(control) }
}

impl<'a> CacheControl<'a> {
    /// `None` if the value is not of the directive's type. The last of several counts, as in any dictionary.
    fn set(&mut self, name: &[u8], value: Value<'a>) -> Option<()> {
        match name {
            b"no-store" => self.no_store = flag(value)?,
            b"no-cache" => self.no_cache = qualified(value)?,
            b"private" => self.private = qualified(value)?,
            b"public" => self.public = flag(value)?,
            b"max-age" => self.max_age = Some(delta(value)?),
            b"s-maxage" => self.s_maxage = Some(delta(value)?),
            b"must-revalidate" => self.must_revalidate = flag(value)?,
            b"proxy-revalidate" => self.proxy_revalidate = flag(value)?,
            b"must-understand" => self.must_understand = flag(value)?,
            b"no-transform" => self.no_transform = flag(value)?,
            b"stale-while-revalidate" => self.stale_while_revalidate = Some(delta(value)?),
            b"stale-if-error" => self.stale_if_error = Some(delta(value)?),
            _ => {}
        }
        Some(())
    }

    /// For what is no directive, such as `no-store; max-age=60` or `x="y, private`: what was meant is
    /// unknown, so each forbidding word in it applies, and lifetimes count as unreadable.
    fn restrict(&mut self, element: &[u8]) {
        for word in element.split(|byte| *byte == b'"' || !is_token_byte(*byte)) {
            let restricts = RESTRICTING.iter().any(|name| word.eq_ignore_ascii_case(name));
            if restricts {
                self.add(word, None);
            }
        }
    }

    fn add(&mut self, name: &[u8], argument: Option<&'a [u8]>) {
        // Directives are case-insensitive; the longest known one has 22 bytes, so no other needs to be lowered.
        let mut lower = [0u8; 24];
        let Some(lower) = lower.get_mut(..name.len()) else { return };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        match &*lower {
            b"no-store" => self.no_store = true,
            b"no-cache" => self.no_cache.add(argument),
            b"private" => self.private.add(argument),
            b"public" => self.public = true,
            b"max-age" => lifetime(&mut self.max_age, argument),
            b"s-maxage" => lifetime(&mut self.s_maxage, argument),
            b"must-revalidate" => self.must_revalidate = true,
            b"proxy-revalidate" => self.proxy_revalidate = true,
            b"must-understand" => self.must_understand = true,
            b"no-transform" => self.no_transform = true,
            b"only-if-cached" => self.only_if_cached = true,
            // A request that wants freshness we cannot read gets the most: nothing stored is that fresh.
            b"min-fresh" => self.min_fresh = Some(argument.and_then(seconds).unwrap_or(MAX_SECONDS)),
            b"max-stale" => self.max_stale = Some(argument.map(|argument| seconds(argument).unwrap_or(0))),
            b"stale-while-revalidate" => lifetime(&mut self.stale_while_revalidate, argument),
            b"stale-if-error" => lifetime(&mut self.stale_if_error, argument),
            _ => {}
        }
    }
}

fn flag(value: Value<'_>) -> Option<bool> {
    match value {
        Value::Item(BareItem::Boolean(flag)) => Some(flag),
        _ => None,
    }
}

fn delta(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Item(BareItem::Integer(seconds)) => {
            u64::try_from(seconds).ok().map(|seconds| seconds.min(MAX_SECONDS))
        }
        _ => None,
    }
}

/// True, or a string of field names.
fn qualified(value: Value<'_>) -> Option<Qualified<'_>> {
    match value {
        Value::Item(BareItem::Boolean(true)) => Some(Qualified::Whole),
        Value::Item(BareItem::Boolean(false)) => Some(Qualified::Absent),
        Value::Item(BareItem::String(names)) if trim(names).is_empty() => Some(Qualified::Whole),
        Value::Item(BareItem::String(names)) => Some(Qualified::Fields(names)),
        _ => None,
    }
}

/// The shortest of several counts; not a number is zero (RFC 9111 §4.2.1 treats both as stale).
fn lifetime(slot: &mut Option<u64>, argument: Option<&[u8]>) {
    let found = argument.and_then(seconds).unwrap_or(0);
    *slot = Some(slot.map_or(found, |before| before.min(found)));
}

/// Delta-seconds (RFC 9111 §1.2.2), also quoted, saturating at [`MAX_SECONDS`].
pub fn seconds(text: &[u8]) -> Option<u64> {
    let text = list::unquote(text);
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(decimal(text).unwrap_or(MAX_SECONDS).min(MAX_SECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> CacheControl<'_> {
        parse(text.split('\n').map(str::as_bytes))
    }

    #[test]
    fn every_directive_is_read_in_any_case_and_from_several_lines() {
        let control = of("Public, MAX-AGE=60,s-maxage = \"120\" , must-revalidate, proxy-revalidate\n\
             must-understand,no-transform, stale-while-revalidate=5, stale-if-error=9, x=\"a,no-store\"");
        assert!(control.public && control.must_revalidate && control.proxy_revalidate);
        assert!(control.must_understand && control.no_transform && !control.no_store);
        assert_eq!((control.max_age, control.s_maxage), (Some(60), Some(120)));
        assert_eq!((control.stale_while_revalidate, control.stale_if_error), (Some(5), Some(9)));
        let control = of("only-if-cached, min-fresh=3, max-stale, no-store");
        assert!(control.only_if_cached && control.no_store);
        assert_eq!((control.min_fresh, control.max_stale), (Some(3), Some(None)));
        assert_eq!(of("max-stale=7").max_stale, Some(Some(7)));
    }

    #[test]
    fn qualified_directives_name_their_fields_and_widen_when_in_doubt() {
        let control = of("no-cache=\"Set-Cookie, X-A\", private");
        assert_eq!(control.no_cache.names().collect::<Vec<_>>(), [&b"Set-Cookie"[..], b"X-A"]);
        assert!(control.private.is_whole() && control.no_cache.is_present() && !control.no_cache.is_whole());
        for text in [
            "no-cache=\"a\", no-cache",
            "no-cache, no-cache=\"a\"",
            "no-cache=\"a\"\nno-cache=\"b\"",
            "no-cache=",
            "no-cache=\"\"",
        ] {
            assert!(of(text).no_cache.is_whole(), "{text}");
        }
    }

    #[test]
    fn what_is_no_list_of_directives_forbids_whatever_it_may_have_meant_to() {
        for (text, forbidden) in [
            ("no-store;", "no-store"),
            ("no-cache; no-store", "no-store"),
            ("no-store no-cache", "no-store"),
            ("no-cache; no-store", "no-cache"),
            ("NO-CACHE max-age=60", "no-cache"),
            ("no-cache=\"Set-Cookie\"; x", "no-cache"),
            ("max-age=60; must-revalidate", "must-revalidate"),
            ("private; max-age=0", "private"),
            ("private;", "private"),
            ("private:", "private"),
            (";private", "private"),
            ("=private", "private"),
            ("private==a", "private"),
            ("Private max-age=60", "private"),
            ("\"private\"", "private"),
            ("private=\"a", "private"),
            ("private=\"a\" b", "private"),
            ("max-age=60, x=\"y, private", "private"),
            ("max-age=60, x=\"y\\\", private", "private"),
            ("x=\"a\", \"b, private, y=\"c\"", "private"),
            ("x=a\"b, private\"", "private"),
            ("public, x y, max-age=60; private", "private"),
        ] {
            let control = of(text);
            let holds = match forbidden {
                "no-store" => control.no_store,
                "no-cache" => control.no_cache.is_whole(),
                "private" => control.private.is_whole(),
                _ => control.must_revalidate,
            };
            assert!(holds, "{text}");
        }
        for text in
            ["public; max-age=60", "max-age=60; public", "max-age=60 public", "x=\"max-age=60", "max-age 60"]
        {
            let control = of(text);
            assert_eq!((control.max_age, control.public), (Some(0), false), "{text}");
        }
        assert_eq!(of("s-maxage=60;").s_maxage, Some(0));
        assert!(!of("no-store, must-understand;").must_understand);
        for text in
            ["x=\"a; private\"", "x=\"\\\", private\"", "y=private", "not-private", "x=\"no-store\", public"]
        {
            let control = of(text);
            assert!(!control.private.is_present() && !control.no_store, "{text}");
        }
    }

    #[test]
    fn a_targeted_field_counts_whole_or_not_at_all() {
        let read = |text: &'static str| targeted(text.split('\n').map(str::as_bytes));
        let control = read(
            "max-age=60;x=1, s-maxage=99999999999, private=\"a, b\", foo=bar\nno-cache, must-revalidate=?0",
        );
        let control = control.expect("it is a dictionary");
        assert_eq!((control.max_age, control.s_maxage), (Some(60), Some(MAX_SECONDS)));
        assert_eq!(control.private.names().collect::<Vec<_>>(), [&b"a"[..], b"b"]);
        assert!(control.no_cache.is_whole() && !control.must_revalidate);
        assert_eq!(read("max-age=60, max-age=0").and_then(|control| control.max_age), Some(0));
        for text in
            ["", " ", "max-age=\"60\"", "max-age", "max-age=-1", "no-store=1", "a, &&", "MAX-AGE=1", "a\n&"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn lifetimes_that_cannot_be_read_are_zero_and_huge_ones_saturate() {
        for text in ["max-age", "max-age=", "max-age=-1", "max-age=1.5", "max-age=a", "max-age=60, max-age=0"]
        {
            assert_eq!(of(text).max_age, Some(0), "{text}");
        }
        assert_eq!(of("max-age=99999999999999999999999").max_age, Some(MAX_SECONDS));
        assert_eq!(of("min-fresh=x").min_fresh, Some(MAX_SECONDS));
        assert_eq!(of("max-age=60, max-age=30").max_age, Some(30));
        assert_eq!(
            of("xmax-age=60, max-agee=3, a-very-long-directive-name-that-nobody-knows=1").max_age,
            None
        );
    }
}
