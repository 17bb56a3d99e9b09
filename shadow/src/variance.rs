//! By which dimensions the responses of a route differ.
//!
//! One dimension after the other is taken that explains the differences best, given those before it: a user agent that only
//! differs because users do explains nothing once their session is known. Each must pass Fisher's exact test with
//! Benjamini and Hochberg's correction over all dimensions of the route. Before: `pairs`, `statistics`; next: `plan`.

use crate::dimension::{Dimensions, Role, Sort};
use crate::names;
use crate::pairs::Pairs;
use crate::statistics::{Table, discoveries};

/// ln 10⁻⁴: pairs depend on each other, so the rate of false discoveries is far below the usual.
const LN_RATE: f64 = -9.21;

/// Differing pairs below which nothing is concluded.
const FEWEST: u64 = 5;

/// Pairs with and without the difference that a window should have; if it has fewer, a longer one is used.
const ENOUGH: u64 = 30;

/// Pairs of different clients with the same preferences that prove that these are the reason.
const ENOUGH_SAME: u64 = 100;

/// Parts of its strength by which one explanation is no better than another one.
const CLOSE: f64 = 0.03;

/// Dimensions that one explanation has at most.
const MOST: usize = 6;

/// Pairs that differ in an argument and are equal, after which it is ignored; fewer for those of campaigns.
const ENOUGH_TO_IGNORE: u64 = 150;
const ENOUGH_FOR_CAMPAIGN: u64 = 25;

/// Values that an argument must have had before it is ignored, and one in how many requests must have had none: if all have one,
/// it may be what lets them in.
const FEWEST_VALUES: u32 = 4;
const SHARE_WITHOUT: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Finding {
    pub(crate) dimension: usize,
    pub(crate) table: Table,
}

/// The dimensions by which responses differ.
#[derive(Debug, Clone, Default)]
pub(crate) struct Explanation {
    /// Most important first.
    pub(crate) findings: Vec<Finding>,
    /// Whether they explain the differences only if the address does not: too few clients at different addresses agree on them.
    pub(crate) is_open: bool,
}

/// The dimensions by which responses differ. `clients`: how many there were.
pub(crate) fn explain(dimensions: &Dimensions, pairs: &Pairs, clients: u32) -> Explanation {
    let untestable = dimensions.incomparable();
    let selectors = dimensions
        .mask(|dimension| dimension.sort == Sort::Argument || dimension.role(clients) == Role::Selector);
    let found = explained_by(dimensions, pairs, !untestable, is_an_effect);
    let of_clients = dimensions.mask(|of| of.sort == Sort::Address || of.is_address || of.is_of_analytics());
    let Explanation { findings: found, is_open } = match mask(&found) & of_clients {
        0 => Explanation { findings: found, is_open: false },
        named => without_names_of_clients(dimensions, pairs, named, !untestable & !of_clients)
            .unwrap_or(Explanation { findings: found, is_open: false }),
    };
    if mask(&found) & !selectors == 0 {
        return Explanation { findings: found, is_open };
    }
    // Several preferences together tell clients apart nearly as well as their sessions do. Then those are the reason only if
    // clients with the same preferences get the same.
    let others = explained_by(dimensions, pairs, selectors & !untestable, is_a_difference);
    let rest = mask(&found) & !selectors;
    let is_proved = explains_all(pairs, rest, mask(&others)) == Some(true);
    Explanation { findings: if is_proved { others } else { found }, is_open }
}

/// An address, or an id for counting visits, tells clients apart as well as several other reasons together do. Then those are the
/// reason if clients who agree on them and differ in what names them get the same.
fn without_names_of_clients(
    dimensions: &Dimensions,
    pairs: &Pairs,
    named: u64,
    allowed: u64,
) -> Option<Explanation> {
    let findings = explained_by(dimensions, pairs, allowed, is_an_effect);
    if explains_all(pairs, named, mask(&findings)) == Some(true) {
        return Some(Explanation { findings, is_open: false });
    }
    // Of several reasons, each is no effect by itself: most pairs that agree on it differ by another one.
    let findings = explained_by(dimensions, pairs, allowed, is_a_difference);
    let is_proved = explains_all(pairs, named, mask(&findings));
    (is_proved != Some(false)).then_some(Explanation { findings, is_open: is_proved.is_none() })
}

/// Whether pairs that agree on `known` are equal as often if they differ in one of `others`. `None`: too few do for a proof, and
/// nothing is against it.
fn explains_all(pairs: &Pairs, others: u64, known: u64) -> Option<bool> {
    let (mut is_proved, mut is_refuted) = (true, known == 0);
    for number in (0..64).filter(|number| others & (1 << number) != 0) {
        let table = table(pairs, 1 << number, known);
        is_proved &= table.with() >= ENOUGH_SAME;
        is_refuted |= is_a_difference(&table);
    }
    if is_refuted { Some(false) } else { is_proved.then_some(true) }
}

/// Takes one of `allowed` after the other.
fn explained_by(
    dimensions: &Dimensions,
    pairs: &Pairs,
    allowed: u64,
    is_reason: fn(&Table) -> bool,
) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    while found.len() < MOST {
        let known = mask(&found);
        let tests: Vec<Finding> = (0..dimensions.list.len())
            .filter(|number| !known & allowed & (1 << number) != 0)
            .filter_map(|number| {
                let table = table(pairs, 1 << number, known);
                is_reason(&table).then_some(Finding { dimension: number, table })
            })
            .collect();
        // Dimensions without an effect were tested too.
        let mut ln_ps: Vec<f64> = tests.iter().map(|finding| finding.table.ln_p()).collect();
        ln_ps.resize(dimensions.list.len(), 0.0);
        let discovered = discoveries(&ln_ps, LN_RATE);
        // Per pair, because windows have different numbers of them.
        let strength =
            |test: usize| ln_ps[test] / (tests[test].table.with() + tests[test].table.without()) as f64;
        let best = (0..tests.len()).filter(|test| discovered[*test]).min_by(|one, other| {
            let rank = |test: usize| dimensions.list[tests[test].dimension].rank();
            // What always differs together explains equally well.
            let are_close = (strength(*one) - strength(*other)).abs() <= CLOSE * strength(*one).abs();
            if are_close {
                rank(*one).cmp(&rank(*other))
            } else {
                strength(*one).total_cmp(&strength(*other))
            }
        });
        let Some(best) = best else { break };
        found.push(tests[best]);
    }
    without_the_unneeded(found, pairs, is_reason)
}

/// A dimension that was taken early may explain nothing beyond what the later ones do.
fn without_the_unneeded(
    mut found: Vec<Finding>,
    pairs: &Pairs,
    is_reason: fn(&Table) -> bool,
) -> Vec<Finding> {
    let mut at = 0;
    while found.len() > 1 && at < found.len() {
        let others = mask(&found) & !(1 << found[at].dimension);
        let table = table(pairs, 1 << found[at].dimension, others);
        if is_reason(&table) && table.ln_p() <= LN_RATE {
            at += 1;
        } else {
            found.remove(at);
        }
    }
    found
}

pub(crate) fn mask(found: &[Finding]) -> u64 {
    found.iter().fold(0, |mask, finding| mask | 1 << finding.dimension)
}

fn is_an_effect(table: &Table) -> bool {
    table.differing_with >= FEWEST && table.rate_with() > 2.0 * table.rate_without() + 0.002
}

/// As an effect, or equal pairs become far fewer: one of several reasons.
fn is_a_difference(table: &Table) -> bool {
    let (with, without) = (1.0 - table.rate_with(), 1.0 - table.rate_without());
    is_an_effect(table) || table.differing_with >= FEWEST && without > 2.0 * with + 0.01
}

/// Pairs that agree on `known`, with and without a difference in `dimension`, in the shortest window that has enough of both.
fn table(pairs: &Pairs, dimension: u64, known: u64) -> Table {
    let mut windows = [Table::default(); Pairs::windows()];
    for (differing, window, counts) in pairs.each().filter(|(differing, ..)| differing & known == 0) {
        let table = &mut windows[window];
        if differing & dimension == 0 {
            table.differing_without += u64::from(counts.differing);
            table.equal_without += u64::from(counts.equal);
        } else {
            table.differing_with += u64::from(counts.differing);
            table.equal_with += u64::from(counts.equal);
        }
    }
    let mut sum = Table::default();
    for window in windows {
        sum.differing_with += window.differing_with;
        sum.equal_with += window.equal_with;
        sum.differing_without += window.differing_without;
        sum.equal_without += window.equal_without;
        if sum.with() >= ENOUGH && sum.without() >= ENOUGH {
            break;
        }
    }
    sum
}

/// Arguments on which nothing depends. `may_ignore_any`: false if only those of campaigns may be ignored.
pub(crate) fn ignorable(dimensions: &Dimensions, pairs: &Pairs, known: u64, may_ignore_any: bool) -> u64 {
    let arguments =
        dimensions.mask(|dimension| matches!(dimension.sort, Sort::Argument | Sort::OtherArguments));
    // Campaigns come with several arguments at once: those are tested together.
    let campaign =
        dimensions.mask(|dimension| dimension.sort == Sort::Argument && names::is_campaign(&dimension.name));
    let mut ignored = 0;
    for (number, dimension) in dimensions.list.iter().enumerate() {
        let bit = 1_u64 << number;
        let is_of_campaign = campaign & bit != 0;
        if dimension.sort != Sort::Argument
            || names::is_credential(&dimension.name)
            // Written in another way, it may be the name of a credential; and a configuration has it as it is.
            || !dimension.name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(byte))
            || known & bit != 0
            || !(is_of_campaign || may_ignore_any)
        {
            continue;
        }
        let together = if is_of_campaign { campaign & !known } else { bit };
        let (mut equal, mut differing) = (0_u64, 0_u64);
        let tested = pairs.each().filter(|(of, window, _)| {
            of & bit != 0 && of & known == 0 && of & arguments & !together == 0 && *window < 2
        });
        for (.., counts) in tested {
            equal += u64::from(counts.equal);
            differing += u64::from(counts.differing);
        }
        let enough = if is_of_campaign { ENOUGH_FOR_CAMPAIGN } else { ENOUGH_TO_IGNORE };
        let without = dimensions.requests.saturating_sub(dimension.present);
        let has_values = is_of_campaign
            || dimension.distinct() >= FEWEST_VALUES
                && without.saturating_mul(SHARE_WITHOUT) >= dimensions.requests;
        // A few differences are changes that happened in between.
        let is_clean = if is_of_campaign { differing * 50 <= equal } else { differing == 0 };
        if equal >= enough && has_values && is_clean {
            ignored |= bit;
        }
    }
    // A cache ignores an argument whatever the case of its name.
    let has_twin = |number: usize| {
        let name = &dimensions.list[number].name;
        dimensions.list.iter().enumerate().any(|(other, of)| {
            of.sort == Sort::Argument && ignored & (1 << other) == 0 && of.name.eq_ignore_ascii_case(name)
        })
    };
    (0..dimensions.list.len())
        .filter(|number| ignored & (1 << number) != 0 && !has_twin(*number))
        .fold(0, |kept, number| kept | 1 << number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::request;
    use crate::hash::Key;

    /// Forty clients, each with its session, address and one of three languages; one of four user agents.
    struct Clients {
        dimensions: Dimensions,
        values: Vec<Box<[u32]>>,
    }

    /// `without`: one client in so many has no session, and each has one of two currencies; zero: all have a session.
    fn clients(without: u8) -> Clients {
        let (key, mut dimensions) = (Key::from_seed(1), Dimensions::new());
        let mut values = Vec::new();
        for round in 0..3 {
            for client in 0..40_u8 {
                let mut cookie =
                    if without == 0 { String::new() } else { format!("currency=c{}; ", client / 20) };
                if without == 0 || client % without != without - 1 {
                    cookie += &format!("session=s{client}");
                }
                let agent = format!("agent {}", client % 4);
                let (language, id) =
                    (["de", "en", "fr"][usize::from(client % 3)], format!("{round}-{client}"));
                let fields = [
                    (&b"cookie"[..], cookie.as_bytes()),
                    (b"user-agent", agent.as_bytes()),
                    (b"accept-language", language.as_bytes()),
                    (b"x-request-id", id.as_bytes()),
                ];
                let mut of = dimensions.read(&key, &request(None, client), fields.into_iter());
                Dimensions::note_visit(&mut of, client % 8 == 7);
                if round == 2 {
                    values.push(of);
                }
            }
        }
        Clients { dimensions, values }
    }

    fn labels(meaning: impl Fn(usize, u64) -> u64) -> Vec<String> {
        labels_of(0, meaning)
    }

    fn labels_of(without: u8, meaning: impl Fn(usize, u64) -> u64) -> Vec<String> {
        let Clients { dimensions, values } = clients(without);
        let mut pairs = Pairs::default();
        let mut state = 12_345_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        for time in 0..12_000_u64 {
            let (one, other) = (next() % 40, if time % 6 == 0 { 41 } else { next() % 40 });
            let other = if other == 41 { one } else { other };
            let mut differing = crate::dimension::difference(&values[one], &values[other]);
            // The request id differs in each pair.
            let id = dimensions.list.iter().position(|dimension| dimension.label() == "header x-request-id");
            differing |= id.map_or(0, |id| 1 << id);
            pairs.add(differing, 500, meaning(one, time) != meaning(other, time));
        }
        let explanation = explain(&dimensions, &pairs, 40);
        let of_what = if explanation.is_open { vec!["open".to_owned()] } else { vec![] };
        let found = explanation.findings.iter();
        let labels = found.map(|finding| dimensions.list[finding.dimension].label());
        labels.chain(of_what).collect()
    }

    #[test]
    fn a_personal_route_varies_by_its_session_and_not_by_what_else_differs_between_users() {
        assert_eq!(labels(|client, _| client as u64), ["cookie session"]);
    }

    #[test]
    fn a_translated_route_varies_by_its_language_alone() {
        assert_eq!(labels(|client, _| client as u64 % 3), ["header accept-language"]);
    }

    #[test]
    fn an_address_is_not_the_reason_for_what_sessions_and_languages_are_together() {
        // One in four has no session; their languages count alone.
        let found = labels_of(4, |client, _| {
            let language = client as u64 % 3;
            if client % 4 == 3 { language } else { 100 + client as u64 * 3 + language }
        });
        assert!(
            !found.contains(&"address".to_owned()) && found.contains(&"cookie session".to_owned()),
            "{found:?}"
        );
        let found = labels_of(4, |client, _| client as u64);
        assert!(found.iter().any(|of| of == "address" || of == "open"), "{found:?}");
    }

    #[test]
    fn an_address_is_not_the_reason_for_several_others_of_which_none_is_an_effect_by_itself() {
        let of_preferences = |client: usize| client as u64 % 3 * 10 + client as u64 / 20;
        let own = |client: usize| if client.is_multiple_of(2) { 100 * (client as u64 + 1) } else { 0 };
        let mut found = labels_of(2, |client, _| of_preferences(client) + own(client));
        found.sort();
        assert_eq!(found, ["cookie currency", "cookie session", "header accept-language"]);
        let region = |client: usize| if client % 9 == 1 { 10_000 } else { 0 };
        let found = labels_of(2, |client, _| of_preferences(client) + own(client) + region(client));
        assert!(
            found.contains(&"address".to_owned()),
            "what clients at another place get differs: {found:?}"
        );
        // Two without a session, of which each has a language of its own.
        let found = labels_of(20, |client, _| of_preferences(client) + 100 * (client as u64 + 1));
        assert!(!found.contains(&"address".to_owned()), "{found:?}");
    }

    #[test]
    fn two_reasons_are_both_found() {
        let found = labels(|client, _| (client as u64 % 3) * 10 + client as u64 % 4);
        assert_eq!(found.len(), 2);
        assert!(
            found.contains(&"header accept-language".to_owned())
                && found.contains(&"header user-agent".to_owned())
        );
    }

    #[test]
    fn what_clients_get_at_their_first_visits_is_told_from_what_is_their_own() {
        assert_eq!(labels(|client, _| u64::from(client % 8 == 7)), ["first visits"]);
    }

    #[test]
    fn a_public_route_varies_by_nothing() {
        assert!(labels(|_, _| 1).is_empty());
    }

    #[test]
    fn preferences_that_tell_users_apart_are_not_the_reason_for_what_is_personal() {
        // Twelve pairs of a language and an agent; clients with the same get different responses all the same.
        assert_eq!(labels(|client, _| client as u64 % 20 + 100 * (client as u64 / 20)), ["cookie session"]);
    }

    /// Which of the arguments are ignored, after pairs that differ in one of them each.
    fn ignored(may_ignore_any: bool, tests: &[(&str, u32, u32)]) -> Vec<String> {
        let (key, mut dimensions, mut pairs) = (Key::from_seed(1), Dimensions::new(), Pairs::default());
        for number in 0..12 {
            let has = |name: &str| number % 6 < 5 || name == "every";
            let query: Vec<String> = tests
                .iter()
                .filter(|(name, ..)| has(name))
                .map(|(name, ..)| format!("{name}=v{}", number % 6))
                .collect();
            let query = query.join("&");
            dimensions.read(&key, &request(Some(&query), 1), std::iter::empty());
        }
        for (name, equal, differing) in tests {
            let number = dimensions.argument(&key, name.as_bytes()).expect("it was seen twice");
            (0..equal + differing).for_each(|pair| pairs.add(1 << number, 500, pair < *differing));
        }
        let mask = ignorable(&dimensions, &pairs, 0, may_ignore_any);
        let list = dimensions.list.iter().enumerate().filter(|(number, _)| mask & (1 << number) != 0);
        list.map(|(_, dimension)| dimension.label()).collect()
    }

    #[test]
    fn an_argument_is_ignored_only_if_nothing_ever_differed_by_it() {
        assert_eq!(ignored(true, &[("ref", 200, 0)]), ["query ref"]);
        assert_eq!(ignored(true, &[("style", 2_000, 1)]), [""; 0], "one of its values may be another");
        assert_eq!(ignored(true, &[("ref", 100, 0)]), [""; 0], "too few");
        assert_eq!(ignored(true, &[("every", 200, 0)]), [""; 0], "no request was without one");
        assert_eq!(ignored(false, &[("sort", 200, 0)]), [""; 0], "the order of lists is not compared");
        assert_eq!(ignored(false, &[("utm_source", 100, 1)]), ["query utm_source"]);
        assert_eq!(ignored(true, &[("utm_source", 100, 9)]), [""; 0]);
        assert_eq!(
            ignored(true, &[("ref", 200, 0), ("Ref", 200, 9)]),
            [""; 0],
            "a cache ignores both or none"
        );
    }
}
