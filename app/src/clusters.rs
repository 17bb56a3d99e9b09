//! Clusters, from their blocks to their threads: the files that they name are read, and zones take part through their stores.
//!
//! A cluster outlives a reload unless something of it has changed. Next: `millstream-cluster`.

use millstream_cache::{Changed, How as PurgeHow, OtherNodes, Purge, Store, What as PurgeWhat};
use millstream_cluster::{
    Bus, Door, EngineSettings, How, KeyPrint, Lasting, Limit, LimitKind, LimitedZone, LogBounds, Secret,
    Sentinel, Settings, What, Zone,
};
use millstream_conf::diagnostics::Diagnostics;
use millstream_conf::files;
use millstream_conf::model::{Cluster, Http, Level, LimitZone, Part, PassTarget, Variable};
use millstream_conf::variables::Builtin;
use millstream_net::tls::TlsConnector;
use millstream_server::clusters::{Clusters, RunningCluster};
use millstream_server::generation::Zones;
use millstream_telemetry::error_log::ErrorLogs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// More than the journal of a node keeps, and in entries more than those of all nodes of a usual cluster.
const LOG: LogBounds = LogBounds { entries: 262_144, bytes: 64 * 1024 * 1024 };

/// In bytes, of a secret or a password.
const LARGEST: u64 = 64 * 1024;

/// A cluster whose files were read.
pub struct ReadCluster {
    name: String,
    print: Vec<u8>,
    serves: bool,
    settings: Settings,
}

pub fn read(http: &Http, findings: &mut Diagnostics) -> Vec<ReadCluster> {
    http.clusters.iter().filter_map(|cluster| read_one(cluster, findings)).collect()
}

fn read_one(cluster: &Cluster, findings: &mut Diagnostics) -> Option<ReadCluster> {
    let mut file = |what: &str, path: &Path| {
        let read = read_file(path);
        let failed = |error| {
            let message =
                format!("cluster \"{}\": cannot read the {what} {}: {error}", cluster.name, path.display());
            findings.error(cluster.span, message);
        };
        read.map_err(failed).ok()
    };
    let (secret, password) =
        (file("secret", &cluster.secret), cluster.password.as_deref().map(|path| file("password", path)));
    let (secret_bytes, password) = (secret?, password.map_or(Some(None), |read| read.map(Some))?);
    let mut wrong = |message: String| {
        _ = findings.error(cluster.span, format!("cluster \"{}\": {message}", cluster.name))
    };
    let secret = Secret::of(&secret_bytes).map_err(|error| wrong(error.to_string())).ok()?;
    let tls = cluster.secured.then(|| TlsConnector::own(cluster.trusted.as_deref(), true)).transpose();
    let tls = tls.map_err(|error| wrong(error.to_string())).ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes.trim_ascii()).into_owned();
    let mut print = format!("{:?}", Cluster { span: Default::default(), ..cluster.clone() }).into_bytes();
    print.extend(secret_bytes.iter().chain(password.iter().flatten()));
    let engine = EngineSettings {
        servers: cluster.servers.clone(),
        sentinel: cluster.sentinel.clone().map(|(name, servers)| Sentinel { name, servers }),
        user: cluster.user.clone(),
        password: password.as_deref().map(text).or_else(|| cluster.password_text.clone()),
        tls,
    };
    let host = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let settings = Settings {
        cluster: cluster.name.clone(),
        node: cluster.node.clone().unwrap_or_else(host),
        engine,
        secret,
        timeout: cluster.timeout,
        cut_off: cluster.cut_off,
        serves: cluster.serves,
        log: LOG,
    };
    Some(ReadCluster { name: cluster.name.clone(), print, serves: cluster.serves, settings })
}

/// The serving process may have to ask the opener for it.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let opened = files::open(path)?;
    if !opened.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    opened.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Puts clusters in force; [`start`] starts them. Those of `previous` that have not changed go on, the others
/// end, which may take seconds.
pub fn join(
    read: Vec<ReadCluster>,
    http: &Http,
    shared: &Zones,
    previous: Option<&Clusters>,
    log: &ErrorLogs,
) -> Clusters {
    let stores = &shared.stores;
    let zones = |name: &str| -> Vec<&Arc<Store>> {
        let zones = http.cache_zones.iter().zip(stores);
        let takes_part = zones.filter(|(zone, _)| zone.cluster.as_ref().is_some_and(|(of, _)| of == name));
        takes_part.map(|(_, store)| store).collect()
    };
    let mut printed = read;
    for cluster in &mut printed {
        for store in zones(&cluster.name) {
            cluster.print.extend((Arc::as_ptr(store) as usize).to_le_bytes());
        }
        cluster.print.extend(limits(&cluster.name, http, shared).1);
    }
    let known = previous.map(Clusters::running).unwrap_or_default();
    let goes_on = |running: &&RunningCluster| printed.iter().any(|cluster| cluster.print == running.print);
    known.iter().filter(|running| !goes_on(running)).for_each(|running| running.bus.stop());
    let running: Vec<RunningCluster> = printed
        .into_iter()
        .map(|cluster| match known.iter().find(|running| running.print == cluster.print) {
            Some(running) => {
                running.bus.log_to(log.clone());
                running.clone()
            }
            None => {
                let (limits, _) = limits(&cluster.name, http, shared);
                begin(cluster, zones, limits, log)
            }
        })
        .collect();
    let doors = http.cache_zones.iter().zip(stores).enumerate().map(|(number, (zone, store))| {
        let name = zone.cluster.as_ref().map(|(name, _)| name);
        let cluster = running.iter().find(|cluster| Some(&cluster.name) == name);
        let door =
            cluster.and_then(|cluster| cluster.bus.doors().iter().find(|door| door.zone() == zone.name));
        match door {
            Some(door) => door.set_keys(key_print(http, number)),
            None => store.membership().join(None),
        }
        door.cloned()
    });
    let doors = doors.collect();
    Clusters::new(running, doors)
}

/// What keys and tags of a zone are made of, as they are written; with the upstream if they name it.
fn key_print(http: &Http, zone: usize) -> KeyPrint {
    let used = http.locations.iter().filter_map(|location| {
        let pass = location.settings.pass()?;
        let cache = pass.cache.as_ref().filter(|cache| cache.zone.0 as usize == zone)?;
        let names_upstream = |part: &Part| {
            let named = [Variable::SentOrigin, Variable::SentTarget, Variable::Builtin(Builtin::ProxyHost)];
            matches!(part, Part::Variable(variable) if named.contains(variable))
        };
        let upstream = match &pass.target {
            _ if !cache.key.parts.iter().any(names_upstream) => String::new(),
            PassTarget::Variables(url) => url.source.to_string(),
            PassTarget::Upstream(_) => format!("{:?} {}", pass.host(), pass.tls().is_some()),
        };
        let tags: Vec<&str> = cache.tags.iter().map(|tag| &*tag.source).collect();
        Some(format!("{:?} {upstream:?} {tags:?} {:?}", cache.key.source, cache.ignored_args))
    });
    KeyPrint::of(used)
}

/// The limits that count through a cluster, and what must be the same for it to go on over a reload.
fn limits(name: &str, http: &Http, zones: &Zones) -> (Vec<Limit>, Vec<u8>) {
    let (mut limits, mut print) = (Vec::new(), Vec::new());
    let mut add = |kind, zone: &LimitZone, counts: Arc<dyn LimitedZone>, what: [u64; 2]| {
        let Some(sync) = zone.sync.as_ref().filter(|sync| sync.cluster == name) else { return };
        print.extend(format!("{kind:?} {} {} {what:?}", zone.name, sync.is_exact).bytes());
        limits.push(Limit { kind, zone: zone.name.clone(), is_exact: sync.is_exact, counts });
    };
    for (of, zone) in http.request_zones.iter().zip(&zones.requests) {
        let counts = Arc::new(zone.with_rate(of.rate));
        add(LimitKind::Requests, &of.zone, counts, [zone.address() as u64, of.rate]);
    }
    for (of, zone) in http.connection_zones.iter().zip(&zones.connections) {
        let counts = Arc::new(zone.with_door(None));
        add(LimitKind::Connections, &of.zone, counts, [zone.address() as u64, 0]);
    }
    (limits, print)
}

fn begin<'s>(
    cluster: ReadCluster,
    zones: impl Fn(&str) -> Vec<&'s Arc<Store>>,
    limits: Vec<Limit>,
    log: &ErrorLogs,
) -> RunningCluster {
    let ReadCluster { name, print, serves, settings } = cluster;
    let stores = zones(&name);
    let zone = |store: &&Arc<Store>| -> Arc<dyn Zone> {
        Arc::new(ClusteredZone { store: (*store).clone(), serves })
    };
    let bus = Bus::new(settings, stores.iter().map(zone).collect(), limits, log.clone());
    for (store, door) in stores.iter().zip(bus.doors()) {
        store.membership().join(Some(Arc::new(OtherDoors(door.clone()))));
        if serves {
            store.membership().confirm(i64::MIN, i64::MAX);
        }
    }
    RunningCluster { name, print, bus: Arc::new(bus) }
}

/// Starts the threads of those that do not run yet.
pub fn start(clusters: &Clusters, log: &ErrorLogs) {
    for cluster in clusters.running() {
        if let Err(error) = cluster.bus.start() {
            log.write(Level::Alert, format_args!("cluster {}: cannot start a thread: {error}", cluster.name));
        }
    }
}

/// What delayed invalidations are reported to.
#[derive(Debug)]
struct OtherDoors(Arc<Door>);

impl OtherNodes for OtherDoors {
    fn changed(&self, key: &[u8], has_pieces: bool) {
        drop(self.0.publish(What::Changed { key: key.to_vec(), has_pieces }, How::Hard, false));
    }
}

/// A store as a zone of a cluster.
struct ClusteredZone {
    store: Arc<Store>,
    /// `cut_off … serve`.
    serves: bool,
}

impl Zone for ClusteredZone {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn directory(&self) -> Option<&Path> {
        self.store.path()
    }

    fn confirmed(&self, from: i64, until: i64) {
        if !self.serves {
            self.store.membership().confirm(from, until);
        }
    }

    fn carry_out(&self, what: &What, how: How) -> Lasting {
        let what = match what {
            What::All => PurgeWhat::All,
            What::Prefix(prefix) => PurgeWhat::Prefix(prefix.clone()),
            What::Tag(name) => PurgeWhat::Tag(name.clone()),
            What::Key(key) => PurgeWhat::Key(key.clone()),
            What::Changed { key, has_pieces } => {
                let gone = self.store.change(Changed { key, has_pieces: *has_pieces });
                return Box::pin(async move {
                    if let Some(gone) = gone {
                        gone.await;
                    }
                    Ok(())
                });
            }
        };
        let how = match how {
            How::Hard => PurgeHow::Hard,
            How::Soft => PurgeHow::Soft,
        };
        let lasting = self.store.purge(Purge { what, how });
        Box::pin(async move { lasting.await.map(|_| ()) })
    }
}
