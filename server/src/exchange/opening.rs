//! A new connection to a server: a place among the worker's connections first, then the connection itself.

use super::destination::Destination;
use crate::worker::Worker;
use millstream_conf::model::Level;
use millstream_net::clock;
use millstream_net::limits::is_out_of_descriptors;
use millstream_net::timer::Deadline;
use millstream_telemetry::metrics::Counter;
use millstream_upstream::{Connection, ExchangeError, Peer};
use std::rc::Rc;
use std::time::Duration;

/// Interval of looking for a free descriptor that others than connections hold.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Waits for a descriptor and connects, both within `timeout`.
pub(super) async fn open(
    worker: &Rc<Worker>,
    destination: &Destination,
    peer: &Peer,
    body: u64,
    timeout: Duration,
) -> Result<Box<Connection>, ExchangeError> {
    let (mut whole, mut pause) = (Deadline::new(), Deadline::new());
    loop {
        let place = match worker.try_upstream() {
            Some(place) => place,
            None => {
                let lacks_descriptors = worker.lacks_descriptors();
                if lacks_descriptors {
                    complain_of_shortage(worker);
                }
                whole.set(whole.at().unwrap_or_else(|| clock::now() + timeout));
                match worker.upstream(&mut whole).await {
                    Some(place) => place,
                    None => return Err(refused(worker, lacks_descriptors)),
                }
            }
        };
        match destination.pool.connect(peer, &destination.dial, body, timeout).await {
            // Files took what was reserved for connections.
            Err(ExchangeError::Connect(error)) if is_out_of_descriptors(&error) => {
                complain_of_shortage(worker);
                let now = clock::now();
                whole.set(whole.at().unwrap_or(now + timeout));
                if whole.at().is_some_and(|end| end <= now) {
                    return Err(ExchangeError::NoDescriptor);
                }
                worker.make_room(now);
                pause.set(now + LOOK_AGAIN);
                pause.passed().await;
            }
            Ok(mut connection) => {
                connection.hold(Box::new(place));
                return Ok(connection);
            }
            Err(error) => return Err(error),
        }
    }
}

fn refused(worker: &Worker, lacks_descriptors: bool) -> ExchangeError {
    worker.metrics.add(Counter::UpstreamConnectionsRefused, 1);
    if lacks_descriptors {
        return ExchangeError::NoDescriptor;
    }
    if worker.may_complain(clock::now()) {
        let generation = worker.generation();
        let wanted = generation.shared.configuration.main.worker_connections;
        let what = format!(
            "{wanted} worker_connections are not enough for connections to upstreams, requests get 503"
        );
        generation.shared.logs.main.write(Level::Warn, format_args!("{what}"));
        generation.shared.recorder.note_shortage(&what);
    }
    ExchangeError::NoPlace
}

fn complain_of_shortage(worker: &Worker) {
    if worker.may_complain(clock::now()) {
        let log = &worker.generation().shared.logs.main;
        log.write(
            Level::Crit,
            format_args!(
                "the limit of open files is reached, requests are waiting for connections to upstreams: \
                raise worker_rlimit_nofile"
            ),
        );
    }
}
