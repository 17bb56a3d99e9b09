//! What requests get, and thousands of interleavings of those who fill one key and wait for it.

use super::*;
use crate::fill::Fill;
use crate::line::Failure;
use crate::permit::Woken;
use crate::policy::StaleCause;
use crate::progress::Follower;
use crate::samples::{begin, conf, fill, head, headers, lifetime, miss, ready, start, store, zone};
use crate::store::{CodingPermit, Sight};
use bytes::Bytes;
use millstream_conf::model::UseStale;
use millstream_wire::Coding;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

mod purges;
mod credentials;
mod simulation;
mod own_writes;
mod long_polls;

fn front() -> Front {
    Front::new(store(&zone(None)))
}

fn get(front: &mut Front, conf: &ProxyCache, now: Now) -> Lookup {
    front.lookup(b"key", Fields::default(), conf, now)
}

fn body(hit: &Hit) -> &[u8] {
    hit.body_in_memory().expect("in memory")
}

fn fresh(lookup: Lookup) -> Rc<Hit> {
    match lookup {
        Lookup::Fresh(hit) => hit,
        other => panic!("not fresh: {other:?}"),
    }
}

fn later(now: Now, seconds: u64) -> Now {
    now.after(Duration::from_secs(seconds))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[test]
fn a_repeated_hit_is_the_same_handle_until_the_entry_is_replaced() {
    let (mut front, now) = (front(), start());
    fill(&mut front, b"key", b"one", now);
    let first = fresh(get(&mut front, &conf(), now));
    first.prepared.keep(7, Rc::new(42u32));
    let second = fresh(get(&mut front, &conf(), now));
    assert!(Rc::ptr_eq(&first, &second));
    assert_eq!(second.prepared.find::<u32>(7).as_deref(), Some(&42));
    assert!(second.prepared.find::<u64>(7).is_none() && second.prepared.find::<u32>(8).is_none());

    let mut other = Front::new(front.store().clone());
    other.store().clone().invalidate(b"key");
    fill(&mut other, b"key", b"two", now);
    assert_eq!(body(&fresh(get(&mut front, &conf(), now))), b"two");
}

#[test]
fn a_hit_without_a_handle_leaves_the_count_of_the_zones_holders_alone() {
    let (mut front, now) = (front(), start());
    let keys: Vec<String> = (0..64).map(|number| format!("key {number}")).collect();
    for key in &keys {
        fill(&mut front, key.as_bytes(), b"body", now);
    }
    // No sets, no handles: as for all that is beyond the last one.
    front.sets = vec![Set::default()];
    let store = front.store().clone();
    let holders = Arc::strong_count(&store);
    let is_over = AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(Arc::strong_count(&store));
            }
            most
        });
        for _ in 0..2000 {
            for key in &keys {
                // A handle of one key displaces that of another.
                fresh(front.lookup(key.as_bytes(), Fields::default(), &conf(), now));
                front.displaced = 0;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        watching.join().expect("no panic")
    });
    assert!(most <= holders, "{most} holders of the zone, {holders} before");
}

#[test]
fn many_hot_keys_are_all_answered() {
    let (mut front, now) = (front(), start());
    for round in 0..3 {
        for number in 0..3000u32 {
            let key = format!("key {number}");
            match front.lookup(key.as_bytes(), Fields::default(), &conf(), now) {
                Lookup::Fresh(hit) => assert_eq!(hit.key(), key.as_bytes()),
                Lookup::Miss(permit) if round == 0 => {
                    ready(begin(permit, &[], Fields::default(), now).finish());
                }
                other => panic!("round {round}: {other:?}"),
            }
        }
        front.sweep();
    }
    assert!(front.sets.len() > FEWEST_SETS);
}

#[test]
fn one_updates_and_the_others_get_the_stale_answer_where_that_is_allowed() {
    let (mut front, now) = (front(), start());
    let updating = ProxyCache { use_stale: UseStale { updating: true, ..UseStale::default() }, ..conf() };
    fill(&mut front, b"key", b"one", now);
    let stale = later(now, 61);
    let Lookup::Stale(hit, Some(permit)) = get(&mut front, &updating, stale) else {
        panic!("mine to update")
    };
    assert!(hit.may_serve_stale(StaleCause::Updating, &updating, stale));
    assert!(matches!(get(&mut front, &updating, stale), Lookup::Stale(_, None)));
    assert!(matches!(get(&mut front, &conf(), stale), Lookup::Busy(_, Some(_))));
    assert!(matches!(
        get(&mut front, &ProxyCache { lock: false, ..conf() }, stale),
        Lookup::Stale(_, Some(_))
    ));
    drop(permit);
    assert!(matches!(get(&mut front, &updating, stale), Lookup::Stale(_, Some(_))));
}

#[test]
fn a_304_gives_the_entry_new_life_and_new_fields() {
    let (mut front, now) = (front(), start());
    let permit = miss(get(&mut front, &conf(), now));
    let mut filling = begin(permit, &[("ETag", "\"a\""), ("X-A", "1")], Fields::default(), now);
    filling.push(Bytes::from_static(b"body"));
    ready(filling.finish());
    let stale = later(now, 61);
    let Lookup::Stale(hit, Some(permit)) = get(&mut front, &conf(), stale) else { panic!("mine to update") };
    let updated = hit.head().updated(headers(&[("X-A", "2")]).view());
    permit.refresh(&hit.entry, updated, lifetime(stale, 60), stale);
    let refreshed = fresh(get(&mut front, &conf(), stale));
    assert_eq!(refreshed.head().fields().named(b"x-a"), Some(&b"2"[..]));
    assert_eq!((body(&refreshed), refreshed.age(stale), hit.is_retired()), (&b"body"[..], 0, true));
}

#[test]
fn variants_are_kept_apart_and_purged_together() {
    let (mut front, now) = (front(), start());
    let (de, en) = (headers(&[("Accept-Language", "de")]), headers(&[("Accept-Language", "en")]));
    for (request, text) in [(&de, "hallo"), (&en, "hello")] {
        let permit = miss(front.lookup(b"key", request.view(), &conf(), now));
        let mut filling = begin(permit, &[("Vary", "Accept-Language")], request.view(), now);
        filling.push(Bytes::from(text));
        ready(filling.finish());
    }
    for _ in 0..2 {
        assert_eq!(body(&fresh(front.lookup(b"key", de.view(), &conf(), now))), b"hallo");
        assert_eq!(body(&fresh(front.lookup(b"key", en.view(), &conf(), now))), b"hello");
    }
    assert!(matches!(get(&mut front, &conf(), now), Lookup::Miss(_)));
    assert!(front.store().clone().invalidate(b"key"));
    assert!(matches!(front.lookup(b"key", de.view(), &conf(), now), Lookup::Miss(_)));
}

#[test]
fn an_answer_that_varies_by_more_takes_away_what_was_stored_without_it() {
    let (mut front, now) = (front(), start());
    let request = headers(&[("Cookie", "a"), ("X-A", "1")]);
    for vary in ["X-A", "Cookie", "X-A"] {
        let conf = ProxyCache { lock: false, ..conf() };
        let lookup = front.lookup(b"key", request.view(), &conf, later(now, 100));
        let permit = match lookup {
            Lookup::Miss(permit) | Lookup::Stale(_, Some(permit)) => permit,
            other => panic!("{other:?}"),
        };
        ready(begin(permit, &[("Vary", vary)], request.view(), now).finish());
    }
    assert_eq!(body(&fresh(front.lookup(b"key", request.view(), &conf(), now))), b"");
    let other = headers(&[("Cookie", "b"), ("X-A", "1")]);
    assert!(
        matches!(front.lookup(b"key", other.view(), &conf(), now), Lookup::Miss(_)),
        "kept apart by both"
    );
}

#[test]
fn an_uncacheable_answer_lets_everybody_go_for_a_while() {
    let (mut front, now) = (front(), start());
    let runtime = runtime();
    let _guard = runtime.enter();
    let permit = miss(get(&mut front, &conf(), now));
    let Lookup::Busy(waiter, None) = get(&mut front, &conf(), now) else { panic!("must wait") };
    permit.uncacheable(None, now);
    assert!(matches!(ready(waiter.wait(Fields::default(), &conf(), now)), Woken::Retry));
    let (one, two) = (miss(get(&mut front, &conf(), now)), miss(get(&mut front, &conf(), later(now, 9))));
    drop((one, two));
    let held = miss(get(&mut front, &conf(), later(now, 11)));
    assert!(matches!(get(&mut front, &conf(), later(now, 11)), Lookup::Busy(..)));
    drop(held);
}

#[test]
fn without_a_lock_every_miss_may_fill() {
    let (mut front, now) = (front(), start());
    let conf = ProxyCache { lock: false, ..conf() };
    let permits = [miss(get(&mut front, &conf, now)), miss(get(&mut front, &conf, now))];
    for (permit, text) in permits.into_iter().zip(["one", "two"]) {
        let mut filling = begin(permit, &[], Fields::default(), now);
        filling.push(Bytes::from(text));
        assert!(ready(filling.finish()).is_some());
        assert_eq!(body(&fresh(get(&mut front, &conf, now))), text.as_bytes());
    }
}

#[test]
fn min_uses_are_counted_before_anything_is_stored() {
    let (mut front, now) = (front(), start());
    let conf = ProxyCache { min_uses: 3, ..conf() };
    assert!(matches!(get(&mut front, &conf, now), Lookup::Scarce));
    assert!(matches!(get(&mut front, &conf, now), Lookup::Scarce));
    assert!(matches!(get(&mut front, &conf, now), Lookup::Miss(_)));
}

#[test]
fn a_waiter_goes_on_its_own_after_lock_timeout_and_takes_over_after_lock_age() {
    let (mut front, now) = (front(), start());
    let runtime = runtime();
    let past = Now { instant: millstream_net::clock::now() - Duration::from_secs(60), ..now };
    runtime.block_on(async {
        let permit = miss(get(&mut front, &conf(), past));
        let impatient = ProxyCache { lock_timeout: Duration::from_secs(1), ..conf() };
        let Lookup::Busy(waiter, None) = get(&mut front, &conf(), past) else { panic!("must wait") };
        assert!(matches!(waiter.wait(Fields::default(), &impatient, past).await, Woken::Timeout));

        let patient = ProxyCache { lock_timeout: Duration::from_secs(3600), ..conf() };
        let Lookup::Busy(waiter, None) = get(&mut front, &patient, past) else { panic!("must wait") };
        let Woken::Fill(second) = waiter.wait(Fields::default(), &patient, past).await else {
            panic!("takes over")
        };
        // The one that lost the line may still finish, and so may the other.
        assert!(ready(begin(permit, &[], Fields::default(), now).finish()).is_some());
        assert!(ready(begin(second, &[], Fields::default(), now).finish()).is_some());
    });
}

#[test]
fn a_truncated_answer_is_not_stored() {
    let (mut front, now) = (front(), start());
    let permit = miss(get(&mut front, &conf(), now));
    let mut filling = permit.begin(head(&[], Some(10), 60, now), Fields::default(), now);
    let mut follower = filling.follow().expect("at the beginning");
    filling.push(Bytes::from_static(b"half"));
    assert!(ready(filling.finish()).is_none());
    assert_eq!(ready(follower.next()), Some(Ok(Bytes::from_static(b"half"))));
    assert!(matches!(ready(follower.next()), Some(Err(_))));
    assert!(matches!(get(&mut front, &conf(), now), Lookup::Miss(_)));
}

#[test]
fn a_fill_that_began_before_a_purge_is_not_stored_and_nobody_new_reads_along() {
    let (mut front, now) = (front(), start());
    let filling = begin(miss(get(&mut front, &conf(), now)), &[], Fields::default(), now);
    front.store().clone().invalidate(b"key");
    let after = miss(get(&mut front, &conf(), now));
    assert!(ready(filling.finish()).is_none());
    assert!(ready(begin(after, &[], Fields::default(), now).finish()).is_some());
}

#[test]
fn a_body_too_large_for_memory_is_passed_on_and_not_stored() {
    let (mut front, now) = (front(), start());
    let mut filling = begin(miss(get(&mut front, &conf(), now)), &[], Fields::default(), now);
    let mut follower = filling.follow().expect("at the beginning");
    let (mut sent, mut seen) = (0, 0);
    while sent < 5 << 20 {
        filling.push(Bytes::from(vec![1; 100_000]));
        sent += 100_000;
        let mut wait = std::pin::pin!(filling.ready());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        while wait.as_mut().poll(&mut context).is_pending() {
            seen += ready(follower.next()).expect("more").expect("not cut").len();
        }
    }
    assert!(!filling.is_storing());
    assert!(matches!(get(&mut front, &conf(), now), Lookup::Miss(_)), "nobody waits for it");
    assert!(ready(filling.finish()).is_none());
    while let Some(piece) = ready(follower.next()) {
        seen += piece.expect("not cut").len();
    }
    assert_eq!(seen, sent);
}

#[test]
fn a_body_is_coded_by_one_and_counted() {
    let (mut front, now) = (front(), start());
    fill(&mut front, b"key", b"plain plain plain", now);
    let (hit, store) = (fresh(get(&mut front, &conf(), now)), front.store().clone());
    let before = store.stats().memory_bytes;
    for coding in Coding::ALL {
        let claim = || CodingPermit::claim(&store, &hit.entry, coding);
        let permit = claim().expect("the first");
        assert!(claim().is_none());
        drop(permit);
        let permit = claim().expect("given back");
        assert!(permit.set(Bytes::from_static(coding.name().as_bytes())));
        assert!(claim().is_none());
        assert_eq!(hit.coded_body(coding).map(|held| &held[..]), Some(coding.name().as_bytes()));
    }
    let added = store.stats().memory_bytes - before;
    assert!((10..=1024).contains(&added), "{added}");
}

#[test]
fn waiters_on_other_threads_read_along_as_it_arrives() {
    let (mut front, now) = (front(), start());
    let permit = miss(get(&mut front, &conf(), now));
    let (store, barrier) = (front.store().clone(), std::sync::Barrier::new(4));
    let whole: Vec<u8> = (0..50_000u32).map(|number| number as u8).collect();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut front = Front::new(store.clone());
                let conf = conf();
                let waiters: Vec<_> = (0..50)
                    .map(|_| match get(&mut front, &conf, now) {
                        Lookup::Busy(waiter, None) => waiter,
                        other => panic!("must wait: {other:?}"),
                    })
                    .collect();
                barrier.wait();
                for waiter in waiters {
                    let read = runtime().block_on(async {
                        let Woken::Streaming(mut follower) = waiter.wait(Fields::default(), &conf, now).await
                        else {
                            panic!("must stream")
                        };
                        let mut read = Vec::new();
                        while let Some(piece) = follower.next().await {
                            read.extend_from_slice(&piece.expect("not cut"));
                        }
                        read
                    });
                    assert!(read == whole);
                }
            });
        }
        barrier.wait();
        let mut filling = begin(permit, &[], Fields::default(), now);
        for piece in whole.chunks(500) {
            filling.push(Bytes::copy_from_slice(piece));
            std::thread::yield_now();
        }
        assert!(ready(filling.finish()).is_some());
    });
}

fn beside(permit: FillPermit, text: &'static [u8], now: Now) -> Option<Arc<Entry>> {
    let mut fill = begin(permit, &[], Fields::default(), now);
    fill.push(Bytes::from_static(text));
    ready(fill.finish())
}

#[test]
fn an_answer_asked_for_earlier_does_not_replace_a_newer_one_that_came_first() {
    let (mut front, now) = (front(), start());
    let (early, late) = (front.beside(b"key", Asker::Anybody), front.beside(b"key", Asker::Anybody));
    assert!(beside(late, b"two", now).is_some());
    assert!(beside(early, b"one", now).is_none());
    assert_eq!(body(&fresh(get(&mut front, &conf(), now))), b"two");
    let early = front.beside(b"key", Asker::Anybody);
    assert!(beside(front.beside(b"key", Asker::Anybody), b"three", now).is_some());
    assert!(beside(early, b"old", later(now, 61)).is_some(), "what is there is no longer fresh");
}

#[test]
fn a_purge_since_the_request_was_sent_goes_for_what_is_learned_from_its_answer() {
    let (front, now) = (front(), start());
    let since = front.moment();
    front.store().clone().invalidate(b"key");
    let permit = front.beside_since(b"key", Asker::Anybody, since);
    assert!(beside(permit, b"one", now).is_none());

    let entry = beside(front.beside(b"key", Asker::Anybody), b"two", now).expect("stored");
    let since = front.moment();
    let soft = crate::purges::Purge {
        what: crate::purges::What::Key(b"key".to_vec()),
        how: crate::purges::How::Soft,
    };
    _ = ready(front.store().purge_at(soft, now));
    let headers = headers(&[]);
    front.beside_since(b"key", Asker::Anybody, since).refresh(&entry, headers, lifetime(now, 60), now);
    let held = front.peek(b"key", Fields::default()).expect("stale, not gone");
    assert!(!held.is_fresh(now));
}

#[test]
fn the_answer_of_the_request_that_invalidates_outlives_that_and_no_other_purge() {
    let (mut front, now) = (front(), start());
    fill(&mut front, b"key", b"one", now);
    let mut own = front.beside_since(b"key", Asker::Anybody, front.moment());
    // Its target, and its Content-Location.
    assert!(front.invalidate_after(b"key".into(), Some(&mut own)).is_none(), "there is no disk to wait for");
    assert!(front.invalidate_after(b"key".into(), Some(&mut own)).is_none());
    assert!(beside(own, b"two", now).is_some());

    let since = front.moment();
    front.store().clone().invalidate(b"key");
    let mut own = front.beside_since(b"key", Asker::Anybody, since);
    _ = front.invalidate_after(b"key".into(), Some(&mut own));
    assert!(beside(own, b"three", now).is_none(), "purged by somebody else meanwhile");
}

#[test]
fn a_fill_that_fails_wakes_one_and_after_a_second_failure_nobody_waits() {
    let runtime = runtime();
    let _guard = runtime.enter();
    let (mut front, now, conf) = (front(), start(), conf());
    let failure = Failure { cause: StaleCause::Timeout, status: 504, upstream: 0 };
    let permit = |lookup| match lookup {
        Lookup::Miss(permit) => permit,
        other => panic!("{other:?}"),
    };
    let waiter = |lookup| match lookup {
        Lookup::Busy(waiter, None) => waiter,
        other => panic!("{other:?}"),
    };
    for told in [Some(failure), None] {
        let first = permit(get(&mut front, &conf, now));
        let waiters: Vec<_> = (0..4).map(|_| waiter(get(&mut front, &conf, now))).collect();
        let mut waiting: Vec<_> =
            waiters.into_iter().map(|waiter| Box::pin(waiter.wait(Fields::default(), &conf, now))).collect();
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = |at: usize| waiting[at].as_mut().poll(&mut context);
        assert!((0..4).all(|at| poll(at).is_pending()));
        first.failed(504, told, now);
        let Poll::Ready(Woken::Fill(second)) = poll(0) else { panic!("its turn") };
        assert!((1..4).all(|at| poll(at).is_pending()), "one alone is woken by a first failure");
        second.failed(504, told, now);
        for at in 1..4 {
            match (poll(at), told) {
                (Poll::Ready(Woken::Failed(failure)), Some(told)) => assert_eq!(failure, told),
                (Poll::Ready(Woken::Retry), None) => {}
                (other, _) => panic!("{other:?}"),
            }
        }
        // For a second everybody asks, and who fails then prolongs that.
        drop([permit(get(&mut front, &conf, now)), permit(get(&mut front, &conf, now))]);
        let soon = now.after(Duration::from_millis(900));
        permit(get(&mut front, &conf, soon)).failed(504, told, soon);
        let still = now.after(Duration::from_millis(1800));
        drop([permit(get(&mut front, &conf, still)), permit(get(&mut front, &conf, still))]);
        let over = now.after(Duration::from_millis(2000));
        let held = permit(get(&mut front, &conf, over));
        drop(waiter(get(&mut front, &conf, over)));
        drop(held);
        front.store().clone().invalidate(b"key");
    }
}

#[test]
fn a_success_between_two_failures_makes_the_second_a_first_one() {
    let runtime = runtime();
    let _guard = runtime.enter();
    let (mut front, now) = (front(), start());
    let Lookup::Miss(first) = get(&mut front, &conf(), now) else { panic!("mine to fill") };
    let Lookup::Busy(waiter, _) = get(&mut front, &conf(), now) else { panic!("somebody fills") };
    first.failed(500, None, now);
    let Woken::Fill(second) = ready(waiter.wait(Fields::default(), &conf(), now)) else { panic!("my turn") };
    drop(second.begin(head(&[], None, 60, now), Fields::default(), now));
    let Lookup::Miss(third) = get(&mut front, &conf(), now) else { panic!("mine to fill") };
    let Lookup::Busy(waiter, _) = get(&mut front, &conf(), now) else { panic!("somebody fills") };
    third.failed(500, None, now);
    assert!(matches!(ready(waiter.wait(Fields::default(), &conf(), now)), Woken::Fill(_)));
}
