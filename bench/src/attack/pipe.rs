//! A log to a pipe that nobody reads: answers go on, connections close, and the process ends when it is told.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use millstream_tests::prefix::Prefix;
use millstream_tests::process::{Running, send};
use millstream_tests::visitor::Visitor;
use millstream_tests::{ports, wait};
use rustix::process::Signal;

use super::Finding;
use super::subject::{Bench, established_to, get, milliseconds, on_this_thread, percentile};
use crate::peers::configure;
use crate::source::Source;

/// Requests, whose log lines fill the pipe's 64 KiB several times, and clients at once.
const REQUESTS: usize = 4_000;
const CLIENTS: usize = 8;
/// The longest that all of them together, or one client, may take.
const LIMIT: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(2);
const WAIT: Duration = Duration::from_millis(100);
const CLOSED: Duration = Duration::from_secs(5);
const ENDED: Duration = Duration::from_secs(10);

pub(super) fn measure(bench: &Bench) -> Result<Finding, String> {
    let (source, prefix, port) = (Source::start(), Prefix::new(), ports::free());
    let file = configure(&prefix, "bench/conf/attack.conf", "nginx.conf", port, source.port)?;
    let mut command = Command::new(&bench.binary);
    command.arg("-c").arg(file).arg("-p").arg(prefix.path()).args(["-g", "daemon off;"]);
    // Its standard output is the log; nobody ever reads this end.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = Running::start(&mut command).map_err(|error| error.to_string())?;
    let ready =
        wait::within(Duration::from_secs(20), || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    ready.ok_or("it did not start")?;
    let mut waited = on_this_thread(clients(port))?;
    let answered = waited.len();
    let (p99, held) =
        (percentile(&mut waited, 99), wait::within(CLOSED, || (established_to(port) == 0).then_some(())));
    let held = if held.is_some() { 0 } else { established_to(port) };
    let told = Instant::now();
    send(process.id(), Signal::QUIT);
    let ended = process.wait(ENDED).is_some();
    if !ended {
        process.tree().into_iter().for_each(|id| send(id, Signal::KILL));
    }
    Ok(Finding {
        figures: format!(
            "{answered} of {REQUESTS} answered, p99 {:.0} ms; {held} connections held {} s later; QUIT: {}",
            milliseconds(p99),
            CLOSED.as_secs(),
            if ended {
                format!("ended after {:.1} s", told.elapsed().as_secs_f64())
            } else {
                "did not end".to_owned()
            }
        ),
        holds: answered == REQUESTS && p99 <= WAIT && held == 0 && ended,
    })
}

async fn clients(port: u16) -> Vec<Duration> {
    let request = "GET /logged/ HTTP/1.1\r\nHost: attack.example\r\nUser-Agent: somebody with a name of some length\r\nConnection: close\r\n\r\n";
    let end = Instant::now() + LIMIT;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn_local(async move {
            let mut waited = Vec::new();
            for _ in 0..REQUESTS / CLIENTS {
                let began = Instant::now();
                if began >= end {
                    break;
                }
                let asked = async {
                    let mut visitor = Visitor::connect(port).await?;
                    get(&mut visitor, request).await
                };
                if let Ok(Ok((200, _))) = tokio::time::timeout(PATIENCE, asked).await {
                    waited.push(began.elapsed());
                }
            }
            waited
        });
    }
    let mut all = Vec::new();
    while let Some(waited) = clients.join_next().await {
        all.extend(waited.unwrap_or_default());
    }
    all
}
