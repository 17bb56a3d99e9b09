//! The API behind the proxies in the benchmark: `origin PORT [THREADS]`. Fast, and told by the target what to answer:
//!
//! `/any?size=900&kind=json&age=3600&delay=180-660` gives 900 bytes of JSON (or `kind=text`: varied words, which gzip level 2
//! brings to about a third), fresh for an hour by `Cache-Control`, after a delay in milliseconds that walks through the range. `/__count` tells how many other requests came so far, which is what microcaching is about.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use millstream_bench::epoll::{Respond, serve};

/// Answers remembered per thread; targets beyond are built each time.
const REMEMBERED: usize = 1024;

static REQUESTS: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
struct Origin {
    answers: HashMap<Vec<u8>, Canned>,
}

#[derive(Clone)]
struct Canned {
    bytes: Arc<[u8]>,
    delay: (u64, u64),
}

impl Respond for Origin {
    fn respond(&mut self, target: &[u8], out: &mut Vec<u8>) -> Duration {
        if target == b"/__count" {
            let count = REQUESTS.load(Ordering::Relaxed).to_string();
            out.extend_from_slice(
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{count}", count.len()).as_bytes(),
            );
            return Duration::ZERO;
        }
        let count = REQUESTS.fetch_add(1, Ordering::Relaxed);
        let canned = match self.answers.get(target) {
            Some(canned) => canned,
            None => {
                if self.answers.len() >= REMEMBERED {
                    self.answers.clear();
                }
                self.answers.entry(target.to_vec()).or_insert_with(|| build(target))
            }
        };
        out.extend_from_slice(&canned.bytes);
        let (least, most) = canned.delay;
        // A walk through the range in steps that are no divisor of it: every request its own time, every run the same times.
        Duration::from_millis(least + count.wrapping_mul(137) % (most - least + 1))
    }
}

fn build(target: &[u8]) -> Canned {
    let target = String::from_utf8_lossy(target);
    let size = parameter(&target, "size").and_then(|text| text.parse().ok()).unwrap_or(900).min(64 << 20);
    let text = parameter(&target, "kind") == Some("text");
    let body = if text { words(size) } else { json(size) };
    let kind = if text { "text/html; charset=utf-8" } else { "application/json" };
    let mut head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
    if let Some(age) = parameter(&target, "age") {
        head.push_str(&format!("Cache-Control: max-age={age}\r\n"));
    }
    head.push_str("\r\n");
    let delay = parameter(&target, "delay").and_then(range).unwrap_or((0, 0));
    Canned { bytes: [head.as_bytes(), &body].concat().into(), delay }
}

fn parameter<'a>(target: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = target.split_once('?')?;
    query
        .split('&')
        .find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value))
}

/// `180-660` or `200`, in milliseconds, at most ten seconds.
fn range(text: &str) -> Option<(u64, u64)> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let least = least.parse::<u64>().ok()?.min(10_000);
    Some((least, most.parse::<u64>().ok()?.clamp(least, 10_000)))
}

fn json(size: usize) -> Vec<u8> {
    let mut random = Random(1);
    let mut body = String::from("{\"items\":[");
    while body.len() + 60 < size {
        body.push_str(&format!("{{\"id\":{},\"name\":\"{}\"}},", random.below(100_000), random.word()));
    }
    body.push('"');
    let filler = size.saturating_sub(body.len() + 3);
    body.push_str(&"x".repeat(filler));
    body.push_str("\"]}");
    body.into_bytes()
}

/// Words out of a vocabulary of some hundreds, frequent ones more often, as in prose, with a tag here and there.
fn words(size: usize) -> Vec<u8> {
    let mut random = Random(7);
    let vocabulary: Vec<String> = (0..1500).map(|_| random.word()).collect();
    let mut body = String::from("<!doctype html><title>A page</title><p>");
    while body.len() < size {
        let skew = random.below(1000) * random.below(1000) * random.below(1000) / 700_000;
        body.push_str(&vocabulary[skew as usize % vocabulary.len()]);
        body.push_str(if random.below(40) == 0 { ".</p>\n<p class=\"entry\">" } else { " " });
    }
    body.truncate(size);
    body.into_bytes()
}

/// A small generator (Lehmer's) so that every run serves the same bytes.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn word(&mut self) -> String {
        let length = 3 + self.below(7);
        (0..length).map(|_| char::from(b"etaoinshrdlucmfwygpb"[self.below(20) as usize])).collect()
    }
}

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let Some(port) = numbers.next() else {
        eprintln!("origin PORT [THREADS]");
        return ExitCode::from(2);
    };
    let threads = numbers
        .next()
        .map_or_else(|| std::thread::available_parallelism().map_or(1, Into::into), usize::from);
    let result = serve(port, threads, Origin::default);
    eprintln!("origin: {result:?}");
    ExitCode::FAILURE
}
