//! A configuration becomes running pieces: upstream groups, cache stores, log files, certificates, host tables.
//!
//! The only file that knows every crate. All that can be wrong is found and told at once; nothing of an earlier
//! configuration is touched until everything new stands and [`Assembled::commit`] puts it in force.

use crate::clusters::{self, ReadCluster};
use crate::descriptors::Needs;
use crate::handshakes;
use crate::logs::{self, Logs};
use crate::names::LookedUp;
use crate::traces::Traces;
use crate::{account, state_folder, temporary};
use millstream_acme::Acme;
use millstream_cache::Store;
use millstream_cluster::LimitKind;
use millstream_conf::diagnostics::Diagnostics;
use millstream_conf::model::{
    CacheZone, Configuration, HostPort, Http, Level, LimitZone, LogTarget, PeerAddress, Upstream,
    UpstreamServer,
};
use millstream_net::address::Address;
use millstream_net::resolver::{LookUps, Resolver};
use millstream_net::{clock, limits};
use millstream_server::clusters::Clusters;
use millstream_server::generation::{Edition, Shared, Zones};
use millstream_server::limit_zone::connections::ConnectionZone;
use millstream_server::limit_zone::requests::RequestZone;
use millstream_server::reads::Reads;
use millstream_server::route::server_name::HostTable;
use millstream_server::shadow_zone::Shadows;
use millstream_server::status_zones::StatusZones;
use millstream_server::verified::VerifiedLocations;
use millstream_telemetry::error_log::ErrorLogs;
use millstream_telemetry::log_writer::LogWriter;
use millstream_telemetry::metrics::Registry;
use millstream_traces::exporter::Tracing;
use millstream_upstream::{Group, Server};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// A configuration ready to be put in force. Dropping it changes nothing.
pub struct Assembled {
    shared: Shared,
    /// Zones whose store of the previous configuration goes on.
    kept: Vec<usize>,
    left: Vec<Arc<Store>>,
    clusters: Vec<ReadCluster>,
}

impl Assembled {
    pub fn configuration(&self) -> &Configuration {
        &self.shared.configuration
    }

    /// Puts it in force under the present limit of open files: kept stores take their new bounds, the others
    /// keep theirs.
    pub fn commit(self, previous: Option<&Shared>) -> Arc<Shared> {
        let mut shared = self.shared;
        shared.bounds = Needs::of(&shared.configuration).bounds(limits::nofile());
        for index in self.kept {
            let zone = &shared.configuration.http.cache_zones[index];
            shared.zones.stores[index].reconfigure(zone, shared.logs.main.clone());
        }
        self.left.iter().for_each(|store| store.leave());
        let before = previous.map(|shared| &shared.clusters);
        let http = &shared.configuration.http;
        let joined = clusters::join(self.clusters, http, &shared.zones, before, &shared.logs.main);
        shared.clusters = joined;
        limits_joined(http, &shared.clusters, &mut shared.zones);
        Arc::new(shared)
    }
}

/// Creates the running parts of a configuration. Stores of `previous` with the same name and path are kept.
/// The error has every finding.
pub fn assemble(
    mut configuration: Configuration,
    number: u64,
    log_writer: &Arc<LogWriter>,
    registry: &Arc<Registry>,
    previous: Option<&Shared>,
) -> Result<Assembled, Diagnostics> {
    let mut findings = Diagnostics::default();
    temporary::settle(&mut configuration, &mut findings);
    state_folder::settle(&mut configuration);
    let mut logs = Logs { log_writer, recent: registry.recent_errors(), findings: &mut findings };
    let logs = logs.shared(&configuration);
    let http = &configuration.http;
    let names = LookedUp::of(http);
    let groups = groups(http, previous, &names, &mut findings);
    let resolvers = resolvers(http, previous, &names, &mut findings);
    let (stores, kept) = stores(http, previous, &logs.main, &mut findings);
    let acme = Acme::of(http, previous.map(|shared| &shared.acme), &mut findings);
    account::prove_folders(&configuration, false, &mut findings);
    let reads = Reads::of(http);
    let handshakes = handshakes::read(http, &acme, previous, reads.offers, &mut findings);
    let tracing = tracing(http, previous, &mut findings);
    let clusters = clusters::read(http, &mut findings);
    findings.leave_out_repeats();
    if findings.has_errors() {
        return Err(findings);
    }
    tell(&findings, &configuration, &logs.main);
    let hosts = http.listeners.iter().map(|listener| HostTable::new(http, listener)).collect();
    let (requests, connections) = limit_zones(http, previous);
    let shadows = Shadows::of(http, previous.map(|shared| &shared.zones.shadows));
    let (status, verified) = (StatusZones::of(http, registry), VerifiedLocations::of(http));
    let zones = Zones { stores, requests, connections, status, shadows, verified };
    let bounds = Needs::of(&configuration).bounds(limits::nofile());
    let shared = Shared {
        edition: Edition { number, loaded: clock::wall().unix_milliseconds() },
        bounds,
        groups,
        resolvers,
        zones,
        logs,
        handshakes,
        hosts,
        tracing,
        acme,
        clusters: Clusters::default(),
        registry: Arc::clone(registry),
        recorder: previous.map(|shared| shared.recorder.clone()).unwrap_or_default(),
        reads,
        configuration,
    };
    let left = left_by(previous, &shared.zones.stores);
    Ok(Assembled { shared, kept, left, clusters })
}

fn stores(
    http: &Http,
    previous: Option<&Shared>,
    main_log: &ErrorLogs,
    findings: &mut Diagnostics,
) -> (Vec<Arc<Store>>, Vec<usize>) {
    let mut kept = Vec::new();
    let mut stores = Vec::with_capacity(http.cache_zones.len());
    for (index, zone) in http.cache_zones.iter().enumerate() {
        let known = previous.and_then(|shared| store_of(shared, zone));
        kept.extend(known.is_some().then_some(index));
        stores.extend(known.or_else(|| open_store(zone, http, main_log, findings)));
    }
    (stores, kept)
}

/// The zones of `limit_req` and `limit_conn`. One with the same name, key and size keeps its state.
fn limit_zones(http: &Http, previous: Option<&Shared>) -> (Vec<Arc<RequestZone>>, Vec<Arc<ConnectionZone>>) {
    let is_same = |before: &LimitZone, zone: &LimitZone| {
        // Its keys are hashes if it counts with other nodes.
        let hashes = |zone: &LimitZone| zone.sync.as_ref().map(|sync| sync.cluster.clone());
        (&before.name, before.size, &before.key.source) == (&zone.name, zone.size, &zone.key.source)
            && hashes(before) == hashes(zone)
    };
    let requests = http.request_zones.iter().map(|of| {
        let known = previous.and_then(|shared| {
            let before = &shared.configuration.http.request_zones;
            let at = before.iter().position(|before| is_same(&before.zone, &of.zone))?;
            Some(shared.zones.requests[at].with_rate(of.rate))
        });
        Arc::new(known.unwrap_or_else(|| RequestZone::new(of.zone.size, of.rate, clock::now())))
    });
    let connections = http.connection_zones.iter().map(|of| {
        let known = previous.and_then(|shared| {
            let before = &shared.configuration.http.connection_zones;
            let at = before.iter().position(|before| is_same(&before.zone, &of.zone))?;
            Some(shared.zones.connections[at].clone())
        });
        known.unwrap_or_else(|| Arc::new(ConnectionZone::new(of.zone.size)))
    });
    (requests.collect(), connections.collect())
}

/// Zones of limits with `sync` get their doors.
fn limits_joined(http: &Http, clusters: &Clusters, zones: &mut Zones) {
    let door = |kind, zone: &LimitZone| {
        let cluster = &zone.sync.as_ref()?.cluster;
        let running = clusters.running().iter().find(|running| running.name == *cluster)?;
        let mut doors = running.bus.limit_doors().iter();
        doors.find(|door| door.kind() == kind && door.zone() == zone.name).cloned()
    };
    for (of, zone) in http.request_zones.iter().zip(&mut zones.requests) {
        if let Some(door) = door(LimitKind::Requests, &of.zone) {
            *zone = Arc::new(zone.with_door(door));
        }
    }
    for (of, zone) in http.connection_zones.iter().zip(&mut zones.connections) {
        let door = door(LimitKind::Connections, &of.zone);
        if door.is_some() || zone.door().is_some() {
            *zone = Arc::new(zone.with_door(door));
        }
    }
}

/// Kept from `previous` if its settings are the same.
fn tracing(http: &Http, previous: Option<&Shared>, findings: &mut Diagnostics) -> Option<Arc<Tracing>> {
    let (exporter, resource) = (http.otel_exporter.as_ref()?, &http.otel_resource);
    let before = previous.and_then(|shared| shared.tracing.as_ref());
    if let Some(before) = before.filter(|before| before.is_of(exporter, resource)) {
        return Some(before.clone());
    }
    let made = Tracing::new(exporter, resource);
    made.map_err(|error| _ = findings.error(exporter.span, format!("otel_exporter: {error}")))
        .ok()
        .map(Arc::new)
}

fn left_by(previous: Option<&Shared>, stores: &[Arc<Store>]) -> Vec<Arc<Store>> {
    let is_left = |store: &&Arc<Store>| !stores.iter().any(|kept| Arc::ptr_eq(kept, store));
    previous.into_iter().flat_map(|shared| &shared.zones.stores).filter(is_left).cloned().collect()
}

fn tell(findings: &Diagnostics, configuration: &Configuration, main_log: &ErrorLogs) {
    for finding in findings.sorted() {
        let place = finding.span.map(|span| format!(" in {}", configuration.sources.locate(span)));
        // Not of how something is written but of what will not work: a log that takes errors alone takes it.
        main_log.write(Level::Error, format_args!("{}{}", finding.message, place.unwrap_or_default()));
    }
}

/// Tests what a start would need, without starting: names, certificates, log files, directories (`-t`).
pub fn probe(configuration: &mut Configuration, findings: &mut Diagnostics) {
    temporary::settle(configuration, findings);
    state_folder::settle(configuration);
    let http = &configuration.http;
    let names = LookedUp::of(http);
    for server in http.upstreams.iter().flat_map(|upstream| &upstream.servers) {
        if let PeerAddress::Name(name) = &server.address
            && !server.resolve
            && let Err(why) = names.find(name)
        {
            let message = format!("host not found in upstream \"{}\": {why}", server.name);
            // nginx does not start then; here one dead name stops no start, but it is most often a mistake.
            findings
                .error(server.span, message)
                .help("millstream starts nevertheless, with this server down until its name is resolved");
        }
    }
    resolvers(http, None, &names, findings);
    _ = tracing(http, None, findings);
    clusters::read(http, findings);
    let logs = || logs::targets(configuration).filter_map(LogTarget::file);
    let caches = || http.cache_zones.iter().filter_map(|zone| Some((zone.path.as_deref()?, zone.span)));
    let states = http.acme_issuers.iter().filter_map(|issuer| issuer.state_path.as_deref());
    let made = logs().chain(handshakes::key_logs(http)).chain(caches().map(|(path, _)| path)).chain(states);
    let traces = Traces::before(made);
    let acme = Acme::of(http, None, findings);
    handshakes::read(http, &acme, None, false, findings);
    logs::probe(configuration, findings);
    let user = account::in_effect(configuration);
    for (path, span) in caches() {
        if account::unmade_below(path, user).is_some() {
            continue;
        }
        if let Err(error) = std::fs::create_dir_all(path) {
            findings
                .error(span, format!("the cache directory {} cannot be created: {error}", path.display()));
        }
    }
    account::prove_folders(configuration, true, findings);
    traces.remove();
    // A log that every location inherits is one finding.
    findings.leave_out_repeats();
}

fn groups(
    http: &Http,
    previous: Option<&Shared>,
    names: &LookedUp,
    findings: &mut Diagnostics,
) -> Vec<Arc<Group>> {
    let group_of = |upstream: &Upstream| {
        previous.into_iter().flat_map(|shared| &shared.groups).find(|group| group.name() == upstream.name)
    };
    http.upstreams.iter().map(|upstream| group(upstream, group_of(upstream), names, findings)).collect()
}

/// A group; its servers take over the state of the group of the same name.
fn group(
    upstream: &Upstream,
    before: Option<&Arc<Group>>,
    names: &LookedUp,
    findings: &mut Diagnostics,
) -> Arc<Group> {
    let known = before.map(|group| group.servers()).unwrap_or_default();
    let addresses: Vec<Vec<Address>> =
        upstream.servers.iter().map(|server| addresses(server, &known, names, findings)).collect();
    Group::open(upstream, &addresses, before.map(Arc::as_ref))
}

/// The addresses of a server. A name that is not found does not prevent the start: its server keeps its
/// addresses from before a reload, or is down and looked up again (`names`). One with `resolve` keeps its
/// previous addresses, if any; a service has records instead, which its group holds.
fn addresses(
    server: &UpstreamServer,
    known: &[Server],
    names: &LookedUp,
    findings: &mut Diagnostics,
) -> Vec<Address> {
    match &server.address {
        PeerAddress::Tcp(address) => vec![Address::Tcp(*address)],
        PeerAddress::Unix(path) => vec![Address::Unix(Some(path.clone()))],
        PeerAddress::Name(_) if server.service.is_some() => Vec::new(),
        PeerAddress::Name(name) if server.resolve => known_of(name, known),
        PeerAddress::Name(name) => match names.find(name) {
            Ok(found) => found.into_iter().map(Address::Tcp).collect(),
            Err(why) => {
                let message = format!("host not found in upstream \"{}\": {why}", server.name);
                findings.warning(server.span, message).help("the server is down until its name is resolved");
                known_of(name, known)
            }
        },
    }
}

/// The previous addresses of a host at any port, with the present port.
fn known_of(name: &HostPort, known: &[Server]) -> Vec<Address> {
    let is_its =
        |server: &&Server| server.service.is_none() && server.name.split(':').next() == Some(&*name.host);
    let at_port = |address: &Address| match address {
        Address::Tcp(address) => Some(Address::Tcp(SocketAddr::new(address.ip(), name.port))),
        Address::Unix(_) => None,
    };
    let found = known.iter().find(is_its);
    found.into_iter().flat_map(|server| &server.addresses).filter_map(at_port).collect()
}

/// One value per `resolver`.
fn resolvers(
    http: &Http,
    previous: Option<&Shared>,
    names: &LookedUp,
    findings: &mut Diagnostics,
) -> Vec<Arc<Resolver>> {
    // Those of one name are counted together, and go on over a reload.
    let mut counted: HashMap<&str, Arc<LookUps>> = HashMap::new();
    if let Some(before) = previous {
        let resolvers = before.configuration.http.resolvers.iter().zip(&before.resolvers);
        let named =
            resolvers.filter_map(|(conf, made)| Some((conf.zone.as_deref()?, made.look_ups().clone())));
        counted.extend(named);
    }
    let mut made = Vec::with_capacity(http.resolvers.len());
    for conf in &http.resolvers {
        let mut servers: Vec<SocketAddr> = Vec::new();
        for server in &conf.servers {
            match server {
                PeerAddress::Tcp(address) => servers.push(*address),
                PeerAddress::Unix(_) => {}
                PeerAddress::Name(name) => match names.find(name) {
                    Ok(found) => servers.extend(found),
                    Err(why) => {
                        findings
                            .error(conf.span, format!("host not found in resolver \"{}\": {why}", name.host));
                    }
                },
            }
        }
        let look_ups = match conf.zone.as_deref() {
            Some(zone) => counted.entry(zone).or_default().clone(),
            None => Arc::default(),
        };
        made.push(Resolver::new(conf, servers, look_ups));
    }
    made
}

fn store_of(shared: &Shared, zone: &CacheZone) -> Option<Arc<Store>> {
    let is_it = |store: &&Arc<Store>| store.name() == zone.name && store.path() == zone.path.as_deref();
    shared.zones.stores.iter().find(is_it).cloned()
}

fn open_store(
    zone: &CacheZone,
    http: &Http,
    log: &ErrorLogs,
    findings: &mut Diagnostics,
) -> Option<Arc<Store>> {
    let temp = http
        .locations
        .iter()
        .filter_map(|location| location.settings.pass())
        .find(|proxy| proxy.cache.as_ref().is_some_and(|cache| http.cache_zone(cache.zone).name == zone.name))
        // Files of a cache have names until they are whole: those belong into a folder of its own.
        .filter(|proxy| proxy.exchange.temp_path.written.is_some())
        .map(|proxy| proxy.exchange.temp_path.path.as_path());
    match Store::open(zone, temp, log.clone()) {
        Ok(store) => Some(store),
        Err(error) => {
            findings.error(zone.span, error.to_string());
            None
        }
    }
}
