//! `proxy_cache_credentials public` and `proxy_cache_vary`: who gets what of a key, who waits for whom.

use super::*;
use crate::permit::Woken;
use crate::policy::{self, Asker, Reason};
use crate::samples::{self, headers, ready, start};
use millstream_conf::model::CacheVary;
use millstream_wire::Headers;

const KNOWN: Asker = Asker::Known;

fn ask(front: &mut Front, asker: Asker, conf: &ProxyCache, now: Now) -> Lookup {
    front.lookup_for((b"key", None), (Fields::default(), asker, || unreachable!()), conf, now)
}

fn store(front: &mut Front, request: &Headers, lines: &[(&str, &str)], conf: &ProxyCache, now: Now) {
    let Lookup::Miss(permit) = front.lookup(b"key", request.view(), conf, now) else { panic!("stored") };
    ready(begin(permit, request, lines, conf, now).finish());
}

fn begin(
    permit: FillPermit,
    request: &Headers,
    lines: &[(&str, &str)],
    conf: &ProxyCache,
    now: Now,
) -> crate::fill::Fill {
    let answer = headers(lines);
    let facts = policy::RequestFacts::default();
    let ignore = millstream_conf::model::IgnoreHeaders::default();
    let policy::Storable::Yes(lifetime) =
        policy::storable(conf, &ignore, &facts, 200, answer.view(), now, false)
    else {
        panic!("it may be stored")
    };
    let head = crate::head::StoredHead::new(200, answer.view(), None, lifetime, now);
    permit.begin(head, request.view(), now)
}

#[test]
fn a_credential_gets_what_is_for_everybody_and_asks_alone_for_all_else() {
    let (now, nobody) = (start(), Headers::new());
    for (control, shared) in [("max-age=60", false), ("max-age=60, public", true), ("s-maxage=60", true)] {
        let mut front = Front::new(samples::store(&zone(None)));
        store(&mut front, &nobody, &[("Cache-Control", control)], &conf(), now);
        for _ in 0..2 {
            let found = ask(&mut front, KNOWN, &conf(), now);
            assert_eq!(matches!(found, Lookup::Fresh(_)), shared, "{control}");
            assert_eq!(matches!(found, Lookup::Apart(_)), !shared, "{control}");
        }
        assert!(matches!(ask(&mut front, Asker::Anybody, &conf(), now), Lookup::Fresh(_)));
    }
}

#[test]
fn nobody_waits_for_what_a_credential_is_told_and_it_waits_for_nobody() {
    let (now, nobody) = (start(), Headers::new());
    let mut front = Front::new(samples::store(&zone(None)));
    let Lookup::Apart(alone) = ask(&mut front, KNOWN, &conf(), now) else { panic!("nothing is there") };
    let Lookup::Miss(filling) = ask(&mut front, Asker::Anybody, &conf(), now) else {
        panic!("it does not wait for the one with the credential")
    };
    assert!(matches!(ask(&mut front, KNOWN, &conf(), now), Lookup::Apart(_)), "nor that one for it");
    alone.uncacheable(Some(Reason::Credentials), now);
    assert!(
        matches!(ask(&mut front, Asker::Anybody, &conf(), now), Lookup::Busy(..)),
        "the line still holds"
    );
    let fill = begin(filling, &nobody, &[("Cache-Control", "max-age=60")], &conf(), now);
    assert!(matches!(ask(&mut front, KNOWN, &conf(), now), Lookup::Apart(_)), "what arrives is not for it");
    ready(fill.finish());
    assert!(matches!(ask(&mut front, Asker::Anybody, &conf(), now), Lookup::Fresh(_)));
}

fn strangers_wait(front: &mut Front, now: Now) -> bool {
    let first = ask(front, Asker::Anybody, &conf(), now);
    assert!(matches!(first, Lookup::Miss(_) | Lookup::Stale(_, Some(_))), "{first:?}");
    matches!(ask(front, Asker::Anybody, &conf(), now), Lookup::Busy(..))
}

#[test]
fn no_answer_to_a_credential_stops_strangers_from_waiting_for_each_other() {
    type End = fn(FillPermit, Now);
    let ends: [(&str, End); 6] = [
        ("a cookie is set", |permit, now| permit.uncacheable(Some(Reason::SetCookie), now)),
        ("it varies by anything", |permit, now| permit.uncacheable(Some(Reason::Vary), now)),
        ("it is private", |permit, now| permit.uncacheable(Some(Reason::Private), now)),
        ("no reason", |permit, now| permit.uncacheable(None, now)),
        ("to be asked for each time", |permit, now| drop(permit.aside(now))),
        ("a failure", |permit, now| permit.failed(500, None, now)),
    ];
    let (now, nobody) = (start(), Headers::new());
    for (what, end) in ends {
        let mut front = Front::new(samples::store(&zone(None)));
        let Lookup::Apart(apart) = ask(&mut front, KNOWN, &conf(), now) else { panic!("nothing is there") };
        end(apart, now);
        assert!(strangers_wait(&mut front, now), "{what}, beside the line");
        end(front.beside(b"key", KNOWN), now);
        assert!(strangers_wait(&mut front, now), "{what}, without a look-up");

        store(&mut front, &nobody, &[("Cache-Control", "public, max-age=1")], &conf(), now);
        let now = later(now, 5);
        let behind = ProxyCache { use_stale: UseStale { updating: true, ..UseStale::default() }, ..conf() };
        let Lookup::Stale(_, Some(update)) = ask(&mut front, KNOWN, &behind, now) else { panic!("its turn") };
        let Lookup::Stale(_, Some(taken)) = ask(&mut front, Asker::Anybody, &conf(), now) else {
            panic!("it does not wait for the one with the credential")
        };
        end(update, now);
        let Lookup::Busy(waiter, _) = ask(&mut front, Asker::Anybody, &conf(), now) else { panic!("waits") };
        drop(taken);
        let woken = ready(waiter.wait(Fields::default(), &conf(), now));
        assert!(matches!(woken, Woken::Fill(_)), "{what}: {woken:?}");
        drop(woken);
        assert!(strangers_wait(&mut front, now), "{what}, of the line");
    }
}

#[test]
fn a_refresh_for_a_credential_holds_nobody_up_and_what_it_brings_for_itself_changes_nothing() {
    let (now, nobody) = (start(), Headers::new());
    let behind = ProxyCache { use_stale: UseStale { updating: true, ..UseStale::default() }, ..conf() };
    let public = [("Cache-Control", "public, max-age=1")];
    for is_taken_over in [false, true] {
        let mut front = Front::new(samples::store(&zone(None)));
        store(&mut front, &nobody, &public, &conf(), now);
        let now = later(now, 5);
        let Lookup::Stale(old, Some(update)) = ask(&mut front, KNOWN, &behind, now) else {
            panic!("its turn")
        };
        for asker in [Asker::Anybody, KNOWN] {
            let found = ask(&mut front, asker, &behind, now);
            assert!(matches!(found, Lookup::Stale(_, None)), "one refreshes for all: {found:?}");
        }
        if is_taken_over {
            // The old answer is of no use any more: here because the location does not allow it.
            let Lookup::Stale(_, Some(taken)) = ask(&mut front, Asker::Anybody, &conf(), now) else {
                panic!("it does not wait for what may not be for it")
            };
            assert!(matches!(ask(&mut front, Asker::Anybody, &conf(), now), Lookup::Busy(..)), "one does");
            update.uncacheable(Some(Reason::Credentials), now);
            assert!(matches!(ask(&mut front, Asker::Anybody, &conf(), now), Lookup::Busy(..)));
            ready(begin(taken, &nobody, &public, &conf(), now).finish());
            assert!(matches!(ask(&mut front, KNOWN, &conf(), now), Lookup::Fresh(_)));
        } else {
            update.uncacheable(Some(Reason::Credentials), now);
            let Lookup::Stale(found, Some(_)) = ask(&mut front, Asker::Anybody, &behind, now) else {
                panic!("the next one refreshes")
            };
            assert!(Arc::ptr_eq(&old.entry, &found.entry), "the entry is as it was");
        }
    }
}

#[test]
fn failures_for_a_credential_do_not_prolong_the_time_in_which_nobody_waits() {
    let now = start();
    let mut front = Front::new(samples::store(&zone(None)));
    let Lookup::Miss(first) = ask(&mut front, Asker::Anybody, &conf(), now) else { panic!("its turn") };
    let Lookup::Busy(waiter, _) = ask(&mut front, Asker::Anybody, &conf(), now) else { panic!("waits") };
    first.failed(500, None, now);
    let Woken::Fill(second) = ready(waiter.wait(Fields::default(), &conf(), now)) else { panic!("its turn") };
    second.failed(500, None, now);
    assert!(!strangers_wait(&mut front, now), "two in a row have failed");
    let during = now.after(std::time::Duration::from_millis(900));
    front.beside(b"key", KNOWN).failed(500, None, during);
    assert!(strangers_wait(&mut front, later(now, 1)));
}

#[test]
fn what_arrives_for_everybody_is_read_along_by_a_credential() {
    let (now, nobody) = (start(), Headers::new());
    let mut front = Front::new(samples::store(&zone(None)));
    let Lookup::Miss(filling) = ask(&mut front, Asker::Anybody, &conf(), now) else { panic!("a miss") };
    let fill = begin(filling, &nobody, &[("Cache-Control", "public, max-age=60")], &conf(), now);
    let Lookup::Busy(waiter, None) = ask(&mut front, KNOWN, &conf(), now) else { panic!("it arrives") };
    assert!(matches!(ready(waiter.wait(Fields::default(), &conf(), now)), Woken::Streaming(_)));
    drop(fill);
}

#[test]
fn what_was_stored_under_laxer_rules_is_replaced_and_not_given() {
    let (now, nobody) = (start(), Headers::new());
    let strict = ProxyCache { vary: CacheVary { origin: true, unlisted: true, address: false }, ..conf() };
    let mut front = Front::new(samples::store(&zone(None)));
    store(&mut front, &nobody, &[("Cache-Control", "max-age=60")], &conf(), now);
    store(&mut front, &nobody, &[("Cache-Control", "max-age=60")], &strict, now);
    assert!(matches!(ask(&mut front, Asker::Anybody, &strict, now), Lookup::Fresh(_)));
    assert!(
        matches!(ask(&mut front, Asker::Anybody, &conf(), now), Lookup::Fresh(_)),
        "what is stricter will do"
    );
}

#[test]
fn fields_that_nobody_listed_make_variants_and_others_do_not() {
    let now = start();
    let strict = ProxyCache { vary: CacheVary { origin: true, unlisted: true, address: false }, ..conf() };
    let mut front = Front::new(samples::store(&zone(None)));
    let fields = [("Cache-Control", "max-age=60"), ("Access-Control-Allow-Origin", "*")];
    let (plain, tenant) = (headers(&[]), headers(&[("X-Tenant", "a")]));
    for request in
        [&plain, &tenant, &headers(&[("Accept-Language", "de")]), &headers(&[("Accept", "text/html")])]
    {
        store(&mut front, request, &fields, &strict, now);
    }
    for (lines, expected) in [
        (&[][..], true),
        (&[("X-Tenant", "a")], true),
        (&[("X-Tenant", "b")], false),
        (&[("X-Tenant", "")], false),
        (&[("X-Other", "a")], false),
        (&[("Traceparent", "00-1"), ("Referer", "/x"), ("Origin", "https://a.example")], true),
        (&[("Accept-Language", "DE")], true),
        (&[("Accept-Language", "en")], false),
    ] {
        let found = front.lookup(b"key", headers(lines).view(), &strict, now);
        assert_eq!(matches!(found, Lookup::Fresh(_)), expected, "{lines:?}");
    }
}

#[test]
fn an_answer_that_is_not_for_every_origin_is_for_one() {
    let now = start();
    let conf = ProxyCache { vary: CacheVary { origin: true, unlisted: false, address: false }, ..conf() };
    let (a, b) = (headers(&[("Origin", "https://a")]), headers(&[("Origin", "https://b")]));
    for (allowed, shared) in
        [(Some("https://a"), false), (Some("null"), false), (None, false), (Some("*"), true)]
    {
        let mut front = Front::new(samples::store(&zone(None)));
        let lines: Vec<_> = [("Cache-Control", "max-age=60")]
            .into_iter()
            .chain(allowed.map(|origin| ("Access-Control-Allow-Origin", origin)))
            .collect();
        store(&mut front, &a, &lines, &conf, now);
        assert!(matches!(front.lookup(b"key", a.view(), &conf, now), Lookup::Fresh(_)));
        let found = front.lookup(b"key", b.view(), &conf, now);
        assert_eq!(matches!(found, Lookup::Fresh(_)), shared, "{allowed:?}");
    }
}

#[test]
fn a_coded_answer_is_for_those_who_accept_the_coding() {
    let now = start();
    let conf = ProxyCache { vary: CacheVary { origin: true, unlisted: false, address: false }, ..conf() };
    let mut front = Front::new(samples::store(&zone(None)));
    let gzip = headers(&[("Accept-Encoding", "gzip")]);
    let lines =
        [("Cache-Control", "max-age=60"), ("Content-Encoding", "gzip"), ("Access-Control-Allow-Origin", "*")];
    store(&mut front, &gzip, &lines, &conf, now);
    assert!(matches!(front.lookup(b"key", gzip.view(), &conf, now), Lookup::Fresh(_)));
    assert!(matches!(front.lookup(b"key", Fields::default(), &conf, now), Lookup::Miss(_)));
}
