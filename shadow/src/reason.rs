//! Verdicts as sentences.
//!
//! Before: `verdict`; next: `report`.

use crate::plan::bits;
use crate::route::Route;
use crate::verdict::{MANY_REQUESTS, Reason, Verdict};

/// The credentials that came and with which requests are passed on.
pub(crate) fn carried(route: &Route) -> u64 {
    route.plan.passed(route.dimensions.mask(|of| of.is_credential() && of.present > 0))
}

/// The credentials with which requests are served from the cache while what they get is not stored.
fn served(route: &Route) -> u64 {
    route.plan.harmless & !route.plan.open
}

fn labels(route: &Route, numbers: impl Iterator<Item = usize>) -> String {
    numbers.map(|number| route.dimensions.list[number].label()).collect::<Vec<_>>().join(", ")
}

/// One sentence without a full stop.
pub(crate) fn sentence(route: &Route, verdict: &Verdict, budget: f64) -> String {
    let outcomes = &verdict.outcomes;
    let differs = labels(route, verdict.findings.iter().map(|finding| finding.dimension));
    match &verdict.reason {
        Reason::Keep if outcomes.bound() > budget => format!(
            "the API's own lifetime; {} of {} would-be hits stale, {} clients",
            outcomes.stale,
            outcomes.hits,
            route.clients()
        ),
        Reason::Keep => {
            let bound = outcomes.bound();
            format!(
                "{} of {} would-be hits wrong (at most {:.2} %), {} clients",
                outcomes.stale + outcomes.leaks,
                outcomes.hits,
                bound * 100.0,
                route.clients()
            )
        }
        Reason::NoResponses => "no response with status 200".to_owned(),
        Reason::Forbidden => "the API forbids it (Cache-Control or Expires)".to_owned(),
        Reason::SetsCookie => "responses set cookies".to_owned(),
        Reason::Stream => "a stream".to_owned(),
        Reason::VariesByAnything => "responses have Vary: *".to_owned(),
        Reason::Secret => "a secret in each response (a random value such as a CSRF token)".to_owned(),
        Reason::Hollow => "nothing but times and ids in the response".to_owned(),
        Reason::Differs if differs.is_empty() => {
            let proof = route.credentials.proof(&route.dimensions);
            format!("responses differ by {}", labels(route, bits(proof.differing)))
        }
        Reason::Differs => format!("responses differ by {differs}"),
        Reason::Credentials => {
            let usual =
                |number: &usize| route.dimensions.list[*number].present >= route.dimensions.requests / 2;
            let (all, list) = (carried(route), |mask| labels(route, bits(mask)));
            let usual = bits(all).filter(usual).fold(0, |mask, number| mask | 1 << number);
            format!("needs requests without {}", list(if usual == 0 { all } else { usual }))
        }
        Reason::Unexplained => {
            "clients get different responses, and no part of the request explains it".to_owned()
        }
        Reason::Unlike => "the paths of this route behave differently".to_owned(),
        Reason::Unusual if route.listed() != 0 && route.rare_fields().next().is_none() => {
            let selected = labels(route, bits(route.plan.selected));
            format!("most requests have a rare combination of {selected}")
        }
        Reason::Unusual => unusual(&labels(route, route.rare_fields())),
        Reason::Changes => format!(
            "changes too fast: {} of {} would-be hits stale at the shortest lifetime, more than {} %",
            outcomes.stale,
            outcomes.hits,
            (budget * 1e6).round() / 1e4
        ),
        Reason::Needs { requests, clients } => needs(route, verdict, *requests, *clients, &differs),
    }
}

/// What is missing, from the most particular to how many there are too few.
fn needs(route: &Route, verdict: &Verdict, requests: u64, clients: u64, differs: &str) -> String {
    let outcomes = &verdict.outcomes;
    if verdict.is_open {
        format!("needs requests from other addresses with the same {differs}")
    } else if route.storing == 0 && served(route) != 0 {
        format!("needs requests without {}", labels(route, bits(served(route))))
    } else if outcomes.hits > 0 && outcomes.shared == 0 {
        "needs requests for the same URLs from other clients".to_owned()
    } else if !route.keys_have_several_clients() {
        format!("needs more clients that share the same {}", labels(route, bits(route.plan.selected)))
    } else {
        more(requests, clients)
    }
}

fn more(requests: u64, clients: u64) -> String {
    match (requests, clients) {
        (MANY_REQUESTS.., 0) => "needs many more requests".to_owned(),
        (MANY_REQUESTS.., _) => format!("needs many more requests, from at least {clients} more clients"),
        (_, 0) => format!("needs about {requests} more requests"),
        _ => format!("needs about {requests} more requests, from at least {clients} more clients"),
    }
}

fn unusual(fields: &str) -> String {
    let fields = if fields.is_empty() { "a header" } else { fields };
    format!("most requests have a rare value of {fields}")
}
