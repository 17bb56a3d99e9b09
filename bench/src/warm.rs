//! `cargo xtask bench warm`: a restart on a cache directory with very many small files.
//!
//! The files are made by asking the product for that many pages, so they are its own. Then it is started anew, in each round
//! on the same directory: how long from starting the process to the first answer that is a HIT (read from its file, for
//! memory is empty), how long until its log says that every file is listed, and what the index of them takes. The
//! directory is on the disk of the build folder, not in memory, and is removed in the end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use millstream_tests::client::Client;
use millstream_tests::prefix::Prefix;
use millstream_tests::process::{Running, resident_bytes};
use millstream_tests::{ports, wait};
use rustix::process::Signal;

use crate::{Options, Programs, peers};

const FILE: &str = "bench/conf/warm.conf";
/// Connections that request pages, and requests pipelined on one.
const CONNECTIONS: u32 = 4;
const AHEAD: u32 = 32;
/// The longest that a start, a listing or an end may take.
const LIMIT: Duration = Duration::from_secs(900);

struct Start {
    first_hit: Duration,
    listed: Duration,
    resident: u64,
    said: String,
}

pub(crate) fn run(options: &Options, programs: &Programs) -> Result<String, String> {
    let origin = peers::origin(programs)?;
    let target = millstream_tests::target_directory();
    let empty = launch(&Prefix::within(&target), programs, origin.port, |port, process| {
        ask(port, 0).ok_or("no answer on an empty directory")?;
        Ok(resident_bytes(process.id()))
    })?;
    let prefix = Prefix::within(&target);
    let began = Instant::now();
    launch(&prefix, programs, origin.port, |port, _| fill(port, options.files))?;
    let filled = began.elapsed();
    let mut text = format!(
        "{} pages of 300 bytes asked for and stored in {:.1} s\n\n\
         | start | first hit, ms | index complete, s | memory for each file, bytes | files listed |\n\
         | --- | --- | --- | --- | --- |\n",
        options.files,
        filled.as_secs_f64()
    );
    for round in 0..options.rounds {
        let start = restart(&prefix, programs, origin.port, options.files, round)?;
        let each = start.resident.saturating_sub(empty) as f64 / f64::from(options.files);
        text.push_str(&format!(
            "| {} | {:.0} | {:.1} | {each:.0} | {} |\n",
            round + 1,
            start.first_hit.as_secs_f64() * 1000.0,
            start.listed.as_secs_f64(),
            start.said
        ));
    }
    Ok(text)
}

/// Starts the product in a directory, runs `with`, and ends it in order, so that everything is written.
fn launch<T>(
    prefix: &Prefix,
    programs: &Programs,
    origin: u16,
    with: impl FnOnce(u16, &Running) -> Result<T, String>,
) -> Result<T, String> {
    let port = ports::free();
    let file = peers::configure(prefix, FILE, "nginx.conf", port, origin)?;
    let _ = std::fs::remove_file(prefix.join("error.log"));
    let binary = programs.millstream.as_deref().ok_or("Millstream was not built")?;
    let mut command = Command::new(binary);
    command.arg("-c").arg(file).arg("-p").arg(prefix.path()).args(["-g", "daemon off;"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = Running::start(&mut command).map_err(|error| format!("{command:?}: {error}"))?;
    let outcome = with(port, &process);
    process.signal(Signal::QUIT);
    if process.wait(LIMIT).is_none() {
        return Err("it does not end".into());
    }
    outcome
}

fn restart(
    prefix: &Prefix,
    programs: &Programs,
    origin: u16,
    files: u32,
    round: usize,
) -> Result<Start, String> {
    let began = Instant::now();
    launch(prefix, programs, origin, |port, process| {
        let page = (round as u32).wrapping_mul(2_654_435_761) % files;
        let status = ask(port, page).ok_or("no answer")?;
        let first_hit = began.elapsed();
        if status != "HIT" {
            return Err(format!("the first answer is a {status}"));
        }
        let said = wait::within(LIMIT, || {
            prefix.read("error.log").lines().find_map(|line| line.split_once("listed: ")?.1.to_owned().into())
        });
        let said = said.ok_or("the index is never complete")?;
        Ok(Start { first_hit, listed: began.elapsed(), resident: resident_bytes(process.id()), said })
    })
}

/// Retries until the server responds; returns the cache status.
fn ask(port: u16, page: u32) -> Option<String> {
    let end = Instant::now() + LIMIT;
    while Instant::now() < end {
        if let Ok(mut client) = Client::connect(port) {
            let answer = client.get(&path(page)).ok()?;
            return answer.field("x-cache-status").map(str::to_owned);
        }
        std::thread::yield_now();
    }
    None
}

fn path(page: u32) -> String {
    format!("/page/{page}?size=300&age=86400")
}

fn fill(port: u16, files: u32) -> Result<(), String> {
    ask(port, 0).ok_or("no answer")?;
    std::thread::scope(|scope| {
        let part = |connection| scope.spawn(move || fill_part(port, connection, files));
        let parts: Vec<_> = (0..CONNECTIONS).map(part).collect();
        parts.into_iter().try_for_each(|part| match part.join() {
            Ok(outcome) => outcome.map_err(|error| format!("filling: {error}")),
            Err(_) => Err("filling panicked".into()),
        })
    })
}

fn fill_part(port: u16, connection: u32, files: u32) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    let mut page = connection;
    let (mut requests, mut answers) = (String::new(), [0; 64 * 1024]);
    while page < files {
        requests.clear();
        let mut sent = 0;
        while sent < AHEAD && page < files {
            requests.push_str(&format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", path(page)));
            (page, sent) = (page + CONNECTIONS, sent + 1);
        }
        stream.write_all(requests.as_bytes())?;
        let mut ends = 0;
        let mut last = [0; 4];
        // An answer's head ends with an empty line; its body, which is JSON, has none.
        let mut bodies = 0;
        while ends < sent || bodies < sent as usize * 300 {
            let count = stream.read(&mut answers)?;
            if count == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            for &byte in &answers[..count] {
                last = [last[1], last[2], last[3], byte];
                if ends > 0 && bodies < ends as usize * 300 {
                    bodies += 1;
                    last = [0; 4];
                } else if last == *b"\r\n\r\n" {
                    ends += 1;
                }
            }
        }
    }
    Ok(())
}
