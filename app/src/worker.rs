//! A worker thread: its loop, its once-a-second chores, what the main thread tells it.
//!
//! A request lives and dies on one such thread. Commands come as messages; nothing else crosses threads but what
//! [`Shared`] holds. Next: `accepting`.

use crate::accepting::{Accepting, Spread};
use crate::panic_log;
use millstream_cache::Now;
use millstream_conf::model::Level;
use millstream_net::clock;
use millstream_net::listener::Listening;
use millstream_net::timer::{Deadline, pause, within};
use millstream_server::connection;
use millstream_server::generation::{Generation, Shared};
use millstream_server::loop_lag;
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

/// Dropped when the order is done; for [`Order::Serve`] and [`Order::Drain`] when this worker has closed the
/// removed sockets.
pub type Done = std::sync::mpsc::Sender<()>;

/// At most a few per signal, so the channel needs no bound.
pub enum Order {
    Serve(Arc<Shared>, Arc<[Arc<Listening>]>, Spread, Done),
    Answer(Done),
    Flush(Done),
    /// Accept no more, finish what is in progress, then end.
    Drain(Done),
    Stop,
}

const CHORES: Duration = Duration::from_secs(1);

/// Longest wait of a fast stop for its connections.
const LAST_LINES: Duration = Duration::from_millis(50);

pub struct Handle {
    pub orders: UnboundedSender<Order>,
    pub thread: JoinHandle<()>,
}

pub struct Start {
    pub shared: Arc<Shared>,
    pub listenings: Arc<[Arc<Listening>]>,
    pub spread: Spread,
    pub metrics: Arc<WorkerMetrics>,
    pub log_writer: Arc<LogWriter>,
    /// Called when the worker's thread has ended.
    pub ended: Box<dyn FnOnce() + Send>,
}

pub fn start(start: Start) -> io::Result<Handle> {
    let (orders, receiver) = unbounded_channel();
    let mut building = tokio::runtime::Builder::new_current_thread();
    building.enable_all().on_thread_unpark(loop_lag::waited);
    let thread =
        std::thread::Builder::new().name(format!("worker {}", start.spread.index)).spawn(move || {
            let Start { shared, listenings, spread, metrics, log_writer, ended } = start;
            let _ended = Ended(Some(ended));
            panic_log::count_in(metrics.clone());
            let runtime = match building.build_local(LocalOptions::default()) {
                Ok(runtime) => runtime,
                Err(error) => {
                    shared.logs.main.write(
                        Level::Emerg,
                        format_args!("cannot create the event loop of a worker: {error}"),
                    );
                    return;
                }
            };
            loop_lag::watch(runtime.metrics(), metrics.clone());
            runtime.block_on(async {
                let worker = Worker::new(metrics, log_writer, Generation::new(shared));
                run(&worker, listenings, spread, receiver).await;
            });
            // Tasks that are left (detached refreshes, abandoned connections) end here, and their log buffers with them.
            drop(runtime);
        })?;
    Ok(Handle { orders, thread })
}

/// Reports the thread's end, by a panic too.
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
    let mut accepting = Accepting::begin(worker, &listenings, spread);
    // The main thread decides how long an address stays open.
    drop(listenings);
    let chores = tokio::task::spawn_local(go_on_with_chores(worker.clone()));
    tend_pools(&worker.generation());
    while let Some(order) = orders.recv().await {
        match order {
            Order::Serve(shared, listenings, spread, done) => {
                // What is queued on a socket that stays is accepted by its next acceptor.
                let stays = |address: &_| listenings.iter().any(|listening| listening.address() == address);
                accepting.end(stays).await;
                let (generation, before) = (Generation::new(shared), worker.generation());
                tend_pools(&generation);
                if let Some(timeout) = before.shared.configuration.main.worker_shutdown_timeout {
                    tokio::task::spawn_local(end_old(
                        worker.clone(),
                        timeout,
                        generation.shared.edition.number,
                    ));
                }
                drop(before);
                worker.replace_generation(generation);
                connection::clear_spare();
                accepting = Accepting::begin(worker, &listenings, spread);
                drop(listenings);
                drop(done);
            }
            Order::Answer(done) => drop(done),
            Order::Flush(done) => {
                flush_logs(worker);
                drop(done);
            }
            Order::Drain(done) => {
                accepting.end(|_| false).await;
                drop(done);
                worker.stop(Stage::Draining);
                let emptied = worker.until_empty();
                tokio::select! {
                    () = emptied => {}
                    _ = next_stop(&mut orders) => {}
                }
                return finish(worker, chores).await;
            }
            Order::Stop => break,
        }
    }
    drop(accepting);
    finish(worker, chores).await;
}

/// Waits for connections that end as soon as they are told, so that their requests are logged.
async fn finish(worker: &Worker, chores: tokio::task::JoinHandle<()>) {
    chores.abort();
    worker.stop(Stage::Stopping);
    _ = within(LAST_LINES, worker.until_empty()).await;
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

async fn end_old(worker: Rc<Worker>, timeout: Duration, number: u64) {
    pause(timeout).await;
    worker.end_those_before(number);
}

fn tend_pools(generation: &Generation) {
    for upstream in &generation.upstreams {
        tokio::task::spawn_local(millstream_upstream::Pool::tend(Rc::downgrade(upstream.pool())));
    }
}

/// Restarts chores after a panic: logs would never be flushed otherwise.
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
        for upstream in &generation.upstreams {
            upstream.look();
        }
        for store in &generation.shared.zones.stores {
            store.maintain_when_due(Now::read());
        }
        drop(generation);
        next.set(due);
        next.passed().await;
    }
}
