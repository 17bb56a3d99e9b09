//! A worker thread: its loop, its accepting, its once-a-second chores, what the main thread tells it.
//!
//! A request lives and dies on one such thread. Commands come as messages; nothing else crosses threads but what
//! [`Shared`] holds.

use crate::panic_log;
use millstream_cache::Now;
use millstream_conf::model::{Level, ListenAddress, Main, WorkerProcesses};
use millstream_net::listener::{Acceptor, Listening};
use millstream_net::timer::Deadline;
use millstream_net::{clock, cores, privileges};
use millstream_server::connection;
use millstream_server::generation::{Generation, Shared};
use millstream_server::worker::{Stage, Worker};
use millstream_telemetry::error_log::SystemError;
use millstream_telemetry::log_writer::LogWriter;
use millstream_telemetry::metrics::WorkerMetrics;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::LocalOptions;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

/// What the main thread tells a worker. At most a few per signal, so the channel needs no bound.
pub enum Order {
    /// Serve with this configuration, accept on these sockets.
    Serve(Arc<Shared>, Arc<[Arc<Listening>]>, Spread),
    /// Send on the log lines that wait in buffers; the sender is dropped when that is done.
    Flush(std::sync::mpsc::Sender<()>),
    /// Finish what is in progress, then end.
    Drain,
    /// End now.
    Stop,
}

/// A worker's number among how many.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    /// From 0.
    pub index: usize,
    /// At least 1.
    pub workers: usize,
}

/// How often a worker looks after its caches, pools and log buffers.
const CHORES: Duration = Duration::from_secs(1);
/// After running out of descriptors a worker accepts again after this long, as nginx does.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);
/// Between two lines about a shortage of connections or descriptors.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(10);

/// How many workers are configured; each address has a listening socket for each.
pub fn count(main: &Main) -> usize {
    match main.worker_processes {
        WorkerProcesses::Number(number) => number.max(1) as usize,
        WorkerProcesses::Auto => cores::usable(),
    }
}

/// A running worker as the main thread sees it.
pub struct Handle {
    /// Where its orders go.
    pub orders: UnboundedSender<Order>,
    /// Its thread.
    pub thread: JoinHandle<()>,
}

/// What a worker begins with.
pub struct Start {
    /// The configuration.
    pub shared: Arc<Shared>,
    /// The sockets.
    pub listenings: Arc<[Arc<Listening>]>,
    /// Its number.
    pub spread: Spread,
    /// Its counters.
    pub metrics: Arc<WorkerMetrics>,
    /// The log thread.
    pub log_writer: Arc<LogWriter>,
    /// Told when the worker's thread has ended.
    pub ended: Box<dyn FnOnce() + Send>,
}

/// Starts a worker's thread.
///
/// # Errors
/// Where the system gives no thread.
pub fn start(start: Start) -> io::Result<Handle> {
    let (orders, receiver) = unbounded_channel();
    let mut building = tokio::runtime::Builder::new_current_thread();
    building.enable_all();
    let thread =
        std::thread::Builder::new().name(format!("worker {}", start.spread.index)).spawn(move || {
            let Start { shared, listenings, spread, metrics, log_writer, ended } = start;
            let _ended = Ended(Some(ended));
            if let Err(error) = privileges::renounce() {
                shared.main_log.write(Level::Alert, format_args!("worker {}: {error}", spread.index));
            }
            panic_log::count_in(metrics.clone());
            let runtime = match building.build_local(LocalOptions::default()) {
                Ok(runtime) => runtime,
                Err(error) => {
                    shared.main_log.write(Level::Emerg, format_args!("a worker has no event loop: {error}"));
                    return;
                }
            };
            runtime.block_on(async {
                let worker = Worker::new(spread.index, metrics, log_writer, Generation::new(shared));
                run(&worker, listenings, spread, receiver).await;
            });
            // Tasks that are left (detached refreshes, abandoned connections) end here, and their log buffers with them.
            drop(runtime);
        })?;
    Ok(Handle { orders, thread })
}

/// Tells that the thread ends, also where a panic ends it.
struct Ended(Option<Box<dyn FnOnce() + Send>>);

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(ended) = self.0.take() {
            ended();
        }
    }
}

async fn run(
    worker: &Rc<Worker>,
    listenings: Arc<[Arc<Listening>]>,
    spread: Spread,
    mut orders: UnboundedReceiver<Order>,
) {
    let mut accepting = accept_on(worker, &listenings, spread);
    let chores = tokio::task::spawn_local(go_on_with_chores(worker.clone()));
    tend_pools(&worker.generation());
    while let Some(order) = orders.recv().await {
        match order {
            Order::Serve(shared, listenings, spread) => {
                let generation = Generation::new(shared);
                tend_pools(&generation);
                worker.replace_generation(generation);
                connection::clear_spare();
                // The old acceptors end; the sockets stay, so what is queued on them is accepted by the new ones.
                accepting = accept_on(worker, &listenings, spread);
            }
            Order::Flush(done) => {
                flush_logs(worker);
                drop(done);
            }
            Order::Drain => {
                accepting.abort_all();
                while accepting.join_next().await.is_some() {}
                worker.stop(Stage::Draining);
                let emptied = worker.until_empty();
                tokio::select! {
                    () = emptied => break,
                    _ = next_stop(&mut orders) => {}
                }
                break;
            }
            Order::Stop => break,
        }
    }
    accepting.abort_all();
    chores.abort();
    worker.stop(Stage::Stopping);
    connection::clear_spare();
    flush_logs(worker);
}

fn flush_logs(worker: &Worker) {
    for log in &worker.generation().logs {
        log.borrow_mut().flush();
    }
}

async fn next_stop(orders: &mut UnboundedReceiver<Order>) {
    while let Some(order) = orders.recv().await {
        if matches!(order, Order::Stop) {
            return;
        }
    }
}

/// Each pool watches its idle connections until it is dropped.
fn tend_pools(generation: &Generation) {
    for pool in &generation.pools {
        tokio::task::spawn_local(millstream_upstream::Pool::tend(Rc::downgrade(pool)));
    }
}

fn accept_on(worker: &Rc<Worker>, listenings: &[Arc<Listening>], spread: Spread) -> JoinSet<()> {
    let mut accepting = JoinSet::new();
    for listening in listenings {
        match listening.acceptor(spread.index, spread.workers) {
            Ok(acceptors) => {
                for acceptor in acceptors {
                    let address = Rc::new(listening.address().clone());
                    accepting.spawn_local(accept(worker.clone(), acceptor, address));
                }
            }
            Err(error) => worker
                .generation()
                .shared
                .main_log
                .write(Level::Alert, format_args!("a listening socket cannot be watched: {error}")),
        }
    }
    accepting
}

async fn accept(worker: Rc<Worker>, acceptor: Acceptor, address: Rc<ListenAddress>) {
    let mut pause = Deadline::new();
    loop {
        match acceptor.accept().await {
            Ok((stream, remote)) => match worker.try_admit() {
                Some(place) => {
                    let serving = connection::serve(worker.clone(), place, stream, remote, address.clone());
                    tokio::task::spawn_local(serving);
                }
                None => {
                    warn_of_shortage(&worker);
                    let (worker, address) = (worker.clone(), address.clone());
                    // A task of its own: a reload ends this one, and what was accepted must not go with it. The next
                    // connection is accepted only when this one has its place.
                    let (admitted, place_found) = tokio::sync::oneshot::channel::<()>();
                    tokio::task::spawn_local(async move {
                        let place = worker.admit().await;
                        drop(admitted);
                        connection::serve(worker.clone(), place, stream, remote, address).await;
                    });
                    // The sender is only ever dropped: that is the message.
                    _ = place_found.await;
                }
            },
            Err(error) => {
                if worker.may_complain(clock::now(), COMPLAINT_PAUSE) {
                    let log = &worker.generation().shared.main_log;
                    let error = SystemError(&error);
                    log.write(
                        Level::Crit,
                        format_args!("accept() failed {error}, closing what idles and trying again"),
                    );
                }
                worker.make_room(clock::now());
                pause.set(clock::now() + ACCEPT_PAUSE);
                pause.passed().await;
            }
        }
    }
}

/// Says that connections wait, once in a while.
fn warn_of_shortage(worker: &Worker) {
    if !worker.may_complain(clock::now(), COMPLAINT_PAUSE) {
        return;
    }
    let shared = &worker.generation().shared;
    let limit = shared.configuration.main.worker_connections;
    shared.main_log.write(
        Level::Warn,
        format_args!("{limit} worker_connections are not enough, closing the connections that idle longest"),
    );
}

/// Chores that panic are begun anew: logs would never be flushed again otherwise.
async fn go_on_with_chores(worker: Rc<Worker>) {
    let mut pause = Deadline::new();
    loop {
        let mut round = JoinSet::new();
        round.spawn_local(chores(worker.clone()));
        _ = round.join_next().await;
        pause.set(clock::now() + CHORES);
        pause.passed().await;
    }
}

/// Flushes logs that are due and looks after the caches.
async fn chores(worker: Rc<Worker>) {
    let mut next = Deadline::new();
    loop {
        let generation = worker.generation();
        let now = clock::now();
        let mut due = now + CHORES;
        for log in &generation.logs {
            let mut log = log.borrow_mut();
            match log.due() {
                Some(at) if at <= now => log.flush(),
                Some(at) => due = due.min(at),
                None => {}
            }
        }
        for front in &generation.fronts {
            front.borrow_mut().sweep();
        }
        if worker.index == 0 {
            for store in &generation.shared.stores {
                store.maintain(Now::read());
            }
        }
        drop(generation);
        next.set(due);
        next.passed().await;
    }
}
