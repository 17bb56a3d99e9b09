//! What one client of the soak does, again and again: something random, often left in the middle.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use millstream_tests::visitor::{Framing, Visitor};

use crate::source::is_body;

/// The longest visit; streams are left long before.
const LIMIT: Duration = Duration::from_secs(30);
/// Lengths of responses: some fit into memory, some only on disk, some nowhere.
const LENGTHS: &[u64] = &[900, 900, 900, 40_000, 300_000, 2_000_000, 9_000_000];
const PAGES: u64 = 40;
const TOLD: usize = 10;

#[derive(Debug, Default)]
pub(super) struct Counts {
    ends: BTreeMap<String, u64>,
    pub(super) reloads: u64,
    pub(super) wrong: Vec<String>,
}

impl Counts {
    fn count(&mut self, what: impl Into<String>) {
        *self.ends.entry(what.into()).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: Counts) {
        for (what, count) in other.ends {
            *self.ends.entry(what).or_default() += count;
        }
        self.wrong.extend(other.wrong);
        self.wrong.truncate(TOLD);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, count) in &self.ends {
            write!(f, "{what}: {count}, ")?;
        }
        write!(f, "reloads: {}, wrong answers: {}", self.reloads, self.wrong.len())
    }
}

/// xorshift64: the same numbers in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

pub(super) async fn client(port: u16, seed: u64, over: Rc<Cell<bool>>) -> Counts {
    let (mut counts, mut random) = (Counts::default(), Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1));
    while !over.get() {
        match tokio::time::timeout(LIMIT, visit(port, &mut random, &mut counts)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => counts.count(format!("{:?}", error.kind())),
            Err(_) => counts.count("no end within 30 s"),
        }
        // A pause as people make it, so that the machine is shared.
        tokio::time::sleep(Duration::from_millis(random.below(40))).await;
    }
    counts
}

async fn visit(port: u16, random: &mut Dice, counts: &mut Counts) -> std::io::Result<()> {
    let mut visitor = if random.below(8) == 0 {
        Visitor::connect_narrow(port).await?
    } else {
        Visitor::connect(port).await?
    };
    let length = LENGTHS[random.below(LENGTHS.len() as u64) as usize];
    let target = format!("/body/{length}/{}?age=2", random.below(PAGES));
    match random.below(24) {
        0 => upload(&mut visitor, random, counts).await,
        1 => events(&mut visitor, random, counts).await,
        2 => socket(&mut visitor, random, counts).await,
        3 => {
            counts.count("purges");
            visitor.send(format!("PURGE {target} HTTP/1.1\r\nHost: soak.example\r\n\r\n")).await?;
            visitor.head().await.map(|_| ())
        }
        4 => {
            // Half a head, or none that anybody understands; and gone.
            counts.count("nonsense");
            visitor
                .send(if random.below(2) == 0 { "GET /body/900 HT" } else { "\x16\x03\x01 nonsense\r\n\r\n" })
                .await
        }
        5..8 => {
            let target = format!("/chunked/{length}/{}?age=2", random.below(PAGES));
            read(&mut visitor, &target, None, random, counts).await
        }
        8..11 => {
            let first = random.below(length);
            let last = (first + random.below(length)).min(length - 1);
            read(&mut visitor, &target, Some((first, last)), random, counts).await
        }
        _ => read(&mut visitor, &target, None, random, counts).await,
    }
}

async fn read(
    visitor: &mut Visitor,
    target: &str,
    range: Option<(u64, u64)>,
    random: &mut Dice,
    counts: &mut Counts,
) -> std::io::Result<()> {
    let range = range.map(|(first, last)| format!("Range: bytes={first}-{last}\r\n")).unwrap_or_default();
    visitor.send(format!("GET {target} HTTP/1.1\r\nHost: soak.example\r\n{range}\r\n")).await?;
    let answer = visitor.head().await?;
    counts.count(answer.status.to_string());
    let mut framing = Framing::of("GET", &answer)?;
    let part = answer.field("content-range").and_then(|range| range.strip_prefix("bytes "));
    let mut at = part.and_then(|part| part.split('-').next()?.parse().ok()).unwrap_or(0);
    let leaves = (random.below(4) == 0).then(|| random.below(200_000));
    let mut taken = 0;
    while let Some(piece) = visitor.piece(&mut framing).await? {
        if matches!(answer.status, 200 | 206) && !is_body(at, &piece) {
            counts.wrong.push(format!("{target} {range:?}: wrong bytes from {at} on"));
            return Ok(());
        }
        at += piece.len() as u64;
        taken += piece.len() as u64;
        if leaves.is_some_and(|leaves| taken > leaves) {
            counts.count("left");
            return Ok(());
        }
    }
    let length: u64 = target.split('/').nth(2).and_then(|text| text.parse().ok()).unwrap_or(0);
    if answer.status == 200 && taken != length {
        counts.wrong.push(format!("{target}: {taken} bytes looked whole"));
    }
    Ok(())
}

async fn upload(visitor: &mut Visitor, random: &mut Dice, counts: &mut Counts) -> std::io::Result<()> {
    let length = 1_000 + random.below(3_000_000) as usize;
    let head =
        format!("POST /body/900/up HTTP/1.1\r\nHost: soak.example\r\nContent-Length: {length}\r\n\r\n");
    visitor.send(head).await?;
    let sent = if random.below(4) == 0 { length / 2 } else { length };
    visitor.send(vec![b'u'; sent]).await?;
    if sent < length {
        counts.count("uploads left");
        return Ok(());
    }
    let answer = visitor.head().await?;
    counts.count(format!("uploads {}", answer.status));
    let mut body = Vec::new();
    visitor.body(Framing::of("POST", &answer)?, &mut body).await?;
    if answer.status == 200 && body != length.to_string().as_bytes() {
        counts.wrong.push(format!("an upload of {length} bytes came as {}", String::from_utf8_lossy(&body)));
    }
    Ok(())
}

async fn events(visitor: &mut Visitor, random: &mut Dice, counts: &mut Counts) -> std::io::Result<()> {
    visitor.send("GET /events HTTP/1.1\r\nHost: soak.example\r\nAccept-Encoding: gzip\r\n\r\n").await?;
    let answer = visitor.head().await?;
    counts.count(format!("streams {}", answer.status));
    let mut framing = Framing::of("GET", &answer)?;
    for _ in 0..random.below(15) {
        visitor.piece(&mut framing).await?;
    }
    Ok(())
}

async fn socket(visitor: &mut Visitor, random: &mut Dice, counts: &mut Counts) -> std::io::Result<()> {
    let head =
        "GET /socket/ HTTP/1.1\r\nHost: soak.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    visitor.send(head).await?;
    let answer = visitor.head().await?;
    counts.count(format!("sockets {}", answer.status));
    if answer.status != 101 {
        return Ok(());
    }
    for _ in 0..random.below(10) {
        visitor.send(b"there and back").await?;
        let (mut back, mut framing) = (Vec::new(), Framing::Close);
        while back.len() < 14 {
            match visitor.piece(&mut framing).await? {
                Some(piece) => back.extend_from_slice(&piece),
                None => return Ok(()),
            }
        }
        if back != b"there and back" {
            counts.wrong.push("a WebSocket said what nobody had said".to_owned());
        }
    }
    Ok(())
}
