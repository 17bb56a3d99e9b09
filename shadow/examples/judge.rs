//! Judges what shadow recommends for random histories of endpoints whose truth is known, and measures its costs.
//!
//!     cargo run --release --example judge -- [histories] [requests per endpoint] [first seed] [report]
//!     cargo run --release --example judge -- bench
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a program that measures and prints")]

#[path = "../tests/world/mod.rs"]
mod world;

use millstream_shadow::configuration::Front;
use millstream_shadow::{Ending, Key, Limits, Shadow};
use std::io::Write;
use world::endpoint::drawn;
use world::replay::{Score, judge};

/// Kinds of endpoint in one history, of all that there are.
const KINDS: usize = 24;

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
        let mut history = world::history(seed, &drawn(seed, KINDS), requests as usize, budget);
        if arguments.get(3).is_some_and(|text| text == "report") {
            let front = Front {
                http: "events {}\nhttp {\n",
                server: "    server {\n        listen 127.0.0.1:8080;\n",
                pass: "            proxy_pass http://127.0.0.1:8000;\n",
            };
            println!("{}\n{}", history.report.json(), history.report.configuration(0, front));
        }
        let score = judge(&mut history, seed, budget);
        let wrong = score.leaks.iter().chain(&score.missed).chain(&score.wrong_lifetimes);
        for line in wrong.chain(&score.wrong_ratios).chain(&score.over_budget) {
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
    println!(
        "with other clients: {} of {} hit ratios in their interval ({:.1} %); {} of {} hits stale ({:.4} %), above the budget \
         in {} runs and {} routes",
        total.ratios - total.wrong_ratios.len() as u32,
        total.ratios,
        100.0 * (1.0 - total.wrong_ratios.len() as f64 / f64::from(total.ratios.max(1))),
        total.stale,
        total.hits,
        100.0 * total.stale as f64 / total.hits.max(1) as f64,
        total.runs_over_budget,
        total.over_budget.len()
    );
}

/// Nanoseconds that this thread has run, which others on the machine do not change as they change the time.
fn busy() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// CPU time per request in nanoseconds, how many were sampled, and what is known of them.
fn observed(
    made: &[(String, String)],
    limits: Limits,
    requests: u64,
    body: &[u8],
    coding: &str,
) -> (f64, u64, Shadow) {
    let mut shadow = Shadow::new(Key::random(), limits);
    let mut sampled = 0_u64;
    let begin = busy();
    for number in 0..requests {
        let (path, session) =
            &made[(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % made.len() as u64) as usize];
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
        let now = world::START + number / 10;
        if let Some(mut of) = shadow.sent(&request, fields.into_iter(), now) {
            sampled += 1;
            let head: [(&[u8], &[u8]); 3] = [
                (b"content-type", b"application/json"),
                (b"x-powered-by", b"api"),
                (b"content-encoding", coding.as_bytes()),
            ];
            of.response(200, head.into_iter(), now + 5);
            body.chunks(1_448).for_each(|piece| of.piece(piece));
            shadow.ended(*of, Ending::Whole, now + 5);
        }
    }
    ((busy() - begin) as f64 / requests as f64, sampled, shadow)
}

/// Costs in CPU time and memory.
fn bench() {
    const REQUESTS: u64 = 1_000_000;
    const URLS: u64 = 100_000;
    let body = json(4_096);
    // Made before, so that only shadow is measured.
    let made: Vec<(String, String)> = (0..URLS)
        .map(|number| (format!("/api/items/{number}"), format!("session=a{}; ab=b", number % 500)))
        .collect();
    let run = |limits: Limits, requests: u64, urls: u64, body: &[u8], coding: &str| {
        observed(&made[..urls as usize], limits, requests, body, coding)
    };
    let plain = "identity";
    let (time, sampled, _) = run(Limits { sampled_per_second: 0 }, REQUESTS, URLS, body.as_bytes(), plain);
    println!("not sampled: {:.0} ns per request ({sampled} sampled)", time);
    let all = Limits { sampled_per_second: u32::MAX };
    for (coding, bytes) in [(plain, body.clone().into_bytes()), ("gzip", gzip(&body)), ("br", br(&body))] {
        let (time, sampled, _) = run(all, 200_000, 1_000, &bytes, coding);
        println!(
            "sampled, {coding}: {:.0} ns per request with {} bytes of JSON in {} ({sampled} sampled)",
            time,
            body.len(),
            bytes.len()
        );
    }
    let (time, sampled, shadow) = run(all, REQUESTS, URLS, body.as_bytes(), plain);
    let resident = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = resident.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok()).unwrap_or(0);
    println!(
        "{REQUESTS} requests for {URLS} URLs: {:.1} MB known to be used, {:.1} MB resident, {sampled} sampled, {:.0} ns per request",
        shadow.bytes() as f64 / 1e6,
        pages as f64 * 4_096.0 / 1e6,
        time
    );
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).unwrap_or_default()
}

fn br(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    _ = brotli::CompressorWriter::new(&mut bytes, 4_096, 5, 22).write_all(text.as_bytes());
    bytes
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
