//! `GET …/metrics`: each figure is read after what it counts was caused, and there is none that nothing causes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use millstream_tests::client::Client;
use millstream_tests::frames::{End, Frames};
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::wait;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::write;

const TEMPLATE: &str = "worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {}
http {
    access_log off;
    proxy_cache_path @DIR@/cache keys_zone=answers:1m;
    proxy_cache_path @DIR@/unkept keys_zone=unkept:1m;
    large_client_header_buffers 4 32k;
    keepalive_requests 100000;
    api_allow local;
    http2 on; http2_max_concurrent_streams 1;
    upstream api { server @ORIGIN@; keepalive 8; }
    upstream half { server 127.0.0.1:@CLOSED@ weight=100; server @ORIGIN@; }
    upstream none { server @ORIGIN@ down; }
    upstream ill { server 127.0.0.1:@CLOSED@; }
    server {
        listen 127.0.0.1:@PORT@;
        status_zone web;
        proxy_http_version 1.1;
        proxy_set_header Connection \"\";
        listen 127.0.0.1:@TLSPORT@ ssl;
        ssl_certificate @DIR@/server.pem;
        ssl_certificate_key @DIR@/server.key;
        location /plain { proxy_pass http://api; }
        location /closed { proxy_pass http://127.0.0.1:@CLOSED@; }
        location /half { proxy_pass http://half; }
        location /none { proxy_pass http://none; }
        location /ill { proxy_pass http://ill; health_check interval=1h; }
        location /silent { proxy_pass http://api; proxy_read_timeout 50ms; }
        location /logged { access_log @DIR@/access.log; return 204; }
        location /full { access_log /dev/full; return 204; }
        location ~ ^/held/(?:a|aa)+(?!\\.)\\.git$ { return 403; }
        location /zoned/ {
            status_zone site;
            proxy_pass http://api;
            proxy_cache answers;
            proxy_cache_key $uri;
            proxy_cache_valid 200 1h;
            proxy_cache_tag tagged;
            proxy_cache_bypass $http_x_new;
            location /zoned/stale { proxy_pass http://api; proxy_cache_use_stale updating; proxy_cache_background_update on; }
            location /zoned/revalidated { proxy_pass http://api; proxy_cache_revalidate on; }
            location /zoned/upgrade { proxy_pass http://api; proxy_cache off; proxy_set_header Connection upgrade; proxy_set_header Upgrade x; }
            location /zoned/locked { proxy_pass http://api; proxy_cache_lock on; proxy_cache_lock_timeout 1ms; }
            location /zoned/return/3 { return 301 /; }
            location /zoned/return/4 { return 404; }
            location /zoned/return/5 { return 503; }
            location /zoned/return/none { return 444; }
        }
        location /keyed/ { proxy_pass http://api; proxy_cache answers; proxy_cache_key $request_uri; }
        location /unkept/ { proxy_pass http://api; proxy_cache unkept; proxy_cache_key $uri; }
    }
    # Whoever reads the figures is not in them.
    server {
        listen 127.0.0.1:@PORT@;
        server_name figures;
        status_zone off;
        location /api/ { status_zone off; api write=on; }
    }
}";

/// Caused elsewhere: our own errors by `app/src/panic_log/tests.rs`, exports of spans and metrics by the
/// scenarios of `traces` and `otlp_metrics`, and outliers by those of `outliers`.
const CAUSED_ELSEWHERE: [&str; 20] = [
    "millstream_panics_total",
    // Those of places that are short: `shortage`.
    "millstream_client_connections_shed_total",
    "millstream_client_connections_waited_total",
    "millstream_upstream_connections_refused_total",
    // By `server/src/filter/tests.rs`.
    "millstream_compressions_refused_total",
    // Those of the process, its caches and its reloads: `monitoring`.
    "process_",
    "millstream_build_info",
    "millstream_config_",
    "millstream_certificate_expiry_timestamp_seconds",
    "millstream_cache_entries",
    "millstream_cache_size_bytes",
    "millstream_cache_max_size_bytes",
    "millstream_cache_evictions_total",
    "millstream_cache_stale_on_error_total",
    // By `verify`.
    "millstream_cache_verified_total",
    "millstream_cache_verify_off",
    "millstream_cluster_",
    "millstream_trace_spans_total",
    "millstream_metric_exports_total",
    "millstream_upstream_peer_ejections_total",
];

/// Acts by the path; `/silent`, `/plain/slow` and repeated requests for `/zoned/stale` wait for the gate.
fn api(gate: &Arc<Gate>) -> Origin {
    let gate = Arc::clone(gate);
    let stale_asked = std::sync::atomic::AtomicBool::new(false);
    Origin::start(move |request: &Request| match request.target() {
        "/plain/404" => answer(404, &[], b""),
        "/plain/500" => answer(500, &[], b""),
        "/silent" | "/plain/slow" | "/zoned/locked" => vec![Step::Pass(Arc::clone(&gate)), Step::Close],
        "/plain/nonsense" => vec![Step::Send(b"nonsense\r\n\r\n".to_vec()), Step::Close],
        "/plain/cut" => {
            vec![Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1".to_vec()), Step::Close]
        }
        "/zoned/upgrade" => {
            let head = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
            vec![Step::Send(head.to_vec()), Step::Close]
        }
        "/zoned/stale" if stale_asked.swap(true, std::sync::atomic::Ordering::SeqCst) => {
            vec![Step::Pass(Arc::clone(&gate)), Step::Close]
        }
        _ if request.field("if-none-match").is_some() => answer(304, &[("ETag", "\"a\"")], b""),
        _ => answer(200, &[("ETag", "\"a\"")], b"12345"),
    })
}

struct Counted {
    server: Server,
    /// Always the same connection for reading, so that it counts the same everywhere.
    reader: RefCell<Client>,
    caused: RefCell<BTreeSet<String>>,
}

impl Counted {
    fn samples(&self) -> BTreeMap<String, f64> {
        let mut reader = self.reader.borrow_mut();
        let text = reader.ask("GET /api/metrics HTTP/1.1\r\nHost: figures\r\n\r\n").text();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let parsed = lines.map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            (name.to_owned(), value.parse().expect("a number"))
        });
        parsed.collect()
    }

    /// Waits until each figure has grown by exactly this much.
    fn causes(&self, growth: &[(&str, f64)], act: impl FnOnce()) {
        self.wait_for(growth, |grown, by| grown == by, act);
    }

    /// The same if only the minimum is known.
    fn causes_at_least(&self, growth: &[(&str, f64)], act: impl FnOnce()) {
        self.wait_for(growth, |grown, by| grown >= by, act);
    }

    /// Waits for a gauge to have a value: clients that have left may still be counted.
    fn shows(&self, name: &str, value: f64, act: impl FnOnce()) {
        act();
        let mut shown = None;
        let right = wait::within(Duration::from_secs(20), || {
            shown = self.samples().get(name).copied();
            (shown == Some(value)).then_some(())
        });
        assert!(right.is_some(), "{name}: {shown:?}, expected {value}");
        self.caused.borrow_mut().insert(name.to_owned());
    }

    fn wait_for(&self, growth: &[(&str, f64)], is_right: fn(f64, f64) -> bool, act: impl FnOnce()) {
        let before = self.samples();
        act();
        let mut wrong = Vec::new();
        let right = wait::within(Duration::from_secs(20), || {
            let now = self.samples();
            let value = |of: &BTreeMap<String, f64>, name| of.get(name).copied().unwrap_or(0.0);
            let grown = growth.iter().map(|&(name, by)| (name, value(&now, name) - value(&before, name), by));
            wrong = grown.filter(|&(_, grown, by)| !is_right(grown, by)).collect();
            wrong.is_empty().then_some(())
        });
        assert!(right.is_some(), "figure, growth, expected: {wrong:?}");
        self.caused.borrow_mut().extend(growth.iter().map(|(name, _)| (*name).to_owned()));
    }

    fn client(&self) -> Client {
        self.server.client()
    }

    fn get(&self, path: &str) -> u16 {
        self.server.get(path).status
    }

    fn purge(&self, zone: &str, body: &str) -> u16 {
        self.post(&format!("/api/caches/{zone}/purge"), body, "X-Nothing: x")
    }

    fn post(&self, path: &str, body: &str, field: &str) -> u16 {
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nHost: figures\r\nContent-Type: application/json\r\n");
        self.client().ask(format!("{head}{field}\r\nContent-Length: {length}\r\n\r\n{body}")).status
    }
}

#[test]
fn every_figure_of_the_metrics_grows_by_what_it_counts() {
    skip_on_nginx!();
    let (gate, closed) = (Arc::new(Gate::default()), ports::free().to_string());
    let origin = api(&gate);
    let tls_port = ports::free();
    let values =
        [("ORIGIN", origin.address()), ("CLOSED", closed.clone()), ("TLSPORT", tls_port.to_string())];
    let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
    let server = Server::start_in(Prefix::with_certificate("figures"), TEMPLATE, &values);
    let counted = Counted { reader: RefCell::new(server.client()), server, caused: RefCell::default() };
    for (what, value) in [("health_checks_total", 1.0), ("health_checks_failed_total", 1.0), ("up", 0.0)] {
        let name =
            format!("millstream_upstream_peer_{what}{{upstream=\"ill\",server=\"127.0.0.1:{closed}\"}}");
        counted.shows(&name, value, || {});
    }
    // While no connection to the API is kept.
    upstreams(&counted, &closed);
    peers(&counted, &origin.address().to_string());
    clients(&counted);
    handshakes(&counted, tls_port);
    streams(&counted);
    zones(&counted);
    gate.open();
    purges(&counted);
    logs(&counted);
    let all = counted.samples();
    let told = all.keys().filter(|name| !name.contains("_bucket{") && !name.contains("cause="));
    let caused: BTreeSet<String> = counted.caused.borrow().iter().map(|name| of_any(name)).collect();
    let missing: BTreeSet<String> = told
        .map(|name| of_any(name))
        .filter(|name| !caused.contains(name))
        .filter(|name| !CAUSED_ELSEWHERE.iter().any(|elsewhere| name.starts_with(elsewhere)))
        .collect();
    assert!(missing.is_empty(), "nothing caused {missing:?}");
    reload(&counted, &all);
}

/// Counts continue over a reload, even of what each configuration recreates.
fn reload(counted: &Counted, before: &BTreeMap<String, f64>) {
    counted.server.reload();
    let after = counted.samples();
    let lost = before.iter().filter(|(name, value)| {
        let counts = name.contains("_total") || name.contains("_count");
        counts && after.get(*name).is_none_or(|now| now < value)
    });
    let lost: Vec<_> = lost.collect();
    assert!(lost.is_empty(), "a reload took these back: {lost:?}");
}

/// Without the labels of zone, location, cache or server.
fn of_any(name: &str) -> String {
    let Some((family, labels)) = name.split_once('{') else { return name.to_owned() };
    let labels = labels.trim_end_matches('}').split(',').filter(|label| {
        !["zone=", "location=", "cache=", "upstream=", "server="].iter().any(|which| label.starts_with(which))
    });
    let labels: Vec<_> = labels.collect();
    format!("{family}{{{}}}", labels.join(","))
}

fn clients(counted: &Counted) {
    let mut kept = Vec::new();
    counted.causes_at_least(&[("millstream_client_connections_accepted_total", 3.0)], || {
        // And the one that asks.
        counted.shows("millstream_client_connections{state=\"active\"}", 4.0, || {
            kept.extend((0..3).map(|_| counted.client()));
            kept.iter_mut()
                .for_each(|client| assert_eq!(client.get("/zoned/return/4").expect("an answer").status, 404));
        });
    });
    drop(kept);
    let mut one = counted.client();
    counted.shows("millstream_client_connections{state=\"reading\"}", 1.0, || {
        one.send("GET /plain/slow HTTP/1.1\r\nHo").expect("sent");
    });
    counted.shows("millstream_client_connections{state=\"writing\"}", 2.0, || {
        one.send("st: a\r\n\r\n").expect("sent");
    });
    drop(one);
    counted.causes_at_least(&[("millstream_requests_total", 5.0)], || {
        let mut client = counted.client();
        (0..5).for_each(|_| _ = client.get("/zoned/return/4").expect("an answer"));
    });
    counted.causes(&[("millstream_cache_keys_too_long_total", 1.0)], || {
        assert_eq!(counted.get(&format!("/keyed/{}", "x".repeat(9000))), 200);
    });
    let held = "millstream_worker_loop_held_duration_seconds";
    counted.causes_at_least(&[(&format!("{held}_count"), 1.0), (&format!("{held}_sum"), 0.001)], || {
        // Many ways to read it, none of which fits: the matching reaches its limit.
        assert_eq!(counted.get(&format!("/held/{}.git", "a".repeat(60))), 500);
    });
    counted.causes(&[("millstream_manage_refused_total", 1.0)], || {
        assert_eq!(counted.post("/api/purge", "{\"all\": true}", "X-Forwarded-For: 1.2.3.4"), 403);
    });
}

/// A second stream is one too many while the first waits for the API.
fn streams(counted: &Counted) {
    let name = |of: &str| format!("millstream_client_http2_{of}");
    let mut frames = None;
    counted.causes(&[(&name("connections_total"), 1.0)], || {
        let mut opened = Frames::connect(counted.server.port());
        assert_eq!(opened.whole("/zoned/return/4").status, 404);
        frames = Some(opened);
    });
    let mut frames = frames.expect("it was opened");
    let waiting = frames.get("/plain/slow");
    counted.causes(&[(&name("streams_total{end=\"refused\"}"), 1.0)], || {
        let refused = frames.get("/zoned/return/4");
        assert_eq!(frames.answer(refused).end, End::Reset(ErrorCode::RefusedStream));
    });
    counted.causes(&[(&name("streams_total{end=\"reset\"}"), 1.0)], || frames.give_up(waiting));
    counted.causes(&[(&name("connection_errors_total{reason=\"broken\"}"), 1.0)], || {
        frames.send(&[0, 0, 0, 5, 0, 0, 0, 0, 1]);
    });
    counted.causes(&[(&name("connection_errors_total{reason=\"flood\"}"), 1.0)], || {
        let mut flooding = Frames::connect(counted.server.port());
        flooding.frame(|out| (0..2_000).for_each(|_| write::ping(out, false, *b"a flood.")));
        flooding.until("it is told to be calm", |now| {
            now.goaways().iter().any(|(_, code)| *code == ErrorCode::EnhanceYourCalm)
        });
    });
}

fn handshakes(counted: &Counted, port: u16) {
    let kind = |session: &str| format!("millstream_client_tls_handshakes_total{{session=\"{session}\"}}");
    // A session of its own, which is then resumed five times.
    counted.causes(&[(&kind("new"), 1.0), (&kind("reused"), 5.0)], || {
        let mut client = Command::new("openssl");
        client.args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-tls1_2", "-reconnect"]);
        let ended = client.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(ended.is_ok_and(|status| status.success()), "openssl is installed");
    });
    counted.causes(&[("millstream_client_tls_handshakes_failed_total", 1.0)], || {
        let mut stranger = Client::connect(port).expect("it listens");
        stranger.send([0; 16]).expect("sent");
        _ = stranger.rest_of_connection();
    });
}

fn upstreams(counted: &Counted, closed: &str) {
    let header = "millstream_upstream_header_duration_seconds";
    let exchanges = [
        ("millstream_upstream_requests_total", 2.0),
        ("millstream_upstream_connections_total{kind=\"new\"}", 1.0),
        ("millstream_upstream_connections_total{kind=\"reused\"}", 1.0),
        (&format!("{header}_count"), 2.0),
    ];
    counted.causes(&exchanges, || {
        // One connection, and so one worker.
        let mut client = counted.client();
        (0..2).for_each(|_| assert_eq!(client.get("/plain").expect("an answer").status, 200));
    });
    let traffic = [
        ("millstream_upstream_bytes_received_total", 40.0),
        ("millstream_upstream_bytes_sent_total", 30.0),
        (&format!("{header}_sum"), 0.000_001),
    ];
    counted.causes_at_least(&traffic, || assert_eq!(counted.get("/plain"), 200));
    let failures = |reason: &str| format!("millstream_upstream_failures_total{{reason=\"{reason}\"}}");
    counted.causes(&[(&failures("error"), 1.0)], || assert_eq!(counted.get("/closed"), 502));
    counted.causes(&[(&failures("error"), 1.0)], || {
        let mut client = counted.client();
        assert!(client.get("/plain/cut").is_err(), "it is cut");
    });
    counted.causes(&[(&failures("timeout"), 1.0)], || assert_eq!(counted.get("/silent"), 504));
    counted.causes(&[(&failures("invalid_header"), 1.0)], || assert_eq!(counted.get("/plain/nonsense"), 502));
    let half = |what: &str| {
        format!("millstream_upstream_peer_{what}_total{{upstream=\"half\",server=\"127.0.0.1:{closed}\"}}")
    };
    let retried = [
        ("millstream_upstream_retries_total", 1.0),
        ("millstream_upstream_peers_failed_total", 1.0),
        (&half("failures"), 1.0),
        (&half("outages"), 1.0),
        (&failures("error"), 1.0),
    ];
    counted.causes(&retried, || assert_eq!(counted.get("/half"), 200));
    counted.causes(&[("millstream_upstream_no_peers_total", 1.0)], || assert_eq!(counted.get("/none"), 502));
}

fn peers(counted: &Counted, origin: &str) {
    let of = |what: &str, label: &str| {
        format!("millstream_upstream_peer_{what}{{upstream=\"api\",server=\"{origin}\"{label}}}")
    };
    let class = |class: u8| of("responses_total", &format!(",class=\"{class}xx\""));
    for (status, path) in [(200, "/plain"), (404, "/plain/404"), (500, "/plain/500")] {
        let timing = |what: &str| of(&format!("{what}_duration_seconds_count"), "");
        let growth = [
            (&*of("requests_total", ""), 1.0),
            (&*class((status / 100) as u8), 1.0),
            (&*timing("header"), 1.0),
            (&*timing("response"), 1.0),
        ];
        counted.causes(&growth, || assert_eq!(counted.get(path), status));
    }
    let sum = |what: &str| of(&format!("{what}_duration_seconds_sum"), "");
    let growth = [
        (&*of("bytes_received_total", ""), 40.0),
        (&*of("bytes_sent_total", ""), 30.0),
        (&*sum("header"), 0.000_001),
        (&*sum("response"), 0.000_001),
    ];
    counted.causes_at_least(&growth, || assert_eq!(counted.get("/plain"), 200));
    let connects = [(&*of("connect_duration_seconds_count", ""), 1.0), (&*sum("connect"), 0.000_001)];
    let mut upgraded = counted.client();
    counted.causes_at_least(&[connects[0], connects[1], (&*class(1), 1.0)], || {
        // What is kept is in use by others.
        let asked = "GET /plain/slow HTTP/1.1\r\nHost: a\r\n\r\n";
        let mut busy: Vec<_> = (0..9).map(|_| counted.client()).collect();
        counted.shows(&of("active", ""), 9.0, || {
            busy.iter_mut().for_each(|client| client.send(asked).expect("sent"))
        });
        upgraded
            .send("GET /zoned/upgrade HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
            .expect("sent");
        assert_eq!(upgraded.head().expect("a head").status, 101);
    });
    let revalidated = class(3);
    counted.causes(&[(&*revalidated, 1.0)], || {
        assert_eq!(counted.get("/zoned/revalidated/peer"), 200);
        assert_eq!(counted.purge("answers", "{\"key\": \"/zoned/revalidated/peer\", \"soft\": true}"), 200);
        assert_eq!(counted.get("/zoned/revalidated/peer"), 200);
    });
}

/// A figure of requests in the zones of their server and their location.
fn both(what: &str, label: &str, by: f64) -> Vec<(String, f64)> {
    let scopes = [("zone", "zone=\"web\""), ("location", "location=\"site\"")];
    scopes.map(|(scope, which)| (format!("millstream_{scope}_{what}{{{which}{label}}}"), by)).to_vec()
}

fn zones(counted: &Counted) {
    let class = |class: &str| both("responses_total", &format!(",class=\"{class}\""), 1.0);
    let exactly = |growth: Vec<(String, f64)>, act: &dyn Fn()| {
        let growth: Vec<_> = growth.iter().map(|(name, by)| (name.as_str(), *by)).collect();
        counted.causes(&growth, act);
    };
    let at_least = |growth: Vec<(String, f64)>, act: &dyn Fn()| {
        let growth: Vec<_> = growth.iter().map(|(name, by)| (name.as_str(), *by)).collect();
        counted.causes_at_least(&growth, act);
    };
    exactly([class("1xx"), both("request_duration_seconds_count", "", 1.0)].concat(), &|| {
        let mut client = counted.client();
        client
            .send("GET /zoned/upgrade HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
            .expect("sent");
        assert_eq!(client.head().expect("a head").status, 101);
    });
    let asked = "GET /zoned/upgrade HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    for (name, value) in both("processing", "", 1.0) {
        let mut held = counted.client();
        counted.shows(&name, value, || held.send(asked).expect("sent"));
    }
    for (status, path) in [(301, "/zoned/return/3"), (404, "/zoned/return/4"), (503, "/zoned/return/5")] {
        exactly(class(&format!("{}xx", status / 100)), &|| assert_eq!(counted.get(path), status));
    }
    exactly(class("none"), &|| {
        assert!(counted.client().get("/zoned/return/none").is_err(), "it is closed on")
    });
    let bytes = [both("bytes_received_total", "", 40.0), both("bytes_sent_total", "", 40.0)];
    at_least(bytes.concat(), &|| assert_eq!(counted.get("/zoned/return/4"), 404));
    cached(counted, exactly, at_least);
}

fn cached(
    counted: &Counted,
    exactly: impl Fn(Vec<(String, f64)>, &dyn Fn()),
    at_least: impl Fn(Vec<(String, f64)>, &dyn Fn()),
) {
    let of_cache =
        |what: &str, label: &str| format!("millstream_cache_{what}_total{{cache=\"answers\"{label}}}");
    let status = |status: &str| {
        let label = format!(",status=\"{status}\"");
        let mut growth = both("cache_requests_total", &label, 1.0);
        growth.push((of_cache("responses", &label), 1.0));
        growth
    };
    let origin =
        |what: &str, by: f64| vec![(format!("millstream_origin_{what}_total{{location=\"site\"}}"), by)];
    let get = |path: &'static str| move || assert_eq!(counted.get(path), 200);
    let names = ["/zoned/a", "/zoned/stale", "/zoned/revalidated"];
    let soften = |path| {
        let body = format!("{{\"key\": \"{path}\", \"soft\": true}}");
        assert_eq!(counted.purge("answers", &body), 200);
    };
    at_least(
        [origin("duration_seconds", 0.000_001), both("request_duration_seconds_sum", "", 0.000_001)].concat(),
        &|| {
            get("/zoned/first")();
        },
    );
    at_least(origin("saved_duration_seconds", 0.000_001), &get("/zoned/first"));
    for name in names {
        let answered = both("responses_total", ",class=\"2xx\"", 1.0);
        exactly([status("MISS"), answered, origin("requests", 1.0)].concat(), &get(name));
        exactly([status("HIT"), origin("saved_requests", 1.0)].concat(), &get(name));
        soften(name);
    }
    let bytes = |of: &str| vec![(of_cache("bytes", &format!(",status=\"{of}\"")), 100.0)];
    exactly(status("EXPIRED"), &get(names[0]));
    exactly(status("STALE"), &get(names[1]));
    exactly(status("UPDATING"), &get(names[1]));
    at_least(bytes("UPDATING"), &get(names[1]));
    exactly(status("REVALIDATED"), &get(names[2]));
    let bypass = || assert_eq!(counted.server.get_with(names[0], &[("X-New", "1")]).status, 200);
    exactly(status("BYPASS"), &bypass);
    at_least(bytes("BYPASS"), &bypass);
    at_least(bytes("HIT"), &get(names[0]));
    at_least(bytes("MISS"), &get("/zoned/second"));
    soften(names[0]);
    at_least(bytes("EXPIRED"), &get(names[0]));
    soften(names[2]);
    at_least(bytes("REVALIDATED"), &get(names[2]));
    get("/zoned/stale/second")();
    soften("/zoned/stale/second");
    at_least(bytes("STALE"), &get("/zoned/stale/second"));
    let mut clients = [counted.client(), counted.client()];
    let waits = [
        (&*of_cache("waits", ""), 1.0),
        ("millstream_cache_wait_seconds_total{cache=\"answers\"}", 0.000_001),
    ];
    counted.causes_at_least(&waits, || {
        for client in &mut clients {
            // Each goes to the API in the end, the second for want of patience.
            counted.causes(&[("millstream_upstream_requests_total", 1.0)], || {
                client.send("GET /zoned/locked HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
            });
        }
    });
}

fn purges(counted: &Counted) {
    for (by, body) in [
        ("key", "{\"key\": \"/zoned/a\"}"),
        ("prefix", "{\"key_prefix\": \"/zoned/\"}"),
        ("tag", "{\"tags\": [\"tagged\"]}"),
        ("all", "{\"all\": true}"),
    ] {
        counted.causes(&[(&format!("millstream_cache_purges_total{{by=\"{by}\"}}"), 1.0)], || {
            assert_eq!(counted.purge("answers", body), 200, "{body}");
        });
    }
    // Nothing can take the place of a folder.
    let journal = counted.server.prefix().join("unkept/.millstream-purges");
    fs::create_dir(&journal).expect("the zone's folder is there");
    counted.causes(&[("millstream_cache_purges_failed_total", 1.0)], || {
        assert_eq!(counted.purge("unkept", "{\"all\": true}"), 500);
    });
}

fn logs(counted: &Counted) {
    counted.causes_at_least(&[("millstream_log_bytes_written_total", 60.0)], || {
        assert_eq!(counted.get("/logged"), 204);
    });
    let lost = [("millstream_log_bytes_dropped_total", 60.0), ("millstream_log_errors_total", 1.0)];
    counted.causes_at_least(&lost, || assert_eq!(counted.get("/full"), 204));
}
