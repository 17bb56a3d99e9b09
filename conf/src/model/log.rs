//! Logs: files, formats, and which location writes what where.
//!
//! A file is here once, however many locations write to it. Next: `millstream-telemetry`'s `log_writer`;
//! `millstream-server`'s `access_log`, which renders a format.

use super::template::Template;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Index into `Http::log_files`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogFileId(pub u32);

/// Levels of the error log, most severe first, as syslog orders them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Level {
    Emerg,
    Alert,
    Crit,
    Error,
    Warn,
    Notice,
    Info,
    Debug,
}

/// Where a log goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LogTarget {
    /// A file, appended to, created where missing.
    File(PathBuf),
    /// The standard error stream.
    Stderr,
}

/// One `error_log`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorLog {
    /// Where it goes.
    pub target: LogTarget,
    /// The least severe level that is written; `error` where none was given.
    pub level: Level,
}

/// An access-log file with its buffering (`access_log`s that name the path without a buffer share the one that others give it).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// The path.
    pub path: PathBuf,
    /// `buffer=` in bytes; `None` writes each line at once.
    pub buffer: Option<usize>,
    /// `flush=`: the longest time that a line waits in the buffer.
    pub flush: Option<Duration>,
    /// `gzip=` level 1–9.
    pub gzip: Option<u32>,
}

/// A `log_format`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFormat {
    /// Its name.
    pub name: String,
    /// How values are escaped.
    pub escape: Escape,
    /// The line without its newline.
    pub template: Template,
}

/// `escape=` of a `log_format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Escape {
    /// `"`, `\`, bytes below 32 and above 126 as `\xXX`; an empty value as `-`.
    #[default]
    Default,
    /// As in JSON strings; an empty value stays empty.
    Json,
    /// Nothing is escaped.
    None,
}

/// One `access_log` as a location uses it.
#[derive(Debug, Clone)]
pub struct AccessLog {
    /// The file.
    pub file: LogFileId,
    /// The format.
    pub format: Arc<LogFormat>,
    /// `if=`: nothing is logged where it evaluates to empty or `0`.
    pub condition: Option<Template>,
}
