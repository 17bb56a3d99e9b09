//! Purges as requests see them: what is gone, what is stale, what is under way, and what a look at it tells.

use super::*;
use crate::policy::Reason;
use crate::purges::{How, Purge, Purged, Scope, What};
use crate::tags::Tags;

fn whole(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0; 4]].concat()
}

fn begin_tagged(permit: FillPermit, tags: &str, now: Now) -> Fill {
    let mut head = head(&[], None, 60, now);
    head.tags = Tags::read(headers(&[("Cache-Tag", tags)]).view(), std::iter::empty()).expect("few tags");
    permit.begin(head, Fields::default(), now)
}

fn fill_tagged(front: &mut Front, key: &[u8], tags: &str, now: Now) {
    let permit = match front.lookup(key, Fields::default(), &conf(), now) {
        Lookup::Miss(permit) | Lookup::Stale(_, Some(permit)) => permit,
        other => panic!("nothing to fill: {other:?}"),
    };
    let mut filling = begin_tagged(permit, tags, now);
    filling.push(Bytes::from_static(b"body"));
    assert!(ready(filling.finish()).is_some());
}

fn purge(front: &Front, what: What, how: How, now: Now) -> Purged {
    ready(front.store().purge_at(Purge { what, how }, now)).expect("there is no disk")
}

fn tag(name: &str) -> What {
    What::Tag(name.into())
}

fn ask(front: &mut Front, key: &[u8], now: Now) -> &'static str {
    let conf = ProxyCache { lock: false, ..conf() };
    match front.lookup(key, Fields::default(), &conf, now) {
        Lookup::Fresh(_) => "fresh",
        Lookup::Stale(..) => "stale",
        Lookup::Miss(_) => "miss",
        _ => "other",
    }
}

#[test]
fn each_purge_goes_for_what_it_names_hard_and_soft_in_every_front() {
    let (a, b) = (whole("http://a/1"), whole("http://b/1"));
    let cases = [
        (What::All, true, true),
        (What::Prefix(b"http://a/".to_vec()), true, false),
        (What::Prefix(b"http://".to_vec()), true, true),
        (What::Prefix(Vec::new()), true, true),
        (What::Prefix(vec![b'h'; 9000]), false, false),
        (tag("one"), true, false),
        (tag("both"), true, true),
        (tag("none"), false, false),
        (What::Key(a.clone()), true, false),
        (What::Key(b"http://a/1".to_vec()), true, false),
        (What::Key(b"http://a/".to_vec()), false, false),
        // In other spellings.
        (What::Prefix(b"http://%61/".to_vec()), true, false),
        (What::Key(whole("http://%61/%31")), true, false),
        (What::Key(b"http://a/%31".to_vec()), true, false),
    ];
    for (what, goes_for_a, goes_for_b) in cases {
        for (how, expected) in [(How::Hard, "miss"), (How::Soft, "stale")] {
            let (mut front, now) = (front(), start());
            let mut other = Front::new(front.store().clone());
            fill_tagged(&mut front, &a, "one both", now);
            fill_tagged(&mut front, &b, "both", now);
            for front in [&mut front, &mut other] {
                assert_eq!([ask(front, &a, now), ask(front, &b, now)], ["fresh", "fresh"]);
            }
            purge(&front, what.clone(), how, now);
            let after = |hit: bool| if hit { expected } else { "fresh" };
            for front in [&mut other, &mut front] {
                let found = [ask(front, &a, now), ask(front, &b, now)];
                assert_eq!(found, [after(goes_for_a), after(goes_for_b)], "{what:?} {how:?}");
            }
            // What is stored from now on is none of its business.
            for (key, gone) in [(&a, goes_for_a), (&b, goes_for_b)] {
                if gone {
                    fill_tagged(&mut front, key, "one both", now);
                }
                assert_eq!((ask(&mut front, key, now), ask(&mut other, key, now)), ("fresh", "fresh"));
            }
        }
    }
}

#[test]
fn a_soft_purge_keeps_the_answer_for_the_case_that_stale_ones_may_be_used() {
    let (mut front, now) = (front(), start());
    let updating = ProxyCache { use_stale: UseStale { updating: true, ..UseStale::default() }, ..conf() };
    fill_tagged(&mut front, b"key", "one", now);
    let before = fresh(get(&mut front, &conf(), now));
    let moment = later(now, 10);
    purge(&front, tag("one"), How::Soft, moment);
    let Lookup::Stale(hit, Some(permit)) = get(&mut front, &updating, moment) else {
        panic!("mine to update")
    };
    assert!(before.is_retired() && hit.may_serve_stale(StaleCause::Updating, &updating, moment));
    assert_eq!(body(&hit), b"body");
    assert!(matches!(get(&mut front, &updating, moment), Lookup::Stale(_, None)), "one updates");
    // The upstream confirms it: that counts from now on, and its tags are still there.
    let confirmed = permit.refresh(&hit.entry, headers(&[("X-A", "1")]), lifetime(moment, 60), moment);
    assert_eq!(ask(&mut front, b"key", moment), "fresh");
    purge(&front, tag("one"), How::Hard, moment);
    assert_eq!(ask(&mut front, b"key", moment), "miss");
    assert_eq!(confirmed.head().tags.len(), 1);
}

#[test]
fn a_confirmation_that_was_asked_for_before_a_purge_does_not_outlive_it() {
    let (mut front, now) = (front(), start());
    fill_tagged(&mut front, b"key", "one", now);
    let stale = later(now, 61);
    let Lookup::Stale(hit, Some(permit)) = get(&mut front, &conf(), stale) else { panic!("mine to update") };
    purge(&front, tag("one"), How::Hard, stale);
    permit.refresh(&hit.entry, headers(&[]), lifetime(stale, 60), stale);
    assert_eq!(ask(&mut front, b"key", stale), "miss");
}

#[test]
fn a_fill_that_began_before_a_purge_is_for_those_who_waited_before_it_alone() {
    for what in [What::All, What::Prefix(b"k".to_vec()), tag("one"), What::Key(b"key".to_vec())] {
        for how in [How::Hard, How::Soft] {
            let (mut front, now) = (front(), start());
            let runtime = runtime();
            let _guard = runtime.enter();
            let permit = miss(get(&mut front, &conf(), now));
            let Lookup::Busy(before, _) = get(&mut front, &conf(), now) else { panic!("must wait") };
            let is_tag = matches!(what, What::Tag(_));
            purge(&front, what.clone(), how, now);
            // By which tags it can be purged is not known before the head is there.
            let after = match get(&mut front, &conf(), now) {
                Lookup::Busy(waiter, _) if is_tag => Err(waiter),
                other => Ok(miss(other)),
            };
            let mut filling = begin_tagged(permit, "one", now);
            if is_tag {
                let Woken::Streaming(mut follower) = ready(before.wait(Fields::default(), &conf(), now))
                else {
                    panic!("was there before")
                };
                filling.push(Bytes::from_static(b"old"));
                assert_eq!(ready(follower.next()), Some(Ok(Bytes::from_static(b"old"))));
            } else {
                assert!(matches!(ready(before.wait(Fields::default(), &conf(), now)), Woken::Retry));
            }
            let permit = after.unwrap_or_else(|waiter| {
                let woken = ready(waiter.wait(Fields::default(), &conf(), now));
                assert!(matches!(woken, Woken::Retry), "came after it");
                miss(get(&mut front, &conf(), now))
            });
            assert!(ready(filling.finish()).is_none(), "{what:?} {how:?}");
            assert!(ready(begin_tagged(permit, "one", now).finish()).is_some());
            assert_eq!(ask(&mut front, b"key", now), "fresh");
        }
    }
}

#[test]
fn nobody_new_reads_along_with_an_answer_that_a_purge_goes_for_while_it_arrives() {
    let (mut front, now) = (front(), start());
    let filling = begin_tagged(miss(get(&mut front, &conf(), now)), "one", now);
    purge(&front, tag("two"), How::Hard, now);
    let Lookup::Busy(waiter, _) = get(&mut front, &conf(), now) else { panic!("must wait") };
    assert!(matches!(ready(waiter.wait(Fields::default(), &conf(), now)), Woken::Streaming(_)));
    purge(&front, tag("one"), How::Hard, now);
    let permit = miss(get(&mut front, &conf(), now));
    assert!(ready(filling.finish()).is_none());
    assert!(ready(begin_tagged(permit, "one", now).finish()).is_some());
}

#[test]
fn a_waiter_whose_turn_comes_after_a_purge_fills_with_what_is_stored() {
    let (mut front, now) = (front(), start());
    let runtime = runtime();
    let _guard = runtime.enter();
    let permit = miss(get(&mut front, &conf(), now));
    let Lookup::Busy(waiter, _) = get(&mut front, &conf(), now) else { panic!("must wait") };
    purge(&front, tag("one"), How::Hard, now);
    drop(permit);
    let Woken::Fill(permit) = ready(waiter.wait(Fields::default(), &conf(), now)) else { panic!("my turn") };
    assert!(ready(begin_tagged(permit, "one", now).finish()).is_some());
}

#[test]
fn variants_go_by_their_own_tags_and_together_by_their_key() {
    let (de, fr) = (headers(&[("Accept-Language", "de")]), headers(&[("Accept-Language", "fr")]));
    for (what, left) in [(tag("de"), true), (What::Key(whole("key")), false), (What::All, false)] {
        let (mut front, now) = (front(), start());
        for (request, name) in [(&de, "de"), (&fr, "fr")] {
            let permit = miss(front.lookup(&whole("key"), request.view(), &conf(), now));
            let mut head = head(&[("Vary", "Accept-Language")], None, 60, now);
            head.tags = Tags::read(headers(&[("xkey", name)]).view(), std::iter::empty()).expect("few tags");
            assert!(ready(permit.begin(head, request.view(), now).finish()).is_some());
        }
        purge(&front, what, How::Hard, now);
        let mut is_fresh = |request: &millstream_wire::Headers| {
            matches!(front.lookup(&whole("key"), request.view(), &conf(), now), Lookup::Fresh(_))
        };
        assert_eq!((is_fresh(&de), is_fresh(&fr)), (false, left));
    }
}

#[test]
fn purged_entries_are_let_go_of_though_nobody_asks() {
    let (mut front, now) = (front(), start());
    for number in 0..2000 {
        fill_tagged(
            &mut front,
            format!("key {number}").as_bytes(),
            if number % 4 == 0 { "one" } else { "two" },
            now,
        );
    }
    let store = front.store().clone();
    purge(&front, tag("one"), How::Hard, now);
    assert_eq!(store.stats().keys, 2000, "a purge searches for nothing");
    for _ in 0..4 {
        store.maintain(now);
    }
    assert_eq!(store.stats().keys, 1500);
    // The rule has been applied to all that is left, so its folding into a stronger one takes nothing.
    assert_eq!(ask(&mut front, b"key 1", now), "fresh");
}

#[test]
fn whether_a_key_was_there_is_told() {
    let (mut front, now) = (front(), start());
    fill_tagged(&mut front, &whole("a"), "", now);
    for how in [How::Soft, How::Hard, How::Hard] {
        let expected = how == How::Soft || ask(&mut front, &whole("a"), now) != "miss";
        let purged = purge(&front, What::Key(whole("a")), how, now);
        assert_eq!(purged, Purged { in_memory: expected, on_disk: false }, "{how:?}");
    }
}

#[test]
fn a_hot_entry_near_its_end_is_refreshed_once_and_nobody_waits() {
    let ahead = ProxyCache { refresh_ahead: Duration::from_secs(10), ..conf() };
    let (mut front, now) = (front(), start());
    let mut other = Front::new(front.store().clone());
    fill(&mut front, b"key", b"one", now);
    let near = later(now, 52);
    assert!(matches!(get(&mut front, &ahead, later(now, 49)), Lookup::Fresh(_)), "in use, not near its end");
    assert!(matches!(get(&mut front, &conf(), near), Lookup::Fresh(_)), "not configured");
    let Lookup::Ahead(hit, permit) = get(&mut other, &ahead, near) else { panic!("one refreshes") };
    assert_eq!(body(&hit), b"one");
    for front in [&mut front, &mut other] {
        assert!(matches!(get(front, &ahead, near), Lookup::Fresh(_)));
    }
    let mut filling = begin(permit, &[], Fields::default(), near);
    filling.push(Bytes::from_static(b"two"));
    assert!(ready(filling.finish()).is_some());
    assert_eq!(body(&fresh(get(&mut front, &ahead, near))), b"two");
}

#[test]
fn a_refresh_ahead_that_fails_is_not_tried_again_and_one_of_an_idle_entry_not_at_all() {
    let ahead = ProxyCache { refresh_ahead: Duration::from_secs(10), ..conf() };
    let (mut front, now) = (front(), start());
    fill(&mut front, b"key", b"one", now);
    let near = later(now, 55);
    assert!(matches!(get(&mut front, &ahead, near), Lookup::Fresh(_)), "the first use of all");
    assert!(matches!(get(&mut front, &ahead, near), Lookup::Ahead(..)), "given up at once");
    assert!(matches!(get(&mut front, &ahead, near), Lookup::Fresh(_)));
    let short = ProxyCache { refresh_ahead: Duration::from_secs(3600), ..conf() };
    fill(&mut front, b"other", b"one", now);
    for _ in 0..3 {
        let found = front.lookup(b"other", Fields::default(), &short, later(now, 20));
        assert!(matches!(found, Lookup::Fresh(_)), "in the first half of its life");
    }
}

#[test]
fn a_look_tells_what_there_is_and_leaves_no_trace() {
    let (mut front, now) = (front(), start());
    let store = front.store().clone();
    let look = |now| Sight::of(&store, b"key", Fields::default(), &conf(), now);
    assert!(look(now).entries.is_empty() && store.stats().keys == 0);
    let permit = miss(get(&mut front, &conf(), now));
    let Lookup::Busy(waiter, _) = get(&mut front, &conf(), now) else { panic!("must wait") };
    let line = look(now).line.expect("somebody asks");
    assert_eq!((line.is_reading, line.is_streaming, line.waiting), (false, false, 1));
    permit.uncacheable(Some(Reason::SetCookie), now);
    drop(waiter);
    let sight = look(later(now, 3));
    let refused = sight.refused.expect("it is remembered");
    assert_eq!((refused.reason, refused.at, sight.line), (Reason::SetCookie, now.unix_milliseconds, None));
    assert_eq!(sight.uncacheable_until, later(now, 10).unix_milliseconds);

    fill_tagged(&mut front, b"key", "one", now);
    let sight = look(now);
    assert_eq!((sight.entries.len(), sight.chosen, sight.refused, sight.purge), (1, Some(0), None, None));
    purge(&front, tag("one"), How::Soft, later(now, 5));
    let sight = look(later(now, 5));
    assert!(!sight.entries[0].is_fresh(later(now, 5)));
    let purged = sight.purge.expect("by its tag");
    let number = crate::tags::Tag::of(b"one").0;
    assert_eq!(
        (purged.scope, purged.how, purged.at),
        (Scope::Tag(number), How::Soft, later(now, 5).unix_milliseconds)
    );
    purge(&front, What::All, How::Hard, later(now, 6));
    let sight = look(later(now, 6));
    assert!(sight.entries.is_empty() && sight.purge.is_some_and(|purge| purge.scope == Scope::All));
    assert_eq!(store.stats().keys, 1, "a look lets go of nothing");
}

#[test]
fn of_purges_of_one_url_in_several_spellings_each_finds_what_is_its_own() {
    let (mut front, now) = (front(), start());
    let (stored, other) = (whole("http://a/%e2"), whole("http://a/%E2"));
    fill_tagged(&mut front, &stored, "one", now);
    let purges = [other, stored].map(|key| Purge { what: What::Key(key), how: How::Hard });
    let store = front.store();
    let taken_out = purges.map(|purge| store.take_out(purge, now));
    let purged = taken_out.map(|purging| ready(store.rule_out(purging)).expect("nothing is written"));
    assert_eq!(purged.map(|purged| purged.in_memory), [false, true]);
}
