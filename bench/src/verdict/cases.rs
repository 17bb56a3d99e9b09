//! How each case is built, so that there can be no doubt who limits.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use millstream_load::party::{API, GENERATOR, Meter, PROXY, Place, Process, Whose, free_address};
use millstream_load::verdict::Limit;
use millstream_origin::{DemoOptions, DemoOrigin, THREADS, Work};
use rustix::process::{Pid, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::Servers;
use super::toxiproxy::{self, Relay};

pub(super) const START: Duration = Duration::from_secs(15);
/// Kilobytes per second of the link for each connection.
const PART: u32 = 4_000;

pub(super) struct VerdictCase {
    pub(super) name: &'static str,
    /// The limit to name; or it must be unknown.
    pub(super) right: Limit,
    pub(super) build: fn(&Servers) -> Result<Stage, String>,
}

pub(super) struct Stage {
    pub(super) url: String,
    /// The API's URL without the proxy; `None` if no request reaches it.
    pub(super) direct: Option<String>,
    pub(super) connections: u32,
    pub(super) threads: u32,
    pub(super) origin_share: f64,
    /// Whether the API counts as one on another machine, whose CPU cannot be seen.
    pub(super) is_elsewhere: bool,
    pub(super) hindrance: Hindrance,
    pub(super) proxy: Process,
    pub(super) api: Api,
    /// Bytes per second of the link to the API, as an interface reports it.
    pub(super) link: Option<f64>,
    #[allow(dead_code, reason = "it ends when dropped")]
    pub(super) others: Vec<Other>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hindrance {
    None,
    /// It shares one core with a busy process.
    OneCore,
    Nice,
}

pub(super) enum Api {
    Own(Process),
    Embedded(#[allow(dead_code, reason = "it ends when dropped")] DemoOrigin),
    None,
}

pub(super) enum Other {
    Relay(#[allow(dead_code, reason = "it ends when dropped")] Relay),
    Hog(#[allow(dead_code, reason = "it ends when dropped")] Process),
    Limited(#[allow(dead_code, reason = "it ends when dropped")] Limited),
}

pub(super) fn all() -> Vec<VerdictCase> {
    let case = |name, right, build| VerdictCase { name, right, build };
    vec![
        case("an API that waits, eight at once", Limit::Api, waiting),
        case("an API that computes", Limit::Api, computing),
        case("an API that computes, one at a time", Limit::Api, one_at_a_time),
        case("an API that its CPU limit holds back", Limit::Api, limited),
        case("a fast API behind a proxy of one thread", Limit::Proxy, one_thread),
        case("a proxy that rewrites bodies", Limit::Proxy, rewriting),
        case("a generator with one thread on half a core", Limit::Generator, slow_generator),
        case("a link of 64 MB/s to the API, which is full", Limit::Network, full_link),
        case("a machine full of other processes", Limit::Unknown, crowded),
        case("an API that takes all comers", Limit::Unknown, all_comers),
    ]
}

impl Stage {
    pub(super) fn new(url: String, direct: Option<String>, proxy: Process, api: Api) -> Stage {
        Stage {
            url,
            origin_share: if direct.is_some() { 1.0 } else { 0.0 },
            direct,
            connections: 32,
            threads: 1,
            is_elsewhere: false,
            hindrance: Hindrance::None,
            proxy,
            api,
            link: None,
            others: Vec::new(),
        }
    }

    pub(super) fn meter(&self) -> Meter {
        let own = std::process::id();
        let mut parties = vec![(PROXY, Whose::Tree(self.proxy.id()))];
        parties.extend(match &self.api {
            _ if self.is_elsewhere => None,
            Api::Own(party) => Some((API, Whose::Tree(party.id()))),
            Api::Embedded(_) => Some((API, Whose::Threads(own, THREADS.to_owned()))),
            Api::None => None,
        });
        parties.push((GENERATOR, Whose::OtherThreads(own, THREADS.to_owned())));
        Meter::new(parties)
    }

    /// Slows the calling thread and all it starts, as the case demands.
    pub(super) fn hinder_generator(&self) -> Result<(), String> {
        match self.hindrance {
            Hindrance::None => Ok(()),
            Hindrance::OneCore => to_first_core(None),
            // Of the calling thread alone, as Linux has it.
            Hindrance::Nice => setpriority_process(None, 19).map_err(text),
        }
    }
}

fn to_first_core(process: Option<Pid>) -> Result<(), String> {
    let allowed = sched_getaffinity(None).map_err(text)?;
    let first = (0..CpuSet::MAX_CPU).find(|&core| allowed.is_set(core)).unwrap_or(0);
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(process, &one).map_err(text)
}

fn waiting(servers: &Servers) -> Result<Stage, String> {
    embedded(servers, 8, 20, Work::Wait)
}

fn computing(servers: &Servers) -> Result<Stage, String> {
    embedded(servers, 5, 5, Work::Cpu)
}

fn one_at_a_time(servers: &Servers) -> Result<Stage, String> {
    embedded(servers, 1, 5, Work::Cpu)
}

fn all_comers(servers: &Servers) -> Result<Stage, String> {
    embedded(servers, 256, 50, Work::Wait)
}

fn embedded(servers: &Servers, workers: usize, milliseconds: u64, work: Work) -> Result<Stage, String> {
    let service_time = Duration::from_millis(milliseconds);
    let options = DemoOptions { workers, service_time, work, ..DemoOptions::default() };
    let origin = millstream_origin::start(&options).map_err(text)?;
    let (proxy, address) = proxy(servers, "auto", &passing(origin.address))?;
    let direct = Some(format!("http://{}/uncacheable", origin.address));
    Ok(Stage::new(format!("http://{address}/uncacheable"), direct, proxy, Api::Embedded(origin)))
}

/// The bench's API behind a proxy with so many workers; `inside` goes into its location.
fn fast(servers: &Servers, workers: &str, inside: &str, query: &str) -> Result<Stage, String> {
    let (api, at) = fast_api(&servers.api)?;
    let (proxy, address) = proxy(servers, workers, &passing_with(at, inside))?;
    let direct = Some(format!("http://{at}/any?{query}"));
    let stage = Stage::new(format!("http://{address}/any?{query}"), direct, proxy, Api::Own(api));
    Ok(Stage { connections: 64, ..stage })
}

fn one_thread(servers: &Servers) -> Result<Stage, String> {
    fast(servers, "1", "", "size=900")
}

fn rewriting(servers: &Servers) -> Result<Stage, String> {
    let filter = "sub_filter the THE; sub_filter_once off; sub_filter_types *;";
    fast(servers, "1", filter, "size=20000&kind=text")
}

/// Limited to a fifth of a core.
fn limited(servers: &Servers) -> Result<Stage, String> {
    let stage = fast(servers, "auto", "", "size=900")?;
    let Api::Own(api) = &stage.api else { return Err("it is a process".to_owned()) };
    let limited = Limited::new(api.id(), 20)?;
    Ok(Stage { others: vec![Other::Limited(limited)], ..stage })
}

fn slow_generator(servers: &Servers) -> Result<Stage, String> {
    let (proxy, address) = proxy(servers, "auto", "location / { return 200 ok; }")?;
    let hog = hog()?;
    to_first_core(i32::try_from(hog.id()).ok().and_then(Pid::from_raw))?;
    let stage = Stage::new(format!("http://{address}/"), None, proxy, Api::None);
    Ok(Stage { connections: 64, hindrance: Hindrance::OneCore, others: vec![Other::Hog(hog)], ..stage })
}

/// Three busy processes for each core.
fn crowded(servers: &Servers) -> Result<Stage, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let hogs = (0..3 * cores).map(|_| hog().map(Other::Hog)).collect::<Result<_, _>>()?;
    Ok(Stage { others: hogs, ..one_thread(servers)? })
}

/// The relay limits every connection to its share of the link.
fn full_link(servers: &Servers) -> Result<Stage, String> {
    let (api, at) = fast_api(&servers.api)?;
    let relay = toxiproxy::narrow(at, PART)?;
    let (proxy, address) = proxy(servers, "auto", &passing(relay.address))?;
    let direct = Some(format!("http://{}/any?size=300000", relay.address));
    let stage = Stage::new(format!("http://{address}/any?size=300000"), direct, proxy, Api::Own(api));
    let (connections, is_elsewhere) = (16, true);
    let link = Some(f64::from(PART * connections) * 1e3);
    Ok(Stage { connections, is_elsewhere, link, others: vec![Other::Relay(relay)], ..stage })
}

pub(super) fn hog() -> Result<Process, String> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "while :; do :; done"]);
    Process::start("a process that wants a core", command, Place::new().map_err(text)?).map_err(text)
}

/// A control group with a CPU limit, like a container's; removed on drop.
pub(super) struct Limited(PathBuf);

impl Limited {
    /// Moves a process into it, with so many hundredths of a core; control groups v1 and v2.
    fn new(id: u32, hundredths: u32) -> Result<Limited, String> {
        let name = format!("millstream-verdict-{id}");
        let (mount, limits) = match Path::new("/sys/fs/cgroup/cgroup.controllers").is_file() {
            true => ("/sys/fs/cgroup", vec![("cpu.max", format!("{hundredths}000 100000"))]),
            false => ("/sys/fs/cgroup/cpu", vec![("cpu.cfs_quota_us", format!("{hundredths}000"))]),
        };
        let group = Limited(Path::new(mount).join(name));
        let write = |file: &str, text: &str| {
            let path = group.0.join(file);
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        std::fs::create_dir(&group.0).map_err(|error| format!("{}: {error}", group.0.display()))?;
        limits.iter().try_for_each(|(file, text)| write(file, text))?;
        write("cgroup.procs", &id.to_string())?;
        Ok(group)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // Its process is ended before it, so it is empty.
        let _ = std::fs::remove_dir(&self.0);
    }
}

pub(super) fn fast_api(program: &Path) -> Result<(Process, SocketAddr), String> {
    let address = free_address().map_err(text)?;
    let mut command = Command::new(program);
    command.args([&address.port().to_string(), "1"]);
    let place = Place::new().map_err(text)?;
    let mut party = Process::start("the API", command, place).map_err(text)?;
    party.wait_for(address, START).map_err(text)?;
    Ok((party, address))
}

pub(super) fn passing(api: SocketAddr) -> String {
    passing_with(api, "")
}

fn passing_with(api: SocketAddr, inside: &str) -> String {
    format!(
        "location / {{ proxy_pass http://api; {inside} }} }}\n upstream api {{ server {api}; keepalive 256;"
    )
}

pub(super) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

pub(super) fn proxy(servers: &Servers, workers: &str, inside: &str) -> Result<(Process, SocketAddr), String> {
    let address = free_address().map_err(text)?;
    let place = Place::new().map_err(text)?;
    let conf = format!(
        "worker_processes {workers};\ndaemon off;\npid verdict.pid;\nerror_log stderr warn;\n\
         events {{ worker_connections 4096; }}\nhttp {{ access_log off; proxy_http_version 1.1;\n \
         proxy_set_header Connection \"\"; keepalive_requests 100000000;\n server {{ listen {address};\n {inside}\n }} }}\n"
    );
    let file = place.write("nginx.conf", &conf).map_err(text)?;
    let mut command = Command::new(&servers.proxy);
    command.arg("-p").arg(place.path()).arg("-c").arg(file).args(["-e", "stderr"]);
    let mut party = Process::start("the proxy", command, place).map_err(text)?;
    party.wait_for(address, START).map_err(text)?;
    Ok((party, address))
}
