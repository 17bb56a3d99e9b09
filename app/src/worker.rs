//! A worker thread: its loop, its accepting, its once-a-second chores, what the main thread tells it.
//!
//! A request lives and dies on one such thread. Commands come as messages; nothing else crosses threads but what
//! [`Shared`] holds.

use millstream_cache::Now;
use millstream_conf::model::{Level, ListenAddress};
use millstream_net::listener::{Acceptor, Listening};
use millstream_net::timer::Deadline;
use millstream_net::clock;
use millstream_server::connection;
use millstream_server::generation::{Generation, Shared};
use millstream_server::worker::{Stage, Worker};
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
    let thread = std::thread::Builder::new().name(format!("worker {}", start.spread.index)).spawn(move || {
        let Start { shared, listenings, spread, metrics, log_writer, ended } = start;
        let runtime = match building.build_local(LocalOptions::default()) {
            Ok(runtime) => runtime,
            Err(error) => {
                shared.main_log.write(Level::Emerg, format_args!("a worker has no event loop: {error}"));
                return ended();
            }
        };
        runtime.block_on(async {
            let worker = Worker::new(spread.index, metrics, log_writer, Generation::new(shared));
            run(&worker, listenings, spread, receiver).await;
        });
        // Tasks that are left (detached refreshes, abandoned connections) end here, and their log buffers with them.
        drop(runtime);
        ended();
    })?;
    Ok(Handle { orders, thread })
}

async fn run(
    worker: &Rc<Worker>,
    listenings: Arc<[Arc<Listening>]>,
    spread: Spread,
    mut orders: UnboundedReceiver<Order>,
) {
    let mut accepting = accept_on(worker, &listenings, spread);
    let chores = tokio::task::spawn_local(chores(worker.clone()));
    tend_pools(&worker.generation());
    while let Some(order) = orders.recv().await {
        match order {
            Order::Serve(shared, listenings, spread) => {
                let generation = Generation::new(shared);
                tend_pools(&generation);
                worker.replace_generation(generation);
                // The old acceptors end; the sockets stay, so what is queued on them is accepted by the new ones.
                accepting = accept_on(worker, &listenings, spread);
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
            Ok((stream, remote)) => {
                let place = worker.admit().await;
                let serving = connection::serve(worker.clone(), place, stream, remote, address.clone());
                tokio::task::spawn_local(serving);
            }
            Err(error) => {
                let log = &worker.generation().shared.main_log;
                log.write(Level::Crit, format_args!("accept() failed ({error}), waiting for descriptors"));
                pause.set(clock::now() + ACCEPT_PAUSE);
                pause.passed().await;
            }
        }
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
