//! The engine of a `cluster` as it is reached: over TLS, by a socket, with a password or an ACL user, through Sentinel, and by `serve --cluster`.

use millstream_tests::client;
use millstream_tests::engine::{Engine, Sentinel};
use millstream_tests::origin::{Origin, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::process;
use millstream_tests::server::Server;
use millstream_tests::{ports, wait};
use rustix::process::Signal;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const TEMPLATE: &str = site! {
    main "worker_processes 2;" log "notice"
    http "proxy_cache_path @ZONE@ keys_zone=one:1m cluster=main;
        cluster main { @LINES@ secret @DIR@/secret; node @NODE@; cut_off 1s; timeout 2s; }
        limit_req_zone $arg_key zone=rate:1m rate=1r/m sync=exact;"
    server "proxy_cache one; proxy_cache_key $host$uri; proxy_cache_valid 200 1h; add_header X-Cache $upstream_cache_status;
        proxy_cache_purge_allow local; api_allow local;
        location / { proxy_pass http://@ORIGIN@; }
        location /limited { limit_req zone=rate; proxy_pass http://@ORIGIN@; }
        location /api/ { api write=on; }"
};

/// An API whose response is its version.
struct Versions {
    origin: Origin,
    version: Arc<AtomicU64>,
}

impl Versions {
    fn start() -> Versions {
        let version = Arc::new(AtomicU64::new(1));
        let shown = version.clone();
        let origin =
            Origin::start(move |_| answer(200, &[], shown.load(Ordering::SeqCst).to_string().as_bytes()));
        Versions { origin, version }
    }

    fn next(&self) -> String {
        (self.version.fetch_add(1, Ordering::SeqCst) + 1).to_string()
    }
}

fn node(name: &str, lines: &str, versions: &Versions) -> Server {
    let prefix = Prefix::new();
    fs::write(prefix.path().join("secret"), "the secret of the scenarios").expect("written");
    let zone = format!("{}/cache", prefix.path().display());
    let origin = versions.origin.address();
    Server::start_in(
        prefix,
        TEMPLATE,
        &[("ZONE", &zone), ("LINES", lines), ("NODE", name), ("ORIGIN", &origin)],
    )
}

fn is_confirmed(node: &Server, others: usize) -> bool {
    let state = node.get("/api/9/cluster").json()[0].clone();
    state["state"] == "confirmed" && state["nodes"].as_array().is_some_and(|nodes| nodes.len() == others)
}

fn fill(nodes: &[Server], path: &str) {
    for node in nodes {
        wait::until("it is a hit", || node.get(path).field("x-cache") == Some("HIT"));
    }
}

fn purge(node: &Server, path: &str) -> (u16, String) {
    let report = node.request("PURGE", path, &[("Host", "localhost")]);
    let nodes = report.json()["nodes"].as_array().cloned().unwrap_or_default();
    let one = |node: &serde_json::Value| {
        format!("{} {}", node["node"].as_str().unwrap_or(""), node["state"].as_str().unwrap_or(""))
    };
    (report.status, nodes.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// Two nodes that purge each other and share a limit; `key` is another one for each use of an engine.
fn works(lines: &str, key: &str) -> [Server; 2] {
    let versions = Versions::start();
    let nodes = ["a", "b"].map(|name| node(name, lines, &versions));
    for node in &nodes {
        wait::until("they know each other", || is_confirmed(node, 1));
    }
    fill(&nodes, "/x");
    let version = versions.next();
    assert_eq!(purge(&nodes[0], "/x"), (200, "a in_force, b in_force".to_owned()), "{lines}");
    assert!(nodes.iter().all(|node| node.get("/x").text() == version), "{lines}");
    for node in &nodes {
        wait::until("the engine decides about requests", || {
            !node.get("/api/metrics").text().contains("millstream_cluster_limit_nodes 0\n")
        });
    }
    let statuses = [0, 1].map(|at| nodes[at].get(&format!("/limited?key={key}")).status);
    assert_eq!(statuses, [200, 503], "{lines}");
    for node in &nodes {
        assert!(!node.log().contains("returned an error"), "{lines}: {}", node.log());
    }
    nodes
}

fn openssl(prefix: &Prefix, arguments: &[&str]) {
    let done = Command::new("openssl")
        .args(arguments)
        .current_dir(prefix.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(done.is_ok_and(|status| status.success()), "openssl {arguments:?}");
}

/// `ca.pem`, and `engine.pem` with `engine.key` for 127.0.0.1, signed by it.
fn certificates() -> Prefix {
    let prefix = Prefix::new();
    prefix.write("extensions", "subjectAltName=IP:127.0.0.1\n");
    let new = ["req", "-newkey", "rsa:2048", "-nodes"];
    let authority = ["-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"];
    openssl(&prefix, &[&new[..], &authority].concat());
    let asked = ["-subj", "/CN=engine", "-keyout", "engine.key", "-out", "engine.csr"];
    openssl(&prefix, &[&new[..], &asked].concat());
    let signed =
        ["x509", "-req", "-in", "engine.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"];
    let written = ["-days", "2", "-extfile", "extensions", "-out", "engine.pem"];
    openssl(&prefix, &[&signed[..], &written].concat());
    prefix
}

#[test]
fn the_engine_is_reached_over_tls_and_only_with_a_certificate_that_is_trusted() {
    skip_on_nginx!();
    let prefix = certificates();
    let file = |name: &str| prefix.join(name).display().to_string();
    let port = ports::free();
    let _engine = Engine::with(&[
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        &file("engine.pem"),
        "--tls-key-file",
        &file("engine.key"),
        "--tls-ca-cert-file",
        &file("ca.pem"),
        "--tls-auth-clients",
        "no",
    ]);
    works(&format!("server 127.0.0.1:{port}; tls on; trusted_certificate {};", file("ca.pem")), "a");
    works(&format!("server rediss://127.0.0.1:{port}; trusted_certificate {};", file("ca.pem")), "b");
    let versions = Versions::start();
    let stranger = node("c", &format!("server 127.0.0.1:{port}; tls on;"), &versions);
    wait::until("it is reported", || stranger.log().contains("cannot connect: "));
    assert_eq!(stranger.get("/x").status, 200);
    assert!(stranger.log().contains("certificate"), "{}", stranger.log());
}

#[test]
fn the_engine_is_reached_by_a_socket() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    let socket = prefix.join("engine.sock").display().to_string();
    let _engine = Engine::with(&[
        "--unixsocket",
        &socket,
        "--unixsocketperm",
        "777",
        "--maxmemory-policy",
        "allkeys-lru",
    ]);
    let [node, _] = works(&format!("server unix:{socket};"), "a");
    assert!(node.log().contains("set maxmemory-policy noeviction"), "{}", node.log());
}

#[test]
fn the_engine_is_reached_with_a_password_and_with_an_acl_user_that_has_few_rights() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    let password = prefix.write("password", "the password\n").display().to_string();
    let rights = "on ~ms:* &ms:* +eval +xrange +xread +setnx +get +info +incr +xadd +xrevrange +xtrim +del +hlen +hset +hgetall +hget +hdel +set +time +pexpire";
    let mut options = vec!["--requirepass", "the password", "--user", "millstream", ">p@ss"];
    options.extend(rights.split(' '));
    let engine = Engine::with(&options);
    let address = engine.address();
    works(&format!("server {address}; password {password};"), "a");
    works(&format!("server redis://:the%20password@{address};"), "b");
    works(&format!("server redis://millstream:p%40ss@{address};"), "c");
    let versions = Versions::start();
    let stranger = node("c", &format!("server {address};"), &versions);
    wait::until("it is reported", || stranger.log().contains("NOAUTH"));
    assert_eq!(stranger.get("/x").status, 200);
}

#[test]
fn failover_acknowledged_purges_survive() {
    skip_on_nginx!();
    let primary = &mut Engine::with(&["--repl-diskless-sync-delay", "0"]);
    let replica = Engine::with(&["--replicaof", "127.0.0.1", &primary.port().to_string()]);
    wait::until("the replica follows", || {
        replica.call(&["INFO", "replication"]).is_ok_and(|text| text.contains("master_link_status:up"))
    });
    let sentinel = Sentinel::of(primary);
    let versions = Versions::start();
    let lines = format!("sentinel main {};", sentinel.address());
    let mut nodes = ["a", "b", "c"].map(|name| node(name, &lines, &versions));
    for node in &nodes {
        wait::until("they know each other", || is_confirmed(node, 2));
    }
    fill(&nodes, "/x");
    fill(&nodes, "/kept");
    let kept = nodes[0].get("/kept").text();
    process::tree(nodes[2].id()).into_iter().for_each(|id| process::send(id, Signal::KILL));
    // The last of these may not have reached the replica.
    let mut version = String::new();
    for _ in 0..20 {
        fill(&nodes[..2], "/x");
        version = versions.next();
        let (_, states) = purge(&nodes[1], "/x");
        assert!(states.starts_with("b in_force, a in_force, c "), "{states}");
    }
    primary.kill();
    wait::until("the replica is the primary", || {
        replica.call(&["INFO", "replication"]).is_ok_and(|text| text.contains("role:master"))
    });
    for node in &nodes[..2] {
        assert_eq!(node.get("/x").text(), version);
    }
    nodes[2].run().expect("it starts");
    assert_eq!(nodes[2].get("/x").text(), version, "whether it is confirmed by then or not");
    for node in &nodes {
        wait::until("all are back", || is_confirmed(node, 2));
        assert_eq!(node.get("/x").text(), version);
        assert_eq!(node.get("/kept").text(), kept, "nothing else was purged on {}", node.id());
    }
    let version = versions.next();
    assert_eq!(purge(&nodes[2], "/x"), (200, "c in_force, a in_force, b in_force".to_owned()));
    assert!(nodes.iter().all(|node| node.get("/x").text() == version));
}

#[test]
fn two_nodes_started_with_serve_cluster_purge_each_other() {
    skip_on_nginx!();
    let engine = Engine::with(&["--requirepass", "word"]);
    let versions = Versions::start();
    let prefix = Prefix::new();
    let secret = prefix.write("secret", "the secret of the scenarios").display().to_string();
    let origin = format!("http://{}", versions.origin.address());
    let cluster = format!("redis://:word@{}", engine.address());
    let options =
        ["--microcache", "60s", "--purge", "local", "--cluster", &cluster, "--cluster-secret", &secret];
    let arguments: Vec<&str> = [origin.as_str()].into_iter().chain(options).collect();
    let nodes = [(); 2].map(|()| super::serve_url::serve(&arguments));
    let ports = nodes.each_ref().map(|(port, _)| *port);
    let is_hit = |port: u16| client::get(port, "/x").field("x-cache-status") == Some("HIT");
    for port in ports {
        wait::until("it is a hit", || is_hit(port));
    }
    let version = versions.next();
    // Both have the name of this machine, so a report cannot tell when they know each other.
    wait::until("the other node has purged it", || {
        let mut client = client::Client::connect(ports[0]).expect("a connection");
        assert_eq!(client.request("PURGE", "/x", &[]).expect("a response").status, 200);
        client::get(ports[1], "/x").text() == version
    });
}
