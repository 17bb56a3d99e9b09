//! Servers of a group that come, change and go by the API while requests are served, and outlast the process in a `state` file.

use millstream_tests::client::{self, Answer, Client};
use millstream_tests::gate::Gate;
use millstream_tests::load::Load;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::ports;
use millstream_tests::server::Server;
use millstream_tests::wait;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

const TEMPLATE: &str = site! {
    main "worker_processes 2;" log "notice"
    http "dashboard 127.0.0.1:@DASHBOARD@; api_allow local;
        upstream api { zone api 64k; @SERVERS@ }
        upstream fixed { server 127.0.0.1:1; }"
    server "add_header X-Addr $upstream_addr always;
        location / { proxy_pass http://api; }
        location /fixed { proxy_pass http://fixed; }
        location /reading/ { api; api_allow 127.0.0.1; }"
};

struct Changed {
    server: Server,
    port: u16,
}

impl Changed {
    fn start(servers: &str) -> Changed {
        let port = ports::free();
        let server =
            Server::start(&TEMPLATE.replace("@SERVERS@", servers), &[("DASHBOARD", &port.to_string())]);
        Changed { server, port }
    }

    fn reload(&self, servers: &str) {
        let file = TEMPLATE.replace("@SERVERS@", servers);
        self.server.rewrite(&file, &[("DASHBOARD", &self.port.to_string())]);
        self.server.reload();
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        asked(self.port, method, path, body)
    }

    fn servers(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.ask(method, &format!("/api/9/http/upstreams/api/servers{path}"), &text);
        (answer.status, answer.json())
    }

    fn names(&self) -> Vec<String> {
        let (_, all) = self.servers("GET", "", &Value::Null);
        let each = all.as_array().expect("a list").iter();
        each.map(|one| one["server"].as_str().expect("a name").to_owned()).collect()
    }

    fn answering(&self) -> Vec<String> {
        let mut seen: Vec<String> =
            (0..8).map(|_| self.server.get("/").field("x-addr").unwrap_or_default().to_owned()).collect();
        seen.sort();
        seen.dedup();
        seen
    }
}

fn asked(port: u16, method: &str, path: &str, body: &str) -> Answer {
    let mut client = Client::connect(port).expect("it listens");
    // As nginx-plus-go-client has it: a PATCH says nothing of its type.
    let kind = if method == "POST" { "Content-Type: application/json\r\n" } else { "" };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{kind}Content-Length: {}\r\n\r\n",
        body.len()
    );
    client.ask(head + body)
}

fn api(text: &'static str) -> Origin {
    Origin::fixed(200, &[], text.as_bytes())
}

#[test]
fn a_server_comes_changes_drains_and_goes_and_no_request_fails() {
    skip_on_nginx!();
    let (one, two) = (api("one"), api("two"));
    let changed = Changed::start(&format!("server {};", one.address()));
    let load = Load::start(changed.server.port(), "/", 4);
    let body = json!({ "server": two.address(), "weight": 3, "fail_timeout": "5s" });
    let answer = changed.ask("POST", "/api/9/http/upstreams/api/servers/", &body.to_string());
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(answer.field("location"), Some("/api/9/http/upstreams/api/servers/2/"));
    let told = answer.json();
    let facts = |field: &str| told[field].clone();
    assert_eq!([facts("id"), facts("server"), facts("weight")], [json!(2), json!(two.address()), json!(3)]);
    assert_eq!(
        [facts("fail_timeout"), facts("max_fails"), facts("route")],
        [json!("5s"), json!(1), json!("")]
    );
    wait::until("it is asked", || two.count() > 100);
    let (status, told) =
        changed.servers("PATCH", "/1", &json!({ "drain": true, "backup": false, "server": one.address() }));
    assert_eq!((status, &told["drain"]), (200, &json!(true)), "{told}");
    assert_eq!(changed.answering(), [two.address()], "one that drains is asked by nobody new");
    let (status, told) = changed.servers("DELETE", "/1", &Value::Null);
    assert_eq!((status, told.as_array().map(Vec::len)), (200, Some(1)), "{told}");
    let before = one.count();
    wait::until("requests went by", || two.count() > before + 200);
    assert_eq!(one.count(), before, "it is gone");
    let report = load.finish();
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    changed.server.says("API: server 1 of upstream \"api\" was removed");
    // Without a state file the next configuration knows nothing of it.
    changed.reload(&format!("server {};", one.address()));
    assert_eq!(changed.names(), [one.address()]);
}

#[test]
fn what_was_changed_outlasts_a_reload_and_a_kill_where_there_is_a_state_file() {
    skip_on_nginx!();
    let (one, two) = (api("one"), api("two"));
    let mut changed = Changed::start("state @DIR@/kept/api.conf;");
    let folder = changed.server.prefix().join("kept");
    std::fs::create_dir(&folder).expect("own directory");
    // The workers are another user's where the tests are root's.
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).expect("own directory");
    assert_eq!(changed.names(), Vec::<String>::new(), "the file need not be there");
    assert_eq!(changed.server.get("/").status, 502);
    for origin in [&one, &two] {
        assert_eq!(changed.servers("POST", "", &json!({ "server": origin.address() })).0, 201);
    }
    assert_eq!(changed.servers("PATCH", "/1", &json!({ "down": true, "weight": 2 })).0, 200);
    let kept = format!("server {} weight=2 down;\nserver {};\n", one.address(), two.address());
    assert_eq!(changed.server.prefix().read("kept/api.conf"), kept);
    changed.reload("state @DIR@/kept/api.conf;");
    assert_eq!(changed.names(), [one.address(), two.address()]);
    assert_eq!(changed.answering(), [two.address()]);
    assert!(changed.server.stop(Signal::KILL).is_some());
    changed.server.run().expect("it starts again");
    assert_eq!(changed.names(), [one.address(), two.address()]);
    assert_eq!(changed.answering(), [two.address()]);
    // Written by people, it is read like any file.
    changed.server.prefix().write("kept/api.conf", "server 127.0.0.1:1;\nkeepalive 4;\n");
    changed.server.signal(Signal::HUP);
    wait::until("it is refused", || changed.server.log().contains("\"keepalive\" in a state file"));
}

#[test]
fn what_cannot_be_done_is_refused_with_a_word_and_changes_nothing() {
    skip_on_nginx!();
    let one = api("one");
    let changed = Changed::start(&format!("server {};", one.address()));
    let servers = "/api/9/http/upstreams/api/servers";
    let long = format!("{{\"server\": \"{}:80\"}}", "a".repeat(400));
    for (method, path, body, status, word) in [
        ("POST", servers, "", 400, "UpstreamConfFormatError"),
        ("POST", servers, "{}", 400, "UpstreamConfFormatError"),
        ("POST", servers, "[1", 400, "UpstreamConfFormatError"),
        ("POST", servers, r#"{"server":"127.0.0.1:1","service":"a"}"#, 400, "UpstreamConfFormatError"),
        ("POST", servers, r#"{"server":"127.0.0.1:1","weight":0}"#, 400, "UpstreamConfFormatError"),
        (
            "POST",
            servers,
            r#"{"server":"127.0.0.1:1","fail_timeout":"soon"}"#,
            400,
            "UpstreamConfFormatError",
        ),
        ("POST", servers, r#"{"server":"127.0.0.1:1","route":"a; down"}"#, 400, "UpstreamConfFormatError"),
        (
            "POST",
            servers,
            r#"{"server":"127.0.0.1:1","down":true,"drain":true}"#,
            400,
            "UpstreamConfFormatError",
        ),
        ("POST", servers, r#"{"server":"a b"}"#, 400, "UpstreamBadAddress"),
        ("POST", servers, r#"{"server":"unix:/a;b"}"#, 400, "UpstreamBadAddress"),
        ("POST", servers, r#"{"server":"no-such-name.invalid:80"}"#, 400, "UpstreamBadAddress"),
        ("POST", servers, &long, 400, "UpstreamBadAddress"),
        ("PATCH", &format!("{servers}/1"), r#"{"server":"127.0.0.1:1"}"#, 400, "UpstreamConfFormatError"),
        ("PATCH", &format!("{servers}/1"), r#"{"backup":true}"#, 400, "UpstreamConfFormatError"),
        ("PATCH", &format!("{servers}/7"), "{}", 404, "UpstreamServerNotFound"),
        ("PATCH", &format!("{servers}/first"), "{}", 404, "UpstreamServerNotFound"),
        ("PATCH", servers, "{}", 405, "MethodNotSupported"),
        ("DELETE", servers, "", 405, "MethodNotSupported"),
        ("DELETE", &format!("{servers}/7"), "", 404, "UpstreamServerNotFound"),
        ("POST", "/api/9/http/upstreams/none/servers", "{}", 404, "UpstreamNotFound"),
        ("POST", "/api/9/http/upstreams/fixed/servers", "{}", 400, "UpstreamStatic"),
        ("PUT", servers, "{}", 405, "MethodNotSupported"),
    ] {
        let answer = changed.ask(method, path, body);
        let told = answer.json();
        assert_eq!(
            (answer.status, told["error"]["code"].as_str()),
            (status, Some(word)),
            "{method} {path} {body}: {told}"
        );
    }
    let plain = "POST /api/9/http/upstreams/api/servers HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}";
    let page = "DELETE /api/9/http/upstreams/api/servers/1 HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n";
    for (request, status) in [(plain, 415), (page, 403)] {
        let mut client = Client::connect(changed.port).expect("it listens");
        assert_eq!(client.ask(request).status, status, "{request}");
    }
    let reading = asked(changed.server.port(), "DELETE", "/reading/9/http/upstreams/api/servers/1", "");
    assert_eq!(reading.status, 405, "{}", reading.text());
    assert!(reading.text().contains("MethodDisabled"), "{}", reading.text());
    assert_eq!(changed.names(), [one.address()]);
}

#[test]
fn a_state_file_that_cannot_be_written_refuses_the_change() {
    skip_on_nginx!();
    let changed = Changed::start("state @DIR@/missing/api.conf;");
    changed.server.says("changes to upstream \"api\" will be refused");
    let (status, told) = changed.servers("POST", "", &json!({ "server": "127.0.0.1:1" }));
    assert_eq!((status, told["error"]["code"].as_str()), (500, Some("StateUnwritten")), "{told}");
    assert_eq!(changed.names(), Vec::<String>::new());
}

#[test]
fn changes_that_race_reloads_are_all_kept() {
    skip_on_nginx!();
    let changed = Changed::start("state @DIR@/kept/api.conf;");
    let folder = changed.server.prefix().join("kept");
    std::fs::create_dir(&folder).expect("own directory");
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).expect("own directory");
    let wanted: Vec<String> = (1..=60).map(|port| format!("127.0.0.1:{port}")).collect();
    std::thread::scope(|scope| {
        let adding = scope.spawn(|| {
            for server in &wanted {
                let (status, told) = changed.servers("POST", "", &json!({ "server": server }));
                assert_eq!((status, &told["server"]), (201, &json!(server)), "{told}");
            }
        });
        while !adding.is_finished() {
            changed.reload("state @DIR@/kept/api.conf;");
        }
    });
    assert_eq!(changed.names(), wanted);
    let kept = changed.server.prefix().read("kept/api.conf");
    assert_eq!(kept, wanted.iter().map(|server| format!("server {server};\n")).collect::<String>());
}

#[test]
fn requests_that_are_being_answered_or_wait_in_a_queue_are_told() {
    skip_on_nginx!();
    let gate = Arc::new(Gate::default());
    let passed = gate.clone();
    let one = Origin::start(move |_| [vec![Step::Pass(passed.clone())], answer(200, &[], b"one")].concat());
    let changed = Changed::start(&format!("server {} max_conns=1; queue 1;", one.address()));
    let told = |path: &str| -> Value {
        serde_json::from_slice(&asked(changed.port, "GET", &format!("/api/9/http/{path}"), "").body)
            .expect("JSON")
    };
    let queue = |field: &str| told("upstreams/api")["queue"][field].clone();
    let processing = || {
        (told("server_zones/_")["processing"].clone(), told("location_zones/_%20%2F")["processing"].clone())
    };
    let port = changed.server.port();
    let get = move || std::thread::spawn(move || client::get(port, "/").status);
    let first = get();
    wait::until("one is asked", || one.count() == 1);
    assert_eq!(processing(), (json!(1), json!(1)));
    let second = get();
    wait::until("one waits", || queue("size") == 1);
    assert_eq!(processing(), (json!(2), json!(2)));
    assert_eq!(changed.server.get("/").status, 502);
    assert_eq!((queue("max_size"), queue("overflows")), (json!(1), json!(1)));
    assert!(gate.open());
    assert_eq!([first, second].map(|asked| asked.join().expect("no panic")), [200, 200]);
    wait::until("nobody is answered", || processing() == (json!(0), json!(0)));
    assert_eq!(queue("size"), 0);
    // Both came on one worker, or on one each.
    let idle = told("upstreams/api")["keepalive"].clone();
    assert!([json!(1), json!(2)].contains(&idle), "{idle}");
    let metrics = asked(changed.port, "GET", "/metrics", "");
    for line in
        ["millstream_zone_processing{zone=\"_\"} 0", "millstream_location_processing{location=\"_ /\"} 0"]
    {
        assert!(metrics.text().lines().any(|known| known == line), "{line}: {}", metrics.text());
    }
}
