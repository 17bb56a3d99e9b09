//! Access-log files and the formats of their lines.
//!
//! A file is here once, however many locations write to it. Next: `features/logs`, which reads them; `millstream-telemetry`'s
//! `log_writer`; `millstream-server`'s `access_log`, which renders a format.

use std::path::PathBuf;
use std::time::Duration;

use crate::source::Span;
use crate::template::Template;

/// Index into `Http::log_files`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogFileId(pub u32);

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
