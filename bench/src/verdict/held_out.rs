//! Cases that the rules were not made on: they were written after them.
//!
//! Four are an API in Python (`held_out.py`), because what holds requests up there is what holds them up in APIs of users.

use std::process::Command;

use millstream_load::party::{Place, Process, free_address};
use millstream_load::verdict::Limit;

use super::Servers;
use super::cases::{Api, Hindrance, Other, START, Stage, VerdictCase, fast_api, hog, passing, proxy, text};
use super::toxiproxy;

const API: &str = include_str!("held_out.py");
/// Milliseconds to a remote API.
const DELAY: u32 = 40;

pub(super) fn all() -> [VerdictCase; 7] {
    let case = |name, right, build| VerdictCase { name, right, build };
    [
        case("held out: a slow disk in the API", Limit::Api, |servers| python(servers, "disk")),
        case("held out: a lock in the API", Limit::Api, |servers| python(servers, "lock")),
        case("held out: an API that collects garbage", Limit::Api, |servers| python(servers, "collected")),
        case("held out: an API that writes head and body apart", Limit::Unknown, |servers| {
            python(servers, "apart")
        }),
        case("held out: a remote API behind a delay", Limit::Unknown, remote),
        case("held out: proxy and generator want all cores", Limit::Unknown, both),
        case("held out: a niced generator", Limit::Generator, niced),
    ]
}

fn python(servers: &Servers, kind: &str) -> Result<Stage, String> {
    let at = free_address().map_err(text)?;
    let place = Place::new().map_err(text)?;
    let script = place.write("api.py", API).map_err(text)?;
    let mut command = Command::new("python3");
    command.arg(script).args([&at.port().to_string(), kind]);
    let mut api = Process::start("the API in Python", command, place).map_err(text)?;
    api.wait_for(at, START).map_err(text)?;
    let (proxy, address) = proxy(servers, "auto", &passing(at))?;
    let direct = Some(format!("http://{at}/"));
    Ok(Stage::new(format!("http://{address}/"), direct, proxy, Api::Own(api)))
}

/// The relay accepts at once, so the link looks short, and the API's CPU is invisible.
fn remote(servers: &Servers) -> Result<Stage, String> {
    let (api, at) = fast_api(&servers.api)?;
    let relay = toxiproxy::delayed(at, DELAY)?;
    let (proxy, address) = proxy(servers, "auto", &passing(relay.address))?;
    let direct = Some(format!("http://{}/any?size=900", relay.address));
    let stage = Stage::new(format!("http://{address}/any?size=900"), direct, proxy, Api::Own(api));
    Ok(Stage { is_elsewhere: true, others: vec![Other::Relay(relay)], ..stage })
}

/// As many threads of each as cores, and nothing else running.
fn both(servers: &Servers) -> Result<Stage, String> {
    let (proxy, address) = proxy(servers, "auto", "location / { return 200 ok; }")?;
    let stage = Stage::new(format!("http://{address}/"), None, proxy, Api::None);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Stage { connections: 64, threads: u32::try_from(cores).unwrap_or(1), ..stage })
}

/// Other processes want every core, and the generator yields to them.
fn niced(servers: &Servers) -> Result<Stage, String> {
    let (proxy, address) = proxy(servers, "auto", "location / { return 200 ok; }")?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let others = (0..cores).map(|_| hog().map(Other::Hog)).collect::<Result<_, _>>()?;
    let stage = Stage::new(format!("http://{address}/"), None, proxy, Api::None);
    Ok(Stage { connections: 64, hindrance: Hindrance::Nice, others, ..stage })
}
