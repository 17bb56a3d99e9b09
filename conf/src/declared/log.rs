//! Where logs go: files, services, and the formats of access-log lines.
//!
//! A file is here once, however many locations write to it. Next: `features/logs`, which reads them; `millstream-telemetry`'s
//! `log_writer`; `millstream-server`'s `access_log`, which renders a format.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::address::PeerAddress;
use crate::source::Span;
use crate::template::Template;

/// Where a log goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LogTarget {
    /// A file, appended to, created where missing.
    File(PathBuf),
    /// The standard error stream.
    Stderr,
    /// A log service.
    Syslog(Syslog),
}

impl LogTarget {
    /// The file, where it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            LogTarget::File(path) => Some(path),
            LogTarget::Stderr | LogTarget::Syslog(_) => None,
        }
    }

    /// The log service, where it is one.
    pub fn syslog(&self) -> Option<&Syslog> {
        match self {
            LogTarget::Syslog(syslog) => Some(syslog),
            LogTarget::File(_) | LogTarget::Stderr => None,
        }
    }
}

/// A log service, and what lines to it begin with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Syslog {
    /// Where it is.
    pub server: PeerAddress,
    /// `facility=` as its number, 0 to 23; `local7` where none is written.
    pub facility: u8,
    /// `severity=` of access-log lines as its number, 0 to 7; `info` where none is written. Lines of an error log have their level's.
    pub severity: u8,
    /// `tag=`; `nginx` where none is written.
    pub tag: String,
    /// Whether lines name this machine; not with `nohostname`.
    pub names_host: bool,
}

/// Index into `Http::log_files`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogFileId(pub u32);

/// An access-log file, or a log service, with its buffering (`access_log`s that name the path without a buffer share the one that others
/// give it).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// Where it is; never standard error.
    pub target: LogTarget,
    /// `buffer=` in bytes; `None` writes each line at once.
    pub buffer: Option<usize>,
    /// `flush=`: the longest time that a line waits in the buffer.
    pub flush: Option<Duration>,
    /// `gzip=` level 1–9.
    pub gzip: Option<u32>,
}

/// Index into `Http::log_groups`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogGroupId(pub u32);

/// An `open_log_file_cache`: which of the files whose names requests give stay open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptLogs {
    /// Files that are known at a time, at most [`MOST_KEPT`].
    pub max: usize,
    /// How long one stays known that no line is written to.
    pub inactive: Duration,
    /// How often one is written to before it stays open.
    pub min_uses: u64,
    /// How long an open file is not looked for under its name.
    pub valid: Duration,
    /// Where it is written, which tells it from others.
    pub span: Span,
}

/// The most files that one `open_log_file_cache` keeps open: they are kept back from the limit of open files.
pub const MOST_KEPT: usize = 1024;

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
