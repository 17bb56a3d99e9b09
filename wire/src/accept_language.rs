//! `Accept-Language` (RFC 9110 §12.5.4) folded into one spelling, to be a part of a variant's key.
//!
//! Languages are compared without case, their order means nothing (only weights do, §12.4.2), and white space never
//! does. What cannot be read is kept as it stands, so that it is a variant of its own. Next: the cache's `vary`.

use crate::list;
use crate::octets::trim;

/// Longest list that is sorted; a longer one is kept as it came.
const MOST: usize = 32;

/// Appends one spelling for all lines of the field: weight and language, the most wanted first.
pub fn append_normalised<'a>(lines: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    let mut wanted: Vec<(u16, Vec<u8>)> = Vec::new();
    for element in lines.flat_map(list::elements) {
        wanted.push(read(element));
    }
    if wanted.len() <= MOST {
        wanted.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        wanted.dedup();
    }
    for (weight, language) in &wanted {
        out.extend_from_slice(&weight.to_be_bytes());
        out.extend_from_slice(language);
        out.push(b',');
    }
}

/// Renders what [`append_normalised`] wrote: the languages in order, each with its weight unless that is 1.
pub fn spoken(mut folded: &[u8]) -> String {
    let mut languages = Vec::new();
    while let Some((weight, rest)) = folded.split_first_chunk::<2>() {
        // An element without a weight that can be read may hold any byte but a comma outside quotes.
        let end = rest.iter().position(|&byte| byte == b',').unwrap_or(rest.len());
        let language = String::from_utf8_lossy(&rest[..end]);
        languages.push(match u16::from_be_bytes(*weight) {
            1000 | u16::MAX => language.into_owned(),
            weight => format!("{language};q={}.{:03}", weight / 1000, weight % 1000)
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned(),
        });
        folded = rest.get(end + 1..).unwrap_or_default();
    }
    languages.join(", ")
}

/// The single most wanted language, unless it is `*`: a response in it is the best that could be chosen.
pub fn first_choice<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut wanted: Vec<(u16, Vec<u8>)> = lines.flat_map(list::elements).map(read).collect();
    wanted.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let mut ranked = wanted.into_iter();
    let (weight, language) = ranked.next()?;
    let alone = ranked.next().is_none_or(|(next, _)| next < weight);
    (alone && (1..=1000).contains(&weight) && language != b"*").then_some(language)
}

/// Weight in thousandths and language in lower case. An element with an unreadable weight comes back whole,
/// with a weight that no valid one has, so that it differs from all others.
fn read(element: &[u8]) -> (u16, Vec<u8>) {
    let mut parts = list::parameters(element);
    let language = trim(parts.next().unwrap_or_default()).to_ascii_lowercase();
    let weight = match (parts.next(), parts.next()) {
        (None, _) => Some(1000),
        (Some(parameter), None) => weight(parameter),
        _ => None,
    };
    match weight {
        Some(weight) => (weight, language),
        None => (u16::MAX, element.to_ascii_lowercase()),
    }
}

fn weight(parameter: &[u8]) -> Option<u16> {
    let (name, value) = list::pair(parameter);
    if !name.eq_ignore_ascii_case(b"q") {
        return None;
    }
    let (whole, fraction) = match value? {
        [whole] => (*whole, &[][..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (*whole, fraction),
        _ => return None,
    };
    if !matches!(whole, b'0' | b'1') || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let places = [100, 10, 1];
    let thousandths: u16 =
        fraction.iter().zip(places).map(|(digit, place)| u16::from(digit - b'0') * place).sum();
    Some(u16::from(whole - b'0') * 1000 + thousandths).filter(|weight| *weight <= 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        append_normalised(text.split('\n').map(str::as_bytes), &mut out);
        out
    }

    #[test]
    fn spellings_that_mean_the_same_fold_into_one() {
        for (one, other) in [
            ("en, de", "de, en"),
            ("en, de", "eN, De"),
            ("en, de", " en ,   de"),
            ("en, de", "en\nde"),
            ("en;q=1.0, de;q=0.5", "de ; q=0.50,en"),
            ("en, en", "en"),
        ] {
            assert_eq!(fold(one), fold(other), "{one:?} {other:?}");
        }
        for (one, other) in [
            ("en", "de"),
            ("en, de;q=0.5", "de, en;q=0.5"),
            ("en;q=0", "en"),
            ("en;q=2", "en"),
            ("en;q=x", "en"),
            ("", "*"),
            ("e,n", "en"),
        ] {
            assert_ne!(fold(one), fold(other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn the_first_choice_is_the_one_above_all_others() {
        let first = |text: &str| {
            first_choice(std::iter::once(text.as_bytes()))
                .map(|language| String::from_utf8(language).unwrap())
        };
        assert_eq!(first("fr;q=0.5, DE").as_deref(), Some("de"));
        assert_eq!(first("de").as_deref(), Some("de"));
        assert_eq!(first("en, de"), None);
        assert_eq!(first("*, de;q=0.5"), None);
        assert_eq!(first("de;q=0"), None);
        assert_eq!(first("de;q=x, en"), None);
        assert_eq!(first(""), None);
    }
}
