//! A change that waits for its turn: what its own client gets meanwhile, and what others get.

use super::*;
use crate::store::Turn;
use std::net::Ipv4Addr;

const OWN: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

fn ask(front: &mut Front, client: IpAddr, asker: Asker, now: Now) -> Lookup {
    front.lookup_for((b"key", None), (Fields::default(), asker, || client), &conf(), now)
}

/// A change that has to wait, after one that took the turn.
fn change(front: &Front, now: Now) -> i64 {
    let turn = || front.store().turn(b"key", Duration::from_secs(1), OWN, now);
    assert_eq!(turn(), Turn::Now);
    match turn() {
        Turn::At(at) => at,
        other => panic!("the turn was taken: {other:?}"),
    }
}

#[test]
fn who_has_changed_a_key_asks_once_and_others_keep_what_is_stored() {
    let (mut front, now) = (front(), start());
    fill(&mut front, b"key", b"old", now);
    let at = change(&front, now);
    let Lookup::OwnWrite(permit) = ask(&mut front, OWN, Asker::Anybody, now) else { panic!("it is older") };
    assert!(matches!(ask(&mut front, OWN, Asker::Anybody, now), Lookup::Busy(..)), "it has asked since");
    assert!(matches!(ask(&mut front, OWN, Asker::Known, now), Lookup::Apart(_)));
    assert_eq!(body(&fresh(ask(&mut front, OTHER, Asker::Anybody, now))), b"old");
    let mut filling = begin(permit, &[], Fields::default(), now);
    filling.push(Bytes::from_static(b"new"));
    ready(filling.finish());
    for client in [OWN, OTHER] {
        assert_eq!(body(&fresh(ask(&mut front, client, Asker::Anybody, now))), b"new");
    }
    let hash = front.store().hash(b"key");
    front.store().clone().keep_promise(hash, at);
    for client in [OWN, OTHER] {
        let found = ask(&mut front, client, Asker::Anybody, now);
        assert!(matches!(found, Lookup::Miss(_)), "the turn takes it out for all: {found:?}");
    }
}

#[test]
fn who_has_changed_a_key_waits_for_nobody_who_asked_before() {
    let (mut front, now) = (front(), start());
    let Lookup::Miss(before) = ask(&mut front, OTHER, Asker::Anybody, now) else {
        panic!("nothing is there")
    };
    change(&front, now);
    let Lookup::OwnWrite(own) = ask(&mut front, OWN, Asker::Anybody, now) else { panic!("it asks itself") };
    assert!(matches!(ask(&mut front, OTHER, Asker::Anybody, now), Lookup::Busy(..)), "others wait as ever");
    for (permit, text) in [(own, &b"new"[..]), (before, b"old")] {
        let mut filling = begin(permit, &[], Fields::default(), now);
        filling.push(Bytes::copy_from_slice(text));
        ready(filling.finish());
        assert_eq!(body(&fresh(ask(&mut front, OWN, Asker::Anybody, now))), b"new");
    }
}
