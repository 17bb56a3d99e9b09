//! Who makes room for whom, and what counts as open.

use super::*;
use crate::fixture;
use std::task::Waker;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_client_that_sends_more_than_a_thousand_bytes_a_second_waits_for_nothing() {
    let began = clock::now();
    let after = |seconds: u32, bytes: usize| {
        let now = began + SECOND * seconds;
        now - idle_since(began, bytes, now)
    };
    assert_eq!(after(10, 0), SECOND * 10);
    assert_eq!(after(10, 4000), SECOND * 6);
    assert_eq!(after(10, 10_000), Duration::ZERO);
    assert_eq!(after(10, usize::MAX), Duration::ZERO);
    let (earlier, later) = (idle_since(began, 1_000_000, began), idle_since(began, 10, began + SECOND / 10));
    assert!(earlier > later, "whoever sent a lot is not the slowest because it was read first");
    assert_eq!(earlier, began + SECOND, "no more than that is saved up");
}

#[test]
fn what_closes_to_make_room_is_what_costs_its_client_least() {
    let worker = fixture::worker("server { listen 80; }");
    let now = clock::now();
    let (long_ago, longer_ago) = (now, now - SECOND);
    let now = now + SECOND * 100;
    let order = [
        Awaits::Close(long_ago),
        Awaits::Request(longer_ago),
        Awaits::Request(long_ago),
        Awaits::Head(longer_ago),
        Awaits::Head(long_ago),
        Awaits::Body(longer_ago),
        Awaits::Body(long_ago),
    ];
    assert!(order.is_sorted());
    let places: Vec<ConnectionSlot> =
        order.iter().map(|_| worker.try_admit().expect("there is room")).collect();
    for (place, awaits) in places.iter().zip(order) {
        place.wait(awaits, Waker::noop());
    }
    let shed = || places.iter().filter(|place| place.is_shed()).count();
    worker.make_room(now);
    assert_eq!(shed(), 5, "all that are no bodies");
    let tunnels = [(); 2].map(|()| worker.enter_tunnel());
    tunnels[0].moved(500);
    worker.make_room(now);
    assert_eq!(
        (shed(), tunnels.each_ref().map(TunnelEntry::is_shed)),
        (5, [false, true]),
        "the one that idles longest"
    );
    worker.make_room(now);
    assert_eq!((shed(), tunnels[0].is_shed()), (5, false), "it has not ended yet");
    let [first, second] = tunnels;
    drop(second);
    worker.make_room(now);
    assert!(first.is_shed() && shed() == 5);
    first.moved(1);
    assert!(!first.is_shed(), "it is in use");
    drop(first);
    worker.make_room(now);
    assert_eq!(shed(), 6, "one body for each that waits");
    assert!(places[5].is_shed(), "the slowest");
    places.iter().for_each(ConnectionSlot::set_busy);
    worker.make_room(now);
    assert_eq!(shed(), 0, "who is served stays");
}

#[test]
fn a_second_descriptor_of_a_connection_counts_as_one() {
    let worker = fixture::worker("server { listen 80; }");
    let place = worker.try_admit().expect("it is the first");
    let watches: Vec<Watch> = std::iter::from_fn(|| place.watch()).take(10_000).collect();
    assert_eq!(watches.len() + 1, worker.generation().shared.bounds.descriptors);
    assert!(worker.try_admit().is_none(), "there is no descriptor for a newcomer");
    drop(watches);
    assert!(worker.try_admit().is_some());
}

#[test]
fn connections_to_upstreams_leave_places_for_clients() {
    let worker = fixture::worker("server { listen 80; }");
    let clients: Vec<ConnectionSlot> = std::iter::from_fn(|| worker.try_admit()).take(100).collect();
    let upstreams: Vec<UpstreamPlace> = std::iter::from_fn(|| worker.try_upstream()).take(10_000).collect();
    assert_eq!(clients.len() + upstreams.len(), worker.generation().shared.bounds.upstreams);
    assert!(!worker.lacks_descriptors());
    let others: Vec<ConnectionSlot> = std::iter::from_fn(|| worker.try_admit()).take(10_000).collect();
    assert_eq!(others.len(), 64, "the last eighth");
    assert!(!worker.may_wait_for_upstream(clock::now(), Duration::ZERO), "none of them idles");
    let idle = |place: &ConnectionSlot| place.wait(Awaits::Request(clock::now() - SECOND), Waker::noop());
    others.iter().for_each(idle);
    assert!(!worker.may_wait_for_upstream(clock::now(), Duration::ZERO), "their places are for clients");
    assert!(!others[0].is_shed());
    idle(&clients[0]);
    assert!(worker.may_wait_for_upstream(clock::now(), Duration::ZERO), "one more idles");
    assert!(!worker.may_wait_for_upstream(clock::now(), SECOND * 2), "not for ever");
    drop((clients, upstreams));
    assert!(worker.try_upstream().is_some());
}
