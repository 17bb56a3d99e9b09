//! Tells the service manager that we live, as long as every worker's loop turns.
//!
//! A thread of its own asks the workers, since the main thread waits for signals only, and a process whose loops all stand
//! would still have an idle thread to say that it lives. Without a manager that waits for it there is no thread. Before: `worker`.

use crate::worker::{Handle, Order};
use millstream_conf::model::Level;
use millstream_net::systemd::{self, Word};
use millstream_telemetry::error_log::ErrorLogs;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

#[derive(Default)]
struct Watched {
    workers: Vec<UnboundedSender<Order>>,
    log: ErrorLogs,
}

/// `None`: the service manager expects no keep-alive.
pub struct Watchdog(Option<Arc<Mutex<Watched>>>);

impl Watchdog {
    pub fn start() -> io::Result<Watchdog> {
        // At half of the time, as sd_watchdog_enabled(3) advises.
        let Some(pause) = systemd::watchdog().map(|time| time / 2) else { return Ok(Watchdog(None)) };
        let watched = Arc::new(Mutex::new(Watched::default()));
        let asked = Arc::downgrade(&watched);
        thread::Builder::new().name("watchdog".into()).spawn(move || {
            while let Some(watched) = asked.upgrade() {
                if all_answer(&watched, pause) {
                    systemd::say(Word::Alive);
                    drop(watched);
                    thread::park_timeout(pause);
                }
            }
        })?;
        Ok(Watchdog(Some(watched)))
    }

    pub fn watch(&self, workers: &[Handle], log: &ErrorLogs) {
        if let Some(watched) = &self.0 {
            let workers = workers.iter().map(|handle| handle.orders.clone()).collect();
            *watched.lock().unwrap_or_else(PoisonError::into_inner) = Watched { workers, log: log.clone() };
        }
    }
}

/// Whether every loop responds within this time. An ended one counts as responding.
fn all_answer(watched: &Mutex<Watched>, within: Duration) -> bool {
    let (done, answered) = channel();
    let log = {
        let watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        for orders in &watched.workers {
            _ = orders.send(Order::Answer(done.clone()));
        }
        watched.log.clone()
    };
    drop(done);
    match answered.recv_timeout(within) {
        Ok(()) | Err(RecvTimeoutError::Disconnected) => true,
        Err(RecvTimeoutError::Timeout) => {
            log.write(
                Level::Alert,
                format_args!("the event loop of a worker has been blocked for {within:?}"),
            );
            false
        }
    }
}
