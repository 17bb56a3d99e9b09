//! A thread for work beside requests, with an event loop of its own, which is told of each new configuration.
//!
//! Next: those who have one: `issuing`, `stapling`, `renewing`.

use crate::panic_log;
use millstream_conf::model::Level;
use millstream_server::generation::Shared;
use std::future::Future;
use std::sync::Arc;
use tokio::runtime::LocalOptions;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The configuration in force. At most one message for each reload, so the channel needs no bound.
pub type Orders = UnboundedSender<Arc<Shared>>;

/// Starts a named thread; `subject` begins the log line if that fails, as in "acme".
pub fn start<F: Future<Output = ()>>(
    (name, subject): (&str, &'static str),
    shared: Arc<Shared>,
    work: impl FnOnce(Arc<Shared>, UnboundedReceiver<Arc<Shared>>) -> F + Send + 'static,
) -> Option<Orders> {
    let (orders, receiver) = unbounded_channel();
    let log = shared.logs.main.clone();
    let serve = move || {
        panic_log::count_in(shared.registry.worker());
        let log = shared.logs.main.clone();
        let mut building = tokio::runtime::Builder::new_current_thread();
        match building.enable_all().build_local(LocalOptions::default()) {
            Ok(runtime) => runtime.block_on(work(shared, receiver)),
            Err(error) => {
                log.write(Level::Emerg, format_args!("{subject}: cannot create an event loop: {error}"))
            }
        }
    };
    match std::thread::Builder::new().name(name.into()).spawn(serve) {
        Ok(_) => Some(orders),
        Err(error) => {
            log.write(Level::Emerg, format_args!("{subject}: cannot start a thread: {error}"));
            None
        }
    }
}
