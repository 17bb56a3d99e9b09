//! Clients that others wrote for nginx and NGINX Plus read what ours tells, and change its upstreams: nginx-prometheus-exporter and
//! nginx-plus-go-client.

use std::collections::BTreeMap;
use std::time::Duration;

use millstream_tests::client::Client;
use millstream_tests::load::Load;
use millstream_tests::name_server::NameServer;
use millstream_tests::nginx_clients::{Exporter, plus};
use millstream_tests::origin::{Origin, Request, answer};
use millstream_tests::server::Server;
use millstream_tests::{ports, wait};
use serde_json::{Value, json};

const TEMPLATE: &str = site! {
    main "worker_processes 2;" log "notice"
    http "dashboard 127.0.0.1:@DASHBOARD@;
        @RIGHTS@
        resolver @NAMES@ status_zone=names;
        proxy_cache_path memory keys_zone=answers:1m;
        limit_req_zone $binary_remote_addr zone=slow:1m rate=1r/m;
        limit_conn_zone $binary_remote_addr zone=few:1m;
        upstream api { zone api 64k; server @ORIGIN@ max_conns=90; keepalive 4; queue 5; }
        # One name, two peers.
        upstream many { zone many 64k; server many.test:80 resolve; server 127.0.0.1:1 down; }"
    server "status_zone web;
        location / {
            status_zone site;
            proxy_pass http://api; proxy_http_version 1.1; proxy_set_header Connection \"\";
            proxy_cache answers; proxy_cache_valid 200 1h; proxy_cache_key $uri; limit_conn few 10;
        }
        location /uncached { proxy_pass http://api; proxy_http_version 1.1; proxy_set_header Connection \"\"; }
        location /checked { proxy_pass http://api; health_check interval=1h; }
        location /limited { limit_req zone=slow; stub_status; }
        location /many { proxy_pass http://many; }
        location /stub_status { status_zone off; stub_status; }"
};

struct Busy {
    server: Server,
    dashboard: u16,
    origin: Origin,
    _names: NameServer,
}

impl Busy {
    fn start(rights: &str) -> Busy {
        let origin = Origin::start(|request: &Request| match request.target() {
            "/absent" => answer(404, &[], b""),
            _ => answer(200, &[], b"12345"),
        });
        let (names, dashboard) = (NameServer::start(), ports::free());
        names.say("many.test", &["127.0.0.2", "127.0.0.3"], 600);
        let values = [
            ("ORIGIN", origin.address()),
            ("DASHBOARD", dashboard.to_string()),
            ("NAMES", names.address()),
            ("RIGHTS", rights.to_owned()),
        ];
        let server = Server::start(TEMPLATE, &values.each_ref().map(|(name, value)| (*name, value.as_str())));
        Busy { server, dashboard, origin, _names: names }
    }

    /// Ten requests on one connection, which stays open: a miss and three hits, a response that is not
    /// stored, three that bypass the cache, and one each admitted and refused by a limit.
    fn ask(&self) -> Client {
        let mut client = self.server.client();
        for (path, status) in [
            ("/a", 200),
            ("/a", 200),
            ("/a", 200),
            ("/a", 200),
            ("/absent", 404),
            ("/uncached", 200),
            ("/uncached", 200),
            ("/uncached", 200),
            ("/limited", 200),
            ("/limited", 503),
        ] {
            assert_eq!(client.get(path).expect("an answer").status, status, "{path}");
        }
        client
    }

    fn plus(&self, asked: &[&str]) -> Result<Value, Value> {
        plus(self.dashboard, "secret", asked).expect("it was there before")
    }

    fn servers(&self) -> BTreeMap<String, Value> {
        let told = self.plus(&["read", "api"]).expect("it is read");
        let all = told["GetHTTPServers"].as_array().expect("servers").iter();
        all.map(|one| (one["server"].as_str().expect("a name").to_owned(), one.clone())).collect()
    }
}

#[test]
fn the_exporter_tells_of_the_api_of_nginx_plus_what_was_caused() {
    skip_on_nginx!();
    let busy = Busy::start("");
    let Some(exporter) = Exporter::start(&format!("http://127.0.0.1:{}/api", busy.dashboard), true) else {
        return;
    };
    let _client = busy.ask();
    let peer = format!("server=\"{}\",upstream=\"api\"", busy.origin.address());
    let expected: BTreeMap<String, f64> = [
        ("up", "", 1.0),
        ("connections_dropped", "", 0.0),
        ("server_zone_requests", "server_zone=\"web\"", 10.0),
        ("server_zone_processing", "server_zone=\"web\"", 0.0),
        ("server_zone_discarded", "server_zone=\"web\"", 0.0),
        ("server_zone_responses", "code=\"2xx\",server_zone=\"web\"", 8.0),
        ("server_zone_responses", "code=\"4xx\",server_zone=\"web\"", 1.0),
        ("server_zone_responses", "code=\"5xx\",server_zone=\"web\"", 1.0),
        ("server_zone_responses_codes", "code=\"200\",server_zone=\"web\"", 8.0),
        ("server_zone_responses_codes", "code=\"404\",server_zone=\"web\"", 1.0),
        ("server_zone_responses_codes", "code=\"503\",server_zone=\"web\"", 1.0),
        ("location_zone_requests", "location_zone=\"site\"", 5.0),
        ("location_zone_responses", "code=\"2xx\",location_zone=\"site\"", 4.0),
        ("location_zone_responses_codes", "code=\"404\",location_zone=\"site\"", 1.0),
        ("upstream_server_state", "@", 1.0),
        ("upstream_server_limit", "@", 90.0),
        ("upstream_server_active", "@", 0.0),
        ("upstream_server_requests", "@", 5.0),
        ("upstream_server_responses", "code=\"2xx\",@", 4.0),
        ("upstream_server_responses", "code=\"4xx\",@", 1.0),
        ("upstream_server_fails", "@", 0.0),
        ("upstream_server_unavail", "@", 0.0),
        ("upstream_server_health_checks_checks", "@", 1.0),
        ("upstream_server_health_checks_fails", "@", 0.0),
        ("upstream_keepalive", "upstream=\"api\"", 1.0),
        ("upstream_zombies", "upstream=\"api\"", 0.0),
        ("upstream_server_state", "server=\"127.0.0.2:80\",upstream=\"many\"", 1.0),
        ("upstream_server_state", "server=\"127.0.0.3:80\",upstream=\"many\"", 1.0),
        ("upstream_server_state", "server=\"127.0.0.1:1\",upstream=\"many\"", 3.0),
        ("cache_hit_responses", "zone=\"answers\"", 3.0),
        ("cache_miss_responses", "zone=\"answers\"", 2.0),
        ("limit_request_passed", "zone=\"slow\"", 1.0),
        ("limit_request_rejected", "zone=\"slow\"", 1.0),
        ("limit_connection_passed", "zone=\"few\"", 5.0),
        ("resolver_name", "resolver=\"names\"", 1.0),
        ("resolver_noerror", "resolver=\"names\"", 1.0),
    ]
    .into_iter()
    .map(|(name, labels, value)| (named(name, &labels.replace('@', &peer)), value))
    .collect();
    let differs = |samples: &BTreeMap<String, f64>| -> Vec<String> {
        let others = expected.iter().filter(|(name, value)| samples.get(*name) != Some(*value));
        others.map(|(name, value)| format!("{name} {:?} and not {value}", samples.get(name))).collect()
    };
    // The last of them may be counted a moment after its answer.
    let told = wait::within(Duration::from_secs(10), || {
        Some(exporter.samples()).filter(|told| differs(told).is_empty())
    });
    let samples = told
        .unwrap_or_else(|| panic!("{:#?}, {:?}", differs(&exporter.samples()), exporter.complaints().last()));
    for (name, labels) in [
        ("connections_accepted", ""),
        ("http_requests_total", ""),
        // The exporter itself is one who asks.
        ("http_requests_current", ""),
        ("server_zone_received", "server_zone=\"web\""),
        ("server_zone_sent", "server_zone=\"web\""),
        ("upstream_server_sent", peer.as_str()),
        ("upstream_server_received", peer.as_str()),
        ("cache_hit_bytes", "zone=\"answers\""),
        ("worker_http_requests_total", "id=\"0\",pid=\"@\""),
    ] {
        let name = named(name, &labels.replace('@', &busy.server.serving_id().to_string()));
        assert!(samples.get(&name).is_some_and(|value| *value > 0.0), "{name}: {:?}", samples.get(&name));
    }
    // It asks for a licence where NGINX Plus of release 33 or later says who it is. Ours has none, and is no release of that.
    let complaints = exporter.complaints();
    assert!(complaints.iter().all(|line| line.contains("plus version not found")), "{complaints:?}");
}

fn named(name: &str, labels: &str) -> String {
    let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    format!("nginxplus_{name}{labels}")
}

#[test]
fn the_exporter_tells_of_stub_status_what_was_caused() {
    skip_on_nginx!();
    let busy = Busy::start("");
    let url = format!("http://127.0.0.1:{}/stub_status", busy.server.port());
    let Some(exporter) = Exporter::start(&url, false) else { return };
    let before = exporter.samples();
    let _client = busy.ask();
    let after = exporter.samples();
    let figure = |samples: &BTreeMap<String, f64>, name: &str| samples[&format!("nginx_{name}")];
    let grown = |name: &str| figure(&after, name) - figure(&before, name);
    // The exporter keeps its connection, on which its second question is the eleventh request.
    let grown = ["http_requests_total", "connections_accepted", "connections_handled"].map(grown);
    assert_eq!(grown, [11.0, 1.0, 1.0], "{after:?}");
    let now =
        ["up", "connections_active", "connections_reading", "connections_writing", "connections_waiting"];
    // A connection waits a moment after its answer.
    wait::until("one client waits while the exporter is answered", || {
        let samples = exporter.samples();
        now.map(|name| figure(&samples, name)) == [1.0, 2.0, 0.0, 1.0, 1.0]
    });
    assert_eq!(exporter.complaints(), Vec::<String>::new());
}

#[test]
fn the_client_of_nginx_plus_reads_everything_that_is_here() {
    skip_on_nginx!();
    let busy = Busy::start("api_token secret;");
    let Some(refused) = plus(busy.dashboard, "", &["read", "api"]) else { return };
    let refused = refused.expect_err("it shows no token");
    assert_eq!((&refused["Status"], &refused["Code"]), (&json!(403), &json!("Forbidden")), "{refused}");
    let _client = busy.ask();
    let mut told = Value::Null;
    wait::until("all is counted", || {
        told = busy.plus(&["read", "api"]).expect("it is read");
        told["GetStats"]["ServerZones"]["web"]["Requests"] == 10
    });
    let all = told.as_object().expect("by method");
    assert!(all.len() > 25, "{:?}", all.keys());
    // Streams, keyvals and a licence are not here; the client says so of them alone, and does without them in its statistics.
    let absent: Vec<(&str, &Value)> = all
        .iter()
        .filter(|(_, of)| !of["error"].is_null())
        .map(|(name, of)| (name.as_str(), &of["error"]["Code"]))
        .collect();
    let not_found = json!("PathNotFound");
    let expected = [
        ("GetAllKeyValPairs", &not_found),
        ("GetAllStreamKeyValPairs", &not_found),
        ("GetAvailableStreamEndpoints", &not_found),
        ("GetKeyValPairs", &not_found),
        ("GetNginxLicense", &json!("")),
        ("GetStreamKeyValPairs", &not_found),
        ("GetStreamServers", &not_found),
    ];
    assert_eq!(absent, expected, "{told}");
    assert_eq!(told["GetMaxAPIVersion"], 9);
    assert_eq!(told["GetNginxInfo"]["pid"], busy.server.serving_id());
    for (method, path, figure) in [
        ("GetConnections", "/Dropped", json!(0)),
        ("GetCaches", "/answers/Hit/Responses", json!(3)),
        ("GetCaches", "/answers/Miss/Responses", json!(2)),
        ("GetHTTPConnectionsLimit", "/few/Passed", json!(5)),
        ("GetHTTPLimitReqs", "/slow/Rejected", json!(1)),
        ("GetLocationZones", "/site/Requests", json!(5)),
        ("GetProcesses", "/Respawned", json!(0)),
        ("GetResolvers", "/names/responses/Noerror", json!(1)),
        ("GetServerZones", "/web/Responses/Codes/503", json!(1)),
        ("GetServerZones", "/web/Responses/Total", json!(10)),
        ("GetSlabs", "", json!({})),
        ("GetUpstreams", "/api/Peers/0/Requests", json!(5)),
        ("GetUpstreams", "/api/Peers/0/max_conns", json!(90)),
        ("GetUpstreams", "/api/Queue/max_size", json!(5)),
        ("GetUpstreams", "/many/Peers/0/Name", json!("many.test:80")),
        ("GetUpstreams", "/many/Peers/0/Server", json!("127.0.0.2:80")),
        ("GetWorkers", "/0/pid", json!(busy.server.serving_id())),
        ("GetStats", "/StreamUpstreams", json!({})),
        ("GetStats", "/StreamZoneSync", json!(null)),
        ("GetStats", "/Caches/answers/Hit/Responses", json!(3)),
    ] {
        assert_eq!(told[method].pointer(path), Some(&figure), "{method} {path}: {}", told[method]);
    }
    assert!(told["GetHTTPRequests"]["Total"].as_u64() > Some(10), "{}", told["GetHTTPRequests"]);
}

#[test]
fn the_client_of_nginx_plus_adds_drains_and_removes_servers_and_no_request_fails() {
    skip_on_nginx!();
    let busy = Busy::start("api_token secret;");
    let other = Origin::fixed(200, &[], b"12345");
    let (one, two) = (busy.origin.address(), other.address());
    let server = json!({ "server": two, "weight": 3, "max_fails": 2, "fail_timeout": "5s" }).to_string();
    let Some(refused) = plus(busy.dashboard, "", &["add", "api", &server]) else { return };
    assert_eq!(refused.expect_err("it shows no token")["Status"], 403);
    let load = Load::start(busy.server.port(), "/uncached", 4);
    assert_eq!(busy.plus(&["add", "api", &server]), Ok(Value::Null));
    let twice = busy.plus(&["add", "api", &server]).expect_err("it is there");
    assert!(twice["Text"].as_str().is_some_and(|text| text.contains("server already exists")), "{twice}");
    wait::until("it is asked", || other.count() > 100);
    let told = &busy.servers()[&two];
    assert_eq!(
        (&told["weight"], &told["max_fails"], &told["fail_timeout"]),
        (&json!(3), &json!(2), &json!("5s"))
    );
    // What it was told of a server is what it sends back, but for what is to change.
    let mut first = busy.servers()[&one].clone();
    first["drain"] = true.into();
    assert_eq!(busy.plus(&["update", "api", &first.to_string()]), Ok(Value::Null));
    assert_eq!(busy.servers()[&one]["drain"], true);
    let (drained, before) = (busy.origin.count(), other.count());
    wait::until("requests went by", || other.count() > before + 200);
    // Those that were under way when it was told.
    assert!(busy.origin.count() <= drained + 4, "one that drains is asked by nobody new");
    assert_eq!(busy.plus(&["delete", "api", &json!({ "server": one }).to_string()]), Ok(Value::Null));
    assert_eq!(busy.servers().keys().collect::<Vec<_>>(), [&two]);
    // A whole list in place of what is there: two of them as they are, one of which is to be otherwise, and one that is new.
    let replaced =
        |servers: Value| busy.plus(&["replace", "api", &servers.to_string()]).expect("it is replaced");
    let told = replaced(json!([{ "server": one }, { "server": two, "weight": 2 }]));
    assert_eq!(told, json!({ "added": [one], "deleted": [], "updated": [two] }));
    assert_eq!(busy.servers()[&two]["weight"], 2);
    let fail_timeout = busy.servers()[&two]["fail_timeout"].clone();
    let same = json!([{ "server": one }, { "server": two, "weight": 2, "max_fails": 2, "fail_timeout": fail_timeout }]);
    assert_eq!(replaced(same), json!({ "added": [], "deleted": [], "updated": [] }), "{:?}", busy.servers());
    let told = replaced(json!([{ "server": one }]));
    assert_eq!(told, json!({ "added": [], "deleted": [two], "updated": [] }));
    let report = load.finish();
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    let absent = busy.plus(&["delete", "none", "{}"]).expect_err("there is no such upstream");
    assert_eq!((&absent["Status"], &absent["Code"]), (&json!(404), &json!("UpstreamNotFound")), "{absent}");
}
