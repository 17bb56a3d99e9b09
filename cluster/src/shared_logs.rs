//! The error logs of a cluster, which outlives reloads: each may give it others.
//!
//! Next: `bus`, which has it.

use millstream_conf::model::Level;
use millstream_telemetry::error_log::ErrorLogs;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Clone, Default)]
pub(crate) struct SharedLogs(Arc<Mutex<ErrorLogs>>);

impl SharedLogs {
    pub(crate) fn change(&self, logs: ErrorLogs) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = logs;
    }

    pub(crate) fn write(&self, level: Level, message: fmt::Arguments<'_>) {
        let logs = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        logs.write(level, message);
    }
}
