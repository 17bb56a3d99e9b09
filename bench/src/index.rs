//! `cargo xtask bench index`: whether an index of ten million files ever holds up a worker's loop.
//!
//! The files are hard links to a few files of one byte, 60,000 to each, spread over the directories as MD5 would spread them; no client
//! asks for them. Four clients ask for pages, every other one new, so that there are hits, misses, stores and, later, removals. The
//! product's metrics tell how long the loop was held: with an empty directory, during the listing, and after it. A loop also seems held
//! while the kernel runs something else, so its thread gets real-time priority if the bench may set it (`chrt`); preemptions are reported.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use millstream_tests::client::{self, Client};
use millstream_tests::prefix::{Prefix, fill};
use millstream_tests::process::{Running, resident_bytes};
use millstream_tests::{ports, wait, workspace};
use rustix::process::Signal;

use crate::Options;

const FILE: &str = "bench/conf/index.conf";
/// ext4 allows 65,000 links to a file.
const NAMES: u32 = 60_000;
/// With `levels=1:2`.
const DIRECTORIES: u32 = 16 * 256;
const CLIENTS: u32 = 4;
/// Keys per megabyte of `keys_zone`.
const KEYS: u32 = 8192;
/// Seconds of each part, except the listing.
const PART: Duration = Duration::from_secs(15);
/// The longest that a start, a listing or an end may take.
const LIMIT: Duration = Duration::from_secs(900);
const LONGEST: &str = "0.005";

#[derive(Default)]
struct Counters {
    requests: u64,
    /// Stretches of a millisecond or more.
    stretches: u64,
    long: u64,
    /// Upper bounds in seconds, and the cumulative count of each.
    buckets: Vec<(String, u64)>,
    /// Times that the worker was ready to run but the kernel ran something else.
    preempted: u64,
}

pub(crate) fn run(options: &Options, millstream: &Path) -> Result<String, String> {
    let target = millstream_tests::target_directory();
    let mut text = format!(
        "### An index of {} files, and the loop of the one worker\n\n\
         | part | seconds | requests | held ≥ 1 ms | held > 5 ms | longest at most, ms | taken away by the kernel |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        options.files
    );
    let empty = Prefix::within(&target);
    let (mut resident, mut long) = (0, 0);
    launch(&empty, millstream, options.files, |port, process| {
        wait_until_listed(&empty)?;
        (_, text) = part(text.clone(), "empty directory", port, process, sleep_part)?;
        resident = resident_bytes(process.id());
        Ok(())
    })?;
    let prefix = Prefix::within(&target);
    let began = Instant::now();
    make_names(&prefix.join("cache"), options.files).map_err(|error| format!("making names: {error}"))?;
    let made = began.elapsed();
    let mut memory = String::new();
    launch(&prefix, millstream, options.files, |port, process| {
        let listing;
        (listing, text) = part(text.clone(), "listing", port, process, || wait_until_listed(&prefix))?;
        let all;
        (all, text) = part(text.clone(), "all listed", port, process, sleep_part)?;
        long = listing + all;
        let each = |bytes: u64| bytes as f64 / f64::from(options.files);
        let grown = resident_bytes(process.id()).saturating_sub(resident);
        let said = client::get(port, "/api/caches/pages").text();
        let index = number_behind(&said, "\"index_bytes\":").ok_or("the API says nothing of the index")?;
        memory = format!(
            "memory for each file: {:.0} bytes of index, {:.0} of the process",
            each(index),
            each(grown)
        );
        Ok(())
    })?;
    text.push_str(&format!(
        "\n{} names made in {:.0} s\n{memory}\n{}\n",
        options.files,
        made.as_secs_f64(),
        if long == 0 { "pass" } else { "**FAIL**: nothing may hold the loop for more than 5 ms" }
    ));
    Ok(text)
}

fn sleep_part() -> Result<(), String> {
    std::thread::sleep(PART);
    Ok(())
}

fn make_names(cache: &Path, files: u32) -> std::io::Result<()> {
    fs::create_dir(cache)?;
    let (mut made, mut source, mut random) = (0, cache.join(".source-0"), 0x9e37_79b9_7f4a_7c15_u64);
    for directory in 0..DIRECTORIES {
        let (one, two) = (directory >> 8, directory & 0xff);
        let folder = cache.join(format!("{one:x}/{two:02x}"));
        fs::create_dir_all(&folder)?;
        let here = u64::from(files) * u64::from(directory + 1) / u64::from(DIRECTORIES);
        while u64::from(made) < here {
            if made % NAMES == 0 {
                source = cache.join(format!(".source-{}", made / NAMES));
                fs::write(&source, b"x")?;
            }
            // splitmix64: names as even as digests.
            let mut word = || {
                random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            };
            let digest = format!("{:016x}{:016x}", word(), word());
            fs::hard_link(&source, folder.join(format!("{}{two:02x}{one:x}", &digest[..29])))?;
            made += 1;
        }
    }
    Ok(())
}

/// Starts the product in a directory, runs `with`, and ends it in order.
fn launch(
    prefix: &Prefix,
    millstream: &Path,
    files: u32,
    with: impl FnOnce(u16, &Running) -> Result<(), String>,
) -> Result<(), String> {
    let (port, keys) = (ports::free(), (files / KEYS).max(1).to_string());
    let template = fs::read_to_string(workspace().join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    let directory = prefix.path().to_str().unwrap_or_default();
    let text = fill(&template, &[("DIR", directory), ("PORT", &port.to_string()), ("KEYS", &keys)]);
    let file = prefix.write("nginx.conf", &text);
    let mut command = Command::new(millstream);
    command.arg("-c").arg(file).arg("-p").arg(prefix.path()).args(["-g", "daemon off;"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = Running::start(&mut command).map_err(|error| format!("{command:?}: {error}"))?;
    // Who is answered knows that there is a worker: the socket is there before.
    let is_answered = || Client::connect(port).ok()?.get("/api/").ok();
    wait::within(LIMIT, is_answered).ok_or("it does not answer")?;
    workers(process.id()).for_each(|worker| {
        // Without the right to do so it has to compete.
        _ = Command::new("chrt").args(["--fifo", "--pid", "10", &worker]).stderr(Stdio::null()).status();
    });
    let outcome = with(port, &process);
    process.signal(Signal::QUIT);
    if process.wait(LIMIT).is_none() {
        return Err("it does not end".into());
    }
    outcome
}

fn wait_until_listed(prefix: &Prefix) -> Result<(), String> {
    let is_listed = || prefix.read("error.log").contains("files listed: ").then_some(());
    wait::within(LIMIT, is_listed).ok_or_else(|| "the index is never complete".to_owned())
}

/// Clients send requests during `lasts`; returns a row of the table, and the stretches past the bar.
fn part(
    text: String,
    name: &str,
    port: u16,
    process: &Running,
    lasts: impl FnOnce() -> Result<(), String>,
) -> Result<(u64, String), String> {
    let (over, next) = (AtomicBool::new(false), AtomicU32::new(0));
    let before = counted(port, process.id());
    let began = Instant::now();
    let outcome = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| ask(port, name, &next, &over))).collect();
        let outcome = lasts();
        over.store(true, Ordering::Relaxed);
        clients.into_iter().try_for_each(|client| match client.join() {
            Ok(outcome) => outcome.map_err(|error| format!("a client: {error}")),
            Err(_) => Err("a client panicked".into()),
        })?;
        outcome
    });
    outcome?;
    let (seconds, after) = (began.elapsed().as_secs_f64(), counted(port, process.id()));
    let long = after.long - before.long;
    let row = format!(
        "| {name} | {seconds:.0} | {} | {} | {long} | {} | {} |\n",
        after.requests - before.requests,
        after.stretches - before.stretches,
        longest(&before, &after),
        after.preempted - before.preempted
    );
    Ok((long, text + &row))
}

/// Requests a new page and an old one in turn.
fn ask(port: u16, part: &str, next: &AtomicU32, over: &AtomicBool) -> std::io::Result<()> {
    let mut client = Client::connect(port)?;
    let part = part.replace(' ', "-");
    while !over.load(Ordering::Relaxed) {
        let page = next.fetch_add(1, Ordering::Relaxed);
        client.get(&format!("/{part}/{page}"))?;
        client.get(&format!("/{part}/{}", page % 100))?;
    }
    Ok(())
}

fn counted(port: u16, process: u32) -> Counters {
    const HELD: &str = "millstream_worker_loop_held_duration_seconds";
    let text = client::get(port, "/api/metrics").text();
    let value = |name: &str| {
        let of = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        of.and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    let bounds = text.lines().filter_map(|line| {
        let bound = line.strip_prefix(HELD)?.strip_prefix("_bucket{le=\"")?;
        Some(bound.split_once('"')?.0)
    });
    let bucket = |bound: &str| value(&format!("{HELD}_bucket{{le=\"{bound}\"}}"));
    let stretches = value(&format!("{HELD}_count"));
    Counters {
        requests: value("millstream_requests_total"),
        stretches,
        long: stretches - bucket(LONGEST),
        buckets: bounds.map(|bound| (bound.to_owned(), bucket(bound))).collect(),
        preempted: preempted(process),
    }
}

/// The highest bucket with an increase, in milliseconds.
fn longest(before: &Counters, after: &Counters) -> String {
    let grown =
        |index: usize| after.buckets[index].1 - before.buckets.get(index).map_or(0, |bucket| bucket.1);
    let all = after.stretches - before.stretches;
    let highest = (0..after.buckets.len()).find(|&index| grown(index) == all);
    let bound = highest.and_then(|index| after.buckets[index].0.parse::<f64>().ok());
    match bound {
        _ if all == 0 => "under 1".to_owned(),
        Some(seconds) => format!("{:.1}", seconds * 1000.0),
        None => "more".to_owned(),
    }
}

/// How often the kernel took the worker's core away.
fn preempted(process: u32) -> u64 {
    let statuses = workers(process)
        .filter_map(|worker| fs::read_to_string(format!("/proc/{process}/task/{worker}/status")).ok());
    statuses.filter_map(|status| number_behind(&status, "\nnonvoluntary_ctxt_switches:")).sum()
}

fn workers(process: u32) -> impl Iterator<Item = String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let is_worker =
        |path: &Path| fs::read_to_string(path.join("comm")).is_ok_and(|name| name.starts_with("worker"));
    let workers = tasks.filter(move |task| is_worker(&task.path()));
    workers.map(|task| task.file_name().to_string_lossy().into_owned())
}

fn number_behind(text: &str, name: &str) -> Option<u64> {
    let rest = text.split_once(name)?.1.trim_start();
    rest.split(|byte: char| !byte.is_ascii_digit()).next()?.parse().ok()
}
