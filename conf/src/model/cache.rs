//! Cache zones and how a location uses one.
//!
//! Sizes are bytes, times durations, conditions templates; nothing is looked up by name any more.
//! Next: `millstream-cache`'s `store`, which takes a zone, and `policy`, which goes by a location's part.

use super::template::Template;
use crate::source::Span;
use std::path::PathBuf;
use std::time::Duration;

/// Index into `Http::cache_zones`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheZoneId(pub u32);

/// A `proxy_cache_path`.
#[derive(Debug, Clone)]
pub struct CacheZone {
    /// `keys_zone` name.
    pub name: String,
    /// Where it was written.
    pub span: Span,
    /// The directory; `None` for a zone in memory alone (`proxy_cache_path memory keys_zone=…` in our words).
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
    /// Whether temporary files go to `proxy_temp_path` (default in nginx: on).
    pub use_temp_path: bool,
    /// `memory=`: bytes for hot entries. Default 64 MiB, 256 MiB under `serve URL`.
    pub memory: u64,
}

/// The statuses that a `proxy_cache_valid` is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValidStatus {
    /// `any`.
    Any,
    /// One status.
    Is(u16),
}

/// One status of a `proxy_cache_valid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Valid {
    /// Which answers.
    pub status: ValidStatus,
    /// For how long; zero = do not store.
    pub time: Duration,
}

/// `proxy_cache_use_stale`, one flag per word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct UseStale {
    pub error: bool,
    pub timeout: bool,
    pub invalid_header: bool,
    pub updating: bool,
    pub http_500: bool,
    pub http_502: bool,
    pub http_503: bool,
    pub http_504: bool,
    pub http_403: bool,
    pub http_404: bool,
    pub http_429: bool,
}

/// `proxy_ignore_headers`, one flag per field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct IgnoreHeaders {
    pub x_accel_redirect: bool,
    pub x_accel_expires: bool,
    pub x_accel_limit_rate: bool,
    pub x_accel_buffering: bool,
    pub x_accel_charset: bool,
    pub expires: bool,
    pub cache_control: bool,
    pub set_cookie: bool,
    pub vary: bool,
}

/// `proxy_cache*` of a location.
#[derive(Debug, Clone)]
pub struct ProxyCache {
    /// The zone.
    pub zone: CacheZoneId,
    /// `proxy_cache_key`; by default `$scheme$proxy_host$request_uri`.
    pub key: Template,
    /// Whether the key contains `$http_authorization` (or `$remote_user`), so that answers to credentials may be stored.
    pub key_names_credential: bool,
    /// `proxy_cache_valid`, in file order; the first that fits decides.
    pub valid: Vec<Valid>,
    /// `proxy_cache_methods`: whether POST is among them (GET and HEAD always are).
    pub cache_post: bool,
    /// `proxy_cache_lock`.
    pub lock: bool,
    /// `proxy_cache_lock_timeout`, default 5 s: then a waiter asks the upstream itself and stores nothing.
    pub lock_timeout: Duration,
    /// `proxy_cache_lock_age`, default 5 s: then one more request may fill.
    pub lock_age: Duration,
    /// `proxy_cache_use_stale`.
    pub use_stale: UseStale,
    /// `proxy_cache_background_update`.
    pub background_update: bool,
    /// `proxy_cache_bypass`: asked of the upstream where one is neither empty nor `0`.
    pub bypass: Vec<Template>,
    /// `proxy_no_cache`: not stored where one is neither empty nor `0`.
    pub no_cache: Vec<Template>,
    /// `proxy_cache_min_uses`, default 1.
    pub min_uses: u32,
    /// `proxy_cache_revalidate`.
    pub revalidate: bool,
}
