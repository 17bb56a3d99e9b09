//! The `dashboard`: a listener of its own with the API, the metrics and what monitors ask for, and who may look.

mod page;

use millstream_tests::client::{self, Answer, Client};
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::wait;
use rustix::process::Signal;
use serde_json::Value;
use std::sync::Arc;

const TEMPLATE: &str = site! {
    main "worker_processes 2;" log "info"
    http "dashboard @DASHBOARD@;
        @RIGHTS@
        proxy_cache_path @DIR@/cache keys_zone=answers:1m;
        limit_req_zone $binary_remote_addr zone=slow:1m rate=1r/m;
        limit_conn_zone $binary_remote_addr zone=few:1m;
        upstream api { server @ORIGIN@ weight=3; server 127.0.0.1:@CLOSED@ backup; }"
    server "status_zone web;
        location / {
            status_zone site;
            proxy_pass http://api; proxy_cache answers; proxy_cache_valid 200 1h; proxy_cache_key $uri;
            limit_conn few 10;
        }
        location /limited { limit_req zone=slow; stub_status; }"
};

struct Looked {
    server: Server,
    port: u16,
    origin: Origin,
}

impl Looked {
    fn start(rights: &str) -> Looked {
        Looked::start_at(rights, |port| port.to_string())
    }

    fn start_at(rights: &str, address: impl Fn(u16) -> String) -> Looked {
        let (origin, port, closed) = (Origin::fixed(200, &[], b"stored"), ports::free(), ports::free());
        let values = [
            ("ORIGIN", origin.address()),
            ("DASHBOARD", address(port)),
            ("CLOSED", closed.to_string()),
            ("RIGHTS", rights.to_owned()),
        ];
        let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
        let server = Server::start(TEMPLATE, &values);
        Looked { server, port, origin }
    }

    fn get(&self, path: &str) -> Answer {
        client::get(self.port, path)
    }

    fn status(&self, path: &str, fields: &[(&str, &str)]) -> u16 {
        client::get_with(self.port, path, fields).status
    }

    fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    fn purge(&self, fields: &str) -> u16 {
        let mut client = Client::connect(self.port).expect("it listens");
        let head = "POST /api/9/http/caches/answers/purge HTTP/1.1\r\nContent-Type: application/json";
        client.ask(format!("{head}\r\n{fields}\r\nContent-Length: 12\r\n\r\n{{\"all\":true}}")).status
    }
}

#[test]
fn the_api_tells_what_was_done_in_the_form_of_nginx_plus() {
    skip_on_nginx!();
    let looked = Looked::start("");
    for _ in 0..4 {
        assert_eq!(looked.server.get("/a").status, 200);
    }
    assert_eq!([looked.server.get("/limited").status, looked.server.get("/limited").status], [200, 503]);
    assert_eq!(looked.json("/api/"), serde_json::json!([9]));
    let below: Vec<String> = serde_json::from_value(looked.json("/api/9/")).expect("names");
    assert!(
        ["nginx", "connections", "http", "ssl"].iter().all(|name| below.iter().any(|known| known == name))
    );
    // Everything that is named is there.
    let needs_more = ["purge", "explain", "shadow", "metrics", "live"];
    for name in below.iter().filter(|name| !needs_more.contains(&name.as_str())) {
        looked.json(&format!("/api/9/{name}"));
    }
    let below: Vec<String> = serde_json::from_value(looked.json("/api/9/http")).expect("names");
    for name in &below {
        looked.json(&format!("/api/9/http/{name}"));
    }
    let nginx = looked.json("/api/9/nginx");
    assert_eq!(
        (&nginx["generation"], &nginx["pid"]),
        (&1.into(), &looked.server.serving_id().into()),
        "{nginx}"
    );
    wait::until("all requests are counted", || looked.json("/api/9/http/server_zones/web")["requests"] == 6);
    let zone = looked.json("/api/9/http/server_zones/web");
    assert_eq!((&zone["responses"]["2xx"], &zone["responses"]["5xx"]), (&5.into(), &1.into()), "{zone}");
    // `/limited` was let through once and then refused; a peer's connection idles in the worker that asked.
    assert_eq!(zone["responses"]["codes"], serde_json::json!({ "200": 5, "503": 1 }), "{zone}");
    assert_eq!(looked.json("/api/9/http/upstreams/api")["keepalive"], 1);
    let metrics = looked.get("/metrics");
    for line in [
        "millstream_limit_req_requests_total{zone=\"slow\",outcome=\"passed\"} 1",
        "millstream_limit_req_requests_total{zone=\"slow\",outcome=\"rejected\"} 1",
        "millstream_limit_conn_requests_total{zone=\"few\",outcome=\"passed\"} 4",
        "millstream_limit_conn_requests_total{zone=\"few\",outcome=\"rejected_dry_run\"} 0",
    ] {
        assert!(metrics.text().lines().any(|known| known == line), "{line}: {}", metrics.text());
    }
    let zone = looked.json("/api/9/http/location_zones/site");
    assert_eq!((&zone["cache"]["hit"], &zone["origin"]["requests"]), (&3.into(), &1.into()), "{zone}");
    let zone = looked.json("/api/9/http/caches/answers");
    assert_eq!((&zone["hit"]["responses"], &zone["miss"]["responses"]), (&3.into(), &1.into()), "{zone}");
    let upstream = looked.json("/api/9/http/upstreams/api");
    let [first, second] = &upstream["peers"].as_array().expect("peers")[..] else { panic!("{upstream}") };
    assert_eq!((&first["server"], &first["weight"]), (&looked.origin.address().into(), &3.into()));
    assert_eq!(
        (&first["requests"], &first["responses"]["2xx"], &first["state"]),
        (&1.into(), &1.into(), &"up".into())
    );
    assert_eq!((&second["backup"], &second["requests"]), (&true.into(), &0.into()));
    let server = looked.json(&format!("/api/9/http/upstreams/api/servers/{}", first["id"]));
    assert_eq!((&server["server"], &server["max_fails"]), (&first["server"], &1.into()));
    let limits = looked.json("/api/9/http/limit_reqs/slow");
    assert_eq!(
        (&limits["passed"], &limits["rejected"], &limits["delayed"]),
        (&1.into(), &1.into(), &0.into())
    );
    assert_eq!(looked.json("/api/9/http/limit_conns/few")["passed"], 4);
    assert_eq!(
        looked.json("/api/9/http/server_zones?fields=sent,requests")["web"]
            .as_object()
            .map(|zone| zone.len()),
        Some(2)
    );
    assert_eq!(looked.json("/api/9/http/upstreams?fields="), serde_json::json!(["api"]));
    for (path, code) in [
        ("/api/9/http/upstreams/other", "UpstreamNotFound"),
        ("/api/9/http/upstreams/api/servers/99", "UpstreamServerNotFound"),
        ("/api/9/http/server_zones/web/more", "PathNotFound"),
        ("/api/9/http/nginx", "PathNotFound"),
        ("/other", "PathNotFound"),
    ] {
        let answer = looked.get(path);
        let told = answer.json();
        assert_eq!((answer.status, &told["error"]["code"]), (404, &code.into()), "{path}");
    }
    let text = looked.get("/metrics").text();
    assert!(text.contains("millstream_requests_total"), "{text}");
    // Whoever looks is not in the figures, and is no server that a URL could mean.
    let zones = looked.json("/api/9/http/server_zones?fields=");
    assert_eq!(zones, serde_json::json!(["web"]));
    let explained = looked.json(&format!("/api/9/explain?url=http://127.0.0.1:{}/a", looked.port));
    assert_eq!(explained["location"]["name"], "location /", "{explained}");
}

#[test]
fn strangers_and_their_pages_are_refused_and_the_own_page_may_purge() {
    skip_on_nginx!();
    let looked = Looked::start("api_allow local;");
    let host = format!("127.0.0.1:{}", looked.port);
    let path = "/api/9/connections";
    assert_eq!(looked.status(path, &[("Host", &host)]), 200);
    // A name that is resolved to this machine once a page of it is loaded.
    for path in [path, "/metrics", "/api/9/http/caches"] {
        assert_eq!(looked.status(path, &[("Host", "evil.example")]), 403, "{path}");
        assert_eq!(looked.status(path, &[("X-Forwarded-For", "1.2.3.4")]), 403, "{path}");
        assert_eq!(looked.status(path, &[("Sec-Fetch-Site", "cross-site")]), 403, "{path}");
        assert_eq!(looked.status(path, &[("Origin", "http://evil.example")]), 403, "{path}");
    }
    assert_eq!(looked.server.get("/a").status, 200);
    for page in [
        format!("Host: {host}\r\nOrigin: http://evil.example"),
        format!("Host: {host}\r\nOrigin: null"),
        format!("Host: {host}\r\nSec-Fetch-Site: cross-site"),
        "Host: evil.example\r\nOrigin: http://evil.example\r\nSec-Fetch-Site: same-origin".to_owned(),
    ] {
        assert_eq!(looked.purge(&page), 403, "{page}");
    }
    assert_eq!(looked.server.get("/a").status, 200);
    assert_eq!(looked.origin.count(), 1, "nothing was purged");
    assert_eq!(
        looked.purge(&format!("Host: {host}\r\nOrigin: http://{host}\r\nSec-Fetch-Site: same-origin")),
        200
    );
    assert_eq!(looked.server.get("/a").status, 200);
    assert_eq!(looked.origin.count(), 2);
    looked.server.says("dashboard refused: the request was sent by a web page of another origin");
}

#[test]
fn on_an_address_that_others_reach_it_wants_a_list_or_a_token() {
    skip_on_nginx!();
    let everywhere = |port: u16| format!("0.0.0.0:{port}");
    let (port, prefix) = (ports::free(), Prefix::new());
    let values =
        [("ORIGIN", "127.0.0.1:9"), ("DASHBOARD", &*everywhere(port)), ("CLOSED", "9"), ("RIGHTS", "")];
    let refused = Server::try_start(prefix, TEMPLATE, &values).err().expect("it does not start");
    assert!(refused.output.contains("is open to other machines"), "{}", refused.output);
    let looked = Looked::start_at("api_token 0123456789abcdef;", everywhere);
    let path = "/api/9/connections";
    assert_eq!(looked.status(path, &[]), 403);
    assert_eq!(looked.status(path, &[("Authorization", "Bearer 0123456789abcdeF")]), 403);
    let shown = ("Authorization", "Bearer 0123456789abcdef");
    assert_eq!(looked.status(path, &[shown]), 200);
    assert_eq!(looked.status(path, &[shown, ("Host", "dashboard.example")]), 200, "no page knows the token");
    let looked = Looked::start_at("api_allow 192.0.2.0/24;", everywhere);
    assert_eq!(looked.status(path, &[]), 403);
    let looked = Looked::start_at("api_allow 127.0.0.0/8;", everywhere);
    assert_eq!(looked.status(path, &[]), 200);
    assert_eq!(looked.status(path, &[("Host", "evil.example")]), 403);
    assert_eq!(looked.purge("Host: 127.0.0.1\r\nOrigin: http://evil.example"), 403);
}

#[test]
fn an_address_that_is_allowed_reads_and_changes_need_more() {
    skip_on_nginx!();
    const TOKEN: &str = "Host: localhost\r\nAuthorization: Bearer 0123456789abcdef";
    const ADDRESS: &str = "api_allow 127.0.0.0/8;";
    // The parameter of `dashboard`, who may, the fields of a purge, and its status.
    for (write, rights, fields, expected) in [
        ("", ADDRESS, "Host: localhost", 403),
        (" write=token", ADDRESS, "Host: localhost", 403),
        (" write=on", ADDRESS, "Host: localhost", 200),
        (" write=off", "api_allow local;", "Host: localhost", 405),
        ("", "api_allow local;", "Host: localhost", 200),
        ("", "api_allow 127.0.0.0/8 local;", "Host: localhost", 200),
        ("", "api_allow 127.0.0.0/8 local;", "Host: localhost\r\nX-Forwarded-For: 127.0.0.1", 403),
        ("", "api_allow 127.0.0.0/8; api_token 0123456789abcdef;", "Host: localhost", 403),
        ("", "api_allow 127.0.0.0/8; api_token 0123456789abcdef;", TOKEN, 200),
    ] {
        let looked = Looked::start_at(rights, |port| format!("127.0.0.1:{port}{write}"));
        assert_eq!(looked.purge(fields), expected, "{write} {rights} {fields}");
        assert_eq!(looked.status("/api/9/connections", &[]), 200, "{write} {rights}");
    }
}

#[test]
fn who_starts_and_stops_programs_is_told_whether_it_is_alive_and_ready() {
    skip_on_nginx!();
    let gate = Arc::new(Gate::default());
    let checked = Arc::clone(&gate);
    let origin = Origin::start(move |_| {
        let mut steps = vec![Step::Pass(Arc::clone(&checked))];
        steps.extend(answer(200, &[], b"well"));
        steps
    });
    let port = ports::free();
    let template = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {}
        http {
            access_log off; dashboard @DASHBOARD@; api_token 0123456789abcdef;
            upstream api { zone api 64k; server @ORIGIN@; }
            server { listen 127.0.0.1:@PORT@; location / { proxy_pass http://api; health_check interval=100ms mandatory; } }
        }";
    let _server = Server::start(template, &[("ORIGIN", &origin.address()), ("DASHBOARD", &port.to_string())]);
    let get = |path: &str| client::get_with(port, path, &[("Host", "10.1.2.3:8081")]);
    assert_eq!(get("/healthz").status, 200);
    let answer = get("/readyz");
    assert!(answer.status == 503 && answer.text().contains("upstream \"api\""), "{}", answer.text());
    gate.open();
    wait::until("its first check has passed", || get("/readyz").status == 200);
}

#[test]
fn an_optional_dashboard_is_done_without_where_its_port_is_taken() {
    skip_on_nginx!();
    let (_taken, port) = ports::listener();
    let template = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {}
        http { access_log off; dashboard @DASHBOARD@; server { listen 127.0.0.1:@PORT@; return 204; } }";
    let server = Server::start(template, &[("DASHBOARD", &format!("{port} optional"))]);
    assert_eq!(server.get("/").status, 204);
    server.says("the dashboard is not available");
    let refused = Server::try_start(Prefix::new(), template, &[("DASHBOARD", &port.to_string())]);
    assert!(refused.err().is_some_and(|refused| refused.output.contains("another process listens there")));
}

struct Viewer(Client);

impl Viewer {
    fn of(looked: &Looked) -> Viewer {
        let mut client = Client::connect(looked.port).expect("it listens");
        client.send("GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
        let head = client.head().expect("a head");
        assert_eq!((head.status, head.field("content-type")), (200, Some("text/event-stream")));
        Viewer(client)
    }

    /// Name and data. `None` at the end of the stream, which must not be cut.
    fn next(&mut self) -> Option<(String, Value)> {
        let mut text = String::new();
        while !text.ends_with("\n\n") {
            let size = self.0.line().expect("the size of a chunk");
            let size = usize::from_str_radix(&size, 16).expect("a size");
            if size == 0 {
                assert!(text.is_empty(), "an event was cut");
                return None;
            }
            text += &String::from_utf8(self.0.exactly(size).expect("a chunk")).expect("text");
            assert_eq!(self.0.line().expect("the end of a chunk"), "");
        }
        let (name, data) = text.trim_end().split_once('\n').expect("two lines");
        let name = name.strip_prefix("event: ").expect("a name").to_owned();
        Some((name, serde_json::from_str(data.strip_prefix("data: ").expect("data")).expect("JSON")))
    }

    /// The first that fits, before the stream ends.
    fn find(&mut self, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        (0..30).map_while(|_| self.next()).map(|(_, told)| told).find(fits)
    }

    fn until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.find(fits).unwrap_or_else(|| panic!("{what} did not come"))
    }

    /// The stream must end soon, without a cut.
    fn ends(mut self) {
        let ended = (0..5).any(|_| self.next().is_none());
        assert!(ended, "the stream goes on");
    }
}

#[test]
fn figures_come_as_events_and_end_with_the_configuration_and_the_process() {
    skip_on_nginx!();
    let mut looked = Looked::start("");
    let mut viewer = Viewer::of(&looked);
    let (name, history) = viewer.next().expect("the history");
    assert!(name == "history" && history["names"][0] == "at", "{history}");
    for _ in 0..5 {
        assert_eq!(looked.server.get("/a").status, 200);
    }
    let names = history["names"].as_array().expect("names").clone();
    let index = |name: &str| names.iter().position(|known| known == name).expect("it is a figure");
    let (requests, reached, without) = (index("requests"), index("reached"), index("without"));
    let (mut counted, mut asked, mut spared) = (0, 0, 0);
    let frame = viewer.until("all that was asked for", |frame| {
        frame["tables"]["location_zones"]["site"]["requests"] == 5 && frame["second"].is_array()
    });
    assert_eq!(frame["tables"]["upstreams"]["api"]["peers"][0]["requests"], 1, "{frame}");
    // Who comes later sees the seconds that were.
    let (_, history) = Viewer::of(&looked).next().expect("the history");
    for row in history["rows"].as_array().expect("rows") {
        let figure = |index: usize| row[index].as_u64().expect("a number");
        (counted, asked, spared) =
            (counted + figure(requests), asked + figure(reached), spared + figure(without));
    }
    assert_eq!((counted, asked, spared), (5, 1, 5), "{history}");
    looked.server.signal(Signal::HUP);
    viewer.ends();
    // A worker that has not heard of the reload yet ends its streams once it does.
    let (viewer, told) = (0..5)
        .find_map(|_| {
            let mut viewer = Viewer::of(&looked);
            let has_notes = |told: &Value| told["notes"].as_array().is_some_and(|notes| !notes.is_empty());
            let told = viewer.find(has_notes)?;
            Some((viewer, told))
        })
        .expect("the reload is told");
    assert!(told["notes"][0]["text"].as_str().is_some_and(|text| text.contains("configuration 2")), "{told}");
    let ended = looked.server.stop(Signal::QUIT);
    assert!(ended.is_some_and(|status| status.success()), "a viewer keeps no process from ending: {ended:?}");
    viewer.ends();
}

#[test]
fn only_so_many_watch_at_a_time_and_who_reads_nothing_keeps_no_process_from_ending() {
    skip_on_nginx!();
    let mut looked = Looked::start("");
    let mut viewers: Vec<Viewer> = (0..64).map(|_| Viewer::of(&looked)).collect();
    let refused = looked.get("/live");
    assert!(refused.status == 503 && refused.text().contains("TooManyViewers"), "{}", refused.text());
    viewers.pop();
    wait::until("there is room again", || {
        let mut client = Client::connect(looked.port).expect("it listens");
        client.send("GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
        client.head().expect("a head").status == 200
    });
    // None of them has read more than a head.
    let ended = looked.server.stop(Signal::QUIT);
    assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
}

#[test]
fn a_page_comes_out_of_the_binary_small_strict_and_compressed() {
    skip_on_nginx!();
    let looked = Looked::start("");
    let mut all = 0;
    for (path, media_type) in
        [("/", "text/html"), ("/dashboard.css", "text/css"), ("/dashboard.js", "text/javascript")]
    {
        let answer = looked.get(path);
        all += answer.body.len();
        let field = |name: &str| answer.field(name).unwrap_or_default().to_owned();
        assert!(answer.status == 200 && field("content-type").starts_with(media_type), "{}", answer.head);
        let policy = field("content-security-policy");
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(field("x-content-type-options"), "nosniff");
        let squeezed = client::get_with(looked.port, path, &[("Accept-Encoding", "gzip")]);
        assert_eq!(squeezed.field("content-encoding"), Some("gzip"), "{path}");
        assert_eq!(looked.status(path, &[("Host", "evil.example")]), 403, "{path}");
    }
    assert!(all < 100_000, "{all} bytes");
    let looked = Looked::start("api_token 0123456789abcdef;");
    assert_eq!([looked.get("/").status, looked.get("/live").status], [200, 403], "it asks for the token");
}

#[test]
fn each_miss_has_one_cause_and_a_url_without_its_query_and_its_secrets() {
    skip_on_nginx!();
    let origin = Origin::start(|request| match request.target() {
        path if path.starts_with("/login") => answer(200, &[("Set-Cookie", "session=1")], b"welcome"),
        path if path.starts_with("/broken") => answer(500, &[], b"broken"),
        _ => answer(200, &[], b"page"),
    });
    let (port, template) = (
        ports::free(),
        TEMPLATE.replace("proxy_cache_valid 200 1h; proxy_cache_key $uri;", "proxy_cache_valid 200 1h;"),
    );
    let (address, dashboard, closed) = (origin.address(), port.to_string(), ports::free().to_string());
    let values = [("ORIGIN", &*address), ("DASHBOARD", &dashboard), ("CLOSED", &closed), ("RIGHTS", "")];
    let server = Server::start(&template, &values);
    let paths = [
        "/login?token=abc",
        "/login?token=def",
        "/login",
        "/broken",
        "/a",
        "/a",
        "/b?c=1",
        "/b?c=2",
        "/reset/9f86d081884c7d659a2feaa0c55ad015",
    ];
    let of = |misses: &Value, kind: &str| -> Vec<(String, u64)> {
        let causes = misses[0][kind].as_object().into_iter().flatten();
        causes.map(|(cause, told)| (cause.clone(), told["count"].as_u64().unwrap_or(0))).collect()
    };
    for path in paths {
        server.get(path);
    }
    let misses = || -> Value { client::get(port, "/api/9/misses").json() };
    let counts = |misses: &Value| [of(misses, "requests"), of(misses, "not_stored")].concat();
    let sum = |misses: &Value| counts(misses).iter().map(|(_, count)| count).sum::<u64>();
    wait::until("all are counted", || {
        let told = misses();
        sum(&told) == 8 && told[0]["urls"].as_array().is_some_and(|urls| urls.len() == 5)
    });
    let told = misses();
    assert_eq!(sum(&told), origin.count() as u64, "{told}");
    let expected = [("absent", 4), ("error_status", 1), ("set_cookie", 3)];
    assert_eq!(counts(&told), expected.map(|(cause, count)| (cause.to_owned(), count)), "{told}");
    let mut urls: Vec<_> = told[0]["urls"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| (one["url"].as_str().unwrap_or_default(), one["count"].as_u64().unwrap_or(0)))
        .collect();
    urls.sort();
    let expected = [
        ("localhost/a", 1),
        ("localhost/b", 2),
        ("localhost/broken", 1),
        ("localhost/login", 3),
        ("localhost/reset/***", 1),
    ];
    assert_eq!(urls, expected, "{told}");
    // Of what failed or set a cookie nobody is told to cache it.
    for cause in ["error_status", "set_cookie"] {
        let help = told[0]["not_stored"][cause]["help"].as_str().unwrap_or_default();
        assert!(!help.contains("proxy_") && !help.is_empty(), "{help}");
    }
}
