//! Cache zones and how a location uses one.
//!
//! Sizes are bytes, times durations, conditions templates; nothing is looked up by name any more.
//! Next: `millstream-cache`'s `store`, which takes a zone, and `policy`, which goes by a location's part.

use super::failures::UseStale;
use super::template::Template;
use crate::source::Span;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
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
    /// `purger=on`: what a purge touched is looked for and removed from the disk in the background.
    pub purger: bool,
    /// `purger_files`, `purger_threshold`, `purger_sleep`: pace of the purger.
    pub purger_pace: Pace,
    /// `manager_files`, `manager_threshold`, `manager_sleep`: pace of removing what is too much or unused.
    pub manager_pace: Pace,
    /// `loader_files`, `loader_threshold`, `loader_sleep`: pace of listing the files at start.
    pub loader_pace: Pace,
}

/// How fast background work on a cache directory goes: so many files or so long at a time, then a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Files at a time.
    pub files: u32,
    /// Longest stretch of work.
    pub threshold: Duration,
    /// The pause after it.
    pub sleep: Duration,
}

impl Pace {
    /// nginx's defaults: 200 ms of work, 50 ms of pause.
    pub const fn of(files: u32) -> Pace {
        Pace { files, threshold: Duration::from_millis(200), sleep: Duration::from_millis(50) }
    }
}

impl Default for CacheZone {
    /// nginx's defaults for a zone in memory without a name; sizes are small.
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
            purger: false,
            purger_pace: Pace::of(10),
            manager_pace: Pace::of(100),
            loader_pace: Pace::of(100),
        }
    }
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
    /// `proxy_cache_key`; by default what nginx documents as `$scheme$proxy_host$request_uri`, with the target as it is
    /// sent in its last place.
    pub key: Template,
    /// Whether the key contains `$http_authorization`, or what a `proxy_set_header` makes Authorization of, so that
    /// answers to credentials may be stored.
    pub key_names_credential: bool,
    /// `proxy_cache_credentials`.
    pub credentials: Credentials,
    /// `proxy_cache_vary`.
    pub vary: CacheVary,
    /// `proxy_cache_invalidation`.
    pub invalidation: Invalidation,
    /// Request fields, in lower case, which `proxy_set_header` makes of what neither the key nor the client's field of
    /// that name tells: an answer that varies by one cannot be found by what clients send.
    pub made_fields: Arc<[Box<str>]>,
    /// `proxy_cache_valid`, in file order; the first that fits decides.
    pub valid: Vec<Valid>,
    /// Where each of `valid` was written.
    pub valid_spans: Arc<[Span]>,
    /// `proxy_cache_methods`: whether POST is among them (GET and HEAD always are).
    pub cache_post: bool,
    /// Whether QUERY (RFC 10008) is among them; its body is then a part of the key.
    pub cache_query: bool,
    /// `proxy_cache_lock`.
    pub lock: bool,
    /// `proxy_cache_lock_timeout`, default 5 s: then a waiter asks the upstream itself and stores nothing.
    pub lock_timeout: Duration,
    /// `proxy_cache_lock_age`, default 5 s: then one more request may fill.
    pub lock_age: Duration,
    /// `proxy_cache_unread_timeout`, default 3 s: how long a fill goes on that nobody reads any more.
    pub unread_timeout: Option<Duration>,
    /// `proxy_cache_fill_timeout`: an answer that is still arriving then is not kept.
    pub fill_timeout: Option<Duration>,
    /// `proxy_cache_use_stale`.
    pub use_stale: UseStale,
    /// `proxy_cache_stale_while_updating`: the longest that `updating` grants; `None` = no bound.
    pub stale_while_updating: Option<StaleWhile>,
    /// `proxy_cache_stale_if_error`: the longest that the other words grant; `None` = no bound.
    pub stale_if_error: Option<Duration>,
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
    /// `proxy_cache_convert_head`, default on: a HEAD is asked as GET and stored; off: passed as it is, not stored.
    pub convert_head: bool,
    /// `proxy_cache_max_range_offset`: a range that begins beyond is passed on as it is; `None` = the whole is always
    /// fetched.
    pub max_range_offset: Option<u64>,
    /// `proxy_cache_client_control`, default off as in nginx: whether Cache-Control (and Pragma) of a request may force
    /// a refresh, ask for a fresher answer, or ask for a stored one only (RFC 9111 §5.2.1).
    pub client_control: bool,
    /// `proxy_cache_heuristic`: hundredths of the time since Last-Modified that an answer without any lifetime is fresh
    /// for (RFC 9111 §4.2.2), and the longest; `None` = off, the default.
    pub heuristic: Option<Heuristic>,
    /// `proxy_cache_refresh_ahead`: an entry in use is refreshed in the background this long before it expires; zero =
    /// off, the default.
    pub refresh_ahead: Duration,
    /// `proxy_cache_tag`: templates whose values, split at spaces and commas, are tags of an answer, beside those of
    /// its Surrogate-Key, Cache-Tag and xkey fields.
    pub tags: Vec<Template>,
    /// `proxy_cache_explain`: answers carry Cache-Status (RFC 9211). Default off.
    pub explain: bool,
    /// `proxy_cache_purge`: a request for which one is neither empty nor `0` purges (a key that ends in `*`: by prefix).
    pub purge: Vec<Template>,
    /// `proxy_cache_purge_methods off`: PURGE and BAN are passed to the upstream as any method. Default on.
    pub purge_methods: bool,
    /// `proxy_cache_purge_soft on`: PURGE marks stale instead of removing. Default off.
    pub purge_soft: bool,
    /// Who may purge.
    pub purge_right: Arc<ManageRight>,
    /// Where the directives stand that decide here about the cache, for `explain`: name and place of each in force,
    /// inherited ones included; those of the outermost level first, in each in file order.
    pub written: Arc<[(&'static str, Span)]>,
}

/// `proxy_cache_credentials`: what becomes of requests that carry a credential.
#[derive(Debug, Clone, Default)]
pub enum Credentials {
    /// `any`: they are answered and stored like others, as far as RFC 9111 §3.5 allows.
    #[default]
    Any,
    /// `public`: they share only what says that it is for everybody.
    Public {
        /// Fields, in lower case, that `proxy_set_header` puts in place of the client's.
        replaced: Arc<[Box<str>]>,
        /// Those of them that are made of what a client's fields say, with what is sent.
        handed_on: Arc<[(Box<str>, Template)]>,
    },
}

/// `proxy_cache_vary`: by what answers vary that their Vary does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheVary {
    /// By Origin, unless the answer says that every origin may have it.
    pub origin: bool,
    /// By every request field that is not known to mean nothing to an answer.
    pub unlisted: bool,
}

/// `proxy_cache_invalidation`: whether an unsafe request takes out what is stored for its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Invalidation {
    /// Each does.
    #[default]
    On,
    /// None does.
    Off,
    /// Those of one URL do at most once in this time.
    Every(Duration),
}

/// `proxy_cache_stale_while_updating`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaleWhile {
    /// Hundredths of the time that the answer was fresh for.
    pub percent: Option<u16>,
    /// The longest.
    pub longest: Duration,
}

/// `proxy_cache_heuristic`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heuristic {
    /// Hundredths of the age at the origin; RFC 9111 §4.2.2 speaks of 10.
    pub percent: u8,
    /// The longest lifetime that is guessed. Default a day.
    pub longest: Duration,
}

/// Who may purge or use the API: one of the addresses, or whoever shows the token.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManageRight {
    /// `proxy_cache_purge_allow` / `api_allow`; `None` = not written: nobody where there is a token, else loopback and Unix
    /// sockets, and only for requests that were not forwarded by somebody else.
    pub allow: Option<Vec<Network>>,
    /// `proxy_cache_purge_token` / `api_token`: `Authorization: Bearer TOKEN`.
    pub token: Option<String>,
}

/// One word of `proxy_cache_purge_allow` or `api_allow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// `all`.
    All,
    /// `unix:`.
    Unix,
    /// An address, or a network in CIDR form: the bits of the mask are leading ones.
    Ip(IpAddr, u8),
}

impl Default for ProxyCache {
    /// What holds where nothing is written; the key is empty.
    fn default() -> Self {
        ProxyCache {
            zone: CacheZoneId(0),
            key: Template::default(),
            key_names_credential: false,
            credentials: Credentials::Any,
            vary: CacheVary::default(),
            invalidation: Invalidation::On,
            made_fields: Arc::from([]),
            valid: Vec::new(),
            valid_spans: Arc::from([]),
            cache_post: false,
            cache_query: false,
            lock: true,
            lock_timeout: Duration::from_secs(5),
            lock_age: Duration::from_secs(5),
            unread_timeout: Some(Duration::from_secs(3)),
            fill_timeout: None,
            use_stale: UseStale::default(),
            stale_while_updating: None,
            stale_if_error: None,
            background_update: false,
            bypass: Vec::new(),
            no_cache: Vec::new(),
            min_uses: 1,
            revalidate: false,
            convert_head: true,
            max_range_offset: None,
            client_control: false,
            heuristic: None,
            refresh_ahead: Duration::ZERO,
            tags: Vec::new(),
            explain: false,
            purge: Vec::new(),
            purge_methods: true,
            purge_soft: false,
            purge_right: Arc::default(),
            written: Arc::from([]),
        }
    }
}
