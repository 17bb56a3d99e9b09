//! What a worker accepts on: a task for each of its listening sockets, and how they end.
//!
//! A worker holds duplicates of sockets here and nowhere else: once this has ended, a socket that nobody else holds is
//! closed and the kernel refuses whoever connects. Next: `server`'s `connection`, which serves what was accepted.

use millstream_conf::model::{Level, ListenAddress, Main, WorkerProcesses};
use millstream_net::listener::{Acceptor, Listening};
use millstream_net::stream::Stream;
use millstream_net::timer::Deadline;
use millstream_net::{Address, clock, cores};
use millstream_server::connection;
use millstream_server::worker::{ConnectionSlot, Worker};
use millstream_telemetry::error_log::SystemError;
use millstream_telemetry::metrics::Counter;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// After running out of descriptors a worker accepts again after this long, as nginx does.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);
/// Connections taken off the queue of a socket before it is closed: no queue is longer as systems come (`somaxconn`).
const LAST_ACCEPTED: usize = 4096;

/// A worker's number among how many.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    /// From 0.
    pub index: usize,
    /// At least 1.
    pub workers: usize,
}

/// How many workers are configured; each address has a listening socket for each.
pub fn workers(main: &Main) -> usize {
    match main.worker_processes {
        WorkerProcesses::Number(number) => number.max(1) as usize,
        WorkerProcesses::Auto => cores::usable(),
    }
}

/// The sockets that a worker accepts on.
pub struct Accepting {
    worker: Rc<Worker>,
    tasks: JoinSet<()>,
    sockets: Vec<Socket>,
}

#[derive(Clone)]
struct Socket {
    acceptor: Rc<Acceptor>,
    address: Rc<ListenAddress>,
}

impl Accepting {
    /// Begins to accept on a worker's share of the sockets.
    pub fn begin(worker: &Rc<Worker>, listenings: &[Arc<Listening>], spread: Spread) -> Accepting {
        let mut accepting = Accepting { worker: worker.clone(), tasks: JoinSet::new(), sockets: Vec::new() };
        for listening in listenings {
            let address = Rc::new(listening.address().clone());
            match listening.acceptor(spread.index, spread.workers) {
                Ok(acceptors) => accepting.sockets.extend(
                    acceptors
                        .into_iter()
                        .map(|acceptor| Socket { acceptor: Rc::new(acceptor), address: address.clone() }),
                ),
                Err(error) => worker
                    .generation()
                    .shared
                    .main_log
                    .write(Level::Alert, format_args!("a listening socket cannot be watched: {error}")),
            }
        }
        for socket in &accepting.sockets {
            accepting.tasks.spawn_local(accept(worker.clone(), socket.clone()));
        }
        accepting
    }

    /// Lets go of all sockets. Who waits in the queue of one whose address does not stay was told by the kernel that he
    /// is connected, so he is accepted first.
    pub async fn end(mut self, stays: impl Fn(&ListenAddress) -> bool) {
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
        for socket in self.sockets.drain(..).filter(|socket| !stays(&socket.address)) {
            for _ in 0..LAST_ACCEPTED {
                let Ok(Some((stream, remote))) = socket.acceptor.accept_queued() else { break };
                drop(serve(&self.worker, stream, remote, &socket.address));
            }
        }
    }
}

async fn accept(worker: Rc<Worker>, socket: Socket) {
    let mut pause = Deadline::new();
    loop {
        match socket.acceptor.accept().await {
            Ok((stream, remote)) => {
                if let Some(place_found) = serve(&worker, stream, remote, &socket.address) {
                    warn_of_shortage(&worker);
                    // The sender is only ever dropped: that is the message.
                    _ = place_found.await;
                }
            }
            Err(error) => {
                if worker.may_complain(clock::now()) {
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

/// Serves a connection in a task of its own. Where it has to wait for a place, the next one is accepted only when it has
/// it: then the sender of what is given back is dropped.
fn serve(
    worker: &Rc<Worker>,
    stream: Stream,
    remote: Address,
    address: &Rc<ListenAddress>,
) -> Option<oneshot::Receiver<()>> {
    let (worker, address) = (worker.clone(), address.clone());
    if let Some(place) = worker.try_admit() {
        begin(worker, place, stream, remote, address);
        return None;
    }
    let (admitted, place_found) = oneshot::channel();
    // A task of its own here as well: a reload ends the accepting one, and what was accepted must not go with it.
    tokio::task::spawn_local(async move {
        let place = worker.admit().await;
        drop(admitted);
        begin(worker, place, stream, remote, address);
    });
    Some(place_found)
}

fn begin(
    worker: Rc<Worker>,
    place: ConnectionSlot,
    stream: Stream,
    remote: Address,
    address: Rc<ListenAddress>,
) {
    let ends_by = place.ends_by();
    let task = connection::serve(worker, place, stream, remote, address);
    if let Some(ends_by) = ends_by {
        // It has not begun yet, so its place is still its own.
        ends_by(task);
    }
}

/// Says that connections wait, once in a while.
fn warn_of_shortage(worker: &Worker) {
    worker.metrics.add(Counter::ConnectionsWaited, 1);
    if !worker.may_complain(clock::now()) {
        return;
    }
    let generation = worker.generation();
    let (bound, wanted) =
        (generation.shared.bounds.clients, generation.shared.configuration.main.worker_connections);
    let what = match bound < wanted as usize {
        true => format!(
            "the limit of open files allows {bound} of {wanted} worker_connections, closing the connections that have waited longest"
        ),
        false => {
            format!(
                "{wanted} worker_connections are not enough, closing the connections that have been idle longest"
            )
        }
    };
    generation.shared.main_log.write(Level::Warn, format_args!("{what}"));
    generation.shared.recorder.note_shortage(&what);
}
