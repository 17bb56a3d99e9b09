//! `millstream ladder` and `demo`: the steps in front of an API, what is counted, and what is not.

use crate::millstream;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::{self, Running};
use millstream_tests::server::Server;
use millstream_tests::signed::SigningAuthority;
use millstream_tests::{ports, wait};
use rustix::process::Signal;
use serde_json::Value;

pub(super) struct Told {
    output: Output,
    json: Value,
}

impl Told {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
            + &String::from_utf8_lossy(&self.output.stderr)
    }

    fn step(&self, name: &str) -> &Value {
        let measures = self.json["measures"].as_array().unwrap_or_else(|| panic!("no JSON: {}", self.text()));
        measures.iter().find(|measure| measure["step"] == name).expect("the step was measured")
    }

    fn times(&self, name: &str) -> Option<f64> {
        self.step(name)["figures"]["times"].as_f64()
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = millstream();
    command.args(arguments).stdin(Stdio::null());
    command
}

fn ladder(origin: &Origin, more: &[&str]) -> Told {
    of_rounds("1", origin, more)
}

pub(super) fn of_rounds(rounds: &str, origin: &Origin, more: &[&str]) -> Told {
    let prefix = Prefix::new();
    let (url, file) = (format!("http://{}/page", origin.address()), prefix.join("ladder.json"));
    let output = command(&["ladder", &url, "-v", "--rounds", rounds, "-d", "450ms", "-c", "4"])
        .args(more)
        .arg("--json")
        .arg(&file)
        .output()
        .expect("the binary runs");
    let json = std::fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
    Told { output, json: json.unwrap_or_default() }
}

/// An API that takes two milliseconds.
fn slow(fields: &'static [(&'static str, &'static str)]) -> Origin {
    Origin::start(move |_| {
        let mut steps = vec![Step::Pause(Duration::from_millis(2))];
        steps.extend(answer(200, fields, b"the same for everybody"));
        steps
    })
}

#[test]
fn a_cacheable_api_climbs_and_its_cached_steps_hardly_reach_it() {
    skip_on_nginx!();
    let origin = slow(&[("Cache-Control", "public, max-age=60")]);
    let told = ladder(&origin, &["--steps", "alone,proxied,keepalive,memory,tls,http2"]);
    assert!(told.output.status.success(), "{}", told.text());
    assert_eq!(told.json["schema"], "millstream.ladder/2");
    assert_eq!(told.times("alone"), Some(1.0));
    for name in ["proxied", "keepalive", "memory", "tls", "http2"] {
        assert_eq!(told.step(name)["wrong"], Value::Null, "{}", told.text());
    }
    assert!(told.times("memory").is_some_and(|times| times > 1.5), "{}", told.text());
    assert_eq!(told.step("memory")["figures"]["reached"], 0, "{}", told.text());
    let spent = &told.step("memory")["figures"]["cpu_per_answer_us"];
    assert!(spent["generator"].as_f64().is_some_and(|spent| spent > 0.0), "{}", told.text());
    assert_eq!(told.json["compared"], "body");
    assert!(told.text().contains("in memory"), "{}", told.text());
}

#[test]
fn over_http_2_as_many_requests_at_once_are_streams_of_fewer_connections() {
    skip_on_nginx!();
    // What the API was asked is in its answer: through HTTP/2 it has to be the same.
    let origin = Origin::start(|request| {
        let method = request.head.split(' ').next().unwrap_or_default();
        let body = format!("{method} of {}", request.field("host").unwrap_or("nobody"));
        answer(200, &[("Cache-Control", "public, max-age=60")], body.as_bytes())
    });
    let told = ladder(&origin, &["--steps", "alone,tls,http2"]);
    assert!(told.output.status.success(), "{}", told.text());
    for name in ["tls", "http2"] {
        let step = told.step(name);
        assert_eq!((&step["wrong"], &step["cannot"]), (&Value::Null, &Value::Null), "{}", told.text());
        assert_eq!(step["figures"]["errors"], told.step("alone")["figures"]["errors"], "{}", told.text());
        assert_eq!(step["figures"]["reached"], 0, "{}", told.text());
    }
    let breadth = |name: &str| {
        let figures = &told.step(name)["figures"];
        (figures["connections"].as_u64().unwrap_or(0), figures["streams"].as_u64().unwrap_or(0))
    };
    assert_eq!((breadth("alone"), breadth("tls")), ((4, 1), (4, 1)));
    let (connections, streams) = breadth("http2");
    assert!(connections < 4 && connections * streams == 4, "{connections} with {streams}");
    for words in ["4 connections (over HTTP/2: ", "Inconclusive: 1 of 4 necessary rounds measured"] {
        assert!(told.text().contains(words), "no {words} in {}", told.text());
    }
    let told = ladder(&origin, &["--steps", "alone,http2", "-m", "POST", "-b", "a body"]);
    assert_eq!(told.step("http2")["wrong"], Value::Null, "{}", told.text());
    assert!(told.step("http2")["figures"]["answers"].as_u64() > Some(0), "{}", told.text());
}

#[test]
fn others_climb_to_http_2_or_say_that_they_cannot() {
    skip_on_nginx!();
    let is_here = |program: &str| {
        ["/usr/sbin", "/usr/bin"].iter().any(|folder| std::path::Path::new(folder).join(program).exists())
    };
    let origin = slow(&[("Cache-Control", "public, max-age=60")]);
    for (party, program, can) in
        [("nginx", "nginx", true), ("haproxy", "haproxy", true), ("varnish", "varnishd", false)]
    {
        if !is_here(program) {
            eprintln!("SKIPPED: {party} is not installed here");
            continue;
        }
        let told = ladder(&origin, &["--steps", "alone,http2", "--against", party]);
        assert!(told.output.status.success(), "{}", told.text());
        let measures = told.json["measures"].as_array().expect("measures");
        let theirs = measures.iter().find(|measure| measure["party"] == party).expect("they took part");
        assert_eq!(theirs["wrong"], Value::Null, "{}", told.text());
        assert_eq!(theirs["cannot"].is_null(), can, "{}", told.text());
        assert_eq!(
            theirs["figures"]["answers"].as_u64().is_some_and(|answers| answers > 0),
            can,
            "{}",
            told.text()
        );
        assert_eq!(
            told.text().contains("cannot: varnish does not support TLS itself"),
            !can,
            "{}",
            told.text()
        );
    }
}

#[test]
fn an_api_that_says_nothing_is_cached_for_a_second_and_told_so() {
    skip_on_nginx!();
    let told = ladder(&slow(&[]), &["--steps", "alone,lock,headers"]);
    assert!(told.output.status.success(), "{}", told.text());
    assert_eq!(told.json["fallback"], "1s");
    let report =
        String::from_utf8_lossy(&told.output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(report.matches("The API sends nothing about caching").count(), 1, "{report}");
    assert!(report.contains("API, proxy and load generator run on the same "), "{report}");
    assert!(told.times("headers").is_some_and(|times| times > 1.5), "{}", told.text());
}

#[test]
fn an_api_that_forbids_caching_is_asked_every_time_and_the_words_say_so() {
    skip_on_nginx!();
    for forbidding in [&[("Cache-Control", "no-store")][..], &[("Set-Cookie", "a=b")], &[("Vary", "*")]] {
        let told = ladder(&slow(forbidding), &["--steps", "alone,quiet,memory"]);
        assert!(told.output.status.success(), "{}", told.text());
        assert_eq!(told.json["caching"]["keeps"], "no", "{forbidding:?}");
        // Not the factor, which a busy machine moves: what no cache may keep reaches the API every time.
        let figures = &told.step("memory")["figures"];
        let of = |name: &str| figures[name].as_f64().unwrap_or(0.0);
        assert!(of("answers") > 0.0 && of("reached") > 0.8 * of("answers"), "{}", told.text());
        assert!(told.text().contains("cannot be cached"), "{}", told.text());
    }
}

#[test]
fn what_serve_keeps_apart_is_right_in_the_microcache_too() {
    skip_on_nginx!();
    // What the API answers by and does not name in Vary: the Origin is echoed, bodies are of a tenant or in a language.
    let cases: [(&str, &[&str]); 3] = [
        ("Origin", &[]),
        ("X-Tenant", &["-H", "X-Tenant: a"]),
        ("Accept-Language", &["-H", "Accept-Language: de"]),
    ];
    for (field, more) in cases {
        let origin = Origin::start(move |request| match (field, request.field(field)) {
            ("Origin", Some(origin)) => answer(200, &[("Access-Control-Allow-Origin", origin)], b"the same"),
            (_, value) => answer(200, &[], format!("for {}", value.unwrap_or("everybody")).as_bytes()),
        });
        let told = ladder(&origin, &[&["--steps", "alone,quiet,microcache"], more].concat());
        assert!(told.output.status.success(), "{field}: {}", told.text());
        assert_eq!(told.step("microcache")["wrong"], Value::Null, "{field}: {}", told.text());
        assert!(told.times("microcache").is_some(), "{field}: {}", told.text());
        let said = told.text().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains(&format!("responses depend on {field}, and its Vary does not name it")),
            "{said}"
        );
        assert!(!said.contains("must not be cached as they are"), "{said}");
    }
}

#[test]
fn what_reached_an_api_that_is_asked_behind_its_answers_is_not_said_to_be_nothing() {
    skip_on_nginx!();
    let origin = slow(&[("Cache-Control", "max-age=0, stale-while-revalidate=60")]);
    let told = ladder(&origin, &["--steps", "alone,quiet,headers"]);
    assert!(told.output.status.success(), "{}", told.text());
    assert_eq!(told.step("headers")["wrong"], Value::Null, "{}", told.text());
    assert_eq!(told.step("headers")["figures"]["reached"], Value::Null, "{}", told.text());
    assert!(!told.text().contains("no request reached the API"), "{}", told.text());
}

#[test]
fn a_cache_is_not_recommended_for_a_stream_of_events() {
    skip_on_nginx!();
    let told =
        ladder(&slow(&[("Content-Type", "text/event-stream")]), &["--steps", "alone,quiet,microcache"]);
    assert!(told.output.status.success(), "{}", told.text());
    assert_eq!(told.json["caching"]["keeps"], "no", "{}", told.text());
    let step = told.step("microcache");
    let figures = &step["figures"];
    let of = |name: &str| figures[name].as_f64().unwrap_or(0.0);
    // The cache refuses it: everybody gets a stream of his own, so nothing is wrong and nothing is gained.
    assert_eq!(step["wrong"], Value::Null, "{}", told.text());
    assert!(of("answers") > 0.0 && of("reached") > 0.8 * of("answers"), "{}", told.text());
    let said = told.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("cannot be cached as they are (it is a stream"), "{said}");
    assert!(!said.contains("Use \"microcache") && !said.contains("To set it up"), "{said}");
}

#[test]
fn four_rounds_in_an_order_by_chance_tell_what_to_use_beyond_the_configuration() {
    skip_on_nginx!();
    let origin = slow(&[("Cache-Control", "public, max-age=60")]);
    let folder = Prefix::new();
    let text = format!(
        "events {{}} http {{ access_log off; server {{ listen 127.0.0.1:80; location / {{ proxy_pass http://{}; }} }} }}",
        origin.address()
    );
    folder.write("nginx.conf", &text);
    let file = folder.join("nginx.conf");
    let file = file.to_str().expect("a path in ASCII");
    let more = ["--steps", "alone,keepalive,memory", "--seed", "5", "--config", file];
    let told = of_rounds("4", &origin, &more);
    assert!(told.output.status.success(), "{}", told.text());
    assert_eq!((&told.json["seed"], &told.json["running"]["at"]), (&Value::from(5), &Value::from("quiet")));
    assert_eq!(told.step("memory")["figures"]["rates"].as_array().map(Vec::len), Some(4));
    let first = told.json["verdict"][0].as_str().unwrap_or_default();
    assert!(first.starts_with("Use \"in memory\": "), "{}", told.text());
    assert!(told.text().contains("keep-alive (you have it)"), "{}", told.text());
    let said = told.text().split_whitespace().collect::<Vec<_>>().join(" ");
    let left = "Left out by --steps: proxied, quiet, microcache, lock, headers, log, tls, http2. Your configuration is at \
                \"compression, log off\", which was not measured.";
    assert!(said.contains(left), "{said}");
    // What the file has besides stays its own.
    assert!(
        said.contains("--print memory # shows") && said.contains("keep its own # rules of access"),
        "{said}"
    );
    assert!(!said.contains("millstream serve") && !said.contains("> "), "{said}");
    let missing = ladder(&origin, &["--config", "/no/such/nginx.conf"]);
    assert_eq!(missing.output.status.code(), Some(1), "{}", missing.text());
    assert!(missing.text().contains("/no/such/nginx.conf has errors"), "{}", missing.text());
}

#[test]
fn a_step_that_gives_one_client_what_another_one_got_is_never_counted() {
    skip_on_nginx!();
    // The body depends on a field that is in no key and no Vary.
    let origin = Origin::start(|request| {
        let language = request.field("accept-language").unwrap_or("none");
        answer(200, &[("Cache-Control", "max-age=60")], format!("in {language}").as_bytes())
    });
    let told = ladder(&origin, &["--steps", "alone,quiet,memory"]);
    assert!(told.output.status.success(), "{}", told.text());
    let wrong = told.step("memory")["wrong"].as_str().unwrap_or_default();
    assert!(wrong.contains("Accept-Language"), "{}", told.text());
    assert_eq!(told.times("memory"), None);
    assert!(told.times("quiet").is_some(), "without a cache it is right: {}", told.text());
    assert!(told.text().contains("not counted"), "{}", told.text());
}

#[test]
fn a_personal_api_that_allows_caching_is_the_headline_whoever_measures_it() {
    skip_on_nginx!();
    let origin = Origin::start(|request| {
        let who = request.field("cookie").unwrap_or("nobody");
        answer(200, &[("Cache-Control", "max-age=60")], format!("for {who}").as_bytes())
    });
    for more in [&[][..], &["-H", "Cookie: session=1"]] {
        let told = ladder(&origin, &[&["--steps", "alone,microcache,headers"], more].concat());
        assert!(told.output.status.success(), "{}", told.text());
        assert!(told.step("headers")["wrong"].is_null(), "it keeps them apart: {}", told.text());
        let first = told.json["verdict"][0].as_str().unwrap_or_default();
        assert!(
            first.starts_with("The API's responses are personal and must not be cached"),
            "{}",
            told.text()
        );
        assert!(!told.text().contains("Nothing was stored"), "{}", told.text());
    }
}

#[test]
fn a_url_without_a_scheme_is_measured_as_http() {
    skip_on_nginx!();
    let origin = slow(&[("Cache-Control", "public, max-age=60")]);
    let url = format!("{}/page", origin.address());
    let output =
        command(&["ladder", &url, "--rounds", "1", "-d", "450ms", "-c", "2", "--steps", "alone,memory"])
            .output();
    let output = output.expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(origin.requests().iter().all(|request| request.target() == "/page"));
    // A redirect is resolved against it.
    let origin = Origin::start(|request| match request.target() {
        "/page" => answer(302, &[("Location", "to?a=http://b")], b""),
        _ => answer(200, &[], b"there"),
    });
    let url = format!("{}/page", origin.address());
    let output =
        command(&["bench", &url, "-n", "4", "-c", "1", "--location"]).output().expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(origin.requests().iter().any(|request| request.target() == "/to?a=http://b"));
}

#[test]
fn a_cache_that_mixes_clients_up_does_not_win_by_a_counter_in_the_body() {
    skip_on_nginx!();
    for field in ["Accept-Language", "Accept"] {
        let served = AtomicU64::new(0);
        let origin = Origin::start(move |request| {
            let who = request.field(field).unwrap_or("nobody");
            let body = format!("{{\"for\":\"{who}\",\"number\":{}}}", served.fetch_add(1, Ordering::Relaxed));
            answer(200, &[("Cache-Control", "max-age=60")], body.as_bytes())
        });
        let told = ladder(&origin, &["--steps", "alone,memory"]);
        assert_eq!(told.json["compared"], "status_and_length");
        let wrong = told.step("memory")["wrong"].as_str().unwrap_or_default();
        assert!(wrong.contains(&format!("another {field} gets")), "{}", told.text());
        assert_eq!(told.times("memory"), None);
    }
}

#[test]
fn an_api_that_gives_other_bodies_under_load_alone_breaks_and_did_not_change() {
    skip_on_nginx!();
    // Asked again within four milliseconds, which one client at a time never does, it has time for every fourth alone.
    let last = Mutex::new((Instant::now(), 0));
    let origin = Origin::start(move |_| {
        let mut last = last.lock().expect("nobody panics");
        let (before, count) = *last;
        *last = (Instant::now(), count + 1);
        let is_busy = before.elapsed() < Duration::from_millis(4) && count % 4 > 0;
        let body = if is_busy { "no time" } else { "content" };
        let mut steps = vec![Step::Pause(Duration::from_millis(6))];
        steps.extend(answer(200, &[], body.as_bytes()));
        steps
    });
    let told = ladder(&origin, &["--steps", "alone,keepalive"]);
    assert!(told.output.status.success(), "{}", told.text());
    assert_eq!(told.json["compared"], "body", "{}", told.text());
    let first = told.json["verdict"][0].as_str().unwrap_or_default();
    assert!(first.starts_with("The API breaks under this load"), "{}", told.text());
    assert!(
        first.contains("responses to the few single requests before the load and after it were correct"),
        "{}",
        told.text()
    );
}

#[test]
fn what_an_api_says_commands_no_terminal() {
    skip_on_nginx!();
    let origin =
        Origin::fixed(200, &[("Cache-Control", "no-store, x=\"\u{9b}31mRED\u{9d}0;mine\u{9c}\"")], b"x");
    let told = ladder(&origin, &["--steps", "alone,memory"]);
    assert!(told.output.status.success(), "{}", told.text());
    assert!(told.text().contains("x=\"\\x9b31mRED\\x9d0;mine\\x9c\""), "{}", told.text());
    assert!(!told.text().contains(|letter: char| letter.is_control() && letter != '\n'), "{:?}", told.text());
}

#[test]
fn a_step_whose_body_is_not_the_apis_own_is_never_counted() {
    skip_on_nginx!();
    // Through a proxy, and only there, it says something else.
    let origin = Origin::start(|request| {
        let body = if request.field("x-forwarded-for").is_some() { "proxied" } else { "direct" };
        answer(200, &[], body.as_bytes())
    });
    let told = ladder(&origin, &["--steps", "alone,keepalive"]);
    assert!(told.step("keepalive")["wrong"].is_string(), "{}", told.text());
    assert_eq!(told.times("keepalive"), None);
}

#[test]
fn bodies_that_change_are_not_compared_and_it_says_so() {
    skip_on_nginx!();
    let served = AtomicU64::new(0);
    let origin = Origin::start(move |_| {
        let body = format!("answer {:09}", served.fetch_add(1, Ordering::Relaxed));
        answer(200, &[("Cache-Control", "max-age=60")], body.as_bytes())
    });
    let told = ladder(&origin, &["--steps", "alone,memory"]);
    assert!(told.output.status.success(), "{}", told.text());
    assert_eq!(told.json["compared"], "status_and_length");
    assert_eq!(told.step("memory")["wrong"], Value::Null, "{}", told.text());
    assert!(told.text().contains("cannot be compared"), "{}", told.text());
}

#[test]
fn wrong_use_ends_in_one_sentence() {
    skip_on_nginx!();
    let failing = Origin::fixed(500, &[], b"no");
    let (closed, failing) = (ports::free().to_string(), failing.address());
    let (closed, failing) = (format!("http://127.0.0.1:{closed}/"), format!("http://{failing}/"));
    let cases: [(&[&str], &str); 8] = [
        (&[&closed], "refuses connections"),
        (&[&failing], "responds with 500"),
        (&["https://127.0.0.1:1/"], "refuses connections"),
        (&["ftp://127.0.0.1/"], "cannot be loaded"),
        (&[&closed, "--steps", "nonsense"], "unknown step"),
        (&[&closed, "--against", "apache"], "not a known peer"),
        (&["--print", "alone"], "without a proxy"),
        (&["http://192.0.2.1/", "--steps", "lock-quiet"], "comes after"),
    ];
    for (arguments, words) in cases {
        let output = command(&["ladder"]).args(arguments).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{arguments:?}: {said}");
    }
}

#[test]
fn every_step_is_printed_as_a_configuration_that_the_program_accepts() {
    skip_on_nginx!();
    for step in ["proxied", "keepalive", "quiet", "microcache", "lock", "headers", "memory", "log"] {
        let prefix = Prefix::new();
        let printed =
            command(&["ladder", "--print", step, "http://127.0.0.1:8000/page"]).output().expect("it runs");
        assert!(printed.status.success(), "{step}");
        let file = prefix.write("nginx.conf", &printed.stdout);
        let tested =
            command(&["-t", "-q", "-p"]).arg(prefix.path()).arg("-c").arg(file).output().expect("it runs");
        let said = String::from_utf8_lossy(&tested.stderr).into_owned();
        assert!(tested.status.success() && said.is_empty(), "{step}: {said}");
    }
}

#[test]
fn an_api_that_speaks_tls_is_climbed_and_verified() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    SigningAuthority::new(prefix.path()).issue_with("server", "ec", "extendedKeyUsage=serverAuth\n");
    let authorities = prefix.join("ca.pem");
    let site = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {} http { access_log off;
        server { listen 127.0.0.1:@PORT@; listen 127.0.0.1:@TLSPORT@ ssl; ssl_certificate @DIR@/server.pem;
        ssl_certificate_key @DIR@/server.key; add_header Cache-Control max-age=60;
        location / { return 200 \"asked as $http_host\"; } } }";
    let port = ports::free().to_string();
    let server = Server::start_in(prefix, site, &[("TLSPORT", &port)]);
    let (url, file) = (format!("https://localhost:{port}/"), server.prefix().join("ladder.json"));
    let arguments =
        ["ladder", &url, "--steps", "alone,keepalive,memory,tls", "--rounds", "1", "-d", "450ms", "-c", "4"];
    let mut climb = command(&arguments);
    climb.env("SSL_CERT_FILE", &authorities).arg("--json").arg(&file);
    let output = climb.output().expect("the binary runs");
    let json = std::fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let told = Told { output, json: json.unwrap_or_default() };
    assert!(told.output.status.success(), "{}", told.text());
    for step in ["keepalive", "memory", "tls"] {
        assert_eq!(told.step(step)["wrong"], Value::Null, "{}", told.text());
        assert!(told.times(step).is_some(), "{}", told.text());
    }
    let untrusted = command(&arguments).env_remove("SSL_CERT_FILE").output().expect("the binary runs");
    let said = String::from_utf8_lossy(&untrusted.stderr).into_owned();
    assert!(!untrusted.status.success() && said.contains("is not trusted"), "{said}");
}

#[test]
fn a_demo_in_a_folder_that_cannot_be_written_puts_its_picture_elsewhere() {
    skip_on_nginx!();
    let folder = Prefix::new();
    let told = folder.join("told");
    let mut demo = command(&["demo"]);
    demo.current_dir("/proc").env("TMPDIR", folder.path()).stdout(Stdio::null());
    demo.stderr(std::fs::File::create(&told).expect("its folder is there"));
    let mut running = Running::start(&mut demo).expect("the binary runs");
    let place = format!("the chart will be written to {}/", folder.path().display());
    wait::until("it says where the picture goes", || folder.read("told").contains(&place));
    running.signal(Signal::INT);
    let status = running.wait(Duration::from_secs(30)).expect("it ends");
    assert_eq!(status.code(), Some(130));
    let output = command(&["demo", "--html", "/proc/a.html"]).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("/proc/a.html cannot be written"), "{said}");
}

#[test]
fn an_interrupted_ladder_leaves_no_process_behind() {
    skip_on_nginx!();
    let origin = slow(&[]);
    let url = format!("http://{}/", origin.address());
    let mut running = Running::start(
        command(&["ladder", &url, "--steps", "memory", "-d", "60s", "-c", "2"])
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    )
    .expect("the binary runs");
    wait::until("a proxy was started", || running.tree().len() > 1);
    let family = running.tree();
    running.signal(Signal::INT);
    let status = running.wait(Duration::from_secs(30)).expect("it ends");
    assert_eq!(status.code(), Some(130));
    wait::until("nothing is left", || family.iter().all(|&id| !process::is_alive(id)));
}

#[test]
fn an_interrupted_ladder_tells_what_it_has_measured() {
    skip_on_nginx!();
    let origin = slow(&[]);
    let (url, folder) = (format!("http://{}/", origin.address()), Prefix::new());
    let (json, page) = (folder.join("ladder.json"), folder.join("ladder.html"));
    let mut command =
        command(&["ladder", &url, "--steps", "alone,quiet,memory", "-d", "450ms", "--rounds", "100"]);
    let output = std::fs::File::create(folder.join("output")).expect("own directory");
    command.arg("--json").arg(&json).arg("--html").arg(&page).stdout(output).stderr(Stdio::null());
    let mut running = Running::start(&mut command).expect("the binary runs");
    let mut proxies = std::collections::HashSet::new();
    // Whichever comes first: once the third has been started, two measurements are whole. A proxy may have an opener of its own.
    wait::until("two steps were measured", || {
        proxies.extend(process::children(running.id()));
        proxies.len() > 2
    });
    running.signal(Signal::INT);
    assert_eq!(running.wait(Duration::from_secs(30)).and_then(|status| status.code()), Some(130));
    let told: Value = serde_json::from_str(&folder.read("ladder.json")).expect("it writes JSON");
    let measured = told["cut_short"]["measured"].as_u64().expect("how many");
    assert!(measured >= 2 && told["cut_short"]["of"] == 300, "{}", told["cut_short"]);
    let words = format!("Stopped after {measured} of 300 measurements");
    for report in ["output", "ladder.html"] {
        let text = folder.read(report);
        assert!(text.contains(&words) && text.contains("compression, log off"), "{report}: {text}");
    }
}

/// A ladder with directories in this folder, once this program stands in front of the API; its processes.
fn underway(folder: &Prefix, url: &str, party: &str) -> (Running, Vec<u32>) {
    let mut command = command(&["ladder", url, "--steps", "headers", "-c", "2"]);
    match party {
        "millstream" => command.args(["-d", "60s"]),
        peer => command.args(["-d", "450ms", "--rounds", "100", "--against", peer]),
    };
    command.env("TMPDIR", folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running::start(&mut command).expect("the binary runs");
    let name = |id: u32| std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    let mut family = Vec::new();
    wait::until("it stands in front of the API", || {
        family = running.tree();
        family.iter().skip(1).any(|&id| name(id).starts_with(party))
    });
    (running, family)
}

fn measured_in(folder: &Prefix) -> usize {
    let entries = std::fs::read_dir(folder.path()).expect("own directory").flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("millstream-measure-")).count()
}

#[test]
fn a_killed_ladder_takes_its_processes_along_and_the_next_one_removes_what_it_left() {
    skip_on_nginx!();
    let origin = slow(&[]);
    let url = format!("http://{}/", origin.address());
    for party in ["millstream", "nginx", "varnish"] {
        let program = if party == "varnish" { "varnishd" } else { party };
        if party != "millstream" && !std::path::Path::new("/usr/sbin").join(program).exists() {
            eprintln!("SKIPPED: {party} is not installed here");
            continue;
        }
        let folder = Prefix::new();
        let (mut running, family) = underway(&folder, &url, party);
        running.signal(Signal::KILL);
        assert!(running.wait(Duration::from_secs(20)).is_some(), "killed");
        wait::until("nothing is left", || family.iter().all(|&id| !process::is_alive(id)));
        assert!(measured_in(&folder) > 0, "who is killed removes nothing");
        let closed = format!("http://127.0.0.1:{}/", ports::free());
        let next = command(&["ladder", &closed]).env("TMPDIR", folder.path()).output().expect("it runs");
        assert_eq!(next.status.code(), Some(1));
        assert_eq!(measured_in(&folder), 0, "{party}");
    }
}

#[test]
fn a_ladder_that_is_interrupted_twice_leaves_neither_processes_nor_directories() {
    skip_on_nginx!();
    let origin = slow(&[]);
    let url = format!("http://{}/", origin.address());
    let folder = Prefix::new();
    let (mut running, family) = underway(&folder, &url, "millstream");
    running.signal(Signal::INT);
    running.signal(Signal::HUP);
    let status = running.wait(Duration::from_secs(20)).expect("it ends");
    assert_eq!((status.code(), measured_in(&folder)), (Some(130), 0));
    // Those that are left end right after their parent, not before it.
    wait::until("nothing is left", || family.iter().all(|&id| !process::is_alive(id)));
}

#[test]
fn an_api_that_does_not_answer_is_no_reason_to_wait_after_ctrl_c() {
    skip_on_nginx!();
    let silent = Origin::start(|_| vec![Step::Pause(Duration::from_secs(3600))]);
    let url = format!("http://{}/", silent.address());

    for arguments in [&["ladder", &url][..], &["capacity", &url, &url], &["bench", &url]] {
        let before = silent.count();
        let mut command = command(arguments);
        let mut running =
            Running::start(command.stdout(Stdio::null()).stderr(Stdio::null())).expect("the binary runs");
        wait::until("the API was asked", || silent.count() > before);
        running.signal(Signal::INT);
        let status = running.wait(Duration::from_secs(20)).expect("it ends long before its patience does");
        assert_eq!(status.code(), Some(130), "{arguments:?}");
    }
}

#[test]
fn the_demo_says_that_its_api_is_simulated_and_what_to_type_next() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    let page = prefix.join("demo.html");
    let output = command(&["demo", "-d", "1s"]).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("a demo takes at least 45s"), "{said}");
    let output = command(&["demo", "--html"]).arg(&page).output().expect("the binary runs");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for words in ["simulated", "will be written to", "millstream ladder http://"] {
        assert!(said.contains(words), "{said}");
    }
    let html = std::fs::read_to_string(&page).expect("the picture");
    assert!(html.contains("<svg") && html.contains("simulated"));
}
