//! What is lost, doubled, foreign or damaged.

use super::engine::Engine;
use super::node::{Node, Plan, block_on, tag, three};
use super::until;
use crate::{How, LogBounds, NodeState, What};
use std::time::Duration;

#[test]
fn a_purge_on_one_node_is_in_force_on_all_and_the_nodes_are_named() {
    let engine = Engine::start();
    let nodes = three(&Plan::of(&[engine.port]));
    for at in 0..20 {
        let name = format!("tag {at}");
        let reached = nodes[at % 3].purge(&name);
        assert!(reached.is_everywhere(), "{reached:?}");
        assert_eq!(reached.nodes.len(), 3);
        assert!(reached.nodes.iter().all(|node| node.state == NodeState::InForce), "{reached:?}");
        for (other, node) in nodes.iter().enumerate() {
            assert_eq!(node.zone.count(&tag(&name)), usize::from(other != at % 3), "as often as it must be");
        }
    }
    assert!(nodes.iter().all(|node| !node.zone.has(&What::All)), "nothing else was purged");
}

#[test]
fn neither_keys_nor_names_stand_in_the_engine_in_clear() {
    let engine = Engine::start();
    let nodes = three(&Plan::of(&[engine.port]));
    nodes[0].purge("conspicuous");
    let log = engine.keys("log").remove(0);
    let entry = engine.call(&["XRANGE", &log, "-", "+"]);
    assert!(!entry.contains("conspicuous") && !log.contains("main") && !log.contains("api"));
}

#[test]
fn a_node_that_was_killed_carries_out_what_it_missed_and_forgets_nothing_it_gave() {
    let engine = Engine::start();
    let mut nodes = three(&Plan::of(&[engine.port]));
    nodes[2].purge("before");
    nodes[2].kill();
    nodes[0].give("missed");
    nodes[1].gets("missed");
    nodes[2].restart();
    nodes[2].is_confirmed();
    assert!(nodes[2].zone.has(&tag("missed")) && !nodes[2].zone.has(&What::All));
    assert!(nodes[2].purge("after").is_everywhere());
    assert!(nodes[0].zone.has(&tag("after")) && !nodes[0].zone.has(&What::All), "its numbers went on");
}

#[test]
fn a_node_that_joins_purges_what_it_stored_before_with_files_and_without() {
    let engine = Engine::start();
    let plan = Plan::of(&[engine.port]);
    let nodes = three(&plan);
    nodes[0].give("before");
    nodes[1].gets("before");
    for has_files in [true, false] {
        let newcomer = Node::start("newcomer", &Plan { has_files, ..plan.clone() });
        newcomer.is_confirmed();
        assert!(newcomer.zone.has(&What::All), "{has_files}");
    }
}

#[test]
fn a_node_that_missed_a_trimmed_part_of_the_log_purges_its_zone() {
    let engine = Engine::start();
    let log = LogBounds { entries: 200, bytes: 1 << 30 };
    let mut nodes = three(&Plan { log, ..Plan::of(&[engine.port]) });
    nodes[2].kill();
    for portion in 0..10 {
        (0..50).for_each(|at| nodes[0].give(&format!("tag {portion} {at}")));
        nodes[1].gets(&format!("tag {portion} 49"));
    }
    nodes[2].restart();
    nodes[2].is_confirmed();
    assert!(nodes[2].zone.has(&What::All) && !nodes[1].zone.has(&What::All));
    assert!(nodes[2].purge("after").is_everywhere());
}

#[test]
fn the_log_is_bounded_in_bytes_whatever_its_entries_say_of_themselves() {
    let engine = Engine::start();
    let log = LogBounds { entries: 1 << 20, bytes: 100_000 };
    let mut nodes = three(&Plan { log, ..Plan::of(&[engine.port]) });
    let length = || {
        let text = engine.call(&["XLEN", &engine.keys("log")[0]]);
        text.trim().trim_start_matches(':').parse::<u32>().expect("a number")
    };
    let give = |from: &Node, what: &str, times: u32| {
        for at in 0..times {
            match at % 10 {
                // No more at a time than the log holds.
                9 => assert!(from.purge(&format!("{what} {at}")).is_everywhere()),
                _ => from.give(&format!("{what} {at}")),
            }
        }
    };
    give(&nodes[0], "short", 400);
    assert_eq!(length(), 400, "they fit");
    nodes[2].kill();
    give(&nodes[0], &"long".repeat(1000), 30);
    assert_eq!(length(), 25, "short ones went, and the first long ones");
    let key = engine.keys("log").remove(0);
    for damage in ["-1", "nan", "inf", "1e300", "junk"] {
        let next = engine.call(&["INCR", &key.replace("log", "sequence")]);
        let id = format!("1-{}", next.trim().trim_start_matches(':'));
        engine.call(&["XADD", &key, &id, "o", "garbage", "b", damage]);
        give(&nodes[0], &format!("{damage} {}", "after".repeat(800)), 30);
        assert!(length() <= 30, "{damage}: {}", length());
    }
    nodes[2].restart();
    nodes[2].is_confirmed();
    assert!(nodes[2].zone.has(&What::All), "what it missed is unknown");
    assert!(nodes[2].purge("after").is_everywhere());
}

#[test]
fn after_flushall_every_node_publishes_what_the_others_may_lack() {
    let engine = Engine::start();
    let mut nodes = three(&Plan::of(&[engine.port]));
    nodes[2].kill();
    nodes[0].give("from a");
    nodes[1].gets("from a");
    engine.call(&["FLUSHALL"]);
    nodes[1].purge("later");
    nodes[0].gets("later");
    nodes[2].restart();
    nodes[2].is_confirmed();
    assert!(nodes[2].zone.has(&tag("from a")) && nodes[2].zone.has(&tag("later")));
    assert!(nodes.iter().all(|node| !node.zone.has(&What::All)), "nothing was unknown");
    assert_eq!(nodes[1].zone.count(&tag("from a")), 1, "known by its number");
}

#[test]
fn what_only_a_node_that_is_gone_gave_survives_the_engine_at_the_others() {
    let engine = Engine::start();
    let mut nodes = three(&Plan::of(&[engine.port]));
    nodes[2].kill();
    nodes[0].purge("from a");
    nodes[0].kill();
    engine.call(&["FLUSHALL"]);
    nodes[2].restart();
    nodes[2].is_confirmed();
    assert!(nodes[2].zone.has(&tag("from a")));
}

#[test]
fn an_entry_that_cannot_be_opened_purges_the_zone_and_a_flood_of_them_is_bounded() {
    let engine = Engine::start();
    let nodes = three(&Plan::of(&[engine.port]));
    nodes[0].purge("first");
    let (log, sequence) = (engine.keys("log").remove(0), engine.keys("sequence").remove(0));
    for _ in 0..200 {
        let number = engine.call(&["INCR", &sequence]);
        let number = number.trim().trim_start_matches(':');
        engine.call(&["XADD", &log, &format!("1-{number}"), "o", "garbage"]);
    }
    for node in &nodes {
        until("it is purged", || node.zone.has(&What::All));
        assert!(node.zone.count(&What::All) < 20);
    }
    nodes.iter().for_each(Node::is_confirmed);
    assert!(nodes[1].purge("after").is_everywhere());
}

#[test]
fn a_replayed_entry_is_known_by_its_number_and_a_removed_one_purges_the_zone() {
    let engine = Engine::start();
    let mut nodes = three(&Plan::of(&[engine.port]));
    nodes[0].purge("one");
    let log = engine.keys("log").remove(0);
    nodes[2].kill();
    nodes[0].give("two");
    nodes[0].give("three");
    nodes[1].gets("three");
    engine.call(&["XDEL", &log, "1-2"]);
    nodes[2].restart();
    nodes[2].is_confirmed();
    assert!(nodes[2].zone.has(&What::All));
    engine.call(&["DEL", &log]);
    nodes[0].give("four");
    nodes[1].gets("four");
    nodes.iter().for_each(Node::is_confirmed);
}

#[test]
fn a_node_with_another_secret_stays_cut_off_and_does_not_disturb_the_others() {
    let engine = Engine::start();
    let plan = Plan::of(&[engine.port]);
    let nodes = three(&plan);
    let other = Node::start("d", &Plan { secret: b"another secret of 16", ..plan });
    until("it complains", || {
        other.door().shown().failure.is_some_and(|failure| failure.contains("a different secret"))
    });
    assert!(other.is_cut_off());
    assert!(nodes[0].purge("x").is_everywhere());
    assert!(nodes.iter().all(|node| !node.zone.has(&What::All)));
}

#[test]
fn a_node_that_leaves_is_not_waited_for() {
    let engine = Engine::start();
    let mut nodes = three(&Plan::of(&[engine.port]));
    nodes[1].give("last words");
    nodes[1].leave();
    until("two are left", || nodes[0].door().shown().nodes.len() == 1);
    nodes[0].gets("last words");
    let reached = nodes[0].purge("x");
    assert!(reached.is_everywhere() && reached.nodes.len() == 2, "{reached:?}");
}

#[test]
fn orders_past_any_bound_purge_more_and_never_less() {
    let engine = Engine::start();
    let nodes = three(&Plan::of(&[engine.port]));
    let key = What::Key(vec![b'x'; 100_000]);
    let reached = block_on(nodes[0].door().publish(key, How::Soft, true).reached(Duration::from_secs(5)));
    assert!(reached.is_everywhere());
    assert!(nodes[1].zone.has(&What::All));
}
