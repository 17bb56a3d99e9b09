//! `cluster`: partitions, clocks and links that are wrong, an upgrade of all nodes, and what is shown of it.

use crate::cluster::{
    SECRET, Versions, all_confirmed, fill, get, is_confirmed, is_cut_off, node, node_at, purge, state,
    states, three,
};
use millstream_tests::engine::Engine;
use millstream_tests::process;
use millstream_tests::relay::{Link, Relay};
use millstream_tests::server::Server;
use millstream_tests::{skip_on_nginx, wait};
use rustix::process::Signal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const TAG: &str = "{\"tags\":\"versions\"}";

/// Two nodes, and one behind a link of its own, each with its `cut_off`.
fn linked(engine: &Engine, versions: &Versions, [near, far]: [&str; 2]) -> ([Server; 3], Relay) {
    let relay = Relay::to(&engine.address());
    let mut distant = node_at("c", &relay.address(), versions, far, SECRET);
    distant.run().expect("it starts");
    let [a, b] = ["a", "b"].map(|name| node(name, engine, versions, near, SECRET));
    let nodes = [a, b, distant];
    all_confirmed(&nodes);
    (nodes, relay)
}

fn explained(node: &Server) -> serde_json::Value {
    let port = node.port();
    node.get(&format!("/api/9/explain?url=http://localhost:{port}/x")).json()
}

#[test]
fn partition_a_node_revalidates_after_cut_off_and_serves_nothing_that_was_purged_on_its_return() {
    skip_on_nginx!();
    let (engine, versions) = (Engine::start(), Versions::start());
    let (nodes, relay) = linked(&engine, &versions, ["1s", "1s"]);
    fill(&nodes, "/x", 1);
    fill(&nodes, "/kept", 1);
    relay.set(Link::Cut);
    wait::until("it is cut off", || is_cut_off(&nodes[2]));
    let seen = explained(&nodes[2])["now"].clone();
    assert!(seen["why"].as_str().is_some_and(|why| why.starts_with("this node is cut off")), "{seen}");
    let version = versions.next();
    let report = nodes[0].request("PURGE", "/x", &[("Host", "localhost")]);
    assert_eq!(states(&report), "a in_force, b in_force, c cut_off");
    assert_eq!(get(&nodes[2], "/x").0, version.to_string(), "it asks the API");
    // What it was given meanwhile holds there at once and travels later.
    let version = versions.next();
    let report = purge(&nodes[2], TAG);
    assert_eq!(report.status, 202, "{}", report.text());
    assert_eq!(get(&nodes[2], "/x").0, version.to_string());
    relay.set(Link::Whole);
    for node in &nodes {
        wait::until("all have the last version", || get(node, "/x").0 == version.to_string());
    }
    all_confirmed(&nodes);
    fill(&nodes, "/x", version);
    let lost = nodes.iter().find(|node| node.log().contains("the zone is purged"));
    assert!(lost.is_none(), "nothing was missed");
}

#[test]
fn clock_of_a_node_an_hour_off_the_same_ages_and_the_same_purges() {
    skip_on_nginx!();
    let (engine, versions) = (Engine::start(), Versions::start());
    for off in [3600, -3600] {
        let mut wrong = node_at("c", &engine.address(), &versions, "1s", SECRET);
        wrong.is_fast_by(off);
        wrong.run().expect("faketime is installed");
        let [a, b] = ["a", "b"].map(|name| node(name, &engine, &versions, "1s", SECRET));
        let nodes = [a, b, wrong];
        all_confirmed(&nodes);
        let mut version = versions.next();
        purge(&nodes[0], TAG);
        for giver in &nodes {
            fill(&nodes, "/x", version);
            for node in &nodes {
                let age = node.get("/x").field("age").map(|age| age.parse::<u64>().expect("seconds"));
                assert!(age.is_none_or(|age| age < 30), "{off}: {age:?}");
            }
            version = versions.next();
            let report = purge(giver, TAG);
            assert!(!states(&report).contains("waiting") && report.status == 200, "{}", report.text());
            assert!(nodes.iter().all(|node| get(node, "/x").0 == version.to_string()), "{off}");
        }
    }
}

#[test]
fn slow_lossy_link_no_request_waits_longer_than_the_deadline() {
    skip_on_nginx!();
    let (engine, versions) = (Engine::start(), Versions::start());
    let (nodes, relay) = linked(&engine, &versions, ["5s", "5s"]);
    fill(&nodes, "/x", 1);
    relay.set(Link::Lossy(Duration::from_millis(30)));
    let mut slow = 0;
    for _ in 0..60 {
        let begun = Instant::now();
        let posted = nodes[2].request("POST", "/x", &[("Host", "localhost"), ("Content-Length", "0")]);
        assert_eq!(posted.status, 200);
        // The deadline is 5 ms, and the machine may be busy.
        slow += u32::from(begun.elapsed() > Duration::from_millis(30));
    }
    assert!(slow < 20, "{slow} of 60 waited for the link");
    for node in &nodes {
        wait::until("all know the last change", || get(node, "/x").0 == "61");
    }
    let version = versions.next();
    purge(&nodes[0], TAG);
    for node in &nodes {
        wait::until("a purge comes through", || get(node, "/x").0 == version.to_string());
    }
}

/// Tells threads to end, also when the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn rolling_upgrade_under_load_with_purges_fails_no_request_and_serves_nothing_that_was_purged() {
    skip_on_nginx!();
    let (engine, versions) = (Engine::start(), Versions::start());
    let nodes = three(&engine, &versions, "2s");
    let (floor, is_over) = (AtomicU64::new(1), AtomicBool::new(false));
    let (reads, everywhere) = (AtomicU64::new(0), AtomicU64::new(0));
    let upgrade = |node: &Server| {
        let old = node.current_id();
        process::send(old, Signal::USR2);
        wait::until("a new process serves", || ![0, old].contains(&node.current_id()));
        process::send(old, Signal::QUIT);
        wait::until("the old process has ended", || !process::is_alive(old));
    };
    thread::scope(|scope| {
        for node in &nodes {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        let least = floor.load(Ordering::SeqCst);
                        let got = node.get("/x");
                        assert_eq!(got.status, 200);
                        let version: u64 = got.text().parse().expect("a version");
                        assert!(version >= least, "{version} was purged: {least} is in force everywhere");
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        }
        scope.spawn(|| {
            for giver in nodes.iter().cycle() {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                let version = versions.next();
                let report = purge(giver, TAG);
                if report.status == 200 {
                    floor.store(version, Ordering::SeqCst);
                    everywhere.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        let _ends = Ends(&is_over);
        for node in &nodes {
            let before = everywhere.load(Ordering::SeqCst);
            upgrade(node);
            wait::until("purges come into force everywhere", || {
                everywhere.load(Ordering::SeqCst) > before + 10
            });
        }
    });
    assert!(reads.load(Ordering::Relaxed) > 1_000);
    wait::until("all are confirmed", || nodes.iter().all(|node| state(node)["state"] == "confirmed"));
}

#[test]
fn two_nodes_with_a_copied_cache_directory_become_two_again() {
    skip_on_nginx!();
    let (engine, versions) = (Engine::start(), Versions::start());
    let [a, mut b] = ["a", "b"].map(|name| node(name, &engine, &versions, "1s", SECRET));
    wait::until("they know each other", || [&a, &b].iter().all(|node| is_confirmed(node, 1)));
    b.stop(Signal::QUIT);
    let mut copy = node_at("c", &engine.address(), &versions, "1s", SECRET);
    let copied = std::process::Command::new("cp")
        .args([
            "-a",
            &format!("{}/cache", b.prefix().path().display()),
            &copy.prefix().path().display().to_string(),
        ])
        .status();
    assert!(copied.is_ok_and(|status| status.success()));
    b.run().expect("it starts");
    copy.run().expect("it starts");
    let nodes = [a, b, copy];
    wait::until("it is noticed", || {
        nodes.iter().any(|node| node.log().contains("uses a copy of this node's cache directory"))
    });
    wait::until("all are confirmed", || nodes.iter().all(|node| state(node)["state"] == "confirmed"));
    for giver in &nodes {
        let mut version = 0;
        // Whom they had both been may still serve, as far as anybody knows, until a while after the second has become another.
        wait::until("a purge comes into force", || {
            version = versions.next();
            purge(giver, TAG).status == 200
        });
        assert!(nodes.iter().all(|node| get(node, "/x").0 == version.to_string()));
    }
}

#[test]
fn a_node_counts_as_cut_off_by_its_own_time_and_never_if_it_serves() {
    skip_on_nginx!();
    let versions = Versions::start();
    for slow in ["6s", "1s serve"] {
        let engine = Engine::start();
        let (nodes, relay) = linked(&engine, &versions, ["1s", slow]);
        purge(&nodes[0], TAG);
        relay.set(Link::Cut);
        let report = purge(&nodes[0], TAG);
        assert_eq!(
            (report.status, states(&report).as_str()),
            (202, "a in_force, b in_force, c waiting"),
            "{slow}"
        );
        assert_eq!(report.json()["status"], "pending");
    }
}

#[test]
fn explain_and_the_metrics_tell_whose_purge_it_was() {
    skip_on_nginx!();
    let (engine, versions) = (Engine::start(), Versions::start());
    let nodes = three(&engine, &versions, "2s");
    for body in [TAG, "{\"key_prefix\":\"localhost/\"}", "{\"key\":\"localhost/x\"}"] {
        fill(&nodes, "/x", 1);
        purge(&nodes[0], body);
        let seen = explained(&nodes[1]);
        // Of a tag nobody knows any more which entry had it.
        if !body.contains("tags") {
            assert_eq!(seen["last_purge"]["node"], "a", "{body}: {seen:#}");
            let why = seen["now"]["why"].as_str().unwrap_or_default();
            assert!(why.contains(" on node a removed "), "{why}");
        }
        assert!(explained(&nodes[0])["last_purge"].get("node").is_none(), "its own");
    }
    fill(&nodes, "/x", 1);
    nodes[2].request("POST", "/x", &[("Host", "localhost"), ("Content-Length", "0")]);
    wait::until("it is told", || {
        let seen = explained(&nodes[0]);
        seen["now"]["why"].as_str().is_some_and(|why| why.contains("on node c invalidated it"))
    });
    let metrics = nodes[1].get("/api/metrics").text();
    for (name, least) in [
        ("millstream_cluster_applied_total", 4),
        ("millstream_cluster_zone_purges_total", 0),
        ("millstream_cluster_breaker_opened_total", 0),
        ("millstream_cluster_script_duration_seconds_count", 2),
    ] {
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        assert!(value.is_some_and(|value| value >= least), "{name} {value:?}");
    }
}
