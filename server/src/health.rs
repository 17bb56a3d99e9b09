//! Checks of the health of upstream servers: who is asked when, and what is made of the answers; and the watch over outliers.
//!
//! One thread of the process does all of it (`millstream`'s `app/src/health.rs`), a task for each check and in it one for each
//! server, driven by timers. What a check finds holds for every worker from its next choice on (`millstream-upstream`'s
//! `standing`). Next: `question`, what is asked; `judgement`, what is made of the answer; `serving`, both in gRPC; `exchange`'s `probe`, the exchange.

mod judgement;
mod outliers;
mod question;
mod serving;

use crate::exchange::{ProbeExtent, probe, probe_grpc};
use crate::generation::Generation;
use crate::request::Request;
use crate::worker::Worker;
use millstream_conf::model::{
    Exchange, HealthCheck, HealthMatch, HealthQuestion, Http, Level, LocationId, ServerId, Upstream,
};
use millstream_net::clock;
use millstream_net::grpc::GrpcConnection;
use millstream_net::timer::{Deadline, with_deadline};
use millstream_telemetry::log_error;
use millstream_upstream::{Change, Connection, Group, Peer};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

/// Servers that one check asks at a time, each with a body of up to 256 KiB.
const MOST_AT_ONCE: usize = 64;

pub fn is_wanted(http: &Http) -> bool {
    let is_watched = |upstream: &Upstream| !upstream.checks.is_empty() || upstream.outlier_ejection.is_some();
    http.upstreams.iter().any(is_watched)
}

/// Runs all checks of a configuration in a task, until aborted.
/// The task is spawned here and not by the caller, because a crate compiles all code of the futures it
/// spawns.
pub fn start(worker: Rc<Worker>) -> AbortHandle {
    tokio::task::spawn_local(run(worker)).abort_handle()
}

async fn run(worker: Rc<Worker>) {
    let generation = worker.generation();
    let mut checks = JoinSet::new();
    for (index, server) in generation.http().servers.iter().enumerate() {
        for location in generation.http().locations_of(server) {
            let place = (ServerId(index as u32), location);
            if let Some(check) = HealthWatch::of(&worker, &generation, place) {
                checks.spawn_local(follow(Rc::new(check)));
            }
        }
    }
    for group in &generation.shared.groups {
        checks.spawn_local(outliers::watch(group.clone(), generation.shared.logs.main.clone()));
    }
    drop(generation);
    while checks.join_next().await.is_some() {}
}

struct HealthWatch {
    worker: Rc<Worker>,
    generation: Rc<Generation>,
    place: (ServerId, LocationId),
    group: Arc<Group>,
    number: usize,
    conf: Arc<HealthCheck>,
    at_once: Semaphore,
}

/// A connection for several checks, with `keepalive_time`.
enum KeptConnection {
    None,
    Plain(Box<Connection>),
    Grpc(GrpcConnection),
}

async fn follow(check: Rc<HealthWatch>) {
    let mut tasks = JoinSet::new();
    let mut known: HashMap<u64, AbortHandle> = HashMap::new();
    loop {
        let version = check.group.in_force();
        known.retain(|id, task| {
            let stays = version.checked_peers().any(|peer| peer.id == *id);
            if !stays {
                task.abort();
            }
            stays && !task.is_finished()
        });
        for peer in version.checked_peers() {
            let begin = || tasks.spawn_local(attend(check.clone(), peer.clone()));
            known.entry(peer.id).or_insert_with(begin);
        }
        tokio::select! {
            () = check.group.changed_since(&version) => {}
            // One that was taken out above, or one that panicked and is begun anew.
            Some(_) = tasks.join_next() => {}
        }
    }
}

async fn attend(check: Rc<HealthWatch>, peer: Peer) {
    let random = RandomState::new();
    let (mut pause, mut whole) = (Deadline::new(), Deadline::new());
    let (mut kept, mut round) = (KeptConnection::None, 0u64);
    let mut due = clock::now();
    let asked = check.asked(&peer);
    loop {
        pause.set(due + part_of(check.conf.jitter, random.hash_one(round)));
        pause.passed().await;
        // It is never closed.
        let Ok(_place) = check.at_once.acquire().await else { return };
        let began = clock::now();
        whole.set(began + longest(check.exchange()));
        let found = match with_deadline(&mut whole, check.ask(&asked, &mut kept)).await {
            Ok(found) => found,
            Err(_) => Err("the check timed out".to_owned()),
        };
        check.tell(&peer, found);
        due = (began + check.conf.interval).max(clock::now());
        round += 1;
    }
}

/// Connecting, sending and reading by the location's timeouts.
fn longest(exchange: &Exchange) -> Duration {
    exchange.connect_timeout + exchange.send_timeout + exchange.read_timeout
}

fn part_of(whole: Duration, chance: u64) -> Duration {
    whole.mul_f64((chance >> 11) as f64 / (1u64 << 53) as f64)
}

impl HealthWatch {
    fn of(
        worker: &Rc<Worker>,
        generation: &Rc<Generation>,
        place: (ServerId, LocationId),
    ) -> Option<HealthWatch> {
        let settings = &generation.http().location(place.1).settings;
        let written = settings.health_check.as_ref()?;
        Some(HealthWatch {
            worker: worker.clone(),
            generation: generation.clone(),
            place,
            group: generation.shared.groups[written.upstream.0 as usize].clone(),
            number: written.number,
            conf: written.check.clone(),
            at_once: Semaphore::new(MOST_AT_ONCE),
        })
    }

    fn exchange(&self) -> &Exchange {
        let location = self.generation.http().location(self.place.1);
        &location.settings.pass().expect("a check is in a location that passes requests on").exchange
    }

    fn asked(&self, peer: &Peer) -> Peer {
        match self.conf.port {
            Some(port) => peer.at_port(port),
            None => peer.clone(),
        }
    }

    /// The error ends a sentence.
    async fn ask(&self, peer: &Peer, kept: &mut KeptConnection) -> Result<(), String> {
        match &self.conf.question {
            HealthQuestion::Get { uri, matches } => self.get(peer, (uri, matches.as_deref()), kept).await,
            HealthQuestion::Grpc { service, status } => self.call(peer, (service, *status), kept).await,
        }
    }

    async fn get(
        &self,
        peer: &Peer,
        (uri, wanted): (&str, Option<&HealthMatch>),
        kept: &mut KeptConnection,
    ) -> Result<(), String> {
        let mut request = self.request(uri)?;
        let keeps = !self.conf.keepalive_time.is_zero();
        let extent = match judgement::reads_body(wanted) || keeps {
            true => ProbeExtent::Body(judgement::BODY),
            false => ProbeExtent::Head,
        };
        let mut connection = match std::mem::replace(kept, KeptConnection::None) {
            KeptConnection::Plain(connection) => Some(connection),
            _ => None,
        };
        let answered = probe(&mut request, peer, extent, &mut connection).await;
        if let Some(connection) = connection.filter(|connection| !self.is_worn(connection.opened())) {
            *kept = KeptConnection::Plain(connection);
        }
        let answer = answered.map_err(|error| error.to_string())?;
        judgement::judge(wanted, &answer, &request)
    }

    async fn call(
        &self,
        peer: &Peer,
        (service, wanted): (&str, u32),
        kept: &mut KeptConnection,
    ) -> Result<(), String> {
        let request = self.request(serving::CHECK)?;
        let mut connection = match std::mem::replace(kept, KeptConnection::None) {
            KeptConnection::Grpc(connection) => Some(connection),
            _ => None,
        };
        let call = (serving::CHECK, &*serving::message(service));
        let answered = probe_grpc(&request, peer, call, &mut connection).await;
        if let Some(connection) = connection.filter(|connection| !self.is_worn(connection.opened())) {
            *kept = KeptConnection::Grpc(connection);
        }
        let reply = answered.map_err(|error| error.to_string())?;
        serving::judge(wanted, (reply.code, &reply.reason), reply.message())
    }

    fn request(&self, uri: &str) -> Result<Request, String> {
        question::make(&self.worker, &self.generation, self.place, uri)
            .ok_or_else(|| format!("no valid request can be created for \"{uri}\""))
    }

    fn is_worn(&self, opened: Instant) -> bool {
        clock::now().saturating_duration_since(opened) >= self.conf.keepalive_time
    }

    /// Publishes the result, and logs changes.
    fn tell(&self, peer: &Peer, found: Result<(), String>) {
        let log = &self.generation.shared.logs.errors[self.place.1.0 as usize];
        let check = (self.number, &self.conf.terms);
        let (name, what, asked) = match &self.conf.question {
            HealthQuestion::Get { uri, matches } => {
                (matches.as_ref().map_or("", |matches| matches.name.as_str()), "uri", uri)
            }
            HealthQuestion::Grpc { service, .. } => ("", "grpc_service", service),
        };
        let (peer_name, group) = (&peer.name, self.group.name());
        match (self.group.in_force().checked(peer, check, found.is_ok(), clock::now()), found) {
            (Some(Change::Healthy), _) => log_error!(
                log,
                Level::Notice,
                "peer is healthy, health check \"{name}\" of peer {peer_name} in upstream \"{group}\", {what}: \"{asked}\""
            ),
            (Some(Change::Unhealthy), Err(why)) => log_error!(
                log,
                Level::Error,
                "peer is unhealthy: {why}, health check \"{name}\" of peer {peer_name} in upstream \"{group}\", {what}: \"{asked}\""
            ),
            _ => {}
        }
    }
}
