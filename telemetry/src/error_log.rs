//! The error log: which of a location's logs want a message, and the macro that asks before it formats.
//!
//! The line's form is `error_line`'s; the caller brings the message, and what is known of whom it is about.
//! Next: `log_writer`, which takes the lines.

#[cfg(test)]
mod tests;

use crate::about::About;
use crate::error_line::Telling;
use crate::log_writer::LogSink;
use crate::recent_errors::RecentErrors;
use crate::syslog::Header;
use millstream_conf::model::{ErrorForm, Level};
use std::fmt;
use std::sync::Arc;

pub use crate::error_line::SystemError;
pub use crate::local_time::{LocalTime, set_clock};

/// The error logs of one place in the configuration. Cloning is cheap; the default logs nothing.
#[derive(Debug, Clone, Default)]
pub struct ErrorLogs {
    logs: Arc<[LeveledLog]>,
    least: Option<Level>,
    recent: Option<Arc<RecentErrors>>,
}

#[derive(Debug, Clone)]
pub struct LeveledLog {
    pub sink: LogSink,
    pub level: Level,
    pub form: ErrorForm,
    pub header: Option<Header>,
}

impl ErrorLogs {
    pub fn new(logs: Vec<LeveledLog>) -> Self {
        let least = logs.iter().map(|log| log.level).max();
        ErrorLogs { logs: logs.into(), least, recent: None }
    }

    /// The same, keeping its lines of `error` and worse there too.
    #[must_use]
    pub fn kept_in(self, recent: &Arc<RecentErrors>) -> Self {
        ErrorLogs { recent: Some(Arc::clone(recent)), ..self }
    }

    #[inline]
    pub fn enabled(&self, level: Level) -> bool {
        self.least.is_some_and(|least| level <= least)
    }

    /// Writes `YYYY/MM/DD HH:MM:SS [level] pid#tid: message` to every log of that level, or an object to JSON
    /// logs. At most 2,048 bytes as in nginx; control characters become `\\xXX`, secrets `***`.
    pub fn write(&self, level: Level, message: fmt::Arguments<'_>) {
        self.tell(level, message, About::default);
    }

    /// For a connection or a request: `*connection message, client: …, server: …`. `about` is called only if
    /// the level is enabled.
    pub fn tell(&self, level: Level, message: fmt::Arguments<'_>, about: impl FnOnce() -> About) {
        if !self.enabled(level) {
            return;
        }
        let told = Telling::new(level, message, about());
        if let Some(recent) = self.recent.as_ref().filter(|_| level <= Level::Error) {
            recent.keep(&told.line(ErrorForm::Text));
        }
        for log in self.logs.iter().filter(|log| level <= log.level) {
            let mut line = Vec::new();
            if let Some(header) = &log.header {
                header.begin_error(level, &mut line);
            }
            line.extend_from_slice(&told.line(log.form));
            log.sink.append(&line);
        }
    }
}

/// Writes a formatted message to [`ErrorLogs`], evaluating its arguments only where somebody wants the level.
///
/// ```
/// # use millstream_telemetry::{error_log::ErrorLogs, log_error};
/// # use millstream_conf::model::Level;
/// # let logs = ErrorLogs::default();
/// log_error!(logs, Level::Error, "*{} upstream timed out", 7);
/// ```
#[macro_export]
macro_rules! log_error {
    ($logs:expr, $level:expr, $($message:tt)+) => {{
        let (logs, level): (&$crate::error_log::ErrorLogs, _) = (&$logs, $level);
        if logs.enabled(level) {
            logs.write(level, ::core::format_args!($($message)+));
        }
    }};
}
