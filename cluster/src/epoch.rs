//! An epoch: the time in which the log is known to be one, without anything lost.
//!
//! ```text
//! number : token : token of the one before : replication id of the engine : base
//! ```
//! A new one begins when the engine may have lost orders (it restarted, a replica took over, it was emptied). `base` is the
//! sequence number up to which the log of the one before survived. The engine keeps it as text, in clear. Next: `script`, which
//! raises it.

use crate::secret::{hexadecimal, random};
use std::fmt;

/// In bytes; the text is not ours alone to write.
const LONGEST: usize = 256;
/// Sequence numbers that Lua counts exactly.
const MOST: u64 = 1 << 53;
/// Epochs that may begin while a node is away.
const AHEAD: u64 = 1 << 20;
/// What a node follows at first is below this.
const FIRST: u64 = 1 << 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) number: u64,
    token: String,
    previous: String,
    replication: String,
    pub(crate) base: u64,
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Epoch { number, token, previous, replication, base } = self;
        write!(f, "{number}:{token}:{previous}:{replication}:{base}")
    }
}

impl Epoch {
    pub(crate) fn parse(text: &str) -> Option<Epoch> {
        let mut parts = text.split(':').filter(|_| text.len() <= LONGEST);
        let mut next = || parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let (number, token, previous, replication, base) = (next()?, next()?, next()?, next()?, next()?);
        let (number, base) = (number.parse().ok()?, base.parse().ok()?);
        let [token, previous, replication] = [token, previous, replication].map(str::to_owned);
        let is_valid = parts.next().is_none() && number < MOST && base < MOST && !token.is_empty();
        is_valid.then_some(Epoch { number, token, previous, replication, base })
    }

    /// The text of the next one without its base, which the engine adds as it raises it. `stored` is what the
    /// engine has, `known` the one that this node followed.
    pub(crate) fn raised(stored: Option<&Epoch>, known: Option<&Epoch>, replication: &str) -> Option<String> {
        let number = [stored, known].into_iter().flatten().map(|epoch| epoch.number).max().unwrap_or(0) + 1;
        // Who raises it for a log that is empty goes on from what it followed itself.
        let previous = stored.or(known).map_or("", |epoch| &epoch.token);
        Some(format!("{number}:{}:{previous}:{replication}", hexadecimal(&random::<8>()?)))
    }

    /// Whether a node that followed `known` may follow this one: no more epochs have begun meanwhile than can have. A number that is far
    /// ahead would leave no room for the next.
    pub(crate) fn is_plausible(&self, known: Option<&Epoch>) -> bool {
        self.number <= known.map_or(FIRST, |known| known.number) + AHEAD
    }

    /// Different for every epoch.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn is_after(&self, other: &Epoch) -> bool {
        self.previous == other.token
    }

    pub(crate) fn is_on(&self, replication: &str) -> bool {
        self.replication == replication
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_survives_its_text_and_knows_the_one_before() {
        let first = Epoch::raised(None, None, "abc").expect("random bytes") + ":0";
        let first = Epoch::parse(&first).expect("an epoch");
        assert_eq!((first.number, first.base), (1, 0));
        let second = Epoch::raised(Some(&first), None, "def").expect("random bytes") + ":17";
        let second = Epoch::parse(&second).expect("an epoch");
        assert_eq!(Epoch::parse(&second.to_string()), Some(second.clone()));
        assert!(second.is_after(&first) && !first.is_after(&second));
        assert!(second.is_on("def") && !second.is_on("abc"));
        let lost = Epoch::raised(None, Some(&second), "def").expect("random bytes") + ":0";
        assert!(Epoch::parse(&lost).expect("an epoch").is_after(&second));
        assert_eq!(Epoch::parse(&lost).expect("an epoch").number, 3);
    }

    #[test]
    fn a_number_that_is_far_ahead_is_not_followed() {
        let numbered = |number: u64| Epoch::parse(&format!("{number}:a:b:c:0")).expect("an epoch");
        let known = numbered(3);
        for (number, known, expected) in [
            (4, Some(&known), true),
            (1 << 19, Some(&known), true),
            (1 << 21, Some(&known), false),
            (1 << 39, None, true),
            (MOST - 1, None, false),
        ] {
            assert_eq!(numbered(number).is_plausible(known), expected, "{number}");
        }
        let next =
            Epoch::raised(Some(&numbered(MOST - 1)).filter(|epoch| epoch.is_plausible(None)), None, "c");
        assert!(next.is_some_and(|text| text.starts_with("1:")));
    }

    #[test]
    fn what_is_no_epoch_is_refused() {
        for text in [
            "",
            "1",
            "1:a:b:c",
            "x:a:b:c:1",
            "1:a:b:c:1:2",
            "1::b:c:1",
            "1:a b:b:c:1",
            "99999999999999999:a:b:c:1",
        ] {
            assert_eq!(Epoch::parse(text), None, "{text}");
        }
    }
}
