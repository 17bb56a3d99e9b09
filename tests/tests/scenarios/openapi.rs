//! `docs/openapi.json` against the running binary: every path is asked, strangers change nothing, and a tool that makes requests out
//! of the description finds no answer that it does not describe.

use millstream_tests::client::{self, Answer, Client};
use millstream_tests::gunicorn::programs;
use millstream_tests::origin::Origin;
use millstream_tests::server::Server;
use millstream_tests::{ports, wait, workspace};
use serde_json::Value;
use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::Duration;

const TEMPLATE: &str = site! {
    main "worker_processes 2;" log "notice"
    http "dashboard 127.0.0.1:@DASHBOARD@;
        api_token secret;
        resolver 127.0.0.1:1 status_zone=a;
        proxy_cache_path @DIR@/cache keys_zone=a:1m;
        limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;
        limit_conn_zone $binary_remote_addr zone=a:1m;
        upstream a { zone a 64k; server @ORIGIN@; server @ORIGIN@ down; }"
    server "status_zone a;
        location / {
            status_zone a; limit_req zone=a burst=100 nodelay; limit_conn a 10;
            proxy_pass http://a; proxy_cache a; proxy_cache_valid 200 1h; proxy_cache_key $uri;
        }
        location /shadow { proxy_pass http://a; shadow on; }"
};

/// A server whose every zone, upstream and cache is called `a`.
struct Described {
    _server: Server,
    port: u16,
    page: Value,
    _origin: Origin,
}

impl Described {
    fn start() -> Described {
        let (origin, port) = (Origin::fixed(200, &[], b"one"), ports::free());
        let values = [("DASHBOARD", port.to_string()), ("ORIGIN", origin.address())];
        let server = Server::start(TEMPLATE, &values.each_ref().map(|(name, value)| (*name, value.as_str())));
        for path in ["/one", "/one", "/two"] {
            assert_eq!(server.get(path).status, 200);
        }
        let text = fs::read_to_string(workspace().join("docs/openapi.json")).expect("docs/openapi.json");
        let page = serde_json::from_str(&text).expect("JSON");
        Described { _server: server, port, page, _origin: origin }
    }

    fn operations(&self) -> Vec<(String, String, &Value)> {
        let paths = self.page["paths"].as_object().expect("paths").iter();
        let each = paths.flat_map(|(path, of)| {
            let methods = of.as_object().expect("methods").iter().filter(|(name, _)| *name != "parameters");
            let path =
                ["{upstream}", "{zone}"].iter().fold(path.clone(), |path, name| path.replace(name, "a"));
            let path = path.replace("{id}", "1");
            methods.map(move |(method, of)| (method.to_ascii_uppercase(), path.clone(), of))
        });
        each.collect()
    }

    fn ask(&self, method: &str, path: &str, fields: &str, body: &str) -> Answer {
        let mut client = Client::connect(self.port).expect("it listens");
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: {length}\r\n\r\n"
        );
        client.ask(head + body)
    }
}

#[test]
fn every_described_path_answers_as_it_is_described() {
    skip_on_nginx!();
    let described = Described::start();
    let token = ("Authorization", "Bearer secret");
    let operations = described.operations();
    assert!(operations.len() > 40, "{}", operations.len());
    for (method, path, of) in operations.iter().filter(|(method, path, _)| method == "GET" && path != "/live")
    {
        let path = if path.ends_with("/explain") { format!("{path}?url=http://a/one") } else { path.clone() };
        let answer = client::get_with(described.port, &path, &[token]);
        assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text());
        let kind = answer.field("content-type").unwrap_or_default();
        assert!(!of["responses"]["200"]["content"][kind].is_null(), "{path}: {kind}");
    }
    let head = described.ask("HEAD", "/live", "Authorization: Bearer secret\r\nConnection: close\r\n", "");
    assert_eq!((head.status, head.field("content-type")), (200, Some("text/event-stream")));
}

#[test]
fn every_described_change_is_refused_to_whoever_shows_no_token() {
    skip_on_nginx!();
    let described = Described::start();
    let operations = described.operations();
    let changes: Vec<_> = operations.iter().filter(|(method, ..)| method != "GET").collect();
    assert!(changes.len() >= 7, "{changes:?}");
    for (method, path, _) in changes {
        for shown in ["", "Authorization: Bearer other\r\n", "Authorization: Basic c2VjcmV0\r\n"] {
            let fields = format!("Content-Type: application/json\r\n{shown}");
            let body = r#"{"server": "127.0.0.1:1", "all": true}"#;
            let answer = described.ask(method, path, &fields, body);
            assert!([401, 403].contains(&answer.status), "{method} {path} {shown}: {}", answer.text());
        }
    }
}

#[test]
fn requests_made_out_of_the_description_get_no_answer_that_it_does_not_describe() {
    skip_on_nginx!();
    let described = Described::start();
    let folder = tempfile::tempdir().expect("a folder");
    let said = folder.path().join("said");
    let output = File::create(&said).expect("own folder");
    fs::write(folder.path().join("schemathesis.toml"), SETTINGS).expect("own folder");
    // `/live` never ends; it is asked above.
    let mut command = Command::new(programs().join("schemathesis"));
    command
        .arg("run")
        .arg(workspace().join("docs/openapi.json"))
        .arg("--url")
        .arg(format!("http://127.0.0.1:{}", described.port))
        .args(["--header", "Authorization:Bearer secret", "--exclude-path", "/live"])
        .args(["--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "10", "--max-time", "40"])
        .args(["--seed", "9", "--request-timeout", "10", "--no-shrink", "--continue-on-failure"])
        .args(["--suppress-health-check", "all", "--warnings", "off"])
        // What a text means the description does not say: an address, a URL, a time may be none.
        .args(["--checks", "all", "--exclude-checks", "positive_data_acceptance"])
        .current_dir(folder.path())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(output.try_clone().expect("an open file"))
        .stderr(output);
    let mut running = millstream_tests::process::Running::start(&mut command).expect("schemathesis starts");
    let ended = running.wait(Duration::from_secs(240));
    let said = fs::read_to_string(&said).unwrap_or_default();
    assert!(ended.is_some_and(|status| status.success()), "{ended:?}: {said}");
    wait::until("the server is alive", || client::get(described.port, "/healthz").status == 200);
}

/// It also tries undescribed methods: all but TRACE, which is always refused before the path is used. Names
/// mostly exist, or little would be found.
const SETTINGS: &str = r#"
[phases.coverage]
unexpected-methods = ["GET", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"]
[dictionaries]
names = { values = ["a"] }
ids = { values = ["1", "2"] }
[parameters]
"path.zone" = { dictionary = "names", probability = 0.7 }
"path.upstream" = { dictionary = "names", probability = 0.7 }
"path.id" = { dictionary = "ids", probability = 0.5 }
"#;
