//! From the flags of `bench` to a plan.

use crate::cli::{Load, Spread};
use crate::measure::end;
use millstream_load::plan::{Arrivals, Expect, Mode, Plan, Target};
use millstream_load::replay;
use millstream_load::target::{self, Ask, Permission, Url};
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

/// How long is measured where nothing is said.
const DURATION: Duration = Duration::from_secs(10);
/// The length of a trial of --find-max where nothing is said.
const TRIAL: Duration = Duration::from_secs(5);

/// The plan that the flags ask for; names are resolved, files are read.
///
/// # Errors
/// One sentence about the first thing that cannot be.
pub fn plan(flags: &Load) -> Result<Plan, String> {
    let (asks, order) = match &flags.log {
        Some(file) => replayed(flags, file)?,
        None => {
            let body = body(flags)?;
            let ask =
                |url: &String| Ask { body: body.clone(), ..ask(flags, url.clone(), flags.method.clone()) };
            (flags.urls.iter().map(ask).collect(), Vec::new())
        }
    };
    let targets =
        target::resolve_all(&asks, Permission { public: flags.yes }).map_err(|error| error.to_string())?;
    let expect = Expect { status: flags.status, body: None };
    let connections = narrow(flags.connections);
    let default_duration = match (flags.find_max, flags.requests) {
        (true, _) => Some(TRIAL),
        (false, None) => Some(DURATION),
        (false, Some(_)) => None,
    };
    Ok(Plan {
        targets: targets.into_iter().map(|target| Target { expect: expect.clone(), ..target }).collect(),
        order,
        connections,
        threads: flags.threads.map_or_else(|| threads(connections), narrow),
        mode: flags.rate.map_or(Mode::Closed, |rate| Mode::Open { rate, arrivals: arrivals(flags) }),
        duration: flags.duration.or(default_duration),
        requests: flags.requests,
        warm_up: flags.warm_up,
        keep_alive: !flags.no_keep_alive,
        pipeline: narrow(flags.pipeline),
        timeout: flags.timeout,
        verify: flags.verify,
    })
}

/// How the requests of an open loop are spread.
pub fn arrivals(flags: &Load) -> Arrivals {
    if flags.poisson || flags.arrivals == Spread::Poisson { Arrivals::Poisson } else { Arrivals::Constant }
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
    Ask { url, method, fields: flags.header.clone(), body: Vec::new(), keep_alive: !flags.no_keep_alive }
}

fn body(flags: &Load) -> Result<Vec<u8>, String> {
    match flags.body.as_deref() {
        None => Ok(Vec::new()),
        Some(text) => match text.strip_prefix('@') {
            Some(file) => std::fs::read(file).map_err(|error| format!("{file} cannot be read: {error}")),
            None => Ok(text.as_bytes().to_vec()),
        },
    }
}

/// What the log asks for, at the server of the one URL.
fn replayed(flags: &Load, file: &Path) -> Result<(Vec<Ask>, Vec<u32>), String> {
    let [base] = flags.urls.as_slice() else {
        return Err("a log is replayed at one server: give one URL with --log".to_owned());
    };
    if flags.body.is_some() || !flags.method.is_empty() {
        return Err("a log has its own methods and no bodies: leave -m and -b out with --log".to_owned());
    }
    let url = Url::parse(base).map_err(|why| format!("\"{base}\" cannot be loaded: {why}"))?;
    let scheme = if url.is_https { "https" } else { "http" };
    let unreadable = |error| format!("{} cannot be read: {error}", file.display());
    let log = std::fs::File::open(file).map_err(unreadable)?;
    let replay = replay::read(BufReader::new(log)).map_err(unreadable)?;
    if replay.order.is_empty() {
        return Err(format!("{} has no GET or HEAD request to replay", file.display()));
    }
    end::tell(&format!(
        "{} requests of the log are replayed, {} distinct ones; {} lines are not",
        replay.order.len(),
        replay.requests.len(),
        replay.skipped
    ));
    let asks = replay
        .requests
        .into_iter()
        .map(|(method, target)| {
            ask(flags, format!("{scheme}://{}{target}", url.authority), method.to_owned())
        })
        .collect();
    Ok((asks, replay.order))
}
