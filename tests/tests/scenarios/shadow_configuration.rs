//! What `shadow` writes, run in front of the same API with other clients: no client gets another's response, and the figures are those
//! that it said.

use flate2::write::{GzDecoder, GzEncoder};
use millstream_tests::client::{self, Client};
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;
use millstream_tests::server::binary;
use millstream_tests::{ports, wait};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::HashSet;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS: u8 = 40;

/// Of a cached route, by how much the hit ratio may be outside of its interval: a single run of a few seconds.
const TOLERANCE: f64 = 0.05;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Items,
    Pages,
    Search,
    Zipped,
    Me,
    Orders,
    Form,
    Ticks,
}

/// Each kind with its route, whether it can be cached, and how many of a client's requests it gets.
const KINDS: [(Kind, &str, bool, usize); 8] = [
    (Kind::Items, "/items/{id}", true, 48),
    (Kind::Pages, "/pages/{id}", true, 48),
    (Kind::Search, "/search", true, 48),
    (Kind::Zipped, "/zipped/{id}", true, 48),
    (Kind::Me, "/me", false, 6),
    (Kind::Orders, "/orders", false, 6),
    (Kind::Form, "/form", false, 6),
    (Kind::Ticks, "/ticks/{id}", false, 24),
];

fn kind_of(target: &str) -> usize {
    let path = target.split(['?']).next().unwrap_or_default();
    let is_of = |route: &str| path.starts_with(route.trim_end_matches("{id}"));
    KINDS.iter().position(|(_, route, ..)| is_of(route)).expect("a known path")
}

/// What a response depends on.
fn class(target: &str, field: impl Fn(&str) -> String) -> String {
    match KINDS[kind_of(target)].0 {
        Kind::Me => field("cookie"),
        Kind::Orders => field("authorization"),
        Kind::Pages => format!("{target} {}", field("accept-language")),
        Kind::Search => target.split('&').next().unwrap_or_default().to_owned(),
        _ => target.to_owned(),
    }
}

struct Api {
    origin: Origin,
    asked: Arc<[AtomicUsize; KINDS.len()]>,
    start: Instant,
}

impl Api {
    fn start() -> Api {
        let asked: Arc<[AtomicUsize; KINDS.len()]> = Arc::default();
        let (counted, start) = (Arc::clone(&asked), Instant::now());
        let origin = Origin::start(move |request| {
            let number = kind_of(request.target());
            let count = counted[number].fetch_add(1, Ordering::Relaxed);
            let mut steps = respond(request, count, version(start));
            // As an API that computes something; it also keeps below the rate up to which each request is sampled.
            steps.insert(0, Step::Pause(Duration::from_millis(38)));
            steps
        });
        Api { origin, asked, start }
    }

    fn asked(&self) -> Vec<usize> {
        self.asked.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

fn version(start: Instant) -> u128 {
    start.elapsed().as_millis() / 400
}

fn respond(request: &Request, count: usize, version: u128) -> Vec<Step> {
    let target = request.target();
    let class = class(target, |name| request.field(name).unwrap_or_default().to_owned());
    let json = [("Content-Type", "application/json")];
    match KINDS[kind_of(target)].0 {
        Kind::Form => {
            let token = format!("{:016x}", (count as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let page = format!("<form><input name=\"csrf_token\" value=\"{token}\"></form>");
            answer(200, &[("Content-Type", "text/html")], page.as_bytes())
        }
        Kind::Ticks => answer(200, &json, format!("{{\"of\":\"{class}\",\"tick\":{version}}}").as_bytes()),
        Kind::Zipped => {
            let id = (count as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95);
            let body = format!("{{\"of\":\"{class}\",\"request_id\":\"{id:016x}\",\"took\":{count}}}");
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(body.as_bytes()).expect("memory takes it");
            let fields = [json[0], ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")];
            answer(200, &fields, &encoder.finish().expect("memory takes it"))
        }
        _ => answer(200, &json, format!("{{\"of\":\"{class}\",\"text\":\"some words\"}}").as_bytes()),
    }
}

/// What came of the requests of one group of clients, by kind.
#[derive(Default, Debug)]
struct Seen {
    requests: [usize; KINDS.len()],
    leaks: Vec<String>,
    stale: [usize; KINDS.len()],
    tokens: HashSet<String>,
}

/// Forty clients with their own addresses, sessions and tokens, over keep-alive connections.
fn visit(port: u16, group: u8, api: &Api) -> Seen {
    let seen = Mutex::new(Seen::default());
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let seen = &seen;
            scope.spawn(move || one(port, group, number, api, seen));
        }
    });
    seen.into_inner().expect("no client panics")
}

fn one(port: u16, group: u8, number: u8, api: &Api, seen: &Mutex<Seen>) {
    let mut client =
        Client::connect_from(Ipv4Addr::new(127, 0, group, number + 1), port).expect("it listens");
    let language = ["de", "en", "fr"][usize::from(number % 3)];
    let cookie = format!("session=s{group}x{number}; _ga=g{group}.{number}");
    let token = format!("Bearer t{group}x{number}");
    let mut plan: Vec<usize> =
        KINDS.iter().enumerate().flat_map(|(kind, (.., count))| std::iter::repeat_n(kind, *count)).collect();
    let mut state = u64::from(group) << 32 | u64::from(number) << 8 | 1;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    while !plan.is_empty() {
        let kind = plan.swap_remove(next(plan.len()));
        let (of, route, ..) = KINDS[kind];
        let target = match of {
            Kind::Search => {
                let (word, from, name) = (next(8), next(4), next(5));
                format!("/search?q=w{word}&utm_source=s{from}&utm_campaign=c{name}")
            }
            _ => route.replace("{id}", &format!("{}", 100 + next(8))),
        };
        let mut fields = vec![("Accept-Language", language), ("Accept-Encoding", "gzip")];
        // One in four has no cookies: what the others get is compared with what it gets.
        if !number.is_multiple_of(4) {
            fields.push(("Cookie", cookie.as_str()));
        }
        if of == Kind::Orders {
            fields.push(("Authorization", &token));
        }
        let field = |name: &str| {
            let found = fields.iter().find(|(of, _)| of.eq_ignore_ascii_case(name));
            found.map_or_else(String::new, |(_, value)| (*value).to_owned())
        };
        let (before, expected) = (version(api.start), class(&target, field));
        let got = client.get_with(&target, &fields).expect("a response");
        let text = if of == Kind::Zipped { unzipped(&got.body) } else { got.text() };
        let mut seen = seen.lock().expect("no client panics");
        seen.requests[kind] += 1;
        let is_own = match of {
            Kind::Form => seen.tokens.insert(text.clone()),
            _ => got.status == 200 && text.starts_with(&format!("{{\"of\":\"{expected}\",")),
        };
        if !is_own {
            seen.leaks.push(format!("{target} for {expected}: {text}"));
        }
        let tick =
            text.split("\"tick\":").nth(1).and_then(|rest| rest.trim_end_matches('}').parse::<u128>().ok());
        seen.stale[kind] += usize::from(tick.is_some_and(|tick| tick < before));
    }
}

/// Requests with a field or a value that no one sent while shadow watched, if the cache responds to them, and others if it does not.
fn unseen(port: u16) -> Vec<String> {
    let mut client = Client::connect_from(Ipv4Addr::new(127, 0, 3, 1), port).expect("it listens");
    let mut wrong = Vec::new();
    for (name, value, expected) in [
        ("Accept-Language", "de", "HIT"),
        ("Accept-Language", "ja", "BYPASS"),
        ("X-Tenant", "a", "BYPASS"),
        ("X-Region", "eu", "BYPASS"),
        ("Accept", "application/xml", "BYPASS"),
        ("Origin", "https://a.example", "BYPASS"),
        ("X-Requested-With", "XMLHttpRequest", "BYPASS"),
        ("X-Request-Id", "1", "HIT"),
        ("User-Agent", "a", "HIT"),
    ] {
        let language = [("Accept-Language", "de")];
        let known = language.into_iter().filter(|_| name != "Accept-Language");
        let fields: Vec<(&str, &str)> =
            [(name, value), ("Accept-Encoding", "gzip")].into_iter().chain(known).collect();
        let got = client.get_with("/items/101", &fields).expect("a response");
        let found = got.field("x-cache-status").unwrap_or_default();
        if found != expected {
            wrong.push(format!("{name}: {value}: {found}"));
        }
    }
    wrong
}

fn unzipped(bytes: &[u8]) -> String {
    let mut decoder = GzDecoder::new(Vec::new());
    let text = decoder.write_all(bytes).and_then(|()| decoder.finish());
    String::from_utf8_lossy(&text.unwrap_or_default()).into_owned()
}

fn start(arguments: &[&str], port: u16) -> Running {
    let mut command = Command::new(binary());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running::start(&mut command).expect("the binary runs");
    wait::until("it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    running
}

#[test]
fn the_written_configuration_gives_other_clients_what_is_theirs_and_has_the_hits_that_were_said() {
    skip_on_nginx!();
    let (api, port, folder) = (Api::start(), ports::free(), Prefix::new());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (json, config, html) = (path("report.json"), path("cache.conf"), path("report.html"));
    let (listen, url) = (format!("127.0.0.1:{port}"), format!("http://{}", api.origin.address()));
    let looking = ports::free();
    let dashboard = format!("127.0.0.1:{looking}");
    let mut shadow = start(
        &[
            "shadow",
            &url,
            "--listen",
            &listen,
            "--dashboard",
            &dashboard,
            "--for",
            "10m",
            "--stale-budget",
            "1%",
            "--json",
            &json,
            "--config",
            &config,
            "--html",
            &html,
        ],
        port,
    );
    let seen = visit(port, 1, &api);
    assert!(seen.leaks.is_empty() && seen.requests.to_vec() == api.asked(), "shadow passes all on: {seen:?}");
    assert_eq!(client::get(looking, "/api/9/shadow").json()["stale_budget"], 0.01, "as what is printed");
    shadow.signal(Signal::INT);
    assert!(shadow.wait(Duration::from_secs(20)).is_some_and(|status| status.success()), "Ctrl-C ends it");
    let report: Value = serde_json::from_slice(&std::fs::read(&json).expect("the report")).expect("JSON");
    let text = std::fs::read_to_string(&config).expect("the configuration");
    assert!(text.contains("proxy_cache_ignore_args utm_*;"), "{text}");
    let page = std::fs::read_to_string(&html).expect("the page");
    assert!(KINDS.iter().all(|(_, name, ..)| page.contains(name)), "{page}");

    let cache = start(&["-c", &config], port);
    let before = api.asked();
    let seen = visit(port, 2, &api);
    assert_eq!(unseen(port), Vec::<String>::new(), "with {text}");
    drop(cache);
    assert_eq!(seen.leaks, Vec::<String>::new(), "with {text}");
    let asked = api.asked();
    for (number, (_, name, is_cacheable, _)) in KINDS.iter().enumerate() {
        let routes = report["routes"].as_array().expect("routes");
        let route = routes
            .iter()
            .find(|route| route["route"] == *name)
            .unwrap_or_else(|| panic!("{name} in {report:#}"));
        let hits = (seen.requests[number] + before[number]).saturating_sub(asked[number]);
        let ratio = hits as f64 / seen.requests[number] as f64;
        let said = [0, 1].map(|end| route["hit_ratio"][end].as_f64().unwrap_or_default());
        let figures = format!(
            "{name}: {} requests, hit ratio {ratio:.3} of {said:?}, {} stale, {} leaks: {route:#}",
            seen.requests[number],
            seen.stale[number],
            seen.leaks.len()
        );
        assert_eq!(route["keep_seconds"].is_u64(), *is_cacheable, "{figures}");
        assert!(*is_cacheable || hits == 0, "{figures}");
        assert!(seen.stale[number] * 100 <= hits, "{figures}");
        assert!(said[0] - TOLERANCE <= ratio && ratio <= said[1] + TOLERANCE, "{figures}");
    }
}
