//! Where logs go: files, services, and the formats of access-log lines.
//!
//! A file is here once, however many locations write to it. Next: `features/logs`, which reads them; `millstream-telemetry`'s
//! `log_writer`; `millstream-server`'s `access_log`, which renders a format.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::address::PeerAddress;
use crate::source::Span;
use crate::template::Template;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LogTarget {
    /// Appended to; created if missing.
    File(PathBuf),
    Stderr,
    Syslog(Syslog),
}

impl LogTarget {
    pub fn file(&self) -> Option<&Path> {
        match self {
            LogTarget::File(path) => Some(path),
            LogTarget::Stderr | LogTarget::Syslog(_) => None,
        }
    }

    pub fn syslog(&self) -> Option<&Syslog> {
        match self {
            LogTarget::Syslog(syslog) => Some(syslog),
            LogTarget::File(_) | LogTarget::Stderr => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Syslog {
    pub server: PeerAddress,
    /// `facility=`, 0 to 23; default `local7`.
    pub facility: u8,
    /// `severity=` of access-log lines, 0 to 7; default `info`. Error-log lines have that of their level.
    pub severity: u8,
    /// `tag=`; default `nginx`.
    pub tag: String,
    /// Whether lines name this machine; not with `nohostname`.
    pub names_host: bool,
}

/// Index into `Http::log_files`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogFileId(pub u32);

/// An access-log file or service with its buffering. `access_log`s of one path without a buffer share that of
/// the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// Never standard error.
    pub target: LogTarget,
    /// `buffer=` in bytes; `None` writes each line at once.
    pub buffer: Option<usize>,
    /// `flush=`: the longest time a line waits in the buffer.
    pub flush: Option<Duration>,
    /// `gzip=`, 1–9.
    pub gzip: Option<u32>,
}

/// Index into `Http::log_groups`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogGroupId(pub u32);

/// An `open_log_file_cache`: which log files with variable names stay open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptLogs {
    /// Files known at a time, at most [`MOST_KEPT`].
    pub max: usize,
    /// How long a file stays known without being written to.
    pub inactive: Duration,
    /// Writes before a file stays open.
    pub min_uses: u64,
    /// How long an open file is not checked against its name.
    pub valid: Duration,
    /// Also its identity.
    pub span: Span,
}

/// The most files one `open_log_file_cache` keeps open; they are reserved within the limit of open files.
pub const MOST_KEPT: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFormat {
    pub name: String,
    pub escape: Escape,
    /// Without its newline.
    pub template: Template,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Escape {
    /// `"`, `\`, bytes below 32 and above 126 as `\xXX`; an empty value as `-`.
    #[default]
    Default,
    /// As in JSON strings; an empty value stays empty.
    Json,
    None,
}
