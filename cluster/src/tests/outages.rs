//! An engine that is killed, stopped or replaced, and a node that is cut off from it.

use super::engine::Engine;
use super::node::{Node, Plan, block_on, tag, three};
use super::relay::Relay;
use super::until;
use crate::{How, NodeState, What};
use millstream_net::clock;
use std::thread;
use std::time::Duration;

#[test]
fn orders_of_the_time_without_an_engine_travel_when_it_is_back() {
    let mut engine = Engine::start();
    let nodes = three(&Plan::of(&[engine.port]));
    nodes[0].purge("before");
    engine.kill();
    let pending = block_on(
        nodes[0].door().publish(tag("meanwhile"), How::Hard, true).reached(Duration::from_millis(100)),
    );
    assert!(!pending.is_published && !pending.is_everywhere());
    nodes.iter().for_each(|node| until("it is cut off", || node.is_cut_off()));
    engine.restart();
    nodes.iter().for_each(Node::is_confirmed);
    nodes[1].gets("meanwhile");
    nodes[2].gets("meanwhile");
    assert!(nodes.iter().all(|node| !node.zone.has(&What::All)));
}

#[test]
fn a_stopped_engine_costs_a_request_three_timeouts_and_then_nothing() {
    let engine = Engine::start();
    let nodes = three(&Plan::of(&[engine.port]));
    engine.stop();
    let begun = clock::now();
    for at in 0..20 {
        block_on(nodes[0].door().publish(tag(&format!("tag {at}")), How::Hard, false).sent());
    }
    let took = begun.elapsed();
    until("it is cut off", || nodes[0].is_cut_off());
    engine.resume();
    assert!(took < Duration::from_millis(400), "{took:?}");
    nodes[1].gets("tag 19");
    nodes.iter().for_each(Node::is_confirmed);
}

#[test]
fn a_node_that_is_cut_off_is_named_and_serves_nothing_unconfirmed_before_it_has_caught_up() {
    let engine = Engine::start();
    let relay = Relay::to(engine.port);
    let plan = Plan::of(&[engine.port]);
    let nodes = [
        Node::start("a", &plan),
        Node::start("b", &plan),
        Node::start("c", &Plan { ports: vec![relay.port], ..plan.clone() }),
    ];
    nodes.iter().for_each(Node::is_confirmed);
    until("each knows the others", || nodes.iter().all(|node| node.door().shown().nodes.len() == 2));
    relay.cut();
    let cut = clock::now();
    let reached = nodes[0].purge("x");
    assert!(reached.is_everywhere(), "{reached:?}");
    assert!(cut.elapsed() > plan.cut_off, "not before it is cut off by its own count");
    assert!(nodes[2].is_cut_off());
    assert!(matches!(reached.nodes[2].state, NodeState::CutOff(_)), "{reached:?}");
    nodes[2].give("from the other side");
    (0..2_000).for_each(|at| nodes[0].give(&format!("tag {at}")));
    nodes[1].gets("tag 1999");
    relay.mend();
    until("it is back", || {
        let is_back = !nodes[2].is_cut_off();
        assert!(!is_back || nodes[2].zone.has(&tag("tag 1999")), "confirmed before it had caught up");
        is_back
    });
    nodes[0].gets("from the other side");
}

#[test]
fn what_was_acknowledged_survives_a_replica_that_takes_over_without_it() {
    let (mut primary, replica) = (Engine::start(), Engine::start());
    replica.call(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()]);
    until("it replicates", || replica.call(&["INFO", "replication"]).contains("master_link_status:up"));
    let mut nodes = three(&Plan::of(&[primary.port, replica.port]));
    nodes[0].purge("replicated");
    until("it has the log", || !replica.keys("log").is_empty() && replica.keys("log").len() == 1);
    // From here on the replica has nothing of what the primary acknowledges.
    replica.call(&["DEBUG", "SLEEP", "0"]);
    nodes[2].kill();
    let log = replica.keys("log").remove(0);
    let before = replica.call(&["XLEN", &log]);
    replica.call(&["REPLICAOF", "NO", "ONE"]);
    assert!(nodes[0].purge("lost with the primary").is_published);
    primary.kill();
    nodes[2].restart();
    nodes[2].is_confirmed();
    assert!(nodes[2].zone.has(&tag("lost with the primary")), "of {before} replicated");
    assert!(nodes[1].purge("after").is_everywhere());
    assert!(nodes.iter().all(|node| !node.zone.has(&What::All)));
}

/// Each node hears of something all the time, and so does nothing but that.
#[test]
fn a_node_that_is_kept_busy_is_confirmed_all_the_same() {
    let engine = Engine::start();
    let nodes = three(&Plan::of(&[engine.port]));
    let end = clock::now() + Duration::from_secs(4);
    let mut count = 0;
    while clock::now() < end {
        nodes[0].give(&format!("tag {count}"));
        // Longer than it takes, shorter than a beat.
        nodes[1].gets(&format!("tag {count}"));
        thread::park_timeout(Duration::from_millis(20));
        assert!(!nodes.iter().any(Node::is_cut_off), "after {count}");
        count += 1;
    }
    assert!(count > 20);
    assert!(nodes.iter().all(|node| node.door().shown().nodes.iter().all(|node| node.cut_off.is_none())));
}

#[test]
fn whatever_someone_writes_into_the_engine_once_it_goes_on() {
    let engine = Engine::start();
    let nodes = three(&Plan::of(&[engine.port]));
    nodes[0].purge("before");
    let key = |name: &str| engine.keys(name).remove(0);
    let (log, hash) = (key("log"), key("nodes"));
    let junk = (0..1_100).flat_map(|at| [format!("junk{at}"), "x".to_owned()]).collect::<Vec<String>>();
    let junk: Vec<&str> = ["HSET", &hash].into_iter().chain(junk.iter().map(String::as_str)).collect();
    let long = "x".repeat(1 << 20);
    let far = format!("1-{}", u64::MAX);
    for (at, words) in [
        vec!["XADD", &log, "99-1", "o", "x"],
        vec!["XADD", &log, &far, "o", "x"],
        vec!["XSETID", &log, &far],
        vec!["XSETID", &log, "1-5000"],
        junk,
    ]
    .into_iter()
    .enumerate()
    {
        engine.call(&words);
        let name = format!("after {at}");
        nodes[at % 3].give(&name);
        // Of the zone, perhaps, where entries were missing.
        until("it is in force everywhere", || nodes[at % 3].purge(&name).is_everywhere());
    }
    let sequence = key("sequence");
    for _ in 0..80 {
        let next = engine.call(&["INCR", &sequence]);
        let id = format!("1-{}", next.trim().trim_start_matches(':'));
        engine.call(&["XADD", &log, &id, "o", &long, "b", "1"]);
    }
    until("what is too long is left behind", || nodes[1].purge("last").is_everywhere());
}

#[test]
fn an_engine_that_asks_for_a_password_is_reported() {
    let engine = Engine::with(&["--requirepass", "hidden"]);
    let node = Node::start("a", &Plan::of(&[engine.port]));
    until("it complains", || node.door().shown().failure.is_some_and(|failure| failure.contains("NOAUTH")));
    assert!(node.is_cut_off());
}

#[test]
fn a_user_of_the_engine_needs_the_rights_that_the_manual_names_and_no_others() {
    let rights = "on >hidden ~ms:* +eval +xrange +xread +setnx +get +info +incr +xadd +xrevrange +xtrim +del +hlen +hset +hgetall +hget +hdel +set";
    let words: Vec<&str> = ["--user", "ms"].into_iter().chain(rights.split(' ')).collect();
    let engine = Engine::with(&words);
    let nodes = three(&Plan { account: Some(("ms", "hidden")), ..Plan::of(&[engine.port]) });
    assert!(nodes[0].purge("x").is_everywhere());
    assert!(nodes[1].zone.has(&tag("x")));
}
