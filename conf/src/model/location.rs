//! Locations: how a request finds one, and what is set there.
//!
//! Every location has all its settings, inherited ones too, so that a request never looks upwards.
//! Next: `millstream-server`'s `route/location`, which finds one; `proxy`, `gzip`, `log`, which are parts of it.

use super::cache::{CacheZoneId, ManageRight, Network};
use super::gzip::Gzip;
use super::log::{AccessLog, ErrorLog};
use super::proxy::Proxy;
use super::regex::Regex;
use super::temp_path::TempPath;
use super::template::Template;
use crate::source::Span;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Index into `Http::locations`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocationId(pub u32);

/// How a location was written.
#[derive(Debug, Clone)]
pub enum LocationMatch {
    /// The server block itself, used where no location matches.
    Server,
    /// `= /path`.
    Exact(String),
    /// `/path` or `^~ /path` (then `no_regex`).
    Prefix {
        /// The prefix.
        path: String,
        /// `^~`: expressions are not tried once this is the longest prefix.
        no_regex: bool,
    },
    /// `~` or `~*`.
    Regex(Regex),
    /// `@name`, reached by `error_page` only.
    Named(String),
}

/// A location with everything that holds in it.
#[derive(Debug)]
pub struct Location {
    /// How it is matched.
    pub matches: LocationMatch,
    /// Where it was written.
    pub span: Span,
    /// The locations nested in it.
    pub nested: LocationTree,
    /// What is set.
    pub settings: Settings,
}

/// The locations of one level. `exact` and `prefixes` are sorted by path, `regexes` in file order.
#[derive(Debug, Clone, Default)]
pub struct LocationTree {
    /// `=` locations.
    pub exact: Vec<(String, LocationId)>,
    /// Prefix locations; the longest that fits wins.
    pub prefixes: Vec<(String, LocationId)>,
    /// Expressions; the first that fits wins.
    pub regexes: Vec<LocationId>,
    /// `@name`s (top level of a server only).
    pub named: Vec<(String, LocationId)>,
}

/// `lingering_close`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LingeringClose {
    Off,
    On,
    Always,
}

/// `server_tokens`: what the Server field and error pages say.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ServerTokens {
    Off,
    On,
    Build,
}

/// An `add_header`.
#[derive(Debug, Clone)]
pub struct AddHeader {
    /// The field's name as written.
    pub name: String,
    /// Its value; not sent where it evaluates to empty.
    pub value: Template,
    /// On every status, not only 200, 201, 204, 206, 301, 302, 303, 304, 307 and 308.
    pub always: bool,
}

/// What status an `error_page` answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorPageStatus {
    /// The original one.
    Keep,
    /// `=200`.
    Is(u16),
    /// `=`: whatever the page's own processing gives.
    FromPage,
}

/// One status of an `error_page`.
#[derive(Debug, Clone)]
pub struct ErrorPage {
    /// The status it is for, 300–599.
    pub status: u16,
    /// What is answered.
    pub answer: ErrorPageStatus,
    /// A path (internal redirect), `@name`, or a URL with scheme (redirect to the client).
    pub uri: Template,
}

/// What a `return` sends.
#[derive(Debug, Clone)]
pub enum ReturnBody {
    /// Nothing of its own: the built-in page of the status.
    None,
    /// Text with the default type.
    Text(Template),
    /// A Location for 301, 302, 303, 307, 308; empty where none was written, as in nginx.
    Url(Template),
}

/// A `return`.
#[derive(Debug, Clone)]
pub struct Return {
    /// The status, 0–999; 444 closes the connection without an answer.
    pub status: u16,
    /// What goes with it.
    pub body: ReturnBody,
}

/// File extension (lower case) → media type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Types {
    /// The map.
    pub by_extension: HashMap<String, Arc<str>>,
}

/// Everything resolved for one location.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `return` in force here: of the location itself, or of its server (then it comes before location matching, on the
    /// [`LocationMatch::Server`] location).
    pub returns: Option<Return>,
    /// `proxy_pass` and its family.
    pub proxy: Option<Arc<Proxy>>,
    /// `root`.
    pub root: Template,
    /// `index` names, first that exists.
    pub index: Vec<Template>,
    /// `types`.
    pub types: Arc<Types>,
    /// `default_type`, `text/plain` by default.
    pub default_type: Arc<str>,
    /// `error_page`s in force.
    pub error_pages: Arc<[ErrorPage]>,
    /// `add_header`s in force.
    pub add_headers: Arc<[AddHeader]>,
    /// `gzip*`.
    pub gzip: Arc<Gzip>,
    /// `access_log`s; empty = off.
    pub access_logs: Arc<[AccessLog]>,
    /// `error_log`s; never empty.
    pub error_logs: Arc<[ErrorLog]>,
    /// Index of `status_zone` into `Http::status_zones`.
    pub status_zone: Option<u32>,
    /// `server_tokens`.
    pub server_tokens: ServerTokens,
    /// `keepalive_timeout`'s first argument; zero = no keep-alive. Default 75 s.
    pub keepalive_timeout: Duration,
    /// Its second: sent as `Keep-Alive: timeout=`.
    pub keepalive_header: Option<Duration>,
    /// `keepalive_requests`, default 1,000.
    pub keepalive_requests: u64,
    /// `keepalive_time`, default 1 h.
    pub keepalive_time: Duration,
    /// `client_body_timeout`, default 60 s, between two reads.
    pub client_body_timeout: Duration,
    /// `send_timeout`, default 60 s, between two writes.
    pub send_timeout: Duration,
    /// `client_max_body_size`, default 1 MiB; 0 = no bound.
    pub client_max_body_size: u64,
    /// `client_body_buffer_size`, default 16 KiB: beyond it a buffered body goes to a file.
    pub client_body_buffer_size: usize,
    /// `client_body_temp_path`.
    pub client_body_temp_path: TempPath,
    /// `lingering_close`.
    pub lingering_close: LingeringClose,
    /// `lingering_time`, default 30 s.
    pub lingering_time: Duration,
    /// `lingering_timeout`, default 5 s.
    pub lingering_timeout: Duration,
    /// `tcp_nodelay`, default on.
    pub tcp_nodelay: bool,
    /// `expires`.
    pub expires: Expires,
    /// `etag`, default on: files get an entity tag.
    pub etag: bool,
    /// `if_modified_since`, default exact.
    pub if_modified_since: IfModifiedSince,
    /// `max_ranges`: more ranges in one request get the whole answer; `None` = no bound of the user's, 0 = no ranges.
    pub max_ranges: Option<u32>,
    /// `slice` in bytes; 0 = off.
    pub slice: u64,
    /// `trusted_proxy`: whose X-Forwarded-* are believed.
    pub trusted_proxies: Arc<[Network]>,
    /// `api`: this location is the API, with `write=on` for what changes something.
    pub api: Option<Api>,
    /// `proxy_cache_purge ZONE KEY`: every request here purges.
    pub purge_at: Option<Arc<PurgeAt>>,
}

/// `proxy_cache_purge ZONE KEY` of a location of its own, as in the free purge module.
#[derive(Debug, Clone)]
pub struct PurgeAt {
    /// The zone.
    pub zone: CacheZoneId,
    /// The text of the key; one that ends in `*` purges by prefix.
    pub key: Template,
    /// `proxy_cache_purge_soft on`: marks stale instead of removing.
    pub soft: bool,
    /// `proxy_cache_purge_allow`, `proxy_cache_purge_token`.
    pub right: Arc<ManageRight>,
}

/// `expires`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Expires {
    /// Nothing is added or changed.
    #[default]
    Off,
    /// 1 January 1970 and `no-cache`.
    Epoch,
    /// The end of 2037 and ten years.
    Max,
    /// So many seconds from now; negative: in the past, and `no-cache`.
    Access(i64),
    /// So many seconds from the time of the answer's last modification.
    Modified(i64),
    /// `@15h30m`: at that time of day, in seconds since midnight, local time.
    Daily(u32),
    /// A variable: its value is one of the words above, read at every request. The flag is `modified`.
    Variable(Template, bool),
}

/// `if_modified_since`: how a request's date is compared with the answer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfModifiedSince {
    /// The field is not looked at.
    Off,
    /// The same moment.
    #[default]
    Exact,
    /// Not later than the request's.
    Before,
}

/// `api`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Api {
    /// `write=on`: purging and the like; default off as in NGINX Plus.
    pub write: bool,
    /// `api_allow`, `api_token`.
    pub right: Arc<ManageRight>,
}
