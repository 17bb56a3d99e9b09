//! `cargo xtask bench streams`: clients of one event stream that come and go through `serve --microcache 1s`, gzip accepted.
//!
//! Each event carries the moment at which the API wrote it, on the clock of who reads it. Every client comes three times. At
//! the end nobody reads, and the API's connections have to be gone after five seconds.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use flate2::write::GzDecoder;
use millstream_tests::process::allow_open_files;
use millstream_tests::visitor::{Framing, Visitor};
use tokio::task::{JoinSet, LocalSet};

use crate::source::{Source, moment};
use crate::{Options, peers};

/// Visits of each client, the length of one, and the time over which clients arrive.
const VISITS: usize = 3;
const STAYS: Duration = Duration::from_secs(3);
const ARRIVING: Duration = Duration::from_secs(3);
/// Milliseconds between two events of the API.
const EVERY: u32 = 500;
const LATE: Duration = Duration::from_millis(50);
const GONE: Duration = Duration::from_secs(5);

#[derive(Default)]
struct SeenByClients {
    /// Microseconds from the API's write to the client's read.
    delays: Vec<u64>,
    /// Visits without an event, and why.
    empty: usize,
    why: String,
}

pub(crate) fn run(options: &Options, millstream: &Path) -> Result<String, String> {
    let clients = options.clients;
    if !allow_open_files(clients as u64 * 4 + 1_000) {
        return Err(format!("{clients} clients need more open files: raise `ulimit -n`"));
    }
    let source = Source::start();
    let server = peers::serving(millstream, source.port, &["--microcache", "1s"])?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let seen = Rc::new(RefCell::new(SeenByClients::default()));
    LocalSet::new().block_on(&runtime, visitors(server.port, clients, &seen));
    let left = Instant::now();
    while source.connections() > 0 && left.elapsed() < GONE {
        std::thread::sleep(Duration::from_millis(20));
    }
    let (held, took) = (source.connections(), left.elapsed());
    let mut seen = seen.take();
    seen.delays.sort_unstable();
    let at = |percent: usize| {
        seen.delays[(seen.delays.len() * percent).div_ceil(100).saturating_sub(1)] as f64 / 1000.0
    };
    if seen.delays.is_empty() {
        return Err(format!("no event arrived: {}", seen.why));
    }
    let holds = at(100) <= LATE.as_secs_f64() * 1000.0 && seen.empty == 0 && held == 0;
    let mut text = format!(
        "### {clients} clients of an event stream that come and go\n\n`cargo xtask bench streams --clients {clients}`: {VISITS} visits \
         each, gzip accepted, an event every {EVERY} ms.\n\n"
    );
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "| events | p50 ms | p99 ms | longest ms | visits without an event | connections to the API after {:.1} s |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: |\n| {} | {:.1} | {:.1} | {:.1} | {} | {held} |\n\n{}",
        took.as_secs_f64(),
        seen.delays.len(),
        at(50),
        at(99),
        at(100),
        seen.empty,
        if holds {
            "pass"
        } else {
            "**FAIL**: every event within 50 ms, no visit without one, no connection left"
        },
    );
    if holds { Ok(text) } else { Err(format!("{text}{}", seen.why)) }
}

async fn visitors(port: u16, clients: usize, seen: &Rc<RefCell<SeenByClients>>) {
    let mut all = JoinSet::new();
    for number in 0..clients {
        let (seen, arrives) = (seen.clone(), ARRIVING * number as u32 / clients.max(1) as u32);
        all.spawn_local(async move {
            tokio::time::sleep(arrives).await;
            for _ in 0..VISITS {
                let mut events = 0;
                let visit = tokio::time::timeout(STAYS, visit(port, &seen, &mut events)).await;
                if events == 0 {
                    let mut seen = seen.borrow_mut();
                    seen.empty += 1;
                    seen.why = format!("a visit saw no event: {visit:?}");
                }
            }
        });
    }
    while all.join_next().await.is_some() {}
}

/// Reads events until it is cancelled.
async fn visit(port: u16, seen: &RefCell<SeenByClients>, events: &mut usize) -> std::io::Result<()> {
    let mut visitor = Visitor::connect(port).await?;
    let request = format!(
        "GET /events?every={EVERY} HTTP/1.1\r\nHost: streams.example\r\nAccept: text/event-stream\r\nAccept-Encoding: gzip\r\n\r\n"
    );
    visitor.send(request).await?;
    let answer = visitor.head().await?;
    let mut framing = Framing::of("GET", &answer)?;
    let mut unzip = (answer.field("content-encoding") == Some("gzip")).then(|| GzDecoder::new(Vec::new()));
    let mut text = Vec::new();
    while let Some(piece) = visitor.piece(&mut framing).await? {
        let now = moment();
        match &mut unzip {
            Some(unzip) => {
                unzip.write_all(&piece)?;
                unzip.flush()?;
                text.append(unzip.get_mut());
            }
            None => text.extend_from_slice(&piece),
        }
        while let Some(end) = text.windows(2).position(|window| window == b"\n\n") {
            let event: Vec<u8> = text.drain(..end + 2).collect();
            let written =
                String::from_utf8_lossy(&event).trim().strip_prefix("data: ").and_then(|at| at.parse().ok());
            let written: u64 =
                written.ok_or_else(|| std::io::Error::other("an event that the API did not send"))?;
            seen.borrow_mut().delays.push(now.saturating_sub(written));
            *events += 1;
        }
    }
    Err(std::io::Error::other(format!("the stream ended: {} {}", answer.status, answer.head)))
}
