//! The failures of an upstream in nginx's words: what another server is asked for, and what a stale answer stands in for.
//!
//! `proxy_next_upstream` and `proxy_cache_use_stale` share all words but one each; they are listed and read once, here.
//! Next: `exchange` and `cache`, which hold the rows; `millstream-upstream`'s `retry` and `millstream-cache`'s `policy`, which
//! go by them.

use crate::features::templates::without_templates;
use crate::reading::Reading;
use crate::tree::Directive;

pub trait FailureWords: Copy + Default {
    const WORDS: &'static [&'static str];

    /// `None` unless it is one of [`Self::WORDS`].
    fn switch(&mut self, word: &str) -> Option<&mut bool>;

    fn has_status(&self, status: u16) -> bool;
}

macro_rules! failures {
    ($(#[$doc:meta])* $name:ident $(#[$own_doc:meta])* $own:ident) => {
        failures! {
            @words $(#[$doc])* $name $(#[$own_doc])* $own;
            error timeout invalid_header;
            http_500 500 http_502 502 http_503 503 http_504 504 http_403 403 http_404 404 http_429 429
        }
    };
    (@words $(#[$doc:meta])* $name:ident $(#[$own_doc:meta])* $own:ident;
        $($word:ident)*; $($answer:ident $status:literal)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name {
            $(pub $word: bool,)*
            $(pub $answer: bool,)*
            $(#[$own_doc])*
            pub $own: bool,
        }

        impl FailureWords for $name {
            const WORDS: &'static [&'static str] =
                &[$(stringify!($word),)* $(stringify!($answer),)* stringify!($own)];

            fn switch(&mut self, word: &str) -> Option<&mut bool> {
                $(if word == stringify!($word) {
                    return Some(&mut self.$word);
                })*
                $(if word == stringify!($answer) {
                    return Some(&mut self.$answer);
                })*
                (word == stringify!($own)).then_some(&mut self.$own)
            }

            fn has_status(&self, status: u16) -> bool {
                match status {
                    $($status => self.$answer,)*
                    _ => false,
                }
            }
        }
    };
}

failures! {
    /// One flag per word; `off` clears all.
    NextUpstream
    /// Also requests whose method is not idempotent.
    non_idempotent
}

failures! {
    /// One flag per word; `off` clears all.
    UseStale
    /// While another, or a background, request fetches a fresh response.
    updating
}

without_templates!(NextUpstream, UseStale);

/// The words that only one of the two obeys. nginx reads both with one table, so they are allowed in either.
const OWN: [&str; 2] = ["updating", "non_idempotent"];

/// Adds to the words written before; `off` overrides every other word.
pub(super) fn words<T: FailureWords>(
    before: Option<T>,
    directive: &Directive,
    reading: &mut Reading<'_>,
) -> T {
    let mut failures = before.unwrap_or_default();
    let mut off = false;
    for word in &directive.args {
        let text = word.text.to_ascii_lowercase();
        if text == "off" {
            off = true;
        } else if let Some(switch) = failures.switch(&text) {
            *switch = true;
        } else if OWN.contains(&text.as_str()) {
            let message = format!("\"{text}\" has no effect in \"{}\", nor in nginx", directive.name.text);
            reading.diagnostics.idle(word.span, message);
        } else {
            let choices: Vec<&str> = std::iter::once("off").chain(T::WORDS.iter().copied()).collect();
            reading.not_one_of(word, &choices);
        }
    }
    if off { T::default() } else { failures }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_a_switch_of_its_own() {
        fn check<T: FailureWords + PartialEq>() {
            for (index, word) in T::WORDS.iter().enumerate() {
                let mut one = T::default();
                *one.switch(word).expect(word) = true;
                for (other, word) in T::WORDS.iter().enumerate() {
                    assert_eq!(*one.switch(word).expect(word), other == index, "{word}");
                }
            }
            assert!(T::default().switch("off").is_none());
        }
        check::<NextUpstream>();
        check::<UseStale>();
        let stale = UseStale { http_503: true, error: true, ..UseStale::default() };
        assert!(stale.has_status(503) && !stale.has_status(500) && !stale.has_status(0));
    }
}
