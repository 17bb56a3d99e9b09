//! `examples/monitoring/`: rules and dashboard name only what is counted, and a real Prometheus reads `/metrics` under load
//! without a complaint, as does the strict parser of OpenMetrics.
//!
//! `MILLSTREAM_SCRAPED=60` scrapes for that many seconds instead of five. Prometheus and promtool are those of Debian's package
//! `prometheus`; without them the tests that need them say that they are skipped.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use millstream_tests::gunicorn::programs;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::{client, load, ports, wait, workspace};
use serde_json::Value;

fn example(name: &str) -> PathBuf {
    workspace().join("examples/monitoring").join(name)
}

fn is_installed(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").stdin(Stdio::null()).output().is_ok();
    if !is_there {
        eprintln!("skipped: {program} is not installed");
    }
    is_there
}

fn promtool(arguments: &[&str], input: Stdio) {
    let mut promtool = Command::new("promtool");
    promtool.args(arguments).current_dir(workspace().join("examples/monitoring")).stdin(input);
    let output = promtool.output().expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said));
}

fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    let ours = ["millstream_", "process_"];
    words.filter(|word| ours.iter().any(|start| word.starts_with(start))).map(str::to_owned).collect()
}

#[test]
fn rules_and_dashboard_use_only_what_is_counted() {
    let manual = fs::read_to_string(workspace().join("docs/metrics.md")).expect("the manual is there");
    let counted = metrics_in(&manual);
    let is_counted = |name: &str| {
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        counted.contains(name) || family.is_some_and(|family| counted.contains(family))
    };
    for file in ["rules.yml", "rules.test.yml", "grafana.json"] {
        let used = metrics_in(&fs::read_to_string(example(file)).expect("the file is there"));
        assert!(used.len() > 5, "{file} uses {used:?}");
        let unknown: Vec<&String> = used.iter().filter(|name| !is_counted(name)).collect();
        assert!(unknown.is_empty(), "{file} uses what nothing counts: {unknown:?}");
    }
    let dashboard = fs::read_to_string(example("grafana.json")).expect("the file is there");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let of_figures = panels.iter().filter(|panel| panel["type"] != "row");
    assert!(of_figures.clone().count() > 10);
    for panel in of_figures {
        assert!(panel["targets"][0]["expr"].is_string() && panel["description"].is_string(), "{panel}");
    }
}

#[test]
fn each_alert_has_a_test_that_promtool_passes() {
    let rules = fs::read_to_string(example("rules.yml")).expect("the file is there");
    let tests = fs::read_to_string(example("rules.test.yml")).expect("the file is there");
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("- alertname: {alert}\n")), "no test makes {alert} fire");
    }
    if is_installed("promtool") {
        promtool(&["check", "config", "prometheus.yml"], Stdio::null());
        promtool(&["check", "rules", "rules.yml"], Stdio::null());
        promtool(&["test", "rules", "rules.test.yml"], Stdio::null());
    }
}

const SITE: &str = site! {
    main "worker_processes 2;"
    http "dashboard 127.0.0.1:@DASHBOARD@;
        proxy_cache_path memory keys_zone=answers:1m;
        upstream api { server @ORIGIN@; keepalive 8; }
        # Names that a label has to escape."
    server "server_name \"a\\\\b.example\"; status_zone \"of \\\"all\\\"\";
        location / { proxy_pass http://api; proxy_cache answers; proxy_cache_valid 1s; }
        location ~ \"^/odd\\\\.(a|b)$\" { return 204; }"
};

struct Prometheus {
    _process: Running,
    port: u16,
}

impl Prometheus {
    fn start(prefix: &Prefix, dashboard: u16) -> Prometheus {
        let port = ports::free();
        let text = fs::read_to_string(example("prometheus.yml")).expect("the file is there");
        let text = text.replace(": 15s", ": 1s").replace("127.0.0.1:8081", &format!("127.0.0.1:{dashboard}"));
        let own = format!(
            "  - job_name: prometheus\n    static_configs: [{{ targets: [\"127.0.0.1:{port}\"] }}]\n"
        );
        let file = prefix.write("prometheus.yml", &(text + &own));
        fs::copy(example("rules.yml"), prefix.join("rules.yml")).expect("own directory is writable");
        let output = fs::File::create(prefix.join("prometheus.log")).expect("own directory is writable");
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", prefix.join("data").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}")).current_dir(prefix.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        let process = Running::start(&mut command).expect("it runs");
        wait::until("Prometheus is ready", || {
            client::Client::connect(port)
                .is_ok_and(|mut one| one.get("/-/ready").is_ok_and(|a| a.status == 200))
        });
        Prometheus { _process: process, port }
    }

    fn asked(&self, path: &str) -> Value {
        client::get(self.port, path).json()
    }

    /// The single value of an expression; `None` without one.
    fn number(&self, expression: &str) -> Option<f64> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let escaped: String = expression
            .bytes()
            .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
            .collect();
        let answer = self.asked(&format!("/api/v1/query?query={escaped}"));
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    }
}

#[test]
fn prometheus_scrapes_under_load_without_a_malformed_or_double_sample() {
    if is_nginx() || !is_installed("prometheus") {
        return;
    }
    let seconds = std::env::var("MILLSTREAM_SCRAPED").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let origin = Origin::fixed(200, &[], b"hello");
    let (dashboard, prefix) = (ports::free(), Prefix::new());
    let values = [("ORIGIN", &*origin.address()), ("DASHBOARD", &dashboard.to_string())];
    let server = Server::start(SITE, &values);
    let prometheus = Prometheus::start(&prefix, dashboard);
    let report = load::run(server.port(), "/", 8, Duration::from_secs(seconds));
    assert!(report.failures.is_empty(), "{:?}", report.failures.first());

    let of_ours = |what: &str| prometheus.number(&what.replace('@', "{job=\"millstream\"}"));
    let scrapes = || of_ours("count_over_time(up@[1h])").unwrap_or_default();
    wait::until("it was scraped each second", || scrapes() >= seconds as f64);
    assert_eq!(of_ours("min_over_time(up@[1h])"), Some(1.0), "{}", prefix.read("prometheus.log"));
    assert!(of_ours("min_over_time(scrape_samples_scraped@[1h])").is_some_and(|samples| samples > 50.0));
    for target in prometheus.asked("/api/v1/targets")["data"]["activeTargets"].as_array().expect("targets") {
        assert_eq!(
            (&target["lastError"], &target["health"]),
            (&Value::from(""), &Value::from("up")),
            "{target}"
        );
    }
    for refused in ["sample_duplicate_timestamp", "sample_out_of_order", "sample_out_of_bounds"] {
        let name = format!("prometheus_target_scrapes_{refused}_total");
        wait::until("Prometheus has scraped itself", || prometheus.number(&name).is_some());
        assert_eq!(prometheus.number(&name), Some(0.0), "{name}");
    }
    for group in prometheus.asked("/api/v1/rules")["data"]["groups"].as_array().expect("groups") {
        for rule in group["rules"].as_array().expect("rules") {
            assert_eq!(rule.get("lastError"), None, "{rule}");
        }
    }
    let requests = of_ours("millstream_zone_responses_total{zone=\"of \\\"all\\\"\",class=\"2xx\"}");
    assert!(requests.is_some_and(|requests| requests > 0.0), "{requests:?}");

    let text = prefix.write("metrics", client::get(dashboard, "/metrics").text());
    if is_installed("promtool") {
        promtool(&["check", "metrics"], fs::File::open(text).expect("just written").into());
    }
    let text = client::get_with(dashboard, "/metrics", &[("Accept", "application/openmetrics-text")]).text();
    let samples = read_as_openmetrics(&prefix.write("openmetrics", &text));
    assert!(samples > 50 && text.ends_with("# EOF\n"), "{samples} samples");
    eprintln!("{} scrapes, {} requests", scrapes(), report.answered);
}

/// Samples that the OpenMetrics parser of Prometheus's own client library finds. It is stricter than a
/// scraping Prometheus: order of families, units, kinds and names of samples.
fn read_as_openmetrics(file: &Path) -> usize {
    const SCRIPT: &str = "import sys; from prometheus_client.openmetrics.parser import text_string_to_metric_families as read; \
        print(sum(len(family.samples) for family in read(sys.stdin.read())))";
    let mut python = Command::new(programs().join("python"));
    python.args(["-c", SCRIPT]).stdin(fs::File::open(file).expect("just written"));
    let output = python.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

fn sample(dashboard: u16, name: &str) -> Option<f64> {
    let text = client::get(dashboard, "/metrics").text();
    let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    line?.rsplit_once(' ')?.1.parse().ok()
}

const STALE: &str = site! {
    main "worker_processes 1;"
    http "dashboard 127.0.0.1:@DASHBOARD@; api_allow local;
        proxy_cache_path memory keys_zone=answers:1m;"
    server "location / {
            proxy_pass http://@ORIGIN@; proxy_cache answers; proxy_cache_valid 200 1h; proxy_cache_background_update on;
            proxy_cache_use_stale @WHEN@;
        }"
};

/// Asks, makes the stored response stale, and asks again until `is_over`, by the response's text and the
/// count of failures.
fn stale_on_error(when: &str, then: &[Step], is_over: fn(&str, f64) -> bool) {
    let (stored, then) = (std::sync::atomic::AtomicBool::new(false), then.to_vec());
    let origin = Origin::start(move |_| match stored.swap(true, std::sync::atomic::Ordering::SeqCst) {
        false => answer(200, &[], b"first"),
        true => then.clone(),
    });
    let dashboard = ports::free();
    let values = [("ORIGIN", &*origin.address()), ("DASHBOARD", &dashboard.to_string()), ("WHEN", when)];
    let server = Server::start(STALE, &values);
    assert_eq!(server.get("/").text(), "first");
    let mut purging = client::Client::connect(dashboard).expect("it listens");
    let body = "{\"all\": true, \"soft\": true}";
    let head = "POST /api/9/http/caches/answers/purge HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ";
    assert_eq!(purging.ask(format!("{head}{}\r\n\r\n{body}", body.len())).status, 200);
    let failures = || sample(dashboard, "millstream_cache_stale_on_error_total{cache=\"answers\"}");
    wait::until(when, || is_over(&server.get("/").text(), failures().expect("it is counted")));
}

#[test]
fn a_stale_response_counts_as_a_failure_only_if_the_upstream_failed() {
    skip_on_nginx!();
    // A refresh in the background gives STALE once, and then what it fetched.
    stale_on_error("updating", &answer(200, &[], b"again"), |text, failures| {
        assert_eq!(failures, 0.0, "a refresh in the background is no failure");
        text == "again"
    });
    let fails = |_: &str, failures: f64| failures > 0.0;
    stale_on_error("error http_500", &[Step::Close], fails);
    stale_on_error("error http_500", &answer(500, &[], b""), fails);
    // Clients get STALE for ever, and only the refreshes fail.
    stale_on_error("updating error", &[Step::Close], fails);
    stale_on_error("updating", &answer(503, &[], b""), fails);
}

#[test]
fn the_process_its_version_its_caches_and_its_reloads_are_among_the_metrics() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"hello");
    let dashboard = ports::free();
    let server =
        Server::start(SITE, &[("ORIGIN", &*origin.address()), ("DASHBOARD", &dashboard.to_string())]);
    assert_eq!(server.get("/").status, 200);
    let of = |name: &str| sample(dashboard, name).unwrap_or_else(|| panic!("no {name}"));
    assert!(of("process_resident_memory_bytes") > 1e6 && of("process_open_fds") > 5.0);
    assert!(of("process_max_fds") >= of("process_open_fds") && of("process_start_time_seconds") > 1.6e9);
    of("process_cpu_seconds_total");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(of(&format!("millstream_build_info{{version=\"{version}\"}}")), 1.0);
    let memory = "{cache=\"answers\",tier=\"memory\"}";
    assert!(of(&format!("millstream_cache_entries{memory}")) >= 1.0);
    assert!(of(&format!("millstream_cache_size_bytes{memory}")) > 0.0);
    assert!(of(&format!("millstream_cache_max_size_bytes{memory}")) > 1e5);
    assert_eq!(of(&format!("millstream_cache_evictions_total{memory}")), 0.0);
    let reloads = |outcome: &str| of(&format!("millstream_config_reloads_total{{outcome=\"{outcome}\"}}"));
    assert_eq!(
        (reloads("success"), reloads("failure"), of("millstream_config_last_reload_successful")),
        (0.0, 0.0, 1.0)
    );
    let good = server.prefix().read("nginx.conf");
    server.prefix().write("nginx.conf", "no such directive;");
    server.signal(rustix::process::Signal::HUP);
    wait::until("the reload fails", || reloads("failure") == 1.0);
    assert_eq!(of("millstream_config_last_reload_successful"), 0.0);
    server.prefix().write("nginx.conf", &good);
    server.signal(rustix::process::Signal::HUP);
    wait::until("the reload succeeds", || reloads("success") == 1.0);
    assert_eq!(of("millstream_config_last_reload_successful"), 1.0);
}
