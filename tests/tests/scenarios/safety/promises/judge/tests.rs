//! The judge notices each thing that must not happen, and passes what is near it and allowed.

use std::time::{Duration, Instant};

use super::super::api::Made;
use super::super::history::{Act, What};
use super::super::resource::{By, Caching, Delivery, Resource, Trouble, content};
use super::{Against, Change, End, Given, Promise, judge, judge_changes};

const SECOND: Duration = Duration::from_secs(1);

/// A response made a second before it was requested, for no one in particular, and given whole.
struct Case {
    promise: Promise,
    resource: Resource,
    given: Given,
    made: Made,
    takers: usize,
}

impl Case {
    fn new() -> Case {
        let now = Instant::now();
        let act = Act { person: 0, resource: 0, what: What::Get, zipped: false };
        Case {
            promise: Promise {
                by: &[],
                credentials: &[By::Cookie, By::Authorization, By::ApiKey],
                addresses: true,
                unlisted: true,
                origins: true,
                streams: true,
                silent: Some(SECOND),
                stale: Some(SECOND),
                stale_on_error: Some(SECOND * 10),
                changed: SECOND,
            },
            resource: Resource {
                by: Some(By::Cookie),
                varies: false,
                caching: Caching::MaxAge,
                delivery: Delivery::Whole(900),
                trouble: Trouble::Fails,
                tagged: false,
            },
            given: Given {
                act,
                taker: None,
                client: ("127.0.0.1".into(), "api.example".into()),
                asked: now,
                read: now,
                status: 200,
                id: Some(7),
                cookie: None,
                first: None,
                body: content(7, 900),
                end: End::Whole,
                was_broken: false,
            },
            made: Made {
                history: 1,
                resource: 0,
                method: "GET".into(),
                taker: None,
                length: 900,
                began: now - SECOND,
                ended: Some(now - SECOND),
                confirmed: None,
            },
            takers: 2,
        }
    }

    fn judged(&self) -> Result<(), Against> {
        judge(&self.promise, (1, 0), &self.resource, &self.given, Some(&self.made), self.takers)
    }
}

/// What is changed in an allowed case, and the resulting verdict.
type Changed = (&'static str, fn(&mut Case), Result<(), Against>);

const CHANGES: &[Changed] = &[
    ("nothing", |_| (), Ok(())),
    ("another's cookie", |case| case.made.taker = Some("session=alice".into()), Err(Against::Other)),
    (
        "another's cookie, and the API says public",
        |case| {
            case.made.taker = Some("session=alice".into());
            case.resource.caching = Caching::Public;
        },
        Ok(()),
    ),
    (
        "the same, and it varies",
        |case| {
            case.made.taker = Some("session=alice".into());
            (case.resource.caching, case.resource.varies) = (Caching::Public, true);
        },
        Err(Against::Other),
    ),
    (
        "another tenant's",
        |case| (case.resource.by, case.made.taker) = (Some(By::Tenant), Some("alice".into())),
        Err(Against::Other),
    ),
    (
        "another tenant's, and the API has to say by what it varies",
        |case| {
            (case.resource.by, case.made.taker) = (Some(By::Tenant), Some("alice".into()));
            case.promise.unlisted = false;
        },
        Ok(()),
    ),
    (
        "another origin's",
        |case| {
            (case.resource.by, case.made.taker) = (Some(By::Origin), Some("https://a.example".into()));
            case.resource.caching = Caching::Public;
        },
        Err(Against::Other),
    ),
    (
        "another host's",
        |case| (case.resource.by, case.made.taker) = (Some(By::Host), Some("a.example".into())),
        Err(Against::Other),
    ),
    ("what sets a cookie, to two", |case| case.resource.caching = Caching::SetsCookie, Err(Against::Alone)),
    ("what a POST made", |case| case.made.method = "POST".into(), Err(Against::Alone)),
    (
        "a made cookie of another answer",
        |case| case.given.cookie = Some("made=8".into()),
        Err(Against::Mixed),
    ),
    ("another answer's body", |case| case.given.body = content(8, 900), Err(Against::Mixed)),
    ("another URL's", |case| case.made.resource = 1, Err(Against::Mixed)),
    ("half of it", |case| case.given.body.truncate(450), Err(Against::Cut)),
    (
        "half of it, visibly",
        |case| {
            case.given.body.truncate(450);
            case.given.end = End::Broken;
        },
        Ok(()),
    ),
    (
        "a part from elsewhere in it",
        |case| {
            (case.given.status, case.given.first) = (206, Some(200));
            case.given.body = content(7, 900)[100..200].to_vec();
        },
        Err(Against::Mixed),
    ),
    ("what is too old", |case| case.given.asked += SECOND * 10, Err(Against::Stale)),
    (
        "what is old while the API fails",
        |case| {
            case.given.asked += SECOND * 10;
            case.given.was_broken = true;
        },
        Ok(()),
    ),
    (
        "what was confirmed since",
        |case| {
            case.given.asked += SECOND * 10;
            case.made.confirmed = Some(case.given.asked - SECOND);
        },
        Ok(()),
    ),
    ("nothing in time", |case| case.given.end = End::Hung, Err(Against::Hung)),
];

#[test]
fn the_judge_of_promises_notices_each_that_is_broken() {
    for (what, change, expected) in CHANGES {
        let mut case = Case::new();
        change(&mut case);
        assert_eq!(case.judged(), *expected, "{what}");
    }
}

/// A client's change of what it is given afterwards: who made it, at which host, when the API made it and
/// when that was known, counted from the start of the response; and when it asks.
type AfterChange = (&'static str, &'static str, i32, i32, i32, Result<(), Against>);

const AFTER_CHANGES: &[AfterChange] = &[
    ("127.0.0.1", "api.example", 1, 2, 2, Err(Against::Unchanged)),
    ("127.0.0.1", "api.example", 1, 2, 1, Ok(())),
    ("127.0.0.1", "api.example", -1, 2, 2, Ok(())),
    ("127.0.0.1", "other.example", 1, 2, 2, Ok(())),
    ("127.0.0.7", "api.example", 1, 2, 2, Ok(())),
    ("127.0.0.7", "api.example", 1, 2, 5, Ok(())),
    ("127.0.0.7", "api.example", 1, 2, 6, Err(Against::Unchanged)),
];

#[test]
fn a_client_is_given_nothing_older_than_its_own_change_and_others_nothing_much_older() {
    for (client, host, made, known, asked, expected) in AFTER_CHANGES {
        let mut case = Case::new();
        let began = case.made.began;
        let at = |seconds: i32| match u32::try_from(seconds) {
            Ok(seconds) => began + SECOND * seconds,
            Err(_) => began - SECOND,
        };
        let change =
            Change { client: ((*client).into(), (*host).into()), made: at(*made), known: at(*known) };
        case.given.asked = at(*asked);
        let told = |case: &Case| {
            judge_changes(&case.promise, &case.given, Some(&case.made), std::slice::from_ref(&change))
        };
        assert_eq!(told(&case), *expected, "{client} {host} {made} {known} {asked}");
        case.made.confirmed = Some(change.made);
        assert_eq!(told(&case), Ok(()), "the API has said since that it is right");
    }
}

#[test]
fn a_change_is_a_post_that_succeeded() {
    let post = || {
        let mut case = Case::new();
        case.made.method = "POST".into();
        case
    };
    let is_change = |case: &Case| Change::of(&case.given, Some(&case.made)).is_some();
    assert!(is_change(&post()));
    let others: [fn(&mut Case); 4] = [
        |case| case.made.method = "GET".into(),
        |case| case.given.status = 500,
        |case| case.given.end = End::Broken,
        |case| case.given.was_broken = true,
    ];
    for change in others {
        let mut case = post();
        change(&mut case);
        assert!(!is_change(&case));
    }
}
