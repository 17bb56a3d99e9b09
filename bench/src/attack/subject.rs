//! The server that is attacked, and what the kernel says of it.

use std::cell::RefCell;
use std::future::Future;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millstream_tests::process;
use millstream_tests::visitor::{Framing, Visitor};
use tokio::task::LocalSet;

use crate::peers::{self, Started};
use crate::product::Product;
use crate::source::Source;

const OTHERS: usize = 10;
const BETWEEN: Duration = Duration::from_millis(50);
pub(super) const HOT: &str = "/body/900?age=3600";

pub(super) struct Bench {
    pub(super) product: Product,
    pub(super) binary: PathBuf,
}

impl Bench {
    /// Millstream or nginx on the same file.
    pub(super) fn on_file(&self, file: &str, source: &Source) -> Result<Started, String> {
        peers::on_nginx_file(self.product, &self.binary, file, source.port)
    }

    /// Millstream as `serve`, nginx on the file of attacks.
    pub(super) fn serving(&self, options: &[&str], source: &Source) -> Result<Started, String> {
        match self.product {
            Product::Millstream => peers::serving(&self.binary, source.port, options),
            _ => self.on_file("bench/conf/attack.conf", source),
        }
    }
}

pub(super) fn on_this_thread<T>(clients: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    Ok(LocalSet::new().block_on(&runtime, clients))
}

pub(super) async fn get(visitor: &mut Visitor, request: &str) -> std::io::Result<(u16, Duration)> {
    let began = Instant::now();
    visitor.send(request).await?;
    let answer = visitor.head().await?;
    let mut body = Vec::new();
    visitor.body(Framing::of("GET", &answer)?, &mut body).await?;
    Ok((answer.status, began.elapsed()))
}

pub(super) fn plain(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: attack.example\r\n\r\n")
}

pub(super) async fn others(port: u16, over: &AtomicBool) -> Vec<Duration> {
    let (waited, request) = (Rc::new(RefCell::new(Vec::new())), plain(HOT));
    let mut visitors = Vec::new();
    for _ in 0..OTHERS {
        visitors.extend(Visitor::connect(port).await.ok());
    }
    while !over.load(Ordering::SeqCst) {
        for visitor in &mut visitors {
            if let Ok((200, took)) = get(visitor, &request).await {
                waited.borrow_mut().push(took);
            }
            tokio::time::sleep(BETWEEN / OTHERS as u32).await;
        }
    }
    waited.take()
}

/// Zero for no times.
pub(super) fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort();
    let rank = (times.len() * percent).div_ceil(100).max(1);
    times.get(rank - 1).copied().unwrap_or_default()
}

/// Bytes of resident memory and of memory files; both cost the machine.
pub(super) fn held_memory(root: u32) -> u64 {
    let of_one = |id: u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let line = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
                * 1024
        };
        line("RssAnon:") + line("RssShmem:") + memory_files(id)
    };
    process::tree(root).into_iter().map(of_one).sum()
}

fn memory_files(id: u32) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut files = std::collections::HashMap::new();
    for entry in std::fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten() {
        let is_memory = std::fs::read_link(entry.path()).is_ok_and(|link| link.starts_with("/memfd:"));
        if let Some(found) = is_memory.then(|| std::fs::metadata(entry.path()).ok()).flatten() {
            files.insert(found.ino(), found.blocks() * 512);
        }
    }
    files.values().sum()
}

/// Established connections of clients to a port, by the kernel's table.
pub(super) fn established_to(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let local = format!(":{port:04X}");
    let is_held = |line: &&str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (own, state) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
        own.ends_with(&local) && state == "01"
    };
    table.lines().skip(1).filter(is_held).count()
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub(super) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
