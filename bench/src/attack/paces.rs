//! Clients that read one large chunked answer at different paces: everybody who reads gets all of it.

use std::time::{Duration, Instant};

use millstream_tests::visitor::{Framing, Visitor};
use tokio::task::JoinSet;

use super::Finding;
use super::subject::{Bench, on_this_thread, plain};
use crate::source::{Source, is_body};

/// Bytes of the response: more than the eighth of `--memory` that may be stored.
const LENGTH: u64 = 20_000_000;
/// Groups that request one URL at once: megabytes a second, zero for no limit.
const GROUPS: &[&[u64]] = &[&[4, 8], &[8, 8], &[0, 8, 4, 2], &[0, 1, 1, 1]];
const LIMIT: Duration = Duration::from_secs(60);

pub(super) fn measure(bench: &Bench) -> Result<Finding, String> {
    let source = Source::start();
    let server = bench.serving(&["--memory", "64m"], &source)?;
    let (mut figures, mut holds) = (Vec::new(), true);
    for (number, paces) in GROUPS.iter().enumerate() {
        let target = format!("/chunked/{LENGTH}/{number}?age=60");
        let mut read = on_this_thread(group(server.port, &target, paces))?;
        read.sort_unstable();
        let whole = read.iter().filter(|bytes| **bytes == LENGTH).count();
        holds &= whole == paces.len();
        let least = read.first().copied().unwrap_or(0) as f64 / 1e6;
        figures.push(format!("{paces:?} MB/s: {whole} of {} whole, least {least:.1} MB", paces.len()));
    }
    Ok(Finding { figures: figures.join("; "), holds })
}

async fn group(port: u16, target: &str, paces: &[u64]) -> Vec<u64> {
    let mut clients = JoinSet::new();
    for pace in paces.iter().copied() {
        let request = plain(target);
        clients.spawn_local(async move {
            let mut right = 0;
            // Whatever ended it, what it has read is told.
            let _ = tokio::time::timeout(LIMIT, read(port, &request, pace, &mut right)).await;
            right
        });
    }
    let mut all = Vec::new();
    while let Some(read) = clients.join_next().await {
        all.push(read.unwrap_or(0));
    }
    all
}

async fn read(port: u16, request: &str, pace: u64, right: &mut u64) -> std::io::Result<()> {
    let mut visitor =
        if pace == 0 { Visitor::connect(port).await? } else { Visitor::connect_narrow(port).await? };
    visitor.send(request).await?;
    let mut framing = Framing::of("GET", &visitor.head().await?)?;
    let began = Instant::now();
    let mut taken = 0;
    while let Some(piece) = visitor.piece(&mut framing).await? {
        if !is_body(taken, &piece) {
            return Ok(());
        }
        taken += piece.len() as u64;
        // Only a whole answer counts as its length.
        *right = taken.min(LENGTH - 1);
        if let Some(due) = taken.checked_div(pace).map(Duration::from_micros) {
            tokio::time::sleep(due.saturating_sub(began.elapsed())).await;
        }
    }
    *right = taken;
    Ok(())
}
