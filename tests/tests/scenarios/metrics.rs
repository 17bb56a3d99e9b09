//! `GET …/metrics`: each figure is read after what it counts was caused, and there is none that nothing causes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use millstream_tests::client::Client;
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::ports;
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;

const TEMPLATE: &str = "worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {}
http {
    access_log off;
    proxy_cache_path @DIR@/cache keys_zone=answers:1m;
    proxy_cache_path @DIR@/unkept keys_zone=unkept:1m;
    large_client_header_buffers 4 32k;
    keepalive_requests 100000;
    upstream api { server @ORIGIN@; keepalive 8; }
    upstream half { server 127.0.0.1:@CLOSED@ weight=100; server @ORIGIN@; }
    upstream none { server @ORIGIN@ down; }
    server {
        listen 127.0.0.1:@PORT@;
        proxy_http_version 1.1;
        proxy_set_header Connection \"\";
        location /plain { proxy_pass http://api; }
        location /closed { proxy_pass http://127.0.0.1:@CLOSED@; }
        location /half { proxy_pass http://half; }
        location /none { proxy_pass http://none; }
        location /silent { proxy_pass http://api; proxy_read_timeout 50ms; }
        location /logged { access_log @DIR@/access.log; return 204; }
        location /full { access_log /dev/full; return 204; }
        location ~ ^/held/(?:a|aa)+(?!b)\\.git$ { return 403; }
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
            location /zoned/return/3 { return 301 /; }
            location /zoned/return/4 { return 404; }
            location /zoned/return/5 { return 503; }
        }
        location /keyed/ { proxy_pass http://api; proxy_cache answers; proxy_cache_key $request_uri; }
        location /unkept/ { proxy_pass http://api; proxy_cache unkept; proxy_cache_key $uri; }
        location /api/ { api write=on; }
    }
}";

/// What is counted only where we have made a mistake: `app/src/panic_log/tests.rs` shows these.
const NOT_CAUSED: [&str; 1] = ["millstream_panics_total"];

/// An API that does what the path says; `/silent`, `/plain/slow` and what is asked again of `/zoned/stale` wait for the gate.
fn api(gate: &Arc<Gate>) -> Origin {
    let gate = Arc::clone(gate);
    let stale_asked = std::sync::atomic::AtomicBool::new(false);
    Origin::start(move |request: &Request| match request.target() {
        "/silent" | "/plain/slow" => vec![Step::Pass(Arc::clone(&gate)), Step::Close],
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

/// A server whose figures are read before and after something is done to it.
struct Counted {
    server: Server,
    /// The connection that figures are read on: always the same, so that it counts the same everywhere.
    reader: RefCell<Client>,
    /// What was read after it was caused.
    caused: RefCell<BTreeSet<String>>,
}

impl Counted {
    /// Every sample, by name and labels.
    fn samples(&self) -> BTreeMap<String, f64> {
        let text = self.reader.borrow_mut().get("/api/metrics").expect("an answer").text();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let parsed = lines.map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            (name.to_owned(), value.parse().expect("a number"))
        });
        parsed.collect()
    }

    /// Does something, and waits until each figure has grown by exactly as much as it should.
    fn causes(&self, growth: &[(&str, f64)], act: impl FnOnce()) {
        self.wait_for(growth, |grown, by| grown == by, act);
    }

    /// The same where only the least is known.
    fn causes_at_least(&self, growth: &[(&str, f64)], act: impl FnOnce()) {
        self.wait_for(growth, |grown, by| grown >= by, act);
    }

    /// Does something, and waits until a figure that rises and falls has a value: whoever left before may still be counted.
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

    /// Purges by the API.
    fn purge(&self, zone: &str, body: &str) -> u16 {
        self.post(&format!("/api/caches/{zone}/purge"), body, "X-Nothing: x")
    }

    fn post(&self, path: &str, body: &str, field: &str) -> u16 {
        let mut client = self.client();
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
        client.send(format!("{head}{field}\r\nContent-Length: {length}\r\n\r\n{body}")).expect("sent");
        client.answer().expect("an answer").status
    }
}

#[test]
fn every_figure_of_the_metrics_grows_by_what_it_counts() {
    if is_nginx() {
        return;
    }
    let (gate, closed) = (Arc::new(Gate::default()), ports::free().to_string());
    let origin = api(&gate);
    let server = Server::start(TEMPLATE, &[("ORIGIN", &origin.address()), ("CLOSED", &closed)]);
    let counted = Counted { reader: RefCell::new(server.client()), server, caused: RefCell::default() };
    // First, while no connection to the API is kept.
    upstreams(&counted);
    clients(&counted);
    zones(&counted);
    gate.open();
    purges(&counted);
    logs(&counted);
    let all = counted.samples();
    let told = all.keys().filter(|name| !name.contains("_bucket{") && !name.contains("cause="));
    let caused = counted.caused.borrow();
    let missing: Vec<_> =
        told.filter(|name| !caused.contains(*name) && !NOT_CAUSED.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "nothing caused {missing:?}");
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
        assert_eq!(counted.get(&format!("/held/{}c.git", "a".repeat(60))), 500);
    });
    counted.causes(&[("millstream_manage_refused_total", 1.0)], || {
        assert_eq!(counted.post("/api/purge", "{\"all\": true}", "X-Forwarded-For: 1.2.3.4"), 403);
    });
}

fn upstreams(counted: &Counted) {
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
    let retried = [
        ("millstream_upstream_retries_total", 1.0),
        ("millstream_upstream_peers_failed_total", 1.0),
        (&failures("error"), 1.0),
    ];
    counted.causes(&retried, || assert_eq!(counted.get("/half"), 200));
    counted.causes(&[("millstream_upstream_no_peers_total", 1.0)], || assert_eq!(counted.get("/none"), 502));
}

fn zones(counted: &Counted) {
    let class = |class: u8| format!("millstream_zone_responses_total{{zone=\"site\",class=\"{class}xx\"}}");
    let of_zone = |what: &str| format!("millstream_zone_{what}_total{{zone=\"site\"}}");
    counted.causes(&[(&class(1), 1.0), (&of_zone("requests"), 1.0)], || {
        let mut client = counted.client();
        client
            .send("GET /zoned/upgrade HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
            .expect("sent");
        assert_eq!(client.head().expect("a head").status, 101);
    });
    for (status, path) in [(301, "/zoned/return/3"), (404, "/zoned/return/4"), (503, "/zoned/return/5")] {
        counted.causes(&[(&class((status / 100) as u8), 1.0)], || assert_eq!(counted.get(path), status));
    }
    counted.causes_at_least(&[(&of_zone("bytes_received"), 40.0), (&of_zone("bytes_sent"), 40.0)], || {
        assert_eq!(counted.get("/zoned/return/4"), 404);
    });
    let cache =
        |status: &str| format!("millstream_zone_cache_requests_total{{zone=\"site\",status=\"{status}\"}}");
    let get = |path| move || assert_eq!(counted.get(path), 200);
    let soften = |path| {
        let body = format!("{{\"key\": \"{path}\", \"soft\": true}}");
        assert_eq!(counted.purge("answers", &body), 200);
    };
    let names = ["/zoned/a", "/zoned/stale", "/zoned/revalidated"];
    for name in names {
        counted.causes(&[(&cache("MISS"), 1.0), (&class(2), 1.0)], get(name));
        counted.causes(&[(&cache("HIT"), 1.0)], get(name));
        soften(name);
    }
    counted.causes(&[(&cache("EXPIRED"), 1.0)], get(names[0]));
    counted.causes(&[(&cache("STALE"), 1.0)], get(names[1]));
    counted.causes(&[(&cache("UPDATING"), 1.0)], get(names[1]));
    counted.causes(&[(&cache("REVALIDATED"), 1.0)], get(names[2]));
    counted.causes(&[(&cache("BYPASS"), 1.0)], || {
        assert_eq!(counted.server.get_with(names[0], &[("X-New", "1")]).status, 200);
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
