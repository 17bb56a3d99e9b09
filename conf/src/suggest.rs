//! The nearest known word to a misspelt one.
//!
//! Pure; it must never suggest a word so far away that the suggestion misleads. Next: `template` and
//! `directives/`, which ask it with their tables.

/// Longer words get no suggestion; bounds the comparison, which is quadratic in the length.
const MAX_WORD: usize = 64;

/// The nearest candidate, if it is near enough to be meant; never `word` itself.
///
/// Near enough: one edit (insertion, deletion, change, or swap of neighbours) for every three letters of the
/// written word, at least one and at most four, and one more if one of the two starts with the other
/// (`warning`). Another number is another meaning (`http_501`), so it is never suggested. Case is ignored; of
/// equally near ones the likelier by Jaro-Winkler wins, then the first.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    if !(2..=MAX_WORD).contains(&length) {
        return None;
    }
    let lower_word = word.to_lowercase();
    let most = (length / 3).clamp(1, 4);
    let mut best: Option<(usize, f64, &'a str)> = None;
    for candidate in candidates {
        // The difference of the lengths is a lower bound of the distance, and far cheaper.
        if candidate.len() > MAX_WORD || candidate.chars().count().abs_diff(length) > most + 1 {
            continue;
        }
        let lower = candidate.to_lowercase();
        if differs_in_number(&lower_word, &lower) {
            continue;
        }
        let distance = strsim::osa_distance(&lower_word, &lower);
        let one_starts_the_other = lower_word.starts_with(&lower) || lower.starts_with(&lower_word);
        let most = most + usize::from(one_starts_the_other && length >= 4 && lower.len() >= 4);
        if distance > most || (distance == 0 && candidate == word) {
            continue;
        }
        let likeness = strsim::jaro_winkler(&lower_word, &lower);
        if best.is_none_or(|(least, most_like, _)| {
            distance < least || (distance == least && likeness > most_like)
        }) {
            best = Some((distance, likeness, candidate));
        }
    }
    best.map(|(_, _, candidate)| candidate)
}

/// Whether two words differ only in the digits of a number.
fn differs_in_number(word: &str, other: &str) -> bool {
    let same = |(one, two): (char, char)| one == two || one.is_ascii_digit() && two.is_ascii_digit();
    word != other && word.len() == other.len() && word.chars().zip(other.chars()).all(same)
}

/// `did you mean "…"?`, if a candidate is near enough.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|found| format!("did you mean \"{found}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &[
        "proxy_pass",
        "proxy_cache",
        "proxy_cache_key",
        "server",
        "server_name",
        "listen",
        "root",
        "location",
    ];

    #[test]
    fn a_misspelt_word_finds_the_one_that_was_meant() {
        for (word, expected) in [
            ("proxy_pas", "proxy_pass"),
            ("porxy_pass", "proxy_pass"),
            ("Proxy_Pass", "proxy_pass"),
            ("servername", "server_name"),
            ("lisen", "listen"),
            ("proxy_cach_key", "proxy_cache_key"),
            ("roto", "root"),
            ("servers_name", "server_name"),
            ("locations", "location"),
            ("listening", "listen"),
        ] {
            assert_eq!(nearest(word, NAMES.iter().copied()), Some(expected), "{word}");
        }
    }

    #[test]
    fn a_strange_word_finds_nothing() {
        for word in ["", "x", "gzip", "banana", "proxy_ssl_verify_depth", &"a".repeat(4000)] {
            assert_eq!(nearest(word, NAMES.iter().copied()), None, "{word}");
        }
        assert_eq!(nearest("listen", ["listen"]), None, "the word itself is no suggestion");
        assert_eq!(did_you_mean("lisen", ["listen"]).as_deref(), Some("did you mean \"listen\"?"));
    }
}
