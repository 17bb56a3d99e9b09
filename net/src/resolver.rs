//! Name servers that a configuration names: asked for addresses, and what they said kept for as long as it holds.
//!
//! All asking happens on one thread of the process's own, for all workers; a worker that waits for an answer waits for a
//! message. Requests for one name at the same time are one question. Failures are not kept, as in nginx. The protocol itself is
//! as `hickory-proto` reads and writes it. Before: `resolve`, names asked of the system; next: `exchange`, one question to one name server;
//! `question`, what name servers answer about a name; `look_ups`, what is counted; and `service`, SRV records.

mod look_ups;
mod exchange;
mod question;
mod service;

pub use look_ups::LookUps;
pub use service::{FoundService, SrvRecord};

use crate::clock;
use crate::timer::{Deadline, with_deadline};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use millstream_conf::model::Resolver as Conf;
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Timeout of one server before it or the next one is asked; nginx's.
const RESEND: Duration = Duration::from_secs(5);
/// Attempts without a response, each with the next server; callers may give up sooner.
const ATTEMPTS: usize = 6;
/// Names cached or being resolved: clients may choose them (`proxy_pass http://$host`).
const MOST_NAMES: usize = 10_000;
/// CNAMEs followed from a name to its addresses; nginx's.
const MOST_ALIASES: usize = 50;
/// How long a negative result is valid without a TTL; nginx's.
const NOTHING: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Each once, IPv4 first; empty if the name does not exist or has none.
    pub addresses: Vec<IpAddr>,
    pub until: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolveError {
    NoName,
    /// It does not exist, or has no address.
    NotFound,
    TimedOut,
    TooMany,
    Refused(String),
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName => f.write_str("invalid name"),
            Self::NotFound => f.write_str("3: Host not found"),
            Self::TimedOut => f.write_str("110: Operation timed out"),
            Self::TooMany => f.write_str("too many queries in progress"),
            Self::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ResolveError {}

type Answer = Result<Arc<Found>, ResolveError>;

#[derive(Debug, Clone)]
enum Told {
    Addresses(Arc<Found>),
    Alias(Arc<str>, Instant),
}

impl Told {
    fn until(&self) -> Instant {
        match self {
            Told::Addresses(found) => found.until,
            Told::Alias(_, until) => *until,
        }
    }

    fn is_none(&self) -> bool {
        matches!(self, Told::Addresses(found) if found.addresses.is_empty())
    }
}

pub struct Resolver {
    servers: Vec<SocketAddr>,
    server_turn: AtomicUsize,
    valid: Option<Duration>,
    types: Vec<RecordType>,
    turn: AtomicUsize,
    names: Mutex<HashMap<Box<str>, Entry>>,
    look_ups: Arc<LookUps>,
}

enum Entry {
    Asked(Vec<oneshot::Sender<Result<Told, ResolveError>>>),
    Known(Told),
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("types", &self.types).finish_non_exhaustive()
    }
}

impl Resolver {
    /// `look_ups` are those before a reload.
    pub fn new(conf: &Conf, servers: Vec<SocketAddr>, look_ups: Arc<LookUps>) -> Arc<Resolver> {
        let types = [(conf.ipv4, RecordType::A), (conf.ipv6, RecordType::AAAA)];
        Arc::new(Resolver {
            servers,
            server_turn: AtomicUsize::new(0),
            valid: conf.valid,
            types: types.into_iter().filter(|(wanted, _)| *wanted).map(|(_, kind)| kind).collect(),
            turn: AtomicUsize::new(0),
            names: Mutex::default(),
            look_ups,
        })
    }

    pub fn look_ups(&self) -> &Arc<LookUps> {
        &self.look_ups
    }

    /// From the cache, or by asking for at most `timeout`. A name without an address is no error.
    pub async fn resolve(self: &Arc<Self>, host: &str, timeout: Duration) -> Answer {
        let mut deadline = Deadline::new();
        deadline.set(clock::now() + timeout);
        let (mut host, mut until) = (Arc::<str>::from(host.trim_end_matches('.').to_ascii_lowercase()), None);
        // No alias leads here: the name server's answer about it would not be looked at.
        if &*host == "localhost" || host.ends_with(".localhost") {
            return Ok(Arc::new(self.this_machine()));
        }
        for _ in 0..=MOST_ALIASES {
            let told = match self.known_or_asked(&host) {
                Ok(told) => told,
                Err(waiting) => match with_deadline(&mut deadline, waiting).await {
                    Ok(told) => told.unwrap_or(Err(ResolveError::TimedOut)),
                    Err(_) => Err(ResolveError::TimedOut),
                },
            };
            match (told?, until) {
                (Told::Addresses(found), Some(until)) if until < found.until => {
                    return Ok(Arc::new(Found { until, addresses: found.addresses.clone() }));
                }
                (Told::Addresses(found), _) => return Ok(found),
                (Told::Alias(other, holds), before) => {
                    until = Some(before.map_or(holds, |before| before.min(holds)));
                    host = other;
                }
            }
        }
        Err(ResolveError::NotFound)
    }

    /// As [`Resolver::resolve`], with each request starting at another address.
    pub async fn resolve_in_turn(
        self: &Arc<Self>,
        host: &str,
        timeout: Duration,
    ) -> Result<Vec<IpAddr>, ResolveError> {
        let mut addresses = self.resolve(host, timeout).await?.addresses.clone();
        if addresses.is_empty() {
            return Err(ResolveError::NotFound);
        }
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % addresses.len();
        addresses.rotate_left(first);
        Ok(addresses)
    }

    fn known_or_asked(
        self: &Arc<Self>,
        host: &str,
    ) -> Result<Result<Told, ResolveError>, oneshot::Receiver<Result<Told, ResolveError>>> {
        let now = clock::now();
        let (sender, receiver) = oneshot::channel();
        let mut names = self.lock();
        match names.get_mut(host) {
            Some(Entry::Known(told)) if told.until() > now => return Ok(Ok(told.clone())),
            Some(Entry::Asked(waiting)) => {
                // Who has gone away need not be told.
                waiting.retain(|waiting| !waiting.is_closed());
                waiting.push(sender);
                return Err(receiver);
            }
            Some(Entry::Known(_)) | None => {}
        }
        if names.len() >= MOST_NAMES {
            names.retain(|_, entry| matches!(entry, Entry::Known(told) if told.until() > now));
            if names.len() >= MOST_NAMES {
                return Ok(Err(ResolveError::TooMany));
            }
        }
        names.insert(host.into(), Entry::Asked(vec![sender]));
        drop(names);
        let (resolver, host) = (self.clone(), Box::<str>::from(host));
        let asked = host.clone();
        self.look_ups.ask();
        spawn(async move {
            let asking = resolver.clone();
            // A task of its own, so that a name is never left as one that is being asked for.
            let answer = tokio::spawn(async move { asking.ask(&asked).await }).await;
            let failed = |error: tokio::task::JoinError| Err(ResolveError::Refused(error.to_string()));
            let answer = answer.unwrap_or_else(failed);
            resolver.look_ups.settle(answer.as_ref().map(|told| !told.is_none()));
            resolver.settle(host, &answer);
        });
        Err(receiver)
    }

    fn settle(&self, host: Box<str>, answer: &Result<Told, ResolveError>) {
        let mut names = self.lock();
        let before = match answer {
            Ok(told) if !told.is_none() => names.insert(host, Entry::Known(told.clone())),
            _ => names.remove(&host),
        };
        drop(names);
        if let Some(Entry::Asked(waiting)) = before {
            for waiting in waiting {
                // It may have gone away.
                _ = waiting.send(answer.clone());
            }
        }
    }

    /// Nothing panics under it, so a poisoned lock is used as it is.
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Entry>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// In nginx's words.
fn refusal(code: ResponseCode) -> ResolveError {
    ResolveError::Refused(match code {
        ResponseCode::FormErr => "1: Format error".to_owned(),
        ResponseCode::ServFail => "2: Server failure".to_owned(),
        ResponseCode::NotImp => "4: Unimplemented".to_owned(),
        ResponseCode::Refused => "5: Operation refused".to_owned(),
        other => format!("{}: {other}", u16::from(other)),
    })
}

/// Runs a task on the resolver's thread, started on first use: after privileges are dropped. If the system
/// gives no thread, nothing is asked, and waiters time out.
pub fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    static THREAD: OnceLock<Option<Handle>> = OnceLock::new();
    let start = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let handle = runtime.handle().clone();
        let serve = move || {
            runtime.block_on(std::future::pending::<()>());
        };
        std::thread::Builder::new().name("resolver".into()).spawn(serve).ok()?;
        Some(handle)
    };
    if let Some(thread) = THREAD.get_or_init(start) {
        thread.spawn(task);
    }
}
