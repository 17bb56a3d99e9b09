//! Which values of request fields are usual: those that several clients sent.
//!
//! A field that never came while shadow watched, or a value that hardly anyone sent, may be one that the API responds to. So
//! requests with others than these are passed on, and so are those with other values of what is in the key. This is the only place
//! that keeps values as text, and only of such fields and cookies that neither let a client in nor say from where it comes. Before:
//! `dimension`; next: `route`.

use std::collections::HashMap;

/// Fields that are compared with others than the unlisted ones, whether they came or not.
pub(crate) const NEGOTIATING: [&str; 3] = ["accept", "accept-language", "origin"];

/// Values of one route that are counted; the rarest gives way to a new one.
const MOST: usize = 96;

/// Requests after which a value may be usual.
const ENOUGH: u32 = 10;

/// A longer value is never usual.
const LONGEST: usize = 200;

/// Texts that are kept in all.
const MOST_TEXTS: usize = 2_048;

/// Stands for a request without the field.
pub(crate) const ABSENT: u64 = 0;

/// Whether a `map` of a configuration can hold the value as it is.
fn may_be_written(value: &[u8]) -> bool {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !b"\"\\${}#'".contains(byte);
    let is_word = || [&b"default"[..], b"hostnames", b"volatile", b"include"].contains(&value);
    !value.is_empty()
        && value.len() <= LONGEST
        && value.iter().all(is_plain)
        && value[0] != b'~'
        && !is_word()
}

struct Value {
    dimension: u8,
    /// Clients from which on it is usual.
    fewest: u8,
    hash: u64,
    /// Bits of clients.
    clients: u64,
    requests: u32,
}

impl Value {
    fn is_usual(&self) -> bool {
        self.clients.count_ones() >= u32::from(self.fewest) && self.requests >= ENOUGH
    }
}

/// The values of one route.
#[derive(Default)]
pub(crate) struct Usual {
    list: Vec<Value>,
}

impl Usual {
    /// Counts a value of a client. Whether it is usual by now, and its text is kept. `fewest`: clients from which on it is.
    pub(crate) fn count(
        &mut self,
        texts: &mut Texts,
        (dimension, fewest): (usize, u32),
        (hash, value): (u64, &[u8]),
        client: u32,
    ) -> bool {
        if hash != ABSENT && !may_be_written(value) {
            return false;
        }
        let known = self.list.iter().position(|of| of.hash == hash && usize::from(of.dimension) == dimension);
        let at = known.unwrap_or_else(|| {
            let new =
                Value { dimension: dimension as u8, fewest: fewest as u8, hash, clients: 0, requests: 0 };
            let rarest = (0..self.list.len()).min_by_key(|at| self.list[*at].requests);
            match rarest.filter(|_| self.list.len() == MOST) {
                Some(rarest) => {
                    self.list[rarest] = new;
                    rarest
                }
                None => {
                    self.list.push(new);
                    self.list.len() - 1
                }
            }
        });
        let of = &mut self.list[at];
        of.clients |= 1 << (client / 2 % 64);
        of.requests = of.requests.saturating_add(1);
        of.is_usual() && (hash == ABSENT || texts.keep(hash, value))
    }

    /// The usual values of a dimension, most frequent first; an empty one if requests without the field are usual.
    pub(crate) fn of<'t>(&self, dimension: usize, texts: &'t Texts) -> Vec<&'t str> {
        let mut list: Vec<&Value> =
            self.list.iter().filter(|of| usize::from(of.dimension) == dimension && of.is_usual()).collect();
        list.sort_by(|one, other| other.requests.cmp(&one.requests).then_with(|| one.hash.cmp(&other.hash)));
        let text = |of: &&Value| match of.hash {
            ABSENT => Some(""),
            hash => texts.list.get(&hash).map(|text| &**text),
        };
        list.iter().filter_map(text).collect()
    }

    /// The text of a usual value, by its hash among those of its request; empty if the request had none.
    pub(crate) fn text<'t>(&self, dimension: usize, value: u32, texts: &'t Texts) -> Option<&'t str> {
        let is_it = |of: &&Value| {
            usize::from(of.dimension) == dimension && (of.hash as u32).max(1) == value && of.hash != ABSENT
        };
        match value {
            0 => Some(""),
            _ => texts
                .list
                .get(&self.list.iter().filter(is_it).find(|of| of.is_usual())?.hash)
                .map(|text| &**text),
        }
    }

    /// Requests with usual values of a dimension.
    pub(crate) fn requests(&self, dimension: usize) -> u32 {
        let usual = self.list.iter().filter(|of| usize::from(of.dimension) == dimension && of.is_usual());
        usual.fold(0, |sum, of| sum.saturating_add(of.requests))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.list.capacity() * size_of::<Value>()
    }
}

/// The texts of usual values of all routes, by their hashes.
#[derive(Default)]
pub(crate) struct Texts {
    list: HashMap<u64, Box<str>>,
}

impl Texts {
    fn keep(&mut self, hash: u64, value: &[u8]) -> bool {
        if self.list.contains_key(&hash) {
            return true;
        }
        let is_new = self.list.len() < MOST_TEXTS;
        if is_new {
            self.list.insert(hash, String::from_utf8_lossy(value).into());
        }
        is_new
    }

    pub(crate) fn bytes(&self) -> usize {
        let texts: usize = self.list.values().map(|text| text.len()).sum();
        texts + self.list.capacity() * 25
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Key;
    use crate::paths::FEWEST_CLIENTS;

    #[test]
    fn a_value_of_several_clients_is_usual_after_some_requests_and_no_other_one_is() {
        let (key, mut usual, mut texts) = (Key::from_seed(1), Usual::default(), Texts::default());
        let mut count = |value: &str, clients: u32, requests: u32| {
            let mut is_usual = false;
            for number in 0..requests {
                let of = (key.bytes(value.as_bytes()), value.as_bytes());
                is_usual = usual.count(&mut texts, (7, FEWEST_CLIENTS), of, number % clients * 2);
            }
            is_usual
        };
        assert!(count("application/json", 5, 10) && !count("text/html", 5, 9) && !count("text/csv", 4, 99));
        for value in ["", "a\"b", "a$b", "a\\b", "~a", "default", "\u{fc}", &"a".repeat(201)] {
            assert!(!count(value, 9, 99), "{value}");
        }
        (0..1_000).for_each(|value| assert!(!count(&format!("v{value}"), 9, 3)));
        assert!(count("application/json", 5, 1), "rare values do not push it out");
        assert_eq!(usual.of(7, &texts), ["application/json"]);
        assert!(usual.of(8, &texts).is_empty() && usual.list.len() == MOST);
    }
}
