//! The `dashboard`: a listener of its own with the API, the metrics and what monitors ask for, and who may look.

use millstream_tests::client::{self, Answer, Client};
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;
use serde_json::Value;
use std::sync::Arc;

const TEMPLATE: &str = "worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {}
http {
    access_log off;
    dashboard @DASHBOARD@;
    @RIGHTS@
    proxy_cache_path @DIR@/cache keys_zone=answers:1m;
    limit_req_zone $binary_remote_addr zone=slow:1m rate=1r/m;
    limit_conn_zone $binary_remote_addr zone=few:1m;
    upstream api { server @ORIGIN@ weight=3; server 127.0.0.1:@CLOSED@ backup; }
    server {
        listen 127.0.0.1:@PORT@;
        status_zone web;
        location / {
            status_zone site;
            proxy_pass http://api; proxy_cache answers; proxy_cache_valid 200 1h; proxy_cache_key $uri;
            limit_conn few 10;
        }
        location /limited { limit_req zone=slow; stub_status; }
    }
}";

/// A server with a dashboard.
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
        serde_json::from_slice(&answer.body).expect("JSON")
    }

    /// Purges everything in the zone, with these fields.
    fn purge(&self, fields: &str) -> u16 {
        let mut client = Client::connect(self.port).expect("it listens");
        let head = "POST /api/9/http/caches/answers/purge HTTP/1.1\r\nContent-Type: application/json";
        client
            .send(format!("{head}\r\n{fields}\r\nContent-Length: 12\r\n\r\n{{\"all\":true}}"))
            .expect("sent");
        client.answer().expect("an answer").status
    }
}

#[test]
fn the_api_tells_what_was_done_in_the_form_of_nginx_plus() {
    if is_nginx() {
        return;
    }
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
    for name in below.iter().filter(|name| !["purge", "explain", "metrics"].contains(&name.as_str())) {
        looked.json(&format!("/api/9/{name}"));
    }
    let below: Vec<String> = serde_json::from_value(looked.json("/api/9/http")).expect("names");
    for name in &below {
        looked.json(&format!("/api/9/http/{name}"));
    }
    let nginx = looked.json("/api/9/nginx");
    assert_eq!((&nginx["generation"], &nginx["pid"]), (&1.into(), &looked.server.id().into()), "{nginx}");
    wait::until("all requests are counted", || looked.json("/api/9/http/server_zones/web")["requests"] == 6);
    let zone = looked.json("/api/9/http/server_zones/web");
    assert_eq!((&zone["responses"]["2xx"], &zone["responses"]["5xx"]), (&5.into(), &1.into()), "{zone}");
    let zone = looked.json("/api/9/http/location_zones/site");
    assert_eq!((&zone["cache"]["hit"], &zone["origin"]["requests"]), (&3.into(), &1.into()), "{zone}");
    let zone = looked.json("/api/9/http/caches/answers");
    assert_eq!((&zone["hit"]["responses"], &zone["miss"]["responses"]), (&3.into(), &1.into()), "{zone}");
    let upstream = looked.json("/api/9/http/upstreams/api");
    let [first, second] = &upstream["peers"].as_array().expect("peers")[..] else { panic!("{upstream}") };
    assert_eq!((&first["name"], &first["weight"]), (&looked.origin.address().into(), &3.into()));
    assert_eq!(
        (&first["requests"], &first["responses"]["2xx"], &first["state"]),
        (&1.into(), &1.into(), &"up".into())
    );
    assert_eq!((&second["backup"], &second["requests"]), (&true.into(), &0.into()));
    let server = looked.json(&format!("/api/9/http/upstreams/api/servers/{}", first["id"]));
    assert_eq!((&server["server"], &server["max_fails"]), (&first["name"], &1.into()));
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
        let told: Value = serde_json::from_slice(&answer.body).expect("JSON");
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
    if is_nginx() {
        return;
    }
    let looked = Looked::start("");
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
    assert!(looked.server.log().contains("dashboard refused: a web page of another origin"));
}

#[test]
fn on_an_address_that_others_reach_it_wants_a_list_or_a_token() {
    if is_nginx() {
        return;
    }
    let everywhere = |port: u16| format!("0.0.0.0:{port}");
    let (port, prefix) = (ports::free(), Prefix::new());
    let values =
        [("ORIGIN", "127.0.0.1:9"), ("DASHBOARD", &*everywhere(port)), ("CLOSED", "9"), ("RIGHTS", "")];
    let refused = Server::try_start(prefix, TEMPLATE, &values).err().expect("it does not start");
    assert!(refused.output.contains("other machines reach the dashboard"), "{}", refused.output);
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
fn who_starts_and_stops_programs_is_told_whether_it_is_alive_and_ready() {
    if is_nginx() {
        return;
    }
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
    if is_nginx() {
        return;
    }
    let (_taken, port) = ports::listener();
    let template = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {}
        http { access_log off; dashboard @DASHBOARD@; server { listen 127.0.0.1:@PORT@; return 204; } }";
    let server = Server::start(template, &[("DASHBOARD", &format!("{port} optional"))]);
    assert_eq!(server.get("/").status, 204);
    assert!(server.log().contains("there is no dashboard"), "{}", server.log());
    let refused = Server::try_start(Prefix::new(), template, &[("DASHBOARD", &port.to_string())]);
    assert!(refused.err().is_some_and(|refused| refused.output.contains("another process listens there")));
}
