//! Names of upstream servers: looked up before a start, and followed while running.
//!
//! At start every name is asked of the system, all at once and for a bounded time; one that is not found stops nothing. From
//! then on one thread (`net/src/resolver.rs`) asks for servers that are to `resolve` when what was said no longer holds, and
//! of the system for those that were not found. What changes becomes the next version of their group.

use millstream_conf::model::{Configuration, HostPort, Http, Level, PeerAddress, RESOLVER_TIMEOUT};
use millstream_net::address::Address;
use millstream_net::resolver::{self, ResolveError, Resolver, SrvRecord};
use millstream_net::timer::Deadline;
use millstream_net::{clock, resolve};
use millstream_server::generation::Shared;
use millstream_telemetry::error_log::ErrorLogs;
use millstream_upstream::{Group, ServiceRecord};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long a start or reload waits for the system's resolver.
const LOOK_UP: Duration = Duration::from_secs(5);
const THREADS: usize = 16;
/// How long a start or reload waits for the first responses of name servers.
const FIRST_ANSWERS: Duration = Duration::from_secs(2);
/// Pause between look-ups of a missing name with the system: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// As in nginx.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

pub struct LookedUp(HashMap<HostPort, Result<Vec<SocketAddr>, String>>);

impl LookedUp {
    pub fn of(http: &Http) -> LookedUp {
        let servers = http.upstreams.iter().flat_map(|upstream| &upstream.servers);
        let servers = servers.filter(|server| !server.resolve).map(|server| &server.address);
        let name_servers = http.resolvers.iter().flat_map(|resolver| &resolver.servers);
        let mut names: Vec<HostPort> = Vec::new();
        for address in servers.chain(name_servers) {
            if let PeerAddress::Name(name) = address
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
        LookedUp(ask_all(names))
    }

    pub fn find(&self, name: &HostPort) -> Result<Vec<SocketAddr>, String> {
        self.0.get(name).cloned().unwrap_or_else(|| Err("no response in time".to_owned()))
    }
}

/// On threads that end by themselves: one that hangs delays no one.
fn ask_all(names: Vec<HostPort>) -> HashMap<HostPort, Result<Vec<SocketAddr>, String>> {
    let end = clock::now() + LOOK_UP;
    let (tell, answers) = channel();
    let count = names.len().min(THREADS);
    let names = Arc::new(Mutex::new(names));
    for _ in 0..count {
        let (names, tell) = (names.clone(), tell.clone());
        let ask = move || {
            while let Some(name) = { names.lock().unwrap_or_else(PoisonError::into_inner).pop() } {
                let found = resolve::resolve_blocking(&name).map_err(|error| error.to_string());
                if tell.send((name, found)).is_err() {
                    return;
                }
            }
        };
        // Those that can be started ask for all.
        _ = std::thread::Builder::new().name("look-up".into()).spawn(ask);
    }
    drop(tell);
    let mut found = HashMap::new();
    while let Ok((name, answer)) = answers.recv_timeout(end.saturating_duration_since(clock::now())) {
        found.insert(name, answer);
    }
    found
}

/// Keeps the names of a configuration just put in force up to date, as long as its groups exist. Waits
/// briefly for the first responses about servers without addresses.
pub fn follow(shared: &Shared) {
    let (asked, first) = channel();
    let Configuration { http, .. } = &shared.configuration;
    for (group, conf) in shared.groups.iter().zip(&http.upstreams) {
        let known = group.servers();
        for (server, now) in conf.servers.iter().zip(&known) {
            let PeerAddress::Name(name) = &server.address else { continue };
            let followed = Followed {
                group: Arc::downgrade(group),
                server: server.name.as_str().into(),
                name: name.clone(),
                service: server.service.clone(),
                log: shared.logs.main.clone(),
            };
            match conf.resolver.filter(|_| server.resolve) {
                Some(id) => {
                    let asked = now.is_nowhere().then(|| asked.clone());
                    let resolver = shared.resolvers[id.0 as usize].clone();
                    let timeout = conf.resolver_timeout.unwrap_or(RESOLVER_TIMEOUT);
                    resolver::spawn(followed.by(resolver, timeout, asked));
                }
                None if now.is_nowhere() => resolver::spawn(followed.until_found()),
                None => {}
            }
        }
    }
    drop(asked);
    let end = clock::now() + FIRST_ANSWERS;
    // Nobody sends: the last of them that has asked, or the time, ends it.
    let _: Result<(), mpsc::RecvTimeoutError> =
        first.recv_timeout(end.saturating_duration_since(clock::now()));
}

struct Followed {
    group: Weak<Group>,
    server: Arc<str>,
    name: HostPort,
    service: Option<String>,
    log: ErrorLogs,
}

struct Looked {
    next: Instant,
    failures: Vec<String>,
}

impl Followed {
    /// With name servers, whenever a response expires. `asked` is dropped after the first time. Of failures
    /// in a row the first is logged.
    async fn by(self, resolver: Arc<Resolver>, timeout: Duration, mut asked: Option<Sender<()>>) {
        let mut pause = Deadline::new();
        let mut has_failed = false;
        while self.group.strong_count() > 0 {
            let Looked { next, failures } = self.look(&resolver, timeout).await;
            let now = clock::now();
            pause
                .set(if failures.is_empty() { next } else { next.min(now + timeout) }.max(now + LEAST_PAUSE));
            if !std::mem::replace(&mut has_failed, !failures.is_empty()) {
                failures.iter().for_each(|failure| self.log.write(Level::Error, format_args!("{failure}")));
            }
            drop(asked.take());
            pause.passed().await;
        }
    }

    /// One look-up. On failure the known addresses stay: it says nothing about the servers.
    async fn look(&self, resolver: &Arc<Resolver>, timeout: Duration) -> Looked {
        let host = &self.name.host;
        let looked = match &self.service {
            None => resolver.resolve(host, timeout).await.map(|found| {
                let addresses = found.addresses.iter().map(|ip| SocketAddr::new(*ip, self.name.port));
                self.publish(addresses.map(Address::Tcp).collect());
                (found.until, found.addresses.is_empty(), Vec::new())
            }),
            Some(service) => resolver.resolve_service(service, host, timeout).await.map(|found| {
                (found.until, found.records.is_empty(), self.publish_service(service, found.records))
            }),
        };
        let (next, is_missing, mut failures) =
            looked.unwrap_or_else(|error| (clock::now() + timeout, false, vec![self.failure(&error)]));
        if is_missing {
            failures.push(self.failure(&ResolveError::NotFound));
        }
        Looked { next, failures }
    }

    fn failure(&self, error: &ResolveError) -> String {
        let host = &self.name.host;
        match &self.service {
            Some(service) => format!("service {service} of {host} could not be resolved ({error})"),
            None => format!("{host} could not be resolved ({error}) for upstream server \"{}\"", self.server),
        }
    }

    async fn until_found(self) {
        let (mut pause, mut length) = (Deadline::new(), FIRST_PAUSE);
        while self.group.strong_count() > 0 {
            pause.set(clock::now() + length);
            pause.passed().await;
            length = (length * 2).min(LONGEST_PAUSE);
            if let Ok(found) = resolve::resolve(&self.name).await {
                self.log.write(
                    Level::Notice,
                    format_args!("{} is resolved, \"{}\" is up", self.name.host, self.server),
                );
                self.publish(found.into_iter().map(Address::Tcp).collect());
                return;
            }
        }
    }

    fn publish(&self, addresses: Vec<Address>) {
        if let Some(group) = self.group.upgrade() {
            group.move_server(&self.server, addresses);
        }
    }

    /// Returns the targets that could not be resolved; they keep their addresses.
    fn publish_service(&self, service: &str, records: Vec<SrvRecord>) -> Vec<String> {
        let Some(group) = self.group.upgrade() else { return Vec::new() };
        let servers = group.servers();
        let known = servers.iter().find(|server| server.is_of(&self.server, Some(service)));
        let known = known.and_then(|server| server.service.as_ref()).map_or(&[][..], |known| &known.records);
        let mut failures = Vec::new();
        let mut moved = Vec::with_capacity(records.len());
        for SrvRecord { priority, weight, port, target, addresses } in records {
            let addresses = match addresses {
                Ok(found) => found.into_iter().map(|ip| Address::Tcp(SocketAddr::new(ip, port))).collect(),
                Err(error) => {
                    let host = &self.name.host;
                    failures.push(format!(
                        "{target} could not be resolved ({error}) while resolving service {service} of {host}"
                    ));
                    let before = known.iter().find(|record| *record.target == *target);
                    let before = before.into_iter().flat_map(|record| &record.addresses);
                    before.map(|address| address.at_port(port)).collect()
                }
            };
            moved.push(ServiceRecord { target: target.into(), priority, weight: weight.into(), addresses });
        }
        group.move_service(&self.server, service, &moved);
        failures
    }
}
