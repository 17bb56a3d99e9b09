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

/// Pause after running out of descriptors, as nginx.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);
/// Connections accepted from a socket before it is closed: with the default `somaxconn` no queue is longer.
const LAST_ACCEPTED: usize = 4096;

#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub index: usize,
    pub workers: usize,
}

/// Each address has one listening socket per worker.
pub fn workers(main: &Main) -> usize {
    match main.worker_processes {
        WorkerProcesses::Number(number) => number.max(1) as usize,
        WorkerProcesses::Auto => cores::usable(),
    }
}

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
                    .logs
                    .main
                    .write(Level::Alert, format_args!("cannot watch a listening socket: {error}")),
            }
        }
        for socket in &accepting.sockets {
            accepting.tasks.spawn_local(accept(worker.clone(), socket.clone()));
        }
        accepting
    }

    /// Closes all sockets. Clients in the queue of an address that goes away count as connected to the
    /// kernel, so they are accepted first.
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
                    let log = &worker.generation().shared.logs.main;
                    let error = SystemError(&error);
                    log.write(
                        Level::Crit,
                        format_args!("accept() failed {error}, closing idle connections and trying again"),
                    );
                }
                worker.make_room(clock::now());
                pause.set(clock::now() + ACCEPT_PAUSE);
                pause.passed().await;
            }
        }
    }
}

/// Serves a connection in its own task. If it must wait for a slot, the next one is accepted only once it has
/// one: then the sender of the returned receiver is dropped.
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
    generation.shared.logs.main.write(Level::Warn, format_args!("{what}"));
    generation.shared.recorder.note_shortage(&what);
}
