//! What requests may ask for (RFC 9111 §5.2.1, §5.4).

use super::*;
use crate::samples::{conf, lifetime};

fn listening() -> ProxyCache {
    ProxyCache { client_control: true, ..conf() }
}

/// `fresh` is the whole lifetime in seconds.
fn used(conf: &ProxyCache, request: &str, fresh: i64, age: u64, revalidation: Revalidation) -> Usable {
    let mut terms = lifetime(now(), 0);
    terms.fresh_until = (NOW + fresh - age as i64) * 1000;
    terms.revalidation = revalidation;
    may_use(&terms, age, headers(request).view(), conf, now())
}

#[test]
fn clients_are_heard_only_where_the_configuration_says_so() {
    for request in [
        "Cache-Control: no-cache",
        "Pragma: no-cache",
        "Cache-Control: max-age=0",
        "Cache-Control: only-if-cached",
    ] {
        assert_eq!(used(&conf(), request, 60, 5, Revalidation::Free), Usable::Yes, "{request}");
    }
    assert_eq!(
        used(&conf(), "Cache-Control: max-stale", 5, 60, Revalidation::Free),
        Usable::Validate(Why::Stale)
    );
}

#[test]
fn every_directive_is_weighed_against_age_and_lifetime() {
    use Usable::{Refuse, Validate, Yes};
    for (request, fresh, age, expected) in [
        ("", 60, 5, Yes),
        ("", 60, 60, Validate(Why::Stale)),
        ("Cache-Control: no-cache", 60, 5, Validate(Why::NoCache)),
        ("Pragma: no-cache", 60, 5, Validate(Why::NoCache)),
        ("Pragma: foo", 60, 5, Yes),
        ("Pragma: no-cache\nCache-Control: foo", 60, 5, Yes),
        ("Cache-Control: max-age=0", 60, 0, Validate(Why::MaxAge)),
        ("Cache-Control: max-age=4", 60, 5, Validate(Why::MaxAge)),
        ("Cache-Control: max-age=5", 60, 5, Yes),
        ("Cache-Control: min-fresh=55", 60, 5, Yes),
        ("Cache-Control: min-fresh=56", 60, 5, Validate(Why::MinFresh)),
        ("Cache-Control: max-stale=9", 60, 70, Validate(Why::Stale)),
        ("Cache-Control: max-stale=10", 60, 70, Yes),
        ("Cache-Control: max-stale", 60, 7000, Yes),
        ("Cache-Control: max-stale, max-age=60", 60, 70, Validate(Why::MaxAge)),
        ("Cache-Control: only-if-cached", 60, 5, Yes),
        ("Cache-Control: only-if-cached", 60, 70, Refuse),
        ("Cache-Control: only-if-cached, max-stale", 60, 70, Yes),
        ("Cache-Control: no-cache, only-if-cached", 60, 5, Refuse),
        ("Cache-Control: no-store", 60, 5, Yes),
    ] {
        assert_eq!(used(&listening(), request, fresh, age, Revalidation::Free), expected, "{request}");
    }
}

#[test]
fn no_client_gets_stale_what_the_answer_forbids_to_use_stale() {
    for revalidation in [Revalidation::Required, Revalidation::Implied] {
        let outcome = used(&listening(), "Cache-Control: max-stale", 60, 70, revalidation);
        assert_eq!(outcome, Usable::Validate(Why::Stale));
    }
    let mut terms = lifetime(now(), 60);
    terms.always_validate = true;
    let outcome = may_use(&terms, 0, headers("Cache-Control: max-stale").view(), &listening(), now());
    assert_eq!(outcome, Usable::Validate(Why::AlwaysValidate));
}
