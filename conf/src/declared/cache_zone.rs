//! What the name of a cache zone stands for.
//!
//! Sizes are bytes, times durations. Next: `features/cache_zone`, which reads it; `millstream-cache`'s `store`, which opens it.

use std::path::PathBuf;
use std::time::Duration;

use crate::source::Span;

/// Index into `Http::cache_zones`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheZoneId(pub u32);

#[derive(Debug, Clone)]
pub struct CacheZone {
    pub name: String,
    pub span: Span,
    /// `None` for a zone in memory alone (`proxy_cache_path memory keys_zone=…`).
    pub path: Option<PathBuf>,
    /// Widths of the directory levels, 1 or 2 each, at most 3; empty = all files in one directory.
    pub levels: Vec<u8>,
    /// `keys_zone` size in bytes: bounds the number of entries as nginx does, 8,000 keys a megabyte.
    pub keys_size: u64,
    /// Entries unused for this long are removed. Default 10 min.
    pub inactive: Duration,
    /// Bytes on disk; `None` = no bound but the disk.
    pub max_size: Option<u64>,
    /// `min_free` bytes on the filesystem; 0 = none.
    pub min_free: u64,
    /// nginx's default is on.
    pub use_temp_path: bool,
    /// `memory=`: bytes for hot entries. Default 64 MiB, 256 MiB under `serve URL`.
    pub memory: u64,
    /// `cluster=`: the name of the cluster that the zone takes part in, and where it is written.
    pub cluster: Option<(String, Span)>,
    /// `purger=on`: purged files are found and removed from disk in the background.
    pub purger: bool,
    /// `purger_files`, `purger_threshold`, `purger_sleep`.
    pub purger_pace: Pace,
    /// `manager_files`, `manager_threshold`, `manager_sleep`: pace of evicting surplus and unused files.
    pub manager_pace: Pace,
    /// `loader_files`, `loader_threshold`, `loader_sleep`: pace of listing the files at start.
    pub loader_pace: Pace,
}

/// Pace of background work on a cache directory: `files` at a time for at most `threshold`, then a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    pub files: u32,
    pub threshold: Duration,
    pub sleep: Duration,
}

impl Pace {
    /// nginx's defaults: 200 ms of work, 50 ms of pause.
    pub const fn of(files: u32) -> Pace {
        Pace { files, threshold: Duration::from_millis(200), sleep: Duration::from_millis(50) }
    }
}

impl Default for CacheZone {
    /// nginx's defaults for an unnamed zone in memory; sizes are small.
    fn default() -> Self {
        CacheZone {
            name: String::new(),
            span: Span::default(),
            path: None,
            levels: Vec::new(),
            keys_size: 10 << 20,
            inactive: Duration::from_secs(600),
            max_size: None,
            min_free: 0,
            use_temp_path: true,
            memory: 64 << 20,
            cluster: None,
            purger: false,
            purger_pace: Pace::of(10),
            manager_pace: Pace::of(100),
            loader_pace: Pace::of(100),
        }
    }
}
