//! `cluster`: three nodes and a real engine; each fault that must be survived.

use millstream_tests::client::Answer;
use millstream_tests::engine::Engine;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::process;
use millstream_tests::server::Server;
use millstream_tests::wait;
use rustix::process::Signal;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TEMPLATE: &str = site! {
    main "worker_processes 2;" log "notice"
    http "proxy_cache_path @ZONE@ keys_zone=one:1m cluster=main;
        cluster main { server @ENGINE@; secret @DIR@/secret; node @NODE@; cut_off @CUT_OFF@; }"
    server "proxy_cache one; proxy_cache_key $host$uri; proxy_cache_valid 200 1h; add_header X-Cache $upstream_cache_status;
        proxy_cache_purge_allow local; api_allow local; proxy_cache_use_stale error timeout updating;
        location / { proxy_pass http://@ORIGIN@; }
        location /api/ { api write=on; }"
};

/// An API whose response is its version, and which tags it.
pub(crate) struct Versions {
    pub(crate) origin: Origin,
    version: Arc<AtomicU64>,
}

impl Versions {
    pub(crate) fn start() -> Versions {
        let version = Arc::new(AtomicU64::new(1));
        let shown = version.clone();
        let origin = Origin::start(move |request| {
            if request.head.starts_with("POST") {
                shown.fetch_add(1, Ordering::SeqCst);
            }
            let version = shown.load(Ordering::SeqCst).to_string();
            let etag = format!("\"{version}\"");
            answer(200, &[("Surrogate-Key", "versions"), ("ETag", &etag)], version.as_bytes())
        });
        Versions { origin, version }
    }

    pub(crate) fn next(&self) -> u64 {
        self.version.fetch_add(1, Ordering::SeqCst) + 1
    }
}

pub(crate) fn node(name: &str, engine: &Engine, versions: &Versions, cut_off: &str, secret: &str) -> Server {
    let mut node = node_at(name, &engine.address(), versions, cut_off, secret);
    node.run().expect("it starts");
    node
}

/// One that is not started yet.
pub(crate) fn node_at(name: &str, engine: &str, versions: &Versions, cut_off: &str, secret: &str) -> Server {
    let prefix = millstream_tests::prefix::Prefix::new();
    fs::write(prefix.path().join("secret"), secret).expect("written");
    let zone = format!("{}/cache", prefix.path().display());
    let origin = versions.origin.address();
    Server::new(
        prefix,
        TEMPLATE,
        &[("ZONE", &zone), ("ENGINE", engine), ("NODE", name), ("CUT_OFF", cut_off), ("ORIGIN", &origin)],
    )
}

pub(crate) const SECRET: &str = "the secret of the scenarios";

pub(crate) fn three(engine: &Engine, versions: &Versions, cut_off: &str) -> [Server; 3] {
    let nodes = ["a", "b", "c"].map(|name| node(name, engine, versions, cut_off, SECRET));
    all_confirmed(&nodes);
    nodes
}

pub(crate) fn all_confirmed(nodes: &[Server]) {
    let others = nodes.len() - 1;
    wait::until("all nodes know each other", || nodes.iter().all(|node| is_confirmed(node, others)));
}

pub(crate) fn state(node: &Server) -> serde_json::Value {
    node.get("/api/9/cluster").json()[0].clone()
}

pub(crate) fn is_confirmed(node: &Server, others: usize) -> bool {
    let state = state(node);
    state["state"] == "confirmed" && state["nodes"].as_array().is_some_and(|nodes| nodes.len() == others)
}

pub(crate) fn is_cut_off(node: &Server) -> bool {
    state(node)["state"] != "confirmed"
}

pub(crate) fn get(node: &Server, path: &str) -> (String, String) {
    let got = node.get(path);
    (got.text(), got.field("x-cache").unwrap_or_default().to_owned())
}

pub(crate) fn fill(nodes: &[Server], path: &str, version: u64) {
    for node in nodes {
        wait::until("it is a hit", || get(node, path).1 == "HIT");
        assert_eq!(get(node, path).0, version.to_string());
    }
}

/// Purges by the API: a key or everything in its zone, a tag in all zones.
pub(crate) fn purge(node: &Server, body: &str) -> Answer {
    let path = if body.contains("\"key") || body.contains("\"all") {
        "/api/9/http/caches/one/purge"
    } else {
        "/api/9/purge"
    };
    let length = body.len();
    node.ask(format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    ))
}

pub(crate) fn states(report: &Answer) -> String {
    let report = report.json();
    let nodes = report["nodes"].as_array().cloned().unwrap_or_default();
    let one = |node: &serde_json::Value| {
        format!("{} {}", node["node"].as_str().unwrap_or(""), node["state"].as_str().unwrap_or(""))
    };
    nodes.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_purge_on_one_node_is_in_force_on_all_nodes_whatever_it_names() {
    skip_on_nginx!();
    let (engine, versions) = (Engine::start(), Versions::start());
    let nodes = three(&engine, &versions, "10s");
    let mut version = 1;
    for body in [
        "{\"tags\":\"versions\"}",
        "{\"tags\":\"versions\",\"soft\":true}",
        "{\"key_prefix\":\"localhost/\"}",
        "{\"key\":\"localhost/x\"}",
    ] {
        fill(&nodes, "/x", version);
        version = versions.next();
        let report = purge(&nodes[0], body);
        assert_eq!(report.status, 200, "{body}: {}", report.text());
        assert_eq!(states(&report), "a in_force, b in_force, c in_force", "{body}");
        for node in &nodes {
            // A soft purge may be served once more while it is updated.
            wait::until("the new version is served", || get(node, "/x").0 == version.to_string());
            assert!(body.contains("soft") || get(node, "/x").1 == "HIT", "{body}");
        }
    }
    fill(&nodes, "/x", version);
    let version = versions.next();
    let purged = nodes[1].request("PURGE", "/x", &[("Host", "localhost")]);
    assert_eq!((purged.status, states(&purged)), (200, "b in_force, a in_force, c in_force".to_owned()));
    assert!(nodes.iter().all(|node| get(node, "/x").0 == version.to_string()));
}

#[test]
fn an_unsafe_request_to_one_node_invalidates_on_all() {
    skip_on_nginx!();
    let (engine, versions) = (Engine::start(), Versions::start());
    let nodes = three(&engine, &versions, "10s");
    for round in 1..20 {
        fill(&nodes, "/x", round);
        nodes[round as usize % 3].request("POST", "/x", &[("Host", "localhost"), ("Content-Length", "0")]);
        for node in &nodes {
            wait::until("it is invalidated", || get(node, "/x").0 == (round + 1).to_string());
        }
    }
}

#[test]
fn engine_killed_no_client_sees_an_error_and_purges_are_replayed() {
    skip_on_nginx!();
    let (mut engine, versions) = (Engine::start(), Versions::start());
    let nodes = three(&engine, &versions, "1s");
    fill(&nodes, "/x", 1);
    engine.kill();
    let version = versions.next();
    let report = purge(&nodes[0], "{\"tags\":\"versions\"}");
    assert_eq!(report.status, 202, "{}", report.text());
    assert_eq!(get(&nodes[0], "/x").0, version.to_string());
    for node in &nodes {
        wait::until("it is cut off", || is_cut_off(node));
        assert_eq!(get(node, "/x").0, version.to_string(), "confirmed with the API");
        node.says("cut off: stored responses are revalidated with the upstream");
    }
    assert_eq!(
        figures(&nodes[0]),
        [1, 2, 1],
        "zones cut off, other nodes as last seen, orders that no other knows"
    );
    engine.restart();
    wait::until("all are back", || nodes.iter().all(|node| is_confirmed(node, 2)));
    for node in &nodes {
        wait::until("hits again", || get(node, "/x").1 == "HIT");
        assert_eq!(get(node, "/x").0, version.to_string());
        wait::until("all is well", || figures(node) == [0, 2, 0]);
    }
}

pub(crate) fn figures(node: &Server) -> [u64; 3] {
    let text = node.get("/api/metrics").text();
    ["cut_off", "nodes", "unpublished"].map(|name| {
        let name = format!("millstream_cluster_{name} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name));
        line.and_then(|value| value.trim().parse().ok()).expect("a figure")
    })
}

#[test]
fn engine_stopped_requests_wait_for_three_timeouts_at_most() {
    skip_on_nginx!();
    let (engine, versions) = (Engine::start(), Versions::start());
    let nodes = three(&engine, &versions, "1s");
    fill(&nodes, "/x", 1);
    engine.stop();
    let begun = Instant::now();
    for _ in 0..50 {
        let posted = nodes[0].request("POST", "/x", &[("Host", "localhost"), ("Content-Length", "0")]);
        assert_eq!(posted.status, 200);
    }
    let took = begun.elapsed();
    wait::until("it is cut off", || is_cut_off(&nodes[1]));
    assert_eq!(get(&nodes[1], "/x").0, "51");
    engine.resume();
    assert!(took < Duration::from_secs(2), "{took:?}");
    wait::until("all are back", || nodes.iter().all(|node| is_confirmed(node, 2)));
    assert!(nodes.iter().all(|node| get(node, "/x").0 == "51"));
}

#[test]
fn flushall_loses_no_purge_that_a_node_has_missed() {
    skip_on_nginx!();
    let (engine, versions) = (Engine::start(), Versions::start());
    let mut nodes = three(&engine, &versions, "1s");
    fill(&nodes, "/x", 1);
    kill(&mut nodes[2]);
    let version = versions.next();
    let report = purge(&nodes[0], "{\"tags\":\"versions\"}");
    assert!(states(&report).starts_with("a in_force, b in_force, c "), "{}", report.text());
    engine.call(&["FLUSHALL"]).expect("flushed");
    nodes[2].run().expect("it starts");
    wait::until("it is back", || is_confirmed(&nodes[2], 2));
    assert_eq!(get(&nodes[2], "/x").0, version.to_string());
}

#[test]
fn a_node_that_was_killed_serves_nothing_that_was_purged_meanwhile() {
    skip_on_nginx!();
    let (engine, versions) = (Engine::start(), Versions::start());
    let mut nodes = three(&engine, &versions, "1s");
    fill(&nodes, "/x", 1);
    fill(&nodes, "/kept", 1);
    kill(&mut nodes[2]);
    let version = versions.next();
    let report = nodes[0].request("PURGE", "/x", &[("Host", "localhost")]);
    assert_eq!(report.json()["nodes"].as_array().map(Vec::len), Some(3), "{}", report.text());
    nodes[2].run().expect("it starts");
    assert_eq!(get(&nodes[2], "/x").0, version.to_string(), "whether it is confirmed by then or not");
    wait::until("it is back", || is_confirmed(&nodes[2], 2));
    assert_eq!(get(&nodes[2], "/x").0, version.to_string());
    assert_eq!(get(&nodes[0], "/kept"), ("1".to_owned(), "HIT".to_owned()), "nothing else was purged");
}

#[test]
fn another_secret_is_reported_and_never_a_wrong_answer() {
    skip_on_nginx!();
    let (engine, versions) = (Engine::start(), Versions::start());
    let nodes = three(&engine, &versions, "1s");
    let other = node("d", &engine, &versions, "1s", "not the secret of them");
    wait::until("it is reported", || other.log().contains("the other nodes have a different secret"));
    fill(&nodes, "/x", 1);
    get(&other, "/x");
    let version = versions.next();
    assert_eq!(states(&purge(&nodes[0], "{\"tags\":\"versions\"}")), "a in_force, b in_force, c in_force");
    assert_eq!(get(&other, "/x").0, version.to_string(), "it confirms what it has");
    assert!(nodes.iter().all(|node| !node.log().contains("the zone is purged")));
}

#[test]
fn garbage_in_the_stream_purges_the_zone_and_is_reported() {
    skip_on_nginx!();
    let (engine, versions) = (Engine::start(), Versions::start());
    let nodes = three(&engine, &versions, "1s");
    purge(&nodes[0], "{\"tags\":\"versions\"}");
    fill(&nodes, "/x", 1);
    let (log, sequence) = (engine.keys(":log").remove(0), engine.keys(":sequence").remove(0));
    let version = versions.next();
    let number = engine.call(&["INCR", &sequence]).expect("counted");
    let id = format!("1-{}", number.trim().trim_start_matches(':'));
    engine.call(&["XADD", &log, &id, "o", "garbage"]).expect("added");
    for node in &nodes {
        wait::until("it is reported", || node.log().contains("an entry of the log cannot be opened"));
        wait::until("the zone is purged", || get(node, "/x").0 == version.to_string());
        node.says("cluster main: cache zone \"one\"");
    }
}

#[test]
fn a_trimmed_log_purges_the_zone_of_a_node_that_missed_a_part() {
    skip_on_nginx!();
    let (engine, versions) = (Engine::start(), Versions::start());
    let mut nodes = three(&engine, &versions, "1s");
    fill(&nodes, "/x", 1);
    kill(&mut nodes[2]);
    for _ in 0..5 {
        purge(&nodes[0], "{\"tags\":\"other\",\"wait\":\"here\"}");
    }
    wait::until("it is published", || state(&nodes[1])["sequence"] == 5);
    let log = engine.keys(":log").remove(0);
    engine.call(&["XTRIM", &log, "MAXLEN", "1"]).expect("trimmed");
    let version = versions.next();
    nodes[2].run().expect("it starts");
    wait::until("it is back", || is_confirmed(&nodes[2], 2));
    nodes[2].says("the log was trimmed before this node had read it");
    assert_eq!(get(&nodes[2], "/x").0, version.to_string());
    assert_eq!(get(&nodes[0], "/x").0, "1", "the others have missed nothing");
}

#[test]
fn a_reload_keeps_the_cluster_and_one_that_changes_it_starts_it_anew() {
    skip_on_nginx!();
    let (engine, versions) = (Engine::start(), Versions::start());
    let nodes = three(&engine, &versions, "2s");
    fill(&nodes, "/x", 1);
    let zone = format!("{}/cache", nodes[0].prefix().path().display());
    let (address, origin) = (engine.address(), versions.origin.address());
    let changed = |text: &str, name: &str, cut_off: &str| {
        let values = [
            ("ZONE", &*zone),
            ("ENGINE", &address),
            ("NODE", name),
            ("CUT_OFF", cut_off),
            ("ORIGIN", &origin),
        ];
        nodes[0].rewrite(text, &values);
        nodes[0].reload();
    };
    let elsewhere = TEMPLATE.replace("error_log", "error_log @DIR@/later.log notice; error_log");
    changed(&elsewhere, "a", "2s");
    assert_eq!(get(&nodes[0], "/x").1, "HIT");
    assert_eq!(states(&purge(&nodes[1], "{\"tags\":\"versions\"}")), "b in_force, a in_force, c in_force");
    changed(&elsewhere.replace("proxy_cache_key $host$uri", "proxy_cache_key $uri"), "a", "2s");
    for (purged, expected) in [
        ("{\"key_prefix\":\"localhost/\"}", "b in_force, a different_keys, c in_force"),
        ("{\"all\":true}", "b in_force, a in_force, c in_force"),
    ] {
        wait::until("the others know its keys", || states(&purge(&nodes[1], purged)) == expected);
    }
    let later = || nodes[0].prefix().read("later.log");
    wait::until("it is logged where it is wanted now", || later().contains("node b has different keys"));
    changed(TEMPLATE, "renamed", "3s");
    wait::until("it is confirmed again", || {
        state(&nodes[0])["node"] == "renamed" && is_confirmed(&nodes[0], 2)
    });
    let report = purge(&nodes[1], "{\"tags\":\"versions\"}");
    assert_eq!(states(&report), "b in_force, c in_force, renamed in_force");
}

pub(crate) fn kill(node: &mut Server) {
    process::send(node.serving_id(), Signal::KILL);
    node.stop(Signal::KILL);
}
