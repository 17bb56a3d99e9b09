//! What a cache's disk has to say, and how often it may: an operator is to hear of a failing disk, not of each request that met it.
//!
//! Next: `kept` and `write`, which complain.

use super::lock;
use millstream_conf::model::Level;
use millstream_net::clock;
use millstream_telemetry::error_log::ErrorLogs;
use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const QUIET: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Complaints(Mutex<Quiet>);

#[derive(Debug, Default)]
struct Quiet {
    logs: ErrorLogs,
    until: Option<Instant>,
    unsaid: u64,
}

impl Complaints {
    pub(super) fn set_logs(&self, logs: ErrorLogs) {
        lock(&self.0).logs = logs;
    }

    /// Logs something that is no failure.
    pub(super) fn tell(&self, root: &Path, message: fmt::Arguments<'_>) {
        let logs = lock(&self.0).logs.clone();
        logs.write(Level::Notice, format_args!("cache \"{}\": {message}", root.display()));
    }

    /// At most once a minute.
    pub(super) fn report(&self, root: &Path, message: fmt::Arguments<'_>) {
        let now = clock::now();
        let mut quiet = lock(&self.0);
        if quiet.until.is_some_and(|until| now < until) {
            quiet.unsaid += 1;
            return;
        }
        quiet.until = now.checked_add(QUIET);
        let (logs, unsaid) = (quiet.logs.clone(), std::mem::take(&mut quiet.unsaid));
        drop(quiet);
        let before = match unsaid {
            0 => String::new(),
            count => format!(" ({count} similar messages before)"),
        };
        logs.write(Level::Crit, format_args!("cache \"{}\": {message}{before}", root.display()));
    }
}
