//! Judges what shadow recommends for random histories of endpoints whose truth is known, and measures its costs.
//!
//!     cargo run --release --example judge -- [histories] [requests per endpoint] [first seed] [report]
//!     cargo run --release --example judge -- bench
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a program that measures and prints")]

#[path = "../tests/world/mod.rs"]
mod world;

use millstream_shadow::configuration::Front;
use world::replay::{Score, judge};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|text| text == "bench") {
        return bench();
    }
    let number =
        |at: usize, default: u64| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (histories, requests, first) = (number(0, 200), number(1, 16_000), number(2, 1));
    let budget = millstream_shadow::report::STALE_BUDGET;
    let mut total = Score::default();
    for seed in first..first + histories {
        let mut history = world::history(seed, world::endpoint::ALL, requests as usize, budget);
        if arguments.get(3).is_some_and(|text| text == "report") {
            let front = Front {
                http: "events {}\nhttp {\n",
                server: "    server {\n        listen 127.0.0.1:8080;\n",
                pass: "            proxy_pass http://127.0.0.1:8000;\n",
            };
            println!("{}\n{}", history.report.json(), history.report.configuration(0, front));
        }
        let score = judge(&mut history, seed, budget);
        for line in score.leaks.iter().chain(&score.missed).chain(&score.wrong_lifetimes) {
            println!("{line}");
        }
        total.add(score);
    }
    println!(
        "{histories} histories: {} leaks; {} of {} cacheable routes found; {} of {} lifetimes wrong",
        total.leaks.len(),
        total.found,
        total.cacheable,
        total.wrong_lifetimes.len(),
        total.lifetimes
    );
}

/// Costs in time and memory.
fn bench() {
    use millstream_shadow::{Ending, Key, Limits, Shadow};
    const REQUESTS: u64 = 1_000_000;
    const URLS: u64 = 100_000;
    let start = world::START;
    let body = json(4_096);
    // Made before, so that only shadow is measured.
    let made: Vec<(String, String)> = (0..URLS)
        .map(|number| (format!("/api/items/{number}"), format!("session=a{}; ab=b", number % 500)))
        .collect();
    let run = |limits: Limits, requests: u64, urls: u64, body: &str| {
        let mut shadow = Shadow::new(Key::random(), limits);
        let mut sampled = 0_u64;
        let begin = std::time::Instant::now();
        for number in 0..requests {
            let (path, session) = &made[(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % urls) as usize];
            let fields: [(&[u8], &[u8]); 9] = [
                (b"host", b"api.example.com"),
                (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0"),
                (b"accept", b"application/json"),
                (b"accept-language", b"en-US,en;q=0.9"),
                (b"accept-encoding", b"gzip, br"),
                (b"cookie", session.as_bytes()),
                (b"referer", b"https://example.com/page"),
                (b"sec-fetch-mode", b"cors"),
                (b"x-request-id", path.as_bytes()),
            ];
            let request = millstream_shadow::Request {
                location: 0,
                method: b"GET",
                is_tls: true,
                host: b"api.example.com",
                path: path.as_bytes(),
                query: Some(b"view=full"),
                client: std::net::IpAddr::from([10, 0, (number % 500 / 250) as u8, (number % 250) as u8]),
                certificate: None,
            };
            let now = start + number / 10;
            if let Some(mut of) = shadow.sent(&request, fields.into_iter(), now) {
                sampled += 1;
                let head: [(&[u8], &[u8]); 2] =
                    [(b"content-type", b"application/json"), (b"x-powered-by", b"api")];
                of.response(200, head.into_iter(), now + 5);
                body.as_bytes().chunks(1_448).for_each(|piece| of.piece(piece));
                shadow.ended(*of, Ending::Whole, now + 5);
            }
        }
        (begin.elapsed().as_nanos() as f64 / requests as f64, sampled, shadow)
    };
    let (time, sampled, _) = run(Limits { sampled_per_second: 0 }, REQUESTS, URLS, &body);
    println!("not sampled: {:.0} ns per request ({sampled} sampled)", time);
    let all = Limits { sampled_per_second: u32::MAX };
    let (time, sampled, _) = run(all, 200_000, 1_000, &body);
    println!("sampled: {:.0} ns per request with {} bytes of JSON ({sampled} sampled)", time, body.len());
    let (time, sampled, shadow) = run(all, REQUESTS, URLS, &body);
    let resident = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = resident.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok()).unwrap_or(0);
    println!(
        "{REQUESTS} requests for {URLS} URLs: {:.1} MB known to be used, {:.1} MB resident, {sampled} sampled, {:.0} ns per request",
        shadow.bytes() as f64 / 1e6,
        pages as f64 * 4_096.0 / 1e6,
        time
    );
}

fn json(length: usize) -> String {
    let mut text = "{\"items\":[".to_owned();
    let mut number = 0;
    while text.len() + 80 < length {
        text += &format!(
            "{{\"id\":{number},\"name\":\"item number {number}\",\"price\":{}.5,\"tags\":[\"a\",\"b\"]}},",
            number * 7
        );
        number += 1;
    }
    text.pop();
    text + "]}"
}
