//! `cargo xtask bench soak`: minutes of mixed traffic, and whether everything is back where it was.
//!
//! Downloads, ranges and uploads, clients that leave, event streams, WebSockets, purges, reloads, and an API that fails now and
//! then. After a warm-up all clients go and the process is looked at; after the soak the same again. `traffic` is what they do.

mod traffic;

use std::cell::Cell;
use std::fmt::Write;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use millstream_tests::process::{allow_open_files, entries, resident_bytes, send};
use rustix::process::Signal;
use tokio::task::{JoinSet, LocalSet};

use crate::Options;
use crate::peers::{self, Started};
use crate::product::Product;
use crate::source::Source;
use traffic::{Counts, client};

const CLIENTS: u64 = 48;
/// Share of the time before the first look.
const WARM_UP: f64 = 0.15;
/// Between two reloads, and between two changes of the API's mood.
const RELOAD: Duration = Duration::from_secs(7);
const MOOD: Duration = Duration::from_secs(3);
const REST: Duration = Duration::from_secs(90);
/// Allowed growth: an allocator does not return everything; the cache is full both times.
const MORE_MEMORY: f64 = 1.25;
const MORE_BYTES: u64 = 32 << 20;
const MORE_FILES: usize = 24;

/// Resources of a process at rest.
#[derive(Debug, Clone, Copy, Default)]
struct Look {
    memory: u64,
    files: usize,
    threads: usize,
    upstream: usize,
}

pub(crate) fn run(options: &Options, millstream: &Path) -> Result<String, String> {
    if !allow_open_files(8_000) {
        return Err("raise `ulimit -n`".to_owned());
    }
    let source = Source::start();
    let server = peers::on_nginx_file(Product::Millstream, millstream, "bench/conf/soak.conf", source.port)?;
    let whole = Duration::from_secs(60) * options.minutes;
    let warm_up = whole.mul_f64(WARM_UP);
    let mut counts = Counts::default();
    eprintln!("warm-up: {:.0} s", warm_up.as_secs_f64());
    run_traffic(&server, &source, warm_up, 1, &mut counts)?;
    let before = at_rest(&server, &source);
    eprintln!("{before:?}\nsoak: {:.0} s", (whole - warm_up).as_secs_f64());
    counts = Counts::default();
    run_traffic(&server, &source, whole - warm_up, 2, &mut counts)?;
    let after = at_rest(&server, &source);
    let log = server.log();
    let panics = log.lines().filter(|line| line.contains("panicked")).count();
    let text = table(options, (before, after), &counts, panics);
    let holds = is_back(before, after) && panics == 0 && counts.wrong.is_empty();
    if holds {
        return Ok(text + "\npass");
    }
    let told: Vec<&str> = log.lines().filter(|line| line.contains("panicked")).take(5).collect();
    Err(format!("{text}\n**FAIL** {}\n{}", counts.wrong.join("\n"), told.join("\n")))
}

fn is_back(before: Look, after: Look) -> bool {
    after.memory as f64 <= before.memory as f64 * MORE_MEMORY + MORE_BYTES as f64
        && after.files <= before.files + MORE_FILES
        && after.threads <= before.threads
        && after.upstream <= before.upstream.max(2 * 16)
}

fn table(options: &Options, (before, after): (Look, Look), counts: &Counts, panics: usize) -> String {
    let mut text = format!(
        "### soak\n\n`cargo xtask bench soak --minutes {}`\n\n| at rest | after the warm-up | at the end |\n| --- | ---: | ---: |\n",
        options.minutes
    );
    let mebibytes = |look: Look| look.memory as f64 / f64::from(1 << 20);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "| memory, MiB | {:.1} | {:.1} |", mebibytes(before), mebibytes(after));
    let _ = writeln!(text, "| descriptors | {} | {} |", before.files, after.files);
    let _ = writeln!(text, "| threads | {} | {} |", before.threads, after.threads);
    let _ = writeln!(text, "| connections to the API | {} | {} |\n", before.upstream, after.upstream);
    let _ = writeln!(text, "{counts}, {panics} panics");
    text
}

fn run_traffic(
    server: &Started,
    source: &Source,
    lasting: Duration,
    seed: u64,
    counts: &mut Counts,
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    LocalSet::new().block_on(&runtime, async {
        let over = Rc::new(Cell::new(false));
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            clients.spawn_local(client(server.port, seed * 1_000 + number, over.clone()));
        }
        let (end, mut reload, mut mood) =
            (Instant::now() + lasting, tokio::time::interval(RELOAD), tokio::time::interval(MOOD));
        let mut turns = 0;
        while Instant::now() < end {
            tokio::select! {
                _ = reload.tick() => {
                    send(server.id(), Signal::HUP);
                    counts.reloads += 1;
                }
                _ = mood.tick() => {
                    turns += 1;
                    source.fail(turns % 3 == 0);
                }
            }
        }
        source.fail(false);
        over.set(true);
        while let Some(seen) = clients.join_next().await {
            counts.add(seen.unwrap_or_default());
        }
    });
    Ok(())
}

/// Samples until the values no longer fall.
fn at_rest(server: &Started, source: &Source) -> Look {
    let look = || Look {
        memory: resident_bytes(server.id()),
        files: entries(server.id(), "fd"),
        threads: entries(server.id(), "task"),
        upstream: source.connections(),
    };
    let end = Instant::now() + REST;
    let mut least = look();
    let mut since = Instant::now();
    // Five seconds without anything less are rest.
    while since.elapsed() < Duration::from_secs(5) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(250));
        let now = look();
        if now.files < least.files || now.threads < least.threads || now.upstream < least.upstream {
            since = Instant::now();
        }
        least = now;
    }
    least
}
