//! The thread that checks the health of upstream servers, for all workers.
//!
//! It is started by the first configuration that has checks, after privileges are dropped, and takes over those of each
//! configuration that is put in force. Next: `millstream-server`'s `health`, what it does.

use crate::panic_log;
use millstream_conf::model::Level;
use millstream_server::generation::{Generation, Shared};
use millstream_server::health;
use millstream_server::worker::Worker;
use millstream_telemetry::log_writer::LogWriter;
use millstream_telemetry::metrics::Registry;
use std::sync::Arc;
use tokio::runtime::LocalOptions;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// `None`: no thread yet. At most one message for each reload, so the channel needs no bound.
#[derive(Default)]
pub struct Checker(Option<UnboundedSender<Arc<Shared>>>);

impl Checker {
    /// Replaces the checks by those of this configuration.
    pub fn take_over(&mut self, shared: &Arc<Shared>, log_writer: &Arc<LogWriter>, registry: &Arc<Registry>) {
        if self.0.is_none() && !health::is_wanted(&shared.configuration.http) {
            return;
        }
        let told = self.0.as_ref().is_some_and(|thread| thread.send(shared.clone()).is_ok());
        if !told {
            self.0 = start(shared.clone(), log_writer.clone(), registry.clone());
        }
    }
}

fn start(
    shared: Arc<Shared>,
    log_writer: Arc<LogWriter>,
    registry: Arc<Registry>,
) -> Option<UnboundedSender<Arc<Shared>>> {
    let (orders, receiver) = unbounded_channel();
    let log = shared.logs.main.clone();
    let serve = move || {
        let mut building = tokio::runtime::Builder::new_current_thread();
        match building.enable_all().build_local(LocalOptions::default()) {
            Ok(runtime) => runtime.block_on(check(shared, &log_writer, &registry, receiver)),
            Err(error) => {
                shared
                    .logs
                    .main
                    .write(Level::Emerg, format_args!("health checks: cannot create an event loop: {error}"));
            }
        }
    };
    match std::thread::Builder::new().name("health".into()).spawn(serve) {
        Ok(_) => Some(orders),
        Err(error) => {
            log.write(Level::Emerg, format_args!("health checks: cannot start a thread: {error}"));
            None
        }
    }
}

async fn check(
    mut shared: Arc<Shared>,
    log_writer: &Arc<LogWriter>,
    registry: &Registry,
    mut orders: UnboundedReceiver<Arc<Shared>>,
) {
    let metrics = registry.worker();
    panic_log::count_in(metrics.clone());
    loop {
        // Requests of checks are made as a worker makes them; this one never has a client.
        let worker = Worker::new(metrics.clone(), log_writer.clone(), Generation::new(shared));
        let checks = health::start(worker);
        let next = orders.recv().await;
        checks.abort();
        match next {
            Some(next) => shared = next,
            None => return,
        }
    }
}
