//! How long requests wait for what takes long and may never be stored.

use super::*;
use crate::policy::Reason;
use millstream_net::timer::{Deadline, with_deadline};

/// Long enough ago that every timer has run out.
fn long_ago() -> Now {
    Now { instant: millstream_net::clock::now() - Duration::from_secs(60), ..start() }
}

fn soon(milliseconds: u64) -> Deadline {
    let deadline = Deadline::new();
    deadline.set(millstream_net::clock::now() + Duration::from_millis(milliseconds));
    deadline
}

fn busy(front: &mut Front, conf: &ProxyCache, now: Now) -> crate::permit::Waiter {
    match get(front, conf, now) {
        Lookup::Busy(waiter, None) => waiter,
        other => panic!("must wait: {other:?}"),
    }
}

#[test]
fn a_few_who_wait_for_what_was_never_stored_ask_beside_it_and_a_crowd_does_not() {
    // The line may be old, and they may wait: all that can happen is that they leave early.
    let hour = Duration::from_secs(3600);
    let conf = ProxyCache { lock_timeout: hour, lock_age: hour, ..conf() };
    let now = long_ago();
    runtime().block_on(async {
        for (waiting, leaves) in [(1, true), (8, true), (9, false), (200, false)] {
            let mut front = front();
            let held = miss(get(&mut front, &conf, now));
            let others: Vec<_> = (1..waiting).map(|_| busy(&mut front, &conf, now)).collect();
            let waiter = busy(&mut front, &conf, now);
            let wait = waiter.wait(Fields::default(), &conf, now);
            let woken = with_deadline(&mut soon(50), wait).await;
            match woken {
                Ok(Woken::Fill(permit)) if leaves => assert!(permit.grant().right.is_none(), "{waiting}"),
                Err(_) if !leaves => {}
                other => panic!("{waiting}: {other:?}"),
            }
            drop((others, held));
        }
    });
}

#[test]
fn one_after_the_other_no_more_leave_a_line_than_are_few() {
    let hour = Duration::from_secs(3600);
    let conf = ProxyCache { lock_timeout: hour, lock_age: hour, ..conf() };
    let (mut front, now) = (front(), long_ago());
    runtime().block_on(async {
        let held = miss(get(&mut front, &conf, now));
        let mut left = Vec::new();
        for _ in 0..20 {
            let wait = busy(&mut front, &conf, now).wait(Fields::default(), &conf, now);
            if let Ok(Woken::Fill(permit)) = with_deadline(&mut soon(20), wait).await {
                left.push(permit);
            }
        }
        assert_eq!(left.len(), 8);
        // What one of them gets is stored as the line's own would be.
        ready(begin(left.remove(0), &[], Fields::default(), start()).finish());
        fresh(get(&mut front, &conf, start()));
        drop(held);
    });
}

#[test]
fn nobody_leaves_early_whose_wait_is_configured_nor_where_something_is_stored() {
    let hour = Duration::from_secs(3600);
    let patient = ProxyCache { lock_timeout: hour, lock_age: hour, lock_patience: None, ..conf() };
    let few = ProxyCache { lock_timeout: hour, lock_age: hour, ..conf() };
    runtime().block_on(async {
        for (conf, is_stored) in [(patient, false), (few, true)] {
            let (mut front, now) = (front(), long_ago());
            if is_stored {
                let before = Now { unix_milliseconds: now.unix_milliseconds - 3_600_000, ..now };
                fill(&mut front, b"key", b"old", before);
            }
            let first = get(&mut front, &conf, now);
            assert!(matches!(first, Lookup::Miss(_) | Lookup::Stale(_, Some(_))), "{first:?}");
            let Lookup::Busy(waiter, _) = get(&mut front, &conf, now) else { panic!("must wait") };
            let wait = waiter.wait(Fields::default(), &conf, now);
            let woken = with_deadline(&mut soon(50), wait).await;
            assert!(woken.is_err(), "{is_stored}: {woken:?}");
        }
    });
}

#[test]
fn the_longer_an_answer_took_that_was_not_stored_the_longer_nobody_waits() {
    for (took, reason, pause) in [
        (0, None, 10),
        (0, Some(Reason::SetCookie), 10),
        (7, Some(Reason::NoStore), 122),
        (12, Some(Reason::Private), 202),
        (55, Some(Reason::NoLifetime), 890),
        (12, Some(Reason::Authorization), 34),
        (3000, Some(Reason::NoStore), 3600),
    ] {
        let (mut front, asked) = (front(), start());
        let permit = miss(get(&mut front, &conf(), asked));
        let came = later(asked, took);
        permit.uncacheable(reason, came);
        let sight = Sight::of(front.store(), b"key", Fields::default(), &conf(), came);
        assert_eq!(sight.uncacheable_until, later(came, pause).unix_milliseconds, "{took} {reason:?}");
        let at = sight.refused.map(|refused| refused.at);
        assert_eq!(at, reason.map(|_| came.unix_milliseconds), "{took} {reason:?}");
        let before = later(came, pause - 1);
        let side_by_side = [miss(get(&mut front, &conf(), before)), miss(get(&mut front, &conf(), before))];
        // A quick one does not make it shorter.
        for permit in side_by_side {
            permit.uncacheable(Some(Reason::ErrorStatus), later(came, 1));
        }
        let after = later(came, pause.max(11));
        let held = miss(get(&mut front, &conf(), after));
        drop((busy(&mut front, &conf(), after), held));
    }
}

#[test]
fn once_it_is_stored_a_key_is_guarded_as_any() {
    let (mut front, asked) = (front(), start());
    let permit = miss(get(&mut front, &conf(), asked));
    permit.uncacheable(Some(Reason::NoStore), later(asked, 20));
    fill(&mut front, b"key", b"stored", later(asked, 21));
    let expired = later(asked, 200);
    let Lookup::Stale(_, Some(held)) = get(&mut front, &conf(), expired) else { panic!("to be updated") };
    assert!(matches!(get(&mut front, &conf(), expired), Lookup::Busy(..)));
    drop(held);
}

#[test]
fn what_one_beside_a_line_learns_those_in_it_learn_and_what_one_past_the_cache_gets_they_do_not() {
    let (mut front, now) = (front(), start());
    let runtime = runtime();
    let _guard = runtime.enter();
    let held = miss(get(&mut front, &conf(), now));
    let waiter = busy(&mut front, &conf(), now);
    front.beside(b"key", Asker::Anybody).uncacheable(Some(Reason::Private), now);
    assert!(
        Sight::of(front.store(), b"key", Fields::default(), &conf(), now)
            .line
            .is_some_and(|line| line.waiting == 1)
    );
    // As one that has left the line.
    let mut beside = front.beside(b"key", Asker::Anybody);
    beside.grant_in(&front.store().clone()).expect("of this zone").since = Some(now.instant);
    beside.uncacheable(Some(Reason::Private), now);
    assert!(matches!(ready(waiter.wait(Fields::default(), &conf(), now)), Woken::Retry));
    drop((miss(get(&mut front, &conf(), now)), miss(get(&mut front, &conf(), now)), held));
}
