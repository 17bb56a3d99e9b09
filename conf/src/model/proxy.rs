//! How a location passes requests on.
//!
//! Whom it asks is an index into the upstreams or a template; which server of them is never decided here.
//! Next: `millstream-server`'s `answer/proxied`, which goes by it; `upstream`, `cache`.

use super::cache::{IgnoreHeaders, ProxyCache};
use super::failures::NextUpstream;
use super::regex::Regex;
use super::temp_path::TempPath;
use super::template::Template;
use super::upstream::UpstreamId;
use std::time::Duration;

/// HTTP version spoken to the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum HttpVersion {
    Http10,
    Http11,
}

/// Whom a `proxy_pass` names.
#[derive(Debug, Clone)]
pub enum ProxyTarget {
    /// A group known at load.
    Upstream(UpstreamId),
    /// The whole `proxy_pass` value with variables: evaluates to `http://host[:port][/uri]`; the host is an upstream's
    /// name, an address or a name to be resolved.
    Variables(Template),
}

/// A `proxy_pass`.
#[derive(Debug, Clone)]
pub struct ProxyPass {
    /// Whom.
    pub target: ProxyTarget,
    /// `$proxy_host`: the host as written, with the port unless it is the scheme's.
    pub host: String,
    /// `$proxy_port`.
    pub port: u16,
    /// The URI part: replaces the part of the normalised request URI that the location's prefix matched. `None`
    /// passes the request's URI on as it came.
    pub uri: Option<String>,
}

/// A `proxy_set_header`, or one of the defaults.
#[derive(Debug, Clone)]
pub struct SetHeader {
    /// The field's name as written.
    pub name: String,
    /// Its value; the field is not sent where it evaluates to empty.
    pub value: Template,
}

/// One `proxy_redirect`.
#[derive(Debug, Clone)]
pub enum Redirect {
    /// Replaces a prefix.
    Prefix {
        /// What a Location or Refresh value starts with.
        from: Template,
        /// What stands there instead.
        to: Template,
    },
    /// Replaces what an expression matches, with its captures.
    Regex {
        /// The expression.
        from: Regex,
        /// What stands there instead.
        to: Template,
    },
}

/// `proxy_*` of a location.
#[derive(Debug, Clone)]
pub struct Proxy {
    /// Whom.
    pub pass: ProxyPass,
    /// `proxy_http_version`, default 1.1.
    pub http_version: HttpVersion,
    /// Fields set on the request: the `proxy_set_header`s in force and, where they name neither, the defaults
    /// `Host $proxy_host` and `Connection ""`.
    pub set_headers: Vec<SetHeader>,
    /// Names in lower case of answer fields not passed on: nginx's defaults and `proxy_hide_header`, less
    /// `proxy_pass_header`.
    pub hide_headers: Vec<String>,
    /// `proxy_ignore_headers`.
    pub ignore_headers: IgnoreHeaders,
    /// `proxy_redirect` in order; `default` is already written out, `off` is empty.
    pub redirects: Vec<Redirect>,
    /// `proxy_method`.
    pub method: Option<Template>,
    /// `proxy_buffering`.
    pub buffering: bool,
    /// `proxy_request_buffering`.
    pub request_buffering: bool,
    /// `proxy_buffer_size`: an answer's head must fit. Default 4 KiB × the page factor as nginx (4k or 8k).
    pub buffer_size: usize,
    /// `proxy_buffers`, number × size: what one answer may hold in memory beside `buffer_size`.
    pub buffers: (usize, usize),
    /// `proxy_max_temp_file_size`, default 1 GiB; 0 = never to a file.
    pub max_temp_file_size: u64,
    /// `proxy_temp_path`.
    pub temp_path: TempPath,
    /// `proxy_upgrade`: a client's Upgrade is passed on.
    pub upgrade: bool,
    /// `proxy_connect_timeout`, default 60 s.
    pub connect_timeout: Duration,
    /// `proxy_send_timeout`, default 60 s, between two writes.
    pub send_timeout: Duration,
    /// `proxy_read_timeout`, default 60 s, between two reads.
    pub read_timeout: Duration,
    /// `proxy_next_upstream`, default error and timeout.
    pub next_upstream: NextUpstream,
    /// `proxy_next_upstream_tries`; 0 = no bound but the number of servers.
    pub next_upstream_tries: u32,
    /// `proxy_next_upstream_timeout`; zero = none.
    pub next_upstream_timeout: Duration,
    /// `proxy_intercept_errors`.
    pub intercept_errors: bool,
    /// `proxy_ignore_client_abort`.
    pub ignore_client_abort: bool,
    /// `proxy_cache` and its family; `None` = off.
    pub cache: Option<ProxyCache>,
    /// `proxy_store`: answers of 200 are kept as files; `on`: at the place that `root` names, else at this path.
    pub store: Store,
    /// `proxy_store_access`: permissions of these files, 0600 by default.
    pub store_mode: u32,
    /// `proxy_force_ranges`: ranges are answered whatever Accept-Ranges says.
    pub force_ranges: bool,
}

impl Proxy {
    /// Whether an answer's field is kept from the client.
    pub fn hides(&self, name: &[u8]) -> bool {
        self.hide_headers.iter().any(|hidden| name.eq_ignore_ascii_case(hidden.as_bytes()))
    }
}

/// `proxy_store`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Store {
    /// Not kept.
    #[default]
    Off,
    /// Under `root` and the URI.
    Root,
    /// At a path of its own.
    Path(Template),
}
