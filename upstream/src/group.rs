//! One `upstream` block at work: the version of its peers that is in force, and how the next one is made.
//!
//! Names that resolve anew, health checks and the API change a group by [`Group::publish`]; nobody else writes it. A
//! member that stays keeps its number, its place among the addresses of its server, its load and its failures.
//! Next: `peers`, one version; `local`, a worker's way in.

mod places;
mod service;
mod state_file;
mod editing;
mod succession;

pub use editing::{Edit, MOST_SERVERS, NotEdited, ServerChange};
pub use service::{Service, ServiceRecord};

use crate::health::{Ejection, Health};
use crate::outlier::Outliers;
use crate::peer::{Member, Peer};
use crate::peers::{CommonParts, Peers};
use crate::queue::Queue;
use crate::sessions::Sessions;
use crate::standing::{Parameters, Standing};
use md5::{Digest, Md5};
use millstream_conf::model::{
    BalanceMethod, HealthTerms, StickyWay, Upstream, UpstreamKeepalive, UpstreamServer,
};
use millstream_net::address::Address;
use places::Place;
use state_file::StateFile;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// A group of upstream servers.
#[derive(Debug)]
pub struct Group {
    name: Arc<str>,
    keepalive: UpstreamKeepalive,
    method: BalanceMethod,
    checks: Box<[HealthTerms]>,
    sessions: Option<Arc<Sessions>>,
    /// Versions have it too, since turns wake waiters.
    queue: Option<Arc<Queue>>,
    /// Versions have it too, since turns report outcomes.
    outliers: Option<Arc<Outliers>>,
    changes: Notify,
    /// Of the current version: all that a request reads if nothing has changed.
    number: AtomicU64,
    state: Mutex<State>,
    /// Under which the peers of all versions are compared.
    turns: Arc<Mutex<()>>,
    /// The number of edits. Held during an edit, and by a reload that takes over.
    editing: Mutex<u64>,
    /// The group that a reload put in its place; set while no edit runs.
    successor: OnceLock<Arc<Group>>,
    /// Idle connections in the pool of each worker.
    idle: Mutex<Vec<Weak<AtomicUsize>>>,
    state_file: Option<StateFile>,
}

#[derive(Debug)]
struct State {
    servers: Vec<Server>,
    in_force: Arc<Peers>,
    next_id: u64,
}

/// A `server` of a group, with its current addresses.
#[derive(Debug, Clone)]
pub struct Server {
    pub name: Arc<str>,
    /// Shared by all its addresses.
    pub parameters: Parameters,
    pub route: Option<Arc<str>>,
    pub backup: bool,
    /// A server without addresses has no peers, unless it is kept.
    pub addresses: Vec<Address>,
    /// If `service` is set, the addresses are those of its records.
    pub service: Option<Service>,
    /// Whether it keeps its place, as down, while it has no address, so that keys and clients of others do
    /// not move.
    pub kept: bool,
}

impl Server {
    /// A service keeps its records from `before`.
    pub fn of(conf: &UpstreamServer, addresses: Vec<Address>, before: &[Server]) -> Server {
        Server {
            name: conf.name.as_str().into(),
            parameters: Parameters {
                weight: i64::from(conf.weight.max(1)),
                max_fails: conf.max_fails,
                fail_timeout: conf.fail_timeout,
                down: conf.down,
                drain: conf.drain,
                slow_start: conf.slow_start,
                max_conns: conf.max_conns,
            },
            route: conf.route.as_deref().map(Arc::from),
            backup: conf.backup,
            addresses,
            service: conf.service.as_deref().map(|service| Service::open(service, &conf.name, before)),
            kept: !conf.resolve,
        }
    }
}

impl Group {
    /// `addresses` holds what each server resolved to; servers of a name with several addresses share its
    /// parameters. Peers that `before` has keep their health and counts.
    pub fn open(conf: &Upstream, addresses: &[Vec<Address>], before: Option<&Group>) -> Arc<Group> {
        let known = before.map(Group::servers).unwrap_or_default();
        let servers = conf.servers.iter().zip(addresses);
        let servers =
            servers.map(|(server, addresses)| Server::of(server, addresses.clone(), &known)).collect();
        let sessions = match conf.sticky.as_ref().map(|sticky| &sticky.way) {
            Some(StickyWay::Learn(learn)) => {
                Some(Sessions::open(learn, before.and_then(|before| before.sessions.as_ref())))
            }
            _ => None,
        };
        let group = Group {
            checks: conf.checks.iter().map(|check| check.terms).collect(),
            sessions,
            queue: conf.queue.map(Queue::new),
            outliers: conf.outlier_ejection.clone().map(|terms| Arc::new(Outliers::new(terms))),
            state_file: conf.state.as_deref().map(StateFile::new),
            ..Self::empty(&conf.name, conf.keepalive, conf.balance.method)
        };
        let before = before.map(Group::in_force);
        group.with(servers, before.as_deref())
    }

    /// A group of one server without a block, with the defaults of `server`.
    pub fn single(name: &str, keepalive: UpstreamKeepalive, addresses: Vec<Address>) -> Arc<Group> {
        let server = Server {
            name: name.into(),
            parameters: Parameters {
                weight: 1,
                max_fails: 1,
                fail_timeout: Duration::from_secs(10),
                down: false,
                drain: false,
                slow_start: Duration::ZERO,
                max_conns: 0,
            },
            route: None,
            backup: false,
            addresses,
            service: None,
            kept: false,
        };
        Self::empty(name, keepalive, BalanceMethod::RoundRobin).with(vec![server], None)
    }

    fn empty(name: &str, keepalive: UpstreamKeepalive, method: BalanceMethod) -> Group {
        let name: Arc<str> = name.into();
        let turns = Arc::new(Mutex::new(()));
        let common = CommonParts { lock: &turns, queue: None, outliers: None };
        let nobody = Peers::new((name.clone(), 0), method, Vec::new(), 0, common);
        let state = State { servers: Vec::new(), in_force: Arc::new(nobody), next_id: 0 };
        Group {
            name,
            keepalive,
            method,
            checks: Box::new([]),
            sessions: None,
            queue: None,
            outliers: None,
            changes: Notify::new(),
            number: AtomicU64::new(0),
            state: Mutex::new(state),
            turns,
            editing: Mutex::default(),
            successor: OnceLock::new(),
            idle: Mutex::default(),
            state_file: None,
        }
    }

    fn with(self, servers: Vec<Server>, before: Option<&Peers>) -> Arc<Group> {
        self.change(before, &[], |known| *known = servers);
        Arc::new(self)
    }

    pub fn sessions(&self) -> Option<&Arc<Sessions>> {
        self.sessions.as_ref()
    }

    pub fn queue(&self) -> Option<&Arc<Queue>> {
        self.queue.as_ref()
    }

    pub fn outliers(&self) -> Option<&Arc<Outliers>> {
        self.outliers.as_ref()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn idle(&self) -> usize {
        let pools = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        pools.iter().filter_map(Weak::upgrade).map(|pool| pool.load(Ordering::Relaxed)).sum()
    }

    /// Adds a worker's count, which only its owner writes.
    pub(crate) fn watch_idle(&self, count: &Arc<AtomicUsize>) {
        let mut pools = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(count));
    }

    pub fn keepalive(&self) -> &UpstreamKeepalive {
        &self.keepalive
    }

    pub fn in_force(&self) -> Arc<Peers> {
        self.lock().in_force.clone()
    }

    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Ready once another version is in force.
    pub async fn changed_since(&self, version: &Peers) {
        loop {
            let change = self.changes.notified();
            if self.number() != version.number {
                return;
            }
            change.await;
        }
    }

    pub fn servers(&self) -> Vec<Server> {
        self.lock().servers.clone()
    }

    /// Publishes the next version. Current requests continue with theirs.
    pub fn publish(&self, change: impl FnOnce(&mut Vec<Server>)) {
        self.change(None, &[], change);
        self.changes.notify_waiters();
        if let Some(outliers) = &self.outliers {
            outliers.changed();
        }
    }

    /// New peers that `before` has keep their health and counts, except those in `gone`.
    fn change(&self, before: Option<&Peers>, gone: &[u64], change: impl FnOnce(&mut Vec<Server>)) {
        let mut state = self.lock();
        let state = &mut *state;
        change(&mut state.servers);
        let number = state.in_force.number + 1;
        let (members, proper) = state.members(before, gone, &self.checks);
        if self.outliers.is_none() {
            // A configuration that looks for none brings back who was out under the one before.
            let ejected = |member: &&Member| member.standing.health().ejection() != Ejection::default();
            let of_before = members.iter().filter(ejected);
            of_before.for_each(|member| member.standing.health().eject(Ejection::default()));
        }
        let (queue, outliers) = (self.queue.as_ref(), self.outliers.as_ref());
        let common = CommonParts { lock: &self.turns, queue, outliers };
        let identity = (self.name.clone(), number);
        state.in_force = Arc::new(Peers::new(identity, self.method, members, proper, common));
        self.number.store(number, Ordering::Release);
    }

    /// Nothing happens if the records are the same.
    pub fn move_service(&self, server: &str, service: &str, records: &[ServiceRecord]) {
        let moved = |server: &Server| server.service.as_ref().is_some_and(|known| known.records != records);
        let moves = |known: &Server| known.is_of(server, Some(service)) && moved(known);
        if !self.lock().servers.iter().any(moves) {
            return;
        }
        self.publish(|servers| {
            let services = servers.iter_mut().filter(|known| known.is_of(server, Some(service)));
            for known in services.filter_map(|known| known.service.as_mut()) {
                known.records = records.to_vec();
            }
        });
    }

    /// By its name as written. Nothing happens if the addresses are the same.
    pub fn move_server(&self, name: &str, addresses: Vec<Address>) {
        let is_same = |known: &[Address]| {
            known.len() == addresses.len() && addresses.iter().all(|address| known.contains(address))
        };
        let moves = |server: &Server| server.is_of(name, None) && !is_same(&server.addresses);
        if !self.lock().servers.iter().any(moves) {
            return;
        }
        self.publish(|servers| {
            for server in servers.iter_mut().filter(|server| server.is_of(name, None)) {
                server.addresses.clone_from(&addresses);
            }
        });
    }

    /// What changes under the lock is replaced as a whole, so a poisoned one is used as it is.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The members of the next version, and how many of them are primary. Several servers may have one
    /// address: they keep their order, so that each continues as itself once those of `gone` are left out.
    fn members(
        &mut self,
        before: Option<&Peers>,
        gone: &[u64],
        checks: &[HealthTerms],
    ) -> (Vec<Member>, usize) {
        let mut stay = known(&self.in_force);
        stay.retain(|known| known.is_none_or(|(member, _)| !gone.contains(&member.peer.id)));
        let mut past = before.map(known).unwrap_or_default();
        let mut members = Vec::new();
        let mut proper = 0;
        for backup in [false, true] {
            for server in &self.servers {
                for place in server.places(&self.in_force, backup) {
                    let is_it =
                        |known: &Member| known.server == place.server && known.peer.address == place.address;
                    let is_it_there = |known: &Member, is_backup| is_backup == backup && is_it(known);
                    members.push(match take(&mut stay, is_it_there) {
                        Some(known) => {
                            let session_name = server.session_name(&known.peer);
                            let (route, parameters) = (server.route.clone(), place.parameters);
                            Member { parameters, route, session_name, ..known.clone() }
                        }
                        None => {
                            // A reload may have made it a backup, or the other way round.
                            let past = take(&mut past, is_it_there)
                                .or_else(|| take(&mut past, |known, _| is_it(known)));
                            let health = Health::new(checks, past.map(|past| past.standing.health()));
                            let standing = Standing::new(&place.parameters, health);
                            self.next_id += 1;
                            let new = new_member(self.next_id, server, place, standing);
                            let counts = past.map_or_else(Arc::default, |past| past.counts.clone());
                            Member { counts, ..new }
                        }
                    });
                }
            }
            if !backup {
                proper = members.len();
            }
        }
        (members, proper)
    }
}

impl Server {
    /// Default: the MD5 of its address in hexadecimal digits, as in nginx.
    fn session_name(&self, peer: &Peer) -> Arc<str> {
        match (&self.route, &peer.address) {
            (Some(route), _) => route.clone(),
            (None, Address::Unix(None)) => "".into(),
            (None, _) => {
                let hash = Md5::digest(peer.name.as_bytes());
                hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
            }
        }
    }
}

type Untaken<'m> = Option<(&'m Member, bool)>;

fn known(peers: &Peers) -> Vec<Untaken<'_>> {
    peers.members.iter().enumerate().map(|(index, member)| Some((member, index >= peers.proper))).collect()
}

/// The first that fits; each is returned once.
fn take<'m>(known: &mut [Untaken<'m>], fits: impl Fn(&Member, bool) -> bool) -> Option<&'m Member> {
    let mut known = known.iter_mut();
    let found = known.find(|known| known.is_some_and(|(member, is_backup)| fits(member, is_backup)));
    found.and_then(Option::take).map(|(member, _)| member)
}

fn new_member(id: u64, written: &Server, place: Place, standing: Standing) -> Member {
    let Place { server, address, parameters } = place;
    let name = match &address {
        Address::Unix(None) => server.clone(),
        address => address.to_string().into(),
    };
    let peer = Peer { id, address, name };
    let session_name = written.session_name(&peer);
    Member {
        peer,
        server,
        parameters,
        route: written.route.clone(),
        session_name,
        standing: Arc::new(standing),
        counts: Arc::default(),
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod methods;
#[cfg(test)]
mod slow_start;
#[cfg(test)]
mod sticky;
#[cfg(test)]
mod tests;
