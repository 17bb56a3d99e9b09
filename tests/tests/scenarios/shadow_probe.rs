//! `shadow --probe`: where every client has a cookie, requests without it show what it lets through.

use millstream_tests::client::Client;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;
use millstream_tests::server::binary;
use millstream_tests::{ports, wait};
use rustix::process::Signal;
use serde_json::Value;
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS: u8 = 24;
const REQUESTS: usize = 90;
/// As documented.
const PROBES_PER_SECOND: f64 = 10.0;
/// Longer than a second, in which no more are sampled once there were a thousand.
const AT_REST: Duration = Duration::from_millis(1_500);

/// `/pages/N` is the same for everybody, `/members/N` for everybody with a session, and `/keyed` has its credential in the URL.
fn api() -> Origin {
    Origin::start(|request| {
        let json = [("Content-Type", "application/json")];
        let body = format!("{{\"of\":\"{}\"}}", request.target());
        match request.target().starts_with("/members/") && request.field("cookie").is_none() {
            true => answer(401, &json, b"{\"error\":\"log in\"}"),
            false => answer(200, &json, body.as_bytes()),
        }
    })
}

fn visit(port: u16) {
    let one = |number: u8| {
        let mut client =
            Client::connect_from(Ipv4Addr::new(127, 0, 3, number + 1), port).expect("it listens");
        let cookie = format!("session=s{number}");
        for at in 0..REQUESTS {
            let target = match at % 9 {
                0 => format!("/members/{}", 100 + at % 4),
                1 => format!("/keyed?api_key=k{number}"),
                _ => format!("/pages/{}", 100 + at % 4),
            };
            let got = client.get_with(&target, &[("Cookie", &cookie)]).expect("a response");
            assert_eq!((got.status, got.json()["of"].as_str()), (200, Some(&*target)));
        }
    };
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            scope.spawn(move || one(number));
        }
    });
}

#[test]
fn probes_show_what_a_cookie_lets_through_and_nothing_is_probed_unasked() {
    skip_on_nginx!();
    for probes in [true, false] {
        let (api, port, folder) = (api(), ports::free(), Prefix::new());
        let file = folder.path().join("report.json");
        let mut command = Command::new(binary());
        command
            .args(["shadow", &format!("http://{}", api.address()), "--listen", &format!("127.0.0.1:{port}")])
            .args(["--dashboard", "off", "--stale-budget", "1%", "--json"])
            .arg(&file);
        if probes {
            command.arg("--probe");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut shadow = Running::start(&mut command).expect("the binary runs");
        wait::until("it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        let begun = Instant::now();
        let sent = usize::from(CLIENTS) * REQUESTS;
        // The first requests only make the routes known.
        let (mut rounds, mut requests, mut probed) = (0, Vec::new(), Vec::new());
        let mut last = begun;
        wait::until("nothing is left to be probed", || {
            visit(port);
            rounds += 1;
            requests = api.requests();
            let known = probed.len();
            probed = requests.iter().filter(|request| request.field("cookie").is_none()).cloned().collect();
            if probed.len() > known {
                last = Instant::now();
            }
            rounds >= 3 && (!probes || !probed.is_empty() && last.elapsed() > AT_REST)
        });
        let most = begun.elapsed().as_secs_f64() * PROBES_PER_SECOND + 1.0;
        assert!(probed.len() as f64 <= most, "{} probes, {most} at most", probed.len());
        assert_eq!((requests.len() - probed.len(), probed.is_empty()), (rounds * sent, !probes));
        for probe in &probed {
            assert!(
                probe.head.starts_with("GET ") && !probe.target().starts_with("/keyed"),
                "{}",
                probe.target()
            );
            assert_eq!(probe.field("x-forwarded-for"), Some("192.0.0.8"));
        }
        shadow.signal(Signal::INT);
        assert!(shadow.wait(Duration::from_secs(20)).is_some_and(|status| status.success()));
        let report: Value = serde_json::from_slice(&std::fs::read(&file).expect("the report")).expect("JSON");
        let of = |name: &str| {
            let routes = report["routes"].as_array().expect("routes");
            routes.iter().find(|route| route["route"] == name).cloned().unwrap_or_default()
        };
        let of = |name: &str| of(name)["shares"].to_string();
        let shared = if probes { "[\"cookie session\"]" } else { "[]" };
        assert_eq!(of("/pages/{id}"), shared, "{report:#}");
        for guarded in ["/members/{id}", "/keyed"] {
            assert_eq!(of(guarded), "[]", "{report:#}");
        }
    }
}
