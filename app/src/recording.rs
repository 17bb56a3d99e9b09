//! The thread that looks at the figures once a second, for the dashboard and `millstream top`.
//!
//! It is started by the first configuration that has a dashboard or a control socket, after privileges are dropped, and goes on with each that is put in
//! force. Next: `millstream-server`'s `recorder`, which keeps what it saw.

use millstream_admin::tables;
use millstream_conf::model::Level;
use millstream_net::clock;
use millstream_server::generation::Shared;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// `None`: no thread yet. Dropping it ends the thread.
#[derive(Default)]
pub struct Recording(Option<Sender<Arc<Shared>>>);

impl Recording {
    pub fn take_over(&mut self, shared: &Arc<Shared>) {
        let configuration = &shared.configuration;
        let is_seen = configuration.http.dashboard.is_some() || configuration.main.control_socket.is_some();
        if self.0.is_none() && !is_seen {
            return;
        }
        let told = self.0.as_ref().is_some_and(|thread| thread.send(shared.clone()).is_ok());
        if !told {
            self.0 = start(shared.clone());
        }
    }
}

fn start(shared: Arc<Shared>) -> Option<Sender<Arc<Shared>>> {
    let (orders, receiver) = channel();
    let log = shared.logs.main.clone();
    let record = move || {
        record(shared, &receiver);
    };
    match std::thread::Builder::new().name("recorder".into()).spawn(record) {
        Ok(_) => Some(orders),
        Err(error) => {
            log.write(
                Level::Error,
                format_args!("dashboard: cannot start a thread for the history: {error}"),
            );
            None
        }
    }
}

fn record(mut shared: Arc<Shared>, orders: &Receiver<Arc<Shared>>) {
    let mut due = clock::now();
    loop {
        shared.recorder.record(&shared.registry, clock::wall().seconds, || tables(&shared));
        due += SECOND;
        loop {
            match orders.recv_timeout(due.saturating_duration_since(clock::now())) {
                Ok(next) => shared = next,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        // After a machine has slept, what it missed is not made up for.
        due = due.max(clock::now() - SECOND);
    }
}
