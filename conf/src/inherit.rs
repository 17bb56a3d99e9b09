//! What is set at one level (http, server, location), and how a level takes what it leaves open from the one above.
//!
//! Every setting is optional here; lists count as one setting, so a level that writes one `add_header` has none of the
//! level above. Defaults are applied last, in `resolve`. Next: `directives/`, which fill a [`Level`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{
    AccessLog, AddHeader, CacheVary, CacheZoneId, ErrorLog, ErrorPage, Expires, GzipHttpVersion, GzipProxied,
    Heuristic, HttpVersion, IfModifiedSince, IgnoreHeaders, Invalidation, LingeringClose, Network,
    NextUpstream, ProxyPass, Redirect, Return, ServerTokens, SetHeader, StaleWhile, Store, TempPath,
    Template, TlsVersion, Types, UseStale, Valid,
};
use crate::source::Span;

/// A `proxy_redirect` as written.
#[derive(Debug, Clone)]
pub enum RedirectRule {
    /// `default`, with its place: it becomes a rule once the location is known.
    Default(Span),
    /// A pair.
    Pair(Redirect),
}

/// A `proxy_pass` as written.
#[derive(Debug, Clone)]
pub struct PassDraft {
    /// What the model takes.
    pub pass: ProxyPass,
    /// The URL as written, for the default `proxy_redirect`; `None` with variables.
    pub url: Option<String>,
    /// Where the URL stands.
    pub span: Span,
}

/// `gzip_types`.
#[derive(Debug, Clone, Default)]
pub struct GzipTypes {
    /// `*`.
    pub any: bool,
    /// The media types in lower case.
    pub types: Vec<String>,
}

/// `proxy_cache_methods`: which are kept beside GET and HEAD.
#[derive(Debug, Clone, Copy, Default)]
pub struct CacheMethods {
    /// POST.
    pub post: bool,
    /// QUERY.
    pub query: bool,
}

macro_rules! level {
    (inherited { $($(#[$doc:meta])* $name:ident: $type:ty,)* } own { $($(#[$own_doc:meta])* $own:ident: $own_type:ty,)* }) => {
        /// The settings of one level; `None` is what the level leaves open.
        #[derive(Debug, Clone, Default)]
        pub struct Level {
            $($(#[$doc])* pub $name: Option<$type>,)*
            $($(#[$own_doc])* pub $own: Option<$own_type>,)*
            /// The directives in force that decide about the cache: name and place, those of the outermost level first.
            pub written: Vec<(&'static str, Span)>,
        }

        impl Level {
            /// Takes from the level above what this one leaves open. `return` and `proxy_pass` stay where they
            /// were written.
            pub fn inherit(&mut self, above: &Level) {
                self.choose_store_or_cache();
                self.inherit_written(above);
                $(if self.$name.is_none() {
                    self.$name.clone_from(&above.$name);
                })*
            }
        }
    };
}

level! {
    inherited {
        /// `root`.
        root: Template,
        /// `index`.
        index: Vec<Template>,
        /// `types`.
        types: Arc<Types>,
        /// `default_type`.
        default_type: Arc<str>,
        /// `error_page`s.
        error_pages: Vec<ErrorPage>,
        /// `add_header`s.
        add_headers: Vec<AddHeader>,
        /// `access_log`s; nothing in it = `off`, beside which no other of the level counts.
        access_logs: Option<Vec<AccessLog>>,
        /// `error_log`s.
        error_logs: Vec<ErrorLog>,
        /// `server_tokens`.
        server_tokens: ServerTokens,
        /// `merge_slashes`.
        merge_slashes: bool,
        /// `tcp_nodelay`.
        tcp_nodelay: bool,
        /// `keepalive_timeout`, the first argument.
        keepalive_timeout: Duration,
        /// `keepalive_timeout`, the second argument; zero = no field. A level that writes the first alone has the second of
        /// the level above, as in nginx.
        keepalive_header: Duration,
        /// `keepalive_requests`.
        keepalive_requests: u64,
        /// `keepalive_time`.
        keepalive_time: Duration,
        /// `client_header_timeout`.
        client_header_timeout: Duration,
        /// `client_header_buffer_size`.
        client_header_buffer_size: usize,
        /// `large_client_header_buffers`.
        large_client_header_buffers: (usize, usize),
        /// `client_body_timeout`.
        client_body_timeout: Duration,
        /// `client_max_body_size`.
        client_max_body_size: u64,
        /// `client_body_buffer_size`.
        client_body_buffer_size: usize,
        /// `client_body_temp_path`.
        client_body_temp_path: TempPath,
        /// `send_timeout`.
        send_timeout: Duration,
        /// `lingering_close`.
        lingering_close: LingeringClose,
        /// `lingering_time`.
        lingering_time: Duration,
        /// `lingering_timeout`.
        lingering_timeout: Duration,
        /// `gzip`.
        gzip: bool,
        /// `gzip_comp_level`.
        gzip_comp_level: u32,
        /// `gzip_min_length`.
        gzip_min_length: u64,
        /// `gzip_types`.
        gzip_types: GzipTypes,
        /// `gzip_vary`.
        gzip_vary: bool,
        /// `gzip_proxied`.
        gzip_proxied: GzipProxied,
        /// `gzip_http_version`.
        gzip_http_version: GzipHttpVersion,
        /// `proxy_http_version`.
        proxy_http_version: HttpVersion,
        /// `proxy_set_header`s.
        proxy_set_headers: Vec<SetHeader>,
        /// `proxy_hide_header`s in lower case.
        proxy_hide_headers: Vec<String>,
        /// `proxy_pass_header`s in lower case.
        proxy_pass_headers: Vec<String>,
        /// `proxy_ignore_headers`.
        proxy_ignore_headers: IgnoreHeaders,
        /// `proxy_redirect`s; empty = `off`.
        proxy_redirects: Vec<RedirectRule>,
        /// `proxy_method`.
        proxy_method: Template,
        /// `proxy_buffering`.
        proxy_buffering: bool,
        /// `proxy_request_buffering`.
        proxy_request_buffering: bool,
        /// `proxy_buffer_size`.
        proxy_buffer_size: usize,
        /// `proxy_buffers`.
        proxy_buffers: (usize, usize),
        /// `proxy_max_temp_file_size` with its place.
        proxy_max_temp_file_size: (u64, Span),
        /// `proxy_temp_path`.
        proxy_temp_path: TempPath,
        /// `proxy_upgrade`.
        proxy_upgrade: bool,
        /// `trusted_proxy`: each with its place.
        trusted_proxies: Vec<(Network, Span)>,
        /// `proxy_connect_timeout`.
        proxy_connect_timeout: Duration,
        /// `proxy_send_timeout`.
        proxy_send_timeout: Duration,
        /// `proxy_read_timeout`.
        proxy_read_timeout: Duration,
        /// `proxy_next_upstream`.
        proxy_next_upstream: NextUpstream,
        /// `proxy_next_upstream_tries`.
        proxy_next_upstream_tries: u32,
        /// `proxy_next_upstream_timeout`.
        proxy_next_upstream_timeout: Duration,
        /// `proxy_intercept_errors`.
        proxy_intercept_errors: bool,
        /// `proxy_ignore_client_abort`.
        proxy_ignore_client_abort: bool,
        /// `proxy_cache` with its place; no zone = `off`.
        proxy_cache: (Option<CacheZoneId>, Span),
        /// `proxy_cache_key`.
        proxy_cache_key: Template,
        /// `proxy_cache_valid`s, each with its place.
        proxy_cache_valid: Vec<(Valid, Span)>,
        /// `proxy_cache_methods`.
        proxy_cache_methods: CacheMethods,
        /// `proxy_cache_lock`.
        proxy_cache_lock: bool,
        /// `proxy_cache_lock_timeout`.
        proxy_cache_lock_timeout: Duration,
        /// `proxy_cache_lock_age`.
        proxy_cache_lock_age: Duration,
        /// `proxy_cache_unread_timeout`.
        proxy_cache_unread_timeout: Option<Duration>,
        /// `proxy_cache_fill_timeout`.
        proxy_cache_fill_timeout: Option<Duration>,
        /// `proxy_cache_use_stale`.
        proxy_cache_use_stale: UseStale,
        /// `proxy_cache_stale_while_updating`; nothing in it = `off`.
        proxy_cache_stale_while_updating: Option<StaleWhile>,
        /// `proxy_cache_stale_if_error`; nothing in it = `off`.
        proxy_cache_stale_if_error: Option<Duration>,
        /// `proxy_cache_credentials`: whether it is `public`.
        proxy_cache_credentials: bool,
        /// `proxy_cache_vary`, with its place.
        proxy_cache_vary: (CacheVary, Span),
        /// `proxy_cache_invalidation`.
        proxy_cache_invalidation: Invalidation,
        /// `proxy_cache_background_update`.
        proxy_cache_background_update: bool,
        /// `proxy_cache_bypass`.
        proxy_cache_bypass: Vec<Template>,
        /// `proxy_no_cache`.
        proxy_no_cache: Vec<Template>,
        /// `proxy_cache_min_uses`.
        proxy_cache_min_uses: u32,
        /// `proxy_cache_revalidate`.
        proxy_cache_revalidate: bool,
        /// `proxy_cache_convert_head`.
        proxy_cache_convert_head: bool,
        /// `proxy_cache_max_range_offset`.
        proxy_cache_max_range_offset: u64,
        /// `proxy_cache_client_control`.
        proxy_cache_client_control: bool,
        /// `proxy_cache_heuristic`; nothing in it = `off`.
        proxy_cache_heuristic: Option<Heuristic>,
        /// `proxy_cache_refresh_ahead`; zero = `off`.
        proxy_cache_refresh_ahead: Duration,
        /// `proxy_cache_tag`s.
        proxy_cache_tags: Vec<Template>,
        /// `proxy_cache_explain`.
        proxy_cache_explain: bool,
        /// `proxy_cache_purge`s.
        proxy_cache_purge: Vec<Template>,
        /// `proxy_cache_purge_methods`.
        proxy_cache_purge_methods: bool,
        /// `proxy_cache_purge_soft`.
        proxy_cache_purge_soft: bool,
        /// `proxy_cache_purge_allow`: each with its place.
        proxy_cache_purge_allow: Vec<(Network, Span)>,
        /// `proxy_cache_purge_token`.
        proxy_cache_purge_token: String,
        /// `api_allow`: each with its place.
        api_allow: Vec<(Network, Span)>,
        /// `api_token`.
        api_token: String,
        /// `proxy_store` with its place.
        proxy_store: (Store, Span),
        /// `proxy_store_access` as permissions of a file.
        proxy_store_access: u32,
        /// `proxy_force_ranges`.
        proxy_force_ranges: bool,
        /// `expires`.
        expires: Expires,
        /// `etag`.
        etag: bool,
        /// `if_modified_since`.
        if_modified_since: IfModifiedSince,
        /// `max_ranges`.
        max_ranges: u32,
        /// `slice` in bytes, with its place; 0 = off.
        slice: (u64, Span),
        /// `ssl_certificate`s: file and place.
        ssl_certificates: Vec<(PathBuf, Span)>,
        /// `ssl_certificate_key`s: file and place.
        ssl_certificate_keys: Vec<(PathBuf, Span)>,
        /// `ssl_protocols`.
        ssl_protocols: Vec<TlsVersion>,
        /// `ssl_ciphers` as the suites that remain, with its place.
        ssl_ciphers: (Vec<String>, Span),
        /// `ssl_prefer_server_ciphers`.
        ssl_prefer_server_ciphers: bool,
        /// `ssl_session_cache` in sessions.
        ssl_session_cache: usize,
        /// `ssl_session_timeout`.
        ssl_session_timeout: Duration,
    }
    own {
        /// `return`.
        returns: Return,
        /// `proxy_pass`.
        proxy_pass: PassDraft,
        /// `status_zone`; no index = `off`. Handed from location to location, not from the server.
        status_zone: Option<u32>,
        /// `proxy_cache_purge zone key` with its place.
        purge_at: (CacheZoneId, Template, Span),
        /// `api`: whether `write=on`, with its place.
        api: (bool, Span),
    }
}

impl Level {
    /// A level that stores does not take a cache from the level above, and one that caches no store; that one level
    /// has both was refused when it was read.
    fn choose_store_or_cache(&mut self) {
        if let Some((store, span)) = &self.proxy_store
            && *store != Store::Off
        {
            self.proxy_cache.get_or_insert((None, *span));
        } else if let Some((Some(_), span)) = self.proxy_cache {
            self.proxy_store.get_or_insert((Store::Off, span));
        }
    }

    /// As with settings: a level that writes a directive has none of that name of the level above.
    fn inherit_written(&mut self, above: &Level) {
        let is_left_open = |name: &str| !self.written.iter().any(|(own, _)| *own == name);
        let from_above: Vec<_> =
            above.written.iter().filter(|(name, _)| is_left_open(name)).copied().collect();
        self.written.splice(0..0, from_above);
    }
}
