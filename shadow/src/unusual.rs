//! Which requests of a route are passed on because of a field that hardly any other client sends.
//!
//! The configuration passes them on too, so what they get is no evidence, neither for sharing nor against it. Before: `usual`, `route`; next: `shadow`, and `report`, which lists what is usual.

use crate::hash::Key;
use crate::names;
use crate::plan::bits;
use crate::route::Route;
use crate::usual::{ABSENT, Texts};

impl Route {
    /// Counts the values of fields that may matter, and returns whether one of them is not usual by now, or a field is not known.
    pub(crate) fn is_unusual<'f>(
        &mut self,
        key: &Key,
        texts: &mut Texts,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
        client: u32,
    ) -> bool {
        let (mut is_unusual, mut present) = (false, 0_u64);
        for (name, value) in fields.filter(|(_, value)| !value.is_empty()) {
            let Some(number) = self.dimensions.field(key, &name.to_ascii_lowercase()) else {
                is_unusual |= names::may_matter(name);
                continue;
            };
            let (bit, dimension) = (1 << number, &self.dimensions.list[number]);
            if !dimension.may_matter || dimension.is_unique() {
                continue;
            }
            // Which of two counts is the API's to say.
            let is_again = present & bit != 0;
            present |= bit;
            let is_usual = !is_again
                && dimension.has_variable()
                && self.usual.count(texts, number, (key.bytes(value), value), client);
            is_unusual |= !is_usual;
        }
        for number in bits(self.dimensions.mask(|of| of.may_matter) & !present) {
            let is_usual = self.usual.count(texts, number, (ABSENT, b""), client);
            is_unusual |= !is_usual && !self.dimensions.list[number].is_unique();
        }
        is_unusual
    }

    /// The fields that may matter and whose values are not usual in at least half of the requests.
    pub(crate) fn rare_fields(&self) -> impl Iterator<Item = usize> {
        let list = self.dimensions.list.iter().enumerate();
        list.filter(|(number, of)| {
            let is_rare = || self.usual.requests(*number) < self.dimensions.requests / 2;
            of.may_matter && !of.is_unique() && is_rare()
        })
        .map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::request;

    type Lines<'a> = &'a [(&'a str, &'a str)];

    /// Whether the last of some requests is unusual: of so many clients, with these fields, so often.
    fn is_unusual(requests: &[(u32, Lines<'_>, u32)]) -> bool {
        let (key, mut route, mut texts) = (Key::from_seed(1), Route::new(0, 0), Texts::default());
        let mut is_unusual = false;
        for (clients, lines, count) in requests {
            for number in 0..*count {
                let fields = lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
                route.dimensions.read(&key, &request(None, 1), fields.clone());
                is_unusual = route.is_unusual(&key, &mut texts, fields, number % clients * 2);
            }
        }
        is_unusual
    }

    #[test]
    fn a_request_is_unusual_by_a_field_or_a_value_that_few_clients_sent_and_by_one_that_all_others_have() {
        const JSON: Lines<'_> = &[("Accept", "application/json"), ("X-Requested-With", "fetch")];
        let after_usual_ones = |lines: Lines<'_>| is_unusual(&[(9, JSON, 50), (1, lines, 1)]);
        assert!(!after_usual_ones(JSON) && is_unusual(&[(4, JSON, 50)]) && is_unusual(&[(9, JSON, 9)]));
        assert!(after_usual_ones(&[("Accept", "text/csv"), ("X-Requested-With", "fetch")]));
        assert!(after_usual_ones(&[("Accept", "application/json")]), "no one else came without the field");
        assert!(after_usual_ones(&[JSON[0], JSON[0], JSON[1]]), "a field that comes twice");
        for (name, is_one) in [("X-Region", true), ("X-Request-Id", false), ("Referer", false), ("DNT", true)]
        {
            assert_eq!(after_usual_ones(&[JSON[0], JSON[1], (name, "1")]), is_one, "{name}");
        }
    }

    #[test]
    fn a_field_with_another_value_in_each_request_makes_none_unusual() {
        let (key, mut route, mut texts) = (Key::from_seed(1), Route::new(0, 0), Texts::default());
        let mut unusual = 0;
        for number in 0..400_u32 {
            let id = format!("id-{number}");
            let fields = std::iter::once((&b"x-ticks"[..], id.as_bytes()));
            route.dimensions.read(&key, &request(None, 1), fields.clone());
            unusual += u32::from(route.is_unusual(&key, &mut texts, fields, number % 9 * 2));
        }
        assert!(unusual < 30, "{unusual}");
    }
}
