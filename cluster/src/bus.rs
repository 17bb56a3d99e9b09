//! The thread of a cluster: it has a member for each zone.
//!
//! It begins with doors that are cut off, and each opens when its zone has caught up. Stopped, it publishes what was given and ends.
//! Start reading here; next: `door` for what requests see, `session` for what happens.

use crate::attempts::Attempts;
use crate::door::Door;
use crate::engine::Failure;
use crate::ledger::Ledger;
use crate::limit_door::{Board, Call, LimitDoor};
use crate::limiter::Limiter;
use crate::member::Member;
use crate::order::Issuer;
use crate::secret::random;
use crate::session::Session;
use crate::settings::Settings;
use crate::shared_logs::SharedLogs;
use crate::zone::{Limit, LimitedZone, Zone};
use millstream_conf::model::Level;
use millstream_telemetry::error_log::ErrorLogs;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::LocalSet;

/// A cluster's thread.
pub struct Bus {
    doors: Vec<Arc<Door>>,
    limit_doors: Vec<Arc<LimitDoor>>,
    log: SharedLogs,
    stop: watch::Sender<bool>,
    state: Mutex<State>,
}

enum State {
    Waiting(Box<Parts>),
    Running { thread: JoinHandle<()>, abandon: oneshot::Sender<()> },
    Ended,
}

/// What the thread needs.
struct Parts {
    settings: Arc<Settings>,
    zones: Vec<Arc<dyn Zone>>,
    doors: Vec<Arc<Door>>,
    limits: Vec<(Arc<LimitDoor>, Arc<dyn LimitedZone>)>,
    board: Arc<Board>,
    calls: mpsc::Receiver<Call>,
    log: SharedLogs,
    stop: watch::Receiver<bool>,
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bus({:?})", self.doors)
    }
}

impl Bus {
    /// Its doors take orders from now on.
    pub fn new(settings: Settings, zones: Vec<Arc<dyn Zone>>, limits: Vec<Limit>, logs: ErrorLogs) -> Bus {
        let log = SharedLogs::default();
        log.change(logs);
        let settings = Arc::new(settings);
        let (board, calls) = Board::new(settings.timeout);
        let limits: Vec<(Arc<LimitDoor>, Arc<dyn LimitedZone>)> = limits
            .into_iter()
            .map(|Limit { kind, zone, is_exact, counts }| {
                (LimitDoor::new(&settings, &board, (kind, &zone, is_exact)), counts)
            })
            .collect();
        let limit_doors = limits.iter().map(|(door, _)| door.clone()).collect();
        let doors: Vec<Arc<Door>> = zones.iter().map(|zone| Door::new(&settings, zone.name())).collect();
        let (stop, stopped) = watch::channel(false);
        let doors_of = doors.clone();
        let parts =
            Parts { settings, zones, doors: doors_of, limits, board, calls, log: log.clone(), stop: stopped };
        Bus { doors, limit_doors, log, stop, state: Mutex::new(State::Waiting(Box::new(parts))) }
    }

    /// Starts the thread, once; it reaches the engine later, or not at all.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(&self) -> io::Result<()> {
        let mut state = self.lock();
        let parts = match std::mem::replace(&mut *state, State::Ended) {
            State::Waiting(parts) => parts,
            other => {
                *state = other;
                return Ok(());
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (abandon, abandoned) = oneshot::channel();
        let run = move || {
            let tasks = LocalSet::new();
            let Parts { settings, zones, doors, limits, board, calls, log, stop } = *parts;
            if !limits.is_empty() {
                tasks.spawn_local(limit(settings.clone(), limits, (board, calls), log.clone(), stop.clone()));
            }
            for (zone, door) in zones.into_iter().zip(doors) {
                tasks.spawn_local(attend(settings.clone(), zone, door, log.clone(), stop.clone()));
            }
            runtime.block_on(async {
                tokio::select! {
                    () = tasks => {}
                    // A sender that is dropped abandons nothing.
                    Ok(()) = abandoned => {}
                }
            });
        };
        let thread = thread::Builder::new().name("cluster".to_owned()).spawn(run)?;
        *state = State::Running { thread, abandon };
        Ok(())
    }

    /// From now on it writes there.
    pub fn log_to(&self, logs: ErrorLogs) {
        self.log.change(logs);
    }

    /// In the order of the zones.
    pub fn doors(&self) -> &[Arc<Door>] {
        &self.doors
    }

    /// In the order of the limits.
    pub fn limit_doors(&self) -> &[Arc<LimitDoor>] {
        &self.limit_doors
    }

    /// Ends after what was given is published, or the engine has not responded in time. Blocks.
    pub fn stop(&self) {
        self.stop.send_replace(true);
        self.end(drop);
    }

    /// Ends at once, as a process that is killed: nothing is published or written any more. Blocks.
    pub fn abandon(&self) {
        // The thread may have ended.
        self.end(|abandon| _ = abandon.send(()));
    }

    fn end(&self, how: impl FnOnce(oneshot::Sender<()>)) {
        let state = std::mem::replace(&mut *self.lock(), State::Ended);
        if let State::Running { thread, abandon } = state {
            how(abandon);
            // Its panic was logged where it happened.
            _ = thread.join();
        }
    }

    /// Nothing panics half-way through a change of the state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Three tasks: one takes what is given, one watches whether the node is cut off, and one has a session with the engine, and after a
/// failure the next.
async fn attend(
    settings: Arc<Settings>,
    zone: Arc<dyn Zone>,
    door: Arc<Door>,
    log: SharedLogs,
    stop: watch::Receiver<bool>,
) {
    let name = settings.cluster.clone();
    match Member::open(settings, zone, door, log.clone(), stop).await {
        Ok(member) => {
            let member = Rc::new(member);
            let taking = tokio::task::spawn_local(member.clone().take());
            let watching = tokio::task::spawn_local(member.clone().watch());
            sessions(&member).await;
            // They end as soon as they are to stop.
            _ = (taking.await, watching.await);
        }
        Err(failure) => log.write(Level::Error, format_args!("cluster {name}: {failure}")),
    }
}

/// The limits of the cluster, under a name for this run of the node.
async fn limit(
    settings: Arc<Settings>,
    limits: Vec<(Arc<LimitDoor>, Arc<dyn LimitedZone>)>,
    (board, calls): (Arc<Board>, mpsc::Receiver<Call>),
    log: SharedLogs,
    stop: watch::Receiver<bool>,
) {
    let name = settings.cluster.clone();
    let opened = random().map(Issuer).and_then(|node| {
        let ledgers = limits.into_iter().map(|(door, counts)| Ledger::open(&settings, door, counts, node));
        Some((node, ledgers.collect::<Option<Vec<Ledger>>>()?))
    });
    match opened {
        Some((node, ledgers)) => {
            Limiter { settings, node, board, calls, ledgers, log, stop }.run().await;
        }
        None => log.write(Level::Error, format_args!("cluster {name}: {}", Failure::NoRandom)),
    }
}

async fn sessions(member: &Rc<Member>) {
    let mut attempts = Attempts::new();
    while !*member.stop.borrow() {
        let ended = match Session::open(member).await {
            Ok(session) => session.run(&mut attempts).await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = ended {
            member.complain(&failure);
        }
        attempts.rest(&member.stop).await;
    }
    member.lapse();
}
