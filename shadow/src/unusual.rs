//! Which requests of a route are passed on because of a field, or a value of what is in the key, that hardly any other client sends.
//!
//! The configuration passes them on too, so what they get is no evidence, neither for sharing nor against it. Before: `usual`, `route`; next: `shadow`, and `report`, which lists what is usual.

use crate::dimension::Sort;
use crate::hash::Key;
use crate::names;
use crate::paths::FEWEST_CLIENTS;
use crate::plan::bits;
use crate::request::cookies;
use crate::route::Route;
use crate::selection;
use crate::usual::{ABSENT, Texts};

impl Route {
    /// What is in the key and whose values are listed in the configuration. Not Accept-Encoding, of which clients that write it in
    /// different ways share responses.
    pub(crate) fn listed(&self) -> u64 {
        let is_one = |number: &usize| *self.dimensions.list[*number].name != *b"accept-encoding";
        bits(self.plan.selected).filter(is_one).fold(0, |mask, number| mask | 1 << number)
    }

    /// Counts the values of fields that may matter and of what is in the key, and returns whether one of them is not usual by now, or a
    /// field is not known.
    pub(crate) fn is_unusual<'f>(
        &mut self,
        key: &Key,
        texts: &mut Texts,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
        client: u32,
    ) -> bool {
        let (mut is_unusual, mut present, listed) = (false, 0_u64, self.listed());
        let cookies_are_listed = bits(listed).any(|number| self.dimensions.list[number].sort == Sort::Cookie);
        for (name, value) in fields.filter(|(_, value)| !value.is_empty()) {
            if name.eq_ignore_ascii_case(b"cookie") {
                let list = cookies_are_listed.then(|| cookies(value)).into_iter().flatten();
                for (name, value) in list.filter(|(_, value)| !value.is_empty()) {
                    let number = self.dimensions.cookie(key, name);
                    if let Some(number) = number.filter(|number| listed & (1 << number) != 0) {
                        is_unusual |= !self.is_usual(key, texts, number, value, &mut present, client);
                    }
                }
                continue;
            }
            let Some(number) = self.dimensions.field(key, &name.to_ascii_lowercase()) else {
                is_unusual |= names::may_matter(name);
                continue;
            };
            let dimension = &self.dimensions.list[number];
            if listed & (1 << number) != 0 || dimension.may_matter && !dimension.is_unique() {
                is_unusual |= !self.is_usual(key, texts, number, value, &mut present, client);
            }
        }
        for number in bits((self.dimensions.mask(|of| of.may_matter) | listed) & !present) {
            let is_usual =
                self.usual.count(texts, (number, self.fewest_clients(number)), (ABSENT, b""), client);
            let is_any = listed & (1 << number) == 0 && self.dimensions.list[number].is_unique();
            is_unusual |= !is_usual && !is_any;
        }
        is_unusual
    }

    /// Clients that must have sent a value, which is shown then: a field of the browser's, such as User-Agent, tells less than others.
    fn fewest_clients(&self, number: usize) -> u32 {
        let of = &self.dimensions.list[number];
        if of.sort == Sort::Field && !of.may_matter { selection::FEWEST_CLIENTS } else { FEWEST_CLIENTS }
    }

    fn is_usual(
        &mut self,
        key: &Key,
        texts: &mut Texts,
        number: usize,
        value: &[u8],
        present: &mut u64,
        client: u32,
    ) -> bool {
        // Which of two counts is the API's to say.
        let is_again = *present & (1 << number) != 0;
        *present |= 1 << number;
        let dimension = &self.dimensions.list[number];
        !is_again
            && dimension.has_variable()
            && !dimension.is_address
            && self.usual.count(
                texts,
                (number, self.fewest_clients(number)),
                (key.bytes(value), value),
                client,
            )
    }

    /// Whether each frequent value of the key was that of several clients, if requests with others are not passed on.
    pub(crate) fn keys_have_several_clients(&self) -> bool {
        self.listed() != 0 || self.selection.has_several_clients_of_each()
    }

    /// The fields that may matter, and what is in the key, whose values are not usual in at least half of the requests.
    pub(crate) fn rare_fields(&self) -> impl Iterator<Item = usize> {
        let listed = self.listed();
        let list = self.dimensions.list.iter().enumerate();
        list.filter(move |(number, of)| {
            let is_rare = || self.usual.requests(*number) < self.dimensions.requests / 2;
            (of.may_matter && !of.is_unique() || listed & (1 << number) != 0) && is_rare()
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
    fn a_value_of_a_cookie_in_the_key_is_unusual_if_few_clients_sent_it() {
        let (key, mut route, mut texts) = (Key::from_seed(1), Route::new(0, 0), Texts::default());
        let mut is_unusual = |cookies: &str, client: u32| {
            let fields = std::iter::once((&b"cookie"[..], cookies.as_bytes()));
            route.dimensions.read(&key, &request(None, 1), fields.clone());
            if let Some(number) = route.dimensions.cookie(&key, b"currency") {
                route.plan.selected = 1 << number;
            }
            route.is_unusual(&key, &mut texts, fields, client * 2)
        };
        for number in 0..100 {
            is_unusual("a=1; currency=EUR", number % 9);
            is_unusual("currency=CHF", 3);
        }
        for (cookies, expected) in [
            ("currency=EUR", false),
            ("currency=EUR; a=7", false),
            ("currency=CHF", true),
            ("currency=EUR; currency=EUR", true),
            ("a=1", true),
        ] {
            assert_eq!(is_unusual(cookies, 3), expected, "{cookies}");
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
