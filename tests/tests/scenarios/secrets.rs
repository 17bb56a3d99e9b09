//! What lets somebody in is read nowhere but in an access log's own format: not in error logs, on the dashboard, in `explain`, nor in traces.

use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use millstream_tests::collector::{Collector, attribute};
use millstream_tests::origin::Origin;
use millstream_tests::ports;
use millstream_tests::server::{Server, binary};
use millstream_tests::wait;
use serde_json::Value;

const TEMPLATE: &str = r#"worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {}
http {
    access_log @DIR@/access.log;
    proxy_cache_path memory keys_zone=c:1m;
    dashboard 127.0.0.1:@DASHBOARD@;
    otel_exporter { endpoint @COLLECTOR@; interval 10ms; }
    otel_trace on;
    otel_span_attr query $args;
    otel_span_attr session $cookie_session;
    error_log @DIR@/error.log notice;
    error_log @DIR@/json.log info json;
    error_log syslog:server=127.0.0.1:@UDP@,nohostname error json;
    server {
        listen 127.0.0.1:@PORT@;
        server_name site.test;
        proxy_connect_timeout 1s;
        location /away { proxy_pass http://127.0.0.1:@CLOSED@; }
        location /missing { root @DIR@; }
        location /rewritten { rewrite_log on; rewrite ^ /cached?$args break; proxy_pass http://@ORIGIN@; }
        location /if { rewrite_log on; if ($http_x_api_key ~ nobody) { return 403; } return 204; }
        location /cached {
            proxy_pass http://@ORIGIN@;
            proxy_cache c;
            proxy_cache_key $request_uri$http_x_api_key$cookie_session;
            proxy_cache_bypass $arg_token;
        }
    }
}"#;

const SECRET: &str = "s3cr3t";

struct Site {
    server: Server,
    collector: Collector,
    service: UdpSocket,
    dashboard: u16,
    _origin: Origin,
}

fn site() -> Site {
    let (collector, origin) =
        (Collector::start(), Origin::fixed(200, &[("Expires", "Thu, 31 Dec 2099 23:55:55 GMT")], b"ok"));
    let service = UdpSocket::bind("127.0.0.1:0").expect("a port");
    service.set_read_timeout(Some(Duration::from_secs(20))).expect("a bound");
    let (dashboard, closed) = (ports::free(), ports::free());
    let server = Server::start(
        TEMPLATE,
        &[
            ("COLLECTOR", &collector.address()),
            ("ORIGIN", &origin.address()),
            ("UDP", &service.local_addr().expect("its address").port().to_string()),
            ("DASHBOARD", &dashboard.to_string()),
            ("CLOSED", &closed.to_string()),
        ],
    );
    Site { server, collector, service, dashboard, _origin: origin }
}

/// Everything that a site writes or reports, after requests with the secret in every possible place.
#[test]
fn a_secret_is_read_in_the_access_log_alone() {
    skip_on_nginx!();
    let site = site();
    let fields = [
        ("Host", "site.test"),
        ("Referer", "https://joe:s3cr3t@site.test/?sig=s3cr3t"),
        ("Cookie", "session=s3cr3t"),
        ("X-Api-Key", SECRET),
        ("Authorization", "Bearer s3cr3t"),
    ];
    for (path, status) in [
        ("/away?page=2&access_token=s3cr3t", 502),
        ("/missing?password=s3cr3t", 404),
        ("/rewritten?token=s3cr3t&a=1", 200),
        ("/if?api_key=s3cr3t", 204),
        ("/cached?x=1&token=s3cr3t", 200),
    ] {
        assert_eq!(site.server.get_with(path, &fields).status, status, "{path}");
    }
    wait::until("the access log has it", || {
        site.server.prefix().read("access.log").matches(SECRET).count() >= 5
    });
    site.server.says("request: \"GET /away?page=2&access_token=*** HTTP/1.1\"");
    site.server.says("args: \"token=***&a=1");
    site.server.says("\"nobody\" does not match \"***\"");
    let log = site.server.log();
    assert!(!log.contains(SECRET), "{log}");
    assert!(log.contains("referrer: \"https://***@site.test/?sig=***\""), "{log}");
    // Traces.
    let trace = site.collector.trace_of("/cached?x=1&token=***");
    assert_eq!(attribute(&trace[0], "query").as_deref(), Some("x=1&token=***"));
    assert_eq!(attribute(&trace[0], "session").as_deref(), Some("***"));
    assert!(!format!("{trace:?}").contains(SECRET));
    // The dashboard, and what a key is made of.
    let url = format!("http://site.test:{}/cached?x=1&token=s3cr3t", site.server.port());
    let explain = |more: &[&str]| {
        let mut command = Command::new(binary());
        command.args(["explain", &url, "-H", "X-Api-Key: s3cr3t", "-H", "Cookie: session=s3cr3t"]).args(more);
        command
            .arg("-c")
            .arg(site.server.prefix().join("nginx.conf"))
            .arg("-p")
            .arg(site.server.prefix().path());
        let output = command.output().expect("it runs");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    for told in [explain(&[]), explain(&["--json"])] {
        assert!(told.contains("/cached?x=1&token=***") && !told.contains(SECRET), "{told}");
    }
    let mut top = Command::new(binary());
    let output = top
        .args(["top", "--once", &format!("http://127.0.0.1:{}", site.dashboard)])
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!told.contains(SECRET), "{told}");
}

#[test]
fn error_logs_of_json_say_the_parts_of_a_request_by_their_keys() {
    skip_on_nginx!();
    let site = site();
    let fields = [("Host", "site.test"), ("Referer", "http://a/\"b")];
    assert_eq!(site.server.get_with("/away?token=s3cr3t&q=\"", &fields).status, 502);
    let objects = || -> Vec<Value> {
        let text = site.server.prefix().read("json.log");
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    };
    wait::until("it is told", || objects().iter().any(|object| object["client"] == "127.0.0.1"));
    let all = objects();
    let told = all.iter().find(|object| object["client"] == "127.0.0.1").expect("it is there");
    assert_eq!(told["level"], "error");
    assert_eq!((&told["server"], &told["host"]), (&"site.test".into(), &"site.test".into()));
    assert_eq!(told["request"], "GET /away?token=***&q=\" HTTP/1.1");
    let upstream = told["upstream"].as_str().unwrap_or_default();
    assert!(
        upstream.starts_with("http://127.0.0.1:") && upstream.ends_with("/away?token=***&q=%22"),
        "{told}"
    );
    assert!(told["message"].as_str().is_some_and(|text| text.contains("failed (111: ")), "{told}");
    let time = told["time"].as_str().unwrap_or_default();
    assert!(time.len() == "2026-01-02T03:04:05.678+00:00".len() && time.as_bytes()[19] == b'.', "{time}");
    assert!(told["connection"].is_u64() && told["tid"].is_u64(), "{told}");
    assert_eq!(told["pid"], site.server.serving_id());
    // The same line to a log service, behind what begins one there.
    let mut bytes = vec![0; 65536];
    let length = site.service.recv(&mut bytes).expect("a datagram");
    let line = String::from_utf8_lossy(&bytes[..length]).into_owned();
    let (head, object) = line.split_once(" nginx: ").expect("host and tag");
    assert!(head.starts_with("<187>"), "{line}");
    let object: Value = serde_json::from_str(object).expect(&line);
    assert_eq!(&object["request"], &told["request"]);
}
