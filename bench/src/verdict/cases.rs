//! How each case is built, so that there can be no doubt who limits.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use millstream_load::origin::{self, DemoOptions, DemoOrigin, Work};
use millstream_load::party::{Meter, Place, Process, Whose, free_address};
use millstream_load::verdict::Limit;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::Servers;
use super::toxiproxy::{self, Narrow};

/// How long a process may take until it accepts connections.
const START: Duration = Duration::from_secs(15);
/// Kilobytes per second and connection of the narrow network.
const NARROW: u32 = 4_000;

/// A case.
pub(super) struct VerdictCase {
    pub(super) name: &'static str,
    /// Who must be named.
    pub(super) limit: Limit,
    pub(super) build: fn(&Servers) -> Result<Stage, String>,
}

/// A built case. Everything in it ends when it is dropped.
pub(super) struct Stage {
    pub(super) url: String,
    /// The API without the proxy; `None` where nothing reaches it.
    pub(super) direct: Option<String>,
    pub(super) connections: u32,
    pub(super) threads: u32,
    pub(super) origin_share: f64,
    /// Whether the generator must share one core with a process that always wants it.
    is_hindered: bool,
    proxy: Process,
    api: Api,
    _narrow: Option<Narrow>,
    _hog: Option<Process>,
}

enum Api {
    Own(Process),
    Embedded(#[allow(dead_code, reason = "it ends when dropped")] DemoOrigin),
    None,
}

/// All of them.
pub(super) fn all() -> [VerdictCase; 5] {
    [
        VerdictCase { name: "an API that waits, eight at once", limit: Limit::Api, build: waiting },
        VerdictCase { name: "an API that computes", limit: Limit::Api, build: computing },
        VerdictCase {
            name: "a fast API behind a proxy of one thread",
            limit: Limit::Proxy,
            build: one_thread,
        },
        VerdictCase {
            name: "a generator with one thread on half a core",
            limit: Limit::Generator,
            build: slow_generator,
        },
        VerdictCase {
            name: "4 MB/s for each connection to the API",
            limit: Limit::Network,
            build: narrow_network,
        },
    ]
}

impl Stage {
    /// What is watched.
    pub(super) fn meter(&self) -> Meter {
        let own = std::process::id();
        let mut parties = vec![("proxy".to_owned(), Whose::Tree(self.proxy.id()))];
        parties.extend(match &self.api {
            Api::Own(party) => Some(("api".to_owned(), Whose::Tree(party.id()))),
            Api::Embedded(_) => Some(("api".to_owned(), Whose::Threads(own, "demo ".to_owned()))),
            Api::None => None,
        });
        parties.push(("generator".to_owned(), Whose::OtherThreads(own, "demo ".to_owned())));
        Meter::new(parties)
    }

    /// Puts the calling thread, and all that it starts, on the core where the other process always wants to run.
    pub(super) fn hinder_generator(&self) -> Result<(), String> {
        if self.is_hindered { to_first_core(None) } else { Ok(()) }
    }
}

fn to_first_core(process: Option<Pid>) -> Result<(), String> {
    let allowed = sched_getaffinity(None).map_err(|error| error.to_string())?;
    let first = (0..CpuSet::MAX_CPU).find(|&core| allowed.is_set(core)).unwrap_or(0);
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(process, &one).map_err(|error| error.to_string())
}

fn waiting(servers: &Servers) -> Result<Stage, String> {
    let options = DemoOptions {
        workers: 8,
        service_time: Duration::from_millis(20),
        work: Work::Wait,
        ..DemoOptions::default()
    };
    embedded(servers, &options, 32)
}

fn computing(servers: &Servers) -> Result<Stage, String> {
    let options = DemoOptions {
        workers: 5,
        service_time: Duration::from_millis(5),
        work: Work::Cpu,
        ..DemoOptions::default()
    };
    embedded(servers, &options, 32)
}

fn embedded(servers: &Servers, options: &DemoOptions, connections: u32) -> Result<Stage, String> {
    let origin = origin::start(options).map_err(|error| error.to_string())?;
    let (proxy, address) = proxy(servers, "auto", &passing(origin.address))?;
    Ok(Stage {
        url: format!("http://{address}/uncacheable"),
        direct: Some(format!("http://{}/uncacheable", origin.address)),
        connections,
        threads: 1,
        origin_share: 1.0,
        is_hindered: false,
        proxy,
        api: Api::Embedded(origin),
        _narrow: None,
        _hog: None,
    })
}

fn one_thread(servers: &Servers) -> Result<Stage, String> {
    let (api, at) = fast_api(&servers.api)?;
    let (proxy, address) = proxy(servers, "1", &passing(at))?;
    Ok(Stage {
        url: format!("http://{address}/any?size=900"),
        direct: Some(format!("http://{at}/any?size=900")),
        connections: 64,
        threads: 1,
        origin_share: 1.0,
        is_hindered: false,
        proxy,
        api: Api::Own(api),
        _narrow: None,
        _hog: None,
    })
}

fn slow_generator(servers: &Servers) -> Result<Stage, String> {
    let (proxy, address) = proxy(servers, "auto", "location / { return 200 ok; }")?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "while :; do :; done"]);
    let place = Place::new().map_err(|error| error.to_string())?;
    let hog =
        Process::start("a process that wants a core", command, place).map_err(|error| error.to_string())?;
    to_first_core(i32::try_from(hog.id()).ok().and_then(Pid::from_raw))?;
    Ok(Stage {
        url: format!("http://{address}/"),
        direct: None,
        connections: 64,
        threads: 1,
        origin_share: 0.0,
        is_hindered: true,
        proxy,
        api: Api::None,
        _narrow: None,
        _hog: Some(hog),
    })
}

fn narrow_network(servers: &Servers) -> Result<Stage, String> {
    let (api, at) = fast_api(&servers.api)?;
    let narrow = toxiproxy::narrow(at, NARROW)?;
    let (proxy, address) = proxy(servers, "auto", &passing(narrow.address))?;
    Ok(Stage {
        url: format!("http://{address}/any?size=300000"),
        direct: Some(format!("http://{}/any?size=300000", narrow.address)),
        connections: 16,
        threads: 1,
        origin_share: 1.0,
        is_hindered: false,
        proxy,
        api: Api::Own(api),
        _narrow: Some(narrow),
        _hog: None,
    })
}

fn fast_api(program: &Path) -> Result<(Process, SocketAddr), String> {
    let address = free_address().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args([&address.port().to_string(), "1"]);
    let place = Place::new().map_err(|error| error.to_string())?;
    let mut party = Process::start("the API", command, place).map_err(|error| error.to_string())?;
    party.wait_for(address, START).map_err(|error| error.to_string())?;
    Ok((party, address))
}

fn passing(api: SocketAddr) -> String {
    format!("location / {{ proxy_pass http://api; }} }}\n upstream api {{ server {api}; keepalive 256;")
}

fn proxy(servers: &Servers, workers: &str, inside: &str) -> Result<(Process, SocketAddr), String> {
    let address = free_address().map_err(|error| error.to_string())?;
    let place = Place::new().map_err(|error| error.to_string())?;
    let text = format!(
        "worker_processes {workers};\ndaemon off;\npid verdict.pid;\nerror_log stderr warn;\n\
         events {{ worker_connections 4096; }}\nhttp {{ access_log off; proxy_http_version 1.1;\n \
         proxy_set_header Connection \"\"; keepalive_requests 100000000;\n server {{ listen {address};\n {inside}\n }} }}\n"
    );
    let file = place.write("nginx.conf", &text).map_err(|error| error.to_string())?;
    let mut command = Command::new(&servers.proxy);
    command.arg("-p").arg(place.path()).arg("-c").arg(file).args(["-e", "stderr"]);
    let mut party = Process::start("the proxy", command, place).map_err(|error| error.to_string())?;
    party.wait_for(address, START).map_err(|error| error.to_string())?;
    Ok((party, address))
}
