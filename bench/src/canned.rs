//! The answers of the API behind the proxies: the target says how long, of what kind, how fresh and how late one is.
//!
//! `bin/origin` serves them fast; `training` on its own threads. The same target gives the same bytes in every run.

use std::sync::Arc;

#[derive(Clone)]
pub struct Canned {
    pub bytes: Arc<[u8]>,
    /// From and to, in milliseconds.
    pub delay: (u64, u64),
}

impl Canned {
    pub fn of(target: &[u8]) -> Canned {
        let target = String::from_utf8_lossy(target);
        let size = parameter(&target, "size").and_then(|text| text.parse().ok()).unwrap_or(900).min(64 << 20);
        let text = parameter(&target, "kind") == Some("text");
        let body = if text { words(size) } else { json(size) };
        let kind = if text { "text/html; charset=utf-8" } else { "application/json" };
        let mut head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
        if let Some(age) = parameter(&target, "age") {
            head.push_str(&format!("Cache-Control: max-age={age}\r\n"));
        }
        head.push_str("\r\n");
        let delay = parameter(&target, "delay").and_then(range).unwrap_or((0, 0));
        Canned { bytes: [head.as_bytes(), &body].concat().into(), delay }
    }
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
    let mut random = Letters(1);
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

/// Words from a vocabulary of some hundreds, frequent ones more often, as in prose, with a tag now and then.
fn words(size: usize) -> Vec<u8> {
    let mut random = Letters(7);
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

/// Lehmer's generator: every run serves the same bytes.
struct Letters(u64);

impl Letters {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn word(&mut self) -> String {
        let length = 3 + self.below(7);
        (0..length).map(|_| char::from(b"etaoinshrdlucmfwygpb"[self.below(20) as usize])).collect()
    }
}
