//! Readers that read slowly: what a server holds for all of them.

use std::rc::Rc;
use std::time::{Duration, Instant};

use millstream_tests::process::allow_open_files;
use millstream_tests::visitor::{Framing, Visitor};

use super::Finding;
use super::subject::{Bench, held_memory, mebibytes, on_this_thread, plain};
use crate::source::Source;

/// Memory is sampled until nothing more arrives for this long, or for the limit below; the maximum counts.
const STEADY: Duration = Duration::from_secs(6);
const LIMIT: Duration = Duration::from_secs(60);
/// Growth that counts as none.
const LITTLE: u64 = 1 << 20;
/// Pause between two reads: short enough that no timeout applies.
const BETWEEN: Duration = Duration::from_millis(700);
/// What the bar allows beyond `memory=`, and for each reader.
const BESIDE: u64 = 64 << 20;
const EACH: u64 = 64 << 10;

/// The default of `serve`.
const DEFAULT_MEMORY: u64 = 256 << 20;

pub(super) fn stored(bench: &Bench) -> Result<Finding, String> {
    hold(bench, &["--memory", "64m"], 64 << 20, 500, "/body/1000000")
}

pub(super) fn chunked(bench: &Bench) -> Result<Finding, String> {
    hold(bench, &["--memory", "64m"], 64 << 20, 500, "/chunked/20000000")
}

pub(super) fn large(bench: &Bench) -> Result<Finding, String> {
    hold(bench, &[], DEFAULT_MEMORY, 60, "/body/30000000")
}

fn hold(bench: &Bench, options: &[&str], memory: u64, readers: u64, path: &str) -> Result<Finding, String> {
    if !allow_open_files(readers * 4 + 1_000) {
        return Err("raise `ulimit -n`".to_owned());
    }
    let source = Source::start();
    let server = bench.serving(options, &source)?;
    let before = held_memory(server.id());
    let most = on_this_thread(look(server.id(), server.port, readers, path))?;
    let (grown, bar) = (most.saturating_sub(before), memory + BESIDE + EACH * readers);
    Ok(Finding {
        figures: format!(
            "{:.0} MiB more than at the start; the bar is {:.0}",
            mebibytes(grown),
            mebibytes(bar)
        ),
        holds: grown <= bar,
    })
}

/// The most memory held while they read.
async fn look(id: u32, port: u16, readers: u64, path: &str) -> u64 {
    for number in 0..readers {
        // Each its own URL, so that what is read has been evicted by others.
        let request: Rc<str> = plain(&format!("{path}/{number}?age=60")).into();
        tokio::task::spawn_local(async move {
            // A reader that is cut holds nothing any more.
            let _ = read(port, &request).await;
        });
    }
    let (began, mut grown, mut most) = (Instant::now(), Instant::now(), 0);
    while grown.elapsed() < STEADY && began.elapsed() < LIMIT {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let held = held_memory(id);
        if held > most + LITTLE {
            grown = Instant::now();
        }
        most = most.max(held);
    }
    most
}

async fn read(port: u16, request: &str) -> std::io::Result<()> {
    let mut visitor = Visitor::connect_narrow(port).await?;
    visitor.send(request).await?;
    let mut framing = Framing::of("GET", &visitor.head().await?)?;
    while visitor.piece(&mut framing).await?.is_some() {
        tokio::time::sleep(BETWEEN).await;
    }
    Ok(())
}
