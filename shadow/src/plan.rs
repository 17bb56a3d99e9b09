//! The cache that is simulated for a route: what its key contains, and which requests it leaves alone.
//!
//! A plan starts as one that shares all, learns from `variance`, and the evidence starts anew each time it changes: so the
//! evidence is for exactly what is recommended. Next: `simulation`.

use crate::credentials::Credentials;
use crate::dimension::{Dimensions, Role, Sort};
use crate::hash::Key;
use crate::leniency::Leniency;
use crate::pairs::Pairs;
use crate::request::{Request, arguments};
use crate::variance;

/// Of pairs that differ in a dimension that is the reason, at least this share has different responses. If fewer have, it may only
/// tell one client from others, whose responses are its own.
const LEAST_RATE: f64 = 0.1;

/// Sets of dimensions as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Plan {
    /// Arguments that are not part of the key.
    pub(crate) ignored: u64,
    /// Their values are part of the key.
    pub(crate) selected: u64,
    /// Credentials that were proved to change nothing. A request with any other one is passed on.
    pub(crate) harmless: u64,
    /// Of these, those that name no client. What a request with another one got may be served to it, but is never stored: so all that
    /// is stored was sent to someone who has no credentials, whichever pages of the route these asked for.
    pub(crate) open: u64,
    /// By these the responses differ, and no key can help.
    pub(crate) blocked: u64,
}

/// What a plan is made from, beside the dimensions and pairs of its route.
pub(crate) struct Circumstances<'a> {
    pub(crate) leniency: &'a Leniency,
    pub(crate) credentials: &'a Credentials,
    pub(crate) clients: u32,
    /// Dimensions that responses name in Vary.
    pub(crate) vary: u64,
}

impl Plan {
    pub(crate) fn learn(dimensions: &Dimensions, pairs: &Pairs, of: &Circumstances<'_>) -> Plan {
        let findings = variance::explain(dimensions, pairs, of.clients).findings;
        let known = variance::mask(&findings);
        let mut plan = Plan::first(dimensions, of);
        for finding in &findings {
            let dimension = &dimensions.list[finding.dimension];
            let bit = 1 << finding.dimension;
            match dimension.role(of.clients) {
                // Arguments are part of the key anyway.
                _ if dimension.sort == Sort::Argument => {}
                Role::Selector if finding.table.rate_with() < LEAST_RATE => plan.blocked |= bit,
                Role::Selector if dimension.has_variable() => plan.selected |= bit,
                // Requests with a credential are passed on.
                _ if dimension.is_credential() && dimension.sort != Sort::Field => {}
                Role::Identity if dimension.is_credential() && dimension.has_variable() => {}
                _ => plan.blocked |= bit,
            }
        }
        let cookies = dimensions.mask(|dimension| dimension.sort == Sort::Cookie);
        // A cache does not share what the API tells apart by Vary (RFC 9111 §4.1).
        let excluded = known | plan.selected | of.vary & cookies;
        plan.harmless = of.credentials.proof(dimensions).harmless & !excluded;
        plan.open = plan.harmless & !dimensions.mask(|dimension| dimension.is_personal(of.clients));
        plan.ignored = variance::ignorable(dimensions, pairs, known, !of.leniency.is_orderless());
        plan
    }

    /// The plan before anything is learned.
    pub(crate) fn first(dimensions: &Dimensions, of: &Circumstances<'_>) -> Plan {
        Plan { selected: of.vary & !dimensions.credentials, ..Plan::default() }
    }

    /// The URL without the arguments that are ignored.
    pub(crate) fn url(&self, key: &Key, dimensions: &Dimensions, request: &Request<'_>) -> u64 {
        let base = key.join(u64::from(request.is_tls), request.host);
        let path = key.join(base, request.path);
        if self.ignored == 0 {
            return request.query.map_or(path, |query| key.join(path, query));
        }
        let is_kept = |name: &[u8]| {
            dimensions.argument(key, name).is_none_or(|number| self.ignored & (1 << number) == 0)
        };
        arguments(request.query)
            .filter(|(name, _)| is_kept(name))
            .fold(path, |url, (name, value)| key.join(key.join(url, name), value))
    }

    /// Whether a request is passed on: it has a credential of which nothing is proved. `credentials`: all of the route.
    pub(crate) fn bypasses(&self, credentials: u64, values: &[u32]) -> bool {
        present(self.passed(credentials), values) != 0
    }

    /// The credentials with which requests are passed on.
    pub(crate) fn passed(&self, credentials: u64) -> u64 {
        credentials & !self.harmless & !self.selected
    }

    /// Whether what a request gets may be stored.
    pub(crate) fn stores(&self, credentials: u64, values: &[u32]) -> bool {
        present(credentials & !self.open & !self.selected, values) == 0
    }

    /// The key of the cache for a request to `url`.
    pub(crate) fn key(&self, key: &Key, url: u64, values: &[u32]) -> u64 {
        key.pair(url, self.value(key, values))
    }

    /// The values that are part of the key.
    pub(crate) fn value(&self, key: &Key, values: &[u32]) -> u64 {
        let value = |number: usize| u64::from(values.get(number).copied().unwrap_or(0));
        bits(self.selected).fold(0, |sum, number| key.pair(sum, value(number)))
    }
}

/// Those of a set that a request has.
pub(crate) fn present(mask: u64, values: &[u32]) -> u64 {
    let has = |number: &usize| values.get(*number).is_some_and(|value| *value != 0);
    bits(mask).filter(has).fold(0, |mask, number| mask | 1 << number)
}

/// The numbers in a set.
pub(crate) fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let number = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            number
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dimension::difference;
    use crate::fixture::request;

    /// What is learned from forty clients in three languages, whose responses have a meaning each.
    fn learned(meaning: impl Fn(usize) -> usize) -> (Plan, Vec<String>, Vec<String>) {
        let (key, mut dimensions, mut pairs) = (Key::from_seed(1), Dimensions::new(), Pairs::default());
        let mut values: Vec<Box<[u32]>> = Vec::new();
        for client in (0..40_u8).cycle().take(120) {
            let cookie = format!("session=s{client}");
            let language = ["de", "en", "fr"][usize::from(client % 3)];
            let fields = [(&b"cookie"[..], cookie.as_bytes()), (b"accept-language", language.as_bytes())];
            values.push(dimensions.read(&key, &request(None, client), fields.into_iter()));
        }
        let latest = &values[80..];
        for number in 0..4_000_usize {
            let (one, other) =
                (number * 7 % 40, if number % 6 == 0 { number * 7 % 40 } else { number * 11 % 40 });
            pairs.add(difference(&latest[one], &latest[other]), 500, meaning(one) != meaning(other));
        }
        let leniency = Leniency::default();
        let credentials = Credentials::default();
        let of = Circumstances { leniency: &leniency, credentials: &credentials, clients: 40, vary: 0 };
        let plan = Plan::learn(&dimensions, &pairs, &of);
        let labels = |mask: u64| bits(mask).map(|number| dimensions.list[number].label()).collect();
        (plan, labels(plan.selected), labels(plan.passed(dimensions.mask(|of| of.sort == Sort::Cookie))))
    }

    #[test]
    fn what_a_request_gets_is_stored_only_if_its_credentials_are_open_or_part_of_the_key() {
        let plan = Plan { harmless: 0b011, open: 0b001, selected: 0b100, ..Plan::default() };
        for (values, stores) in [([0, 0, 0], true), ([1, 0, 1], true), ([0, 1, 0], false), ([1, 1, 1], false)]
        {
            assert_eq!(plan.stores(0b111, &values), stores, "{values:?}");
        }
    }

    #[test]
    fn what_names_a_client_is_never_part_of_the_key_but_passed_on() {
        let (plan, selected, bypassed) = learned(|client| client);
        assert_eq!((selected, bypassed, plan.blocked), (Vec::new(), vec!["cookie session".to_owned()], 0));
        let (plan, selected, bypassed) = learned(|client| client % 3);
        assert_eq!(
            (selected, bypassed.len(), plan.blocked),
            (vec!["header accept-language".to_owned()], 1, 0)
        );
    }
}
