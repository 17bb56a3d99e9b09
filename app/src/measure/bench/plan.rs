//! From the flags of `bench` to a plan.

use crate::cli::{ArrivalsOption, Load};
use crate::measure::end;
use millstream_load::drive;
use millstream_load::plan::{Arrivals, Expect, Mode, Plan, Target};
use millstream_load::replay::{self, Request};
use millstream_load::report::quantity;
use millstream_load::target::{self, Ask, Permission, Url};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

/// The largest file that is sent as a body: each target holds it.
const BODY: u64 = 256 << 20;
/// Connections of a closed loop where nothing is said.
const CONNECTIONS: u64 = 10;
/// How long is measured where nothing is said.
const DURATION: Duration = Duration::from_secs(10);
/// The length of a trial of --find-max where nothing is said.
const TRIAL: Duration = Duration::from_secs(5);

/// The plan that the flags ask for; names are resolved, files are read.
///
/// # Errors
/// One sentence about the first thing that cannot be.
pub fn plan(flags: &Load) -> Result<Plan, String> {
    let is_open = flags.rate.is_some() || flags.find_max;
    if !is_open && (flags.poisson || flags.arrivals.is_some()) {
        return Err("how requests are spread is for an open loop: give --rate, or --find-max".to_owned());
    }
    let (asks, order) = match &flags.log {
        Some(file) => replayed(flags, file)?,
        None => {
            let body = body(flags)?;
            let method = method(flags)?;
            let ask = |url: &String| Ask { body: body.clone(), ..ask(flags, url.clone(), method.clone()) };
            (flags.urls.iter().map(ask).collect(), Vec::new())
        }
    };
    let targets =
        target::resolve_all(&asks, Permission { public: flags.yes }).map_err(|error| error.to_string())?;
    let expect = |target: Target| Target {
        expect: Expect { statuses: flags.status.clone(), ..target.expect },
        ..target
    };
    let streams = streams(flags)?;
    let most = flags.requests.unwrap_or(u64::MAX);
    let connections = match flags.connections {
        Some(connections) => narrow(connections),
        // Streams carry what is due, and all connections are opened at once for them.
        None if is_open && streams == 1 => most_connections(flags).min(narrow(most)),
        None => narrow(CONNECTIONS.min(most)),
    };
    let default_duration = match (flags.find_max, flags.requests) {
        (true, _) => Some(TRIAL),
        (false, None) => Some(DURATION),
        (false, Some(_)) => None,
    };
    Ok(Plan {
        targets: targets.into_iter().map(expect).collect(),
        order,
        connections,
        threads: flags.threads.map_or_else(|| threads(connections), narrow),
        mode: flags.rate.map_or(Mode::Closed, |rate| Mode::Open { rate, arrivals: arrivals(flags) }),
        duration: flags.duration.or(default_duration),
        requests: flags.requests,
        warm_up: flags.warm_up,
        keep_alive: !flags.no_keep_alive,
        pipeline: if flags.http2 { narrow(streams) } else { narrow(flags.pipeline) },
        timeout: flags.timeout,
        verify: flags.verify,
    })
}

/// Whether `-m` says this of the streams: no method is a number.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The method that is asked for; empty: none is.
fn method(flags: &Load) -> Result<String, String> {
    let mut methods = flags.method.iter().filter(|text| !is_number(text));
    match (methods.next(), methods.next()) {
        (None, _) => Ok(String::new()),
        (Some(method), None) => Ok(method.clone()),
        (Some(first), Some(second)) => Err(format!("one method can be asked for, not {first} and {second}")),
    }
}

/// Streams of a connection: `--streams`, or `-m` with a number, as h2load has it.
fn streams(flags: &Load) -> Result<u64, String> {
    let mut numbers = flags.method.iter().filter(|text| is_number(text));
    match (numbers.next(), numbers.next(), flags.streams) {
        (Some(number), None, None) if flags.http2 => Ok(number.parse().unwrap_or(u64::MAX)),
        (Some(number), None, None) => {
            Err(format!("-m {number} is the number of streams of HTTP/2: say --http2, or name a method"))
        }
        (Some(_), _, _) => Err("the number of streams is given twice".to_owned()),
        (None, _, streams) => Ok(streams.unwrap_or(1)),
    }
}

/// An open loop opens one more whenever a request is due and none is free.
fn most_connections(flags: &Load) -> u32 {
    drive::most_connections(flags.threads.map_or_else(|| threads(u32::MAX), narrow))
}

/// How the requests of an open loop are spread.
pub fn arrivals(flags: &Load) -> Arrivals {
    if flags.poisson || flags.arrivals == Some(ArrivalsOption::Poisson) {
        Arrivals::Poisson
    } else {
        Arrivals::Constant
    }
}

/// Larger than anything that is possible stays so, for the plan's own words about it.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn threads(connections: u32) -> u32 {
    let cores = u32::try_from(millstream_net::cores::usable()).unwrap_or(1);
    cores.clamp(1, connections.max(1))
}

fn ask(flags: &Load, url: String, method: String) -> Ask {
    Ask {
        url,
        method,
        fields: flags.header.clone(),
        keep_alive: !flags.no_keep_alive,
        http2: flags.http2,
        ..Ask::default()
    }
}

fn body(flags: &Load) -> Result<Vec<u8>, String> {
    match flags.body.as_deref() {
        None => Ok(Vec::new()),
        Some(text) => match text.strip_prefix('@') {
            Some("") => Err("-b @ names no file: write -b @FILE".to_owned()),
            Some(file) => body_file(file),
            None => Ok(text.as_bytes().to_vec()),
        },
    }
}

/// A file as a body; what has no end, as a device or a pipe may, is not read to it.
fn body_file(file: &str) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    File::open(file)
        .and_then(|opened| opened.take(BODY + 1).read_to_end(&mut body))
        .map_err(|error| format!("{file} cannot be read: {error}"))?;
    if body.len() as u64 > BODY {
        return Err(format!("{file} is larger than {} MB, the largest body that can be sent", BODY >> 20));
    }
    Ok(body)
}

/// The log; `-` is standard input.
fn opened(file: &Path) -> io::Result<Box<dyn BufRead>> {
    if file == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(BufReader::new(File::open(file)?)))
}

/// What the log asks for, at the server of the one URL.
fn replayed(flags: &Load, file: &Path) -> Result<(Vec<Ask>, Vec<u32>), String> {
    let [base] = flags.urls.as_slice() else {
        return Err("a log is replayed against one server: give one URL with --log".to_owned());
    };
    if flags.body.is_some() || !method(flags)?.is_empty() {
        return Err("a log has its own methods and no bodies: leave -m and -b out with --log".to_owned());
    }
    let url = Url::parse(base).map_err(|why| format!("\"{base}\" cannot be loaded: {why}"))?;
    let scheme = if url.is_https { "https" } else { "http" };
    if url.target != "/" {
        return Err(format!("a log has its own paths: give {scheme}://{} without one", url.authority));
    }
    let name = if file == "-" { "standard input".to_owned() } else { file.display().to_string() };
    let replay =
        opened(file).and_then(replay::read).map_err(|error| format!("{name} cannot be read: {error}"))?;
    if replay.order.is_empty() {
        return Err(format!("{name} has no GET or HEAD request to replay"));
    }
    end::tell(&format!(
        "replaying {} requests of the log, {} of them distinct; skipping {} lines",
        replay.order.len(),
        replay.requests.len(),
        replay.skipped
    ));
    if replay.is_cut {
        end::tell(&format!("only the first {} lines of the log are used", quantity::count(replay::LINES)));
    }
    let failing = replay.requests.iter().filter(|(_, statuses)| !statuses.is_empty()).count();
    if failing > 0 && flags.status.is_empty() {
        end::tell(&format!(
            "{failing} of the distinct requests failed in the log too (4xx): the same status is not an error here"
        ));
    }
    let asks = replay
        .requests
        .into_iter()
        .map(|(Request { method, target }, also)| {
            let url = format!("{scheme}://{}{target}", url.authority);
            Ask { also, ..ask(flags, url, method.to_owned()) }
        })
        .collect();
    Ok((asks, replay.order))
}
