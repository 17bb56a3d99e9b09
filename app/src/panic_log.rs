//! A panic ends one connection, or one thread's task; here it becomes a line in the main error log and a count.
//!
//! The hook must never panic or wait: it runs while the stack of whoever panicked still stands.

use arc_swap::ArcSwapOption;
use millstream_conf::model::Level;
use millstream_telemetry::error_log::ErrorLogs;
use millstream_telemetry::metrics::{Counter, Registry, WorkerMetrics};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, PanicHookInfo};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

#[cfg(test)]
mod tests;

/// The log changes with every reload.
static LOG: ArcSwapOption<ErrorLogs> = ArcSwapOption::const_empty();
/// For threads without their own counters.
static OTHERS: OnceLock<Mutex<Arc<WorkerMetrics>>> = OnceLock::new();

thread_local! {
    /// Written by this thread only.
    static METRICS: RefCell<Option<Arc<WorkerMetrics>>> = const { RefCell::new(None) };
}

/// Once per process.
pub fn install(registry: &Registry) {
    if OTHERS.set(Mutex::new(registry.worker())).is_ok() {
        panic::set_hook(Box::new(told));
    }
}

pub fn tell(log: &ErrorLogs) {
    LOG.store(Some(Arc::new(log.clone())));
}

/// Counts panics of the calling thread in its own cells.
pub fn count_in(metrics: Arc<WorkerMetrics>) {
    METRICS.set(Some(metrics));
}

fn told(info: &PanicHookInfo<'_>) {
    count();
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let message = message(info.payload());
    match &*LOG.load() {
        Some(log) => log.write(
            Level::Alert,
            format_args!("panic in thread \"{name}\" at {place}: {message}; the connection or task was aborted, the process continues"),
        ),
        None => eprintln!("millstream: [alert] panic in thread \"{name}\" at {place}: {message}"),
    }
}

fn count() {
    // A panic while the thread's own storage is taken down is counted with the others.
    let own = METRICS.try_with(|metrics| {
        let metrics = metrics.try_borrow().ok()?;
        metrics.as_ref().map(|metrics| metrics.add(Counter::Panics, 1))
    });
    if !matches!(own, Ok(Some(())))
        && let Some(others) = OTHERS.get()
    {
        others.lock().unwrap_or_else(PoisonError::into_inner).add(Counter::Panics, 1);
    }
}

fn message(payload: &dyn Any) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        return text;
    }
    payload.downcast_ref::<String>().map_or("no message", String::as_str)
}
