//! Compression of answers.
//!
//! Says which answers and how, never whether one client takes it. Next: `millstream-server`'s `filter/gzip`.

/// The lowest HTTP version of a request whose answer is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum GzipHttpVersion {
    Http10,
    Http11,
}

/// `gzip_proxied`: which answers to requests that came with `Via` are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct GzipProxied {
    pub any: bool,
    pub expired: bool,
    pub no_cache: bool,
    pub no_store: bool,
    pub private: bool,
    pub no_last_modified: bool,
    pub no_etag: bool,
    pub auth: bool,
}

/// `gzip*` of a location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gzip {
    /// `gzip on`.
    pub enabled: bool,
    /// `gzip_comp_level` 1–9, default 1.
    pub level: u32,
    /// `gzip_min_length` in bytes, default 20; compared with Content-Length only.
    pub min_length: u64,
    /// `gzip_types` beside `text/html`, in lower case.
    pub types: Vec<String>,
    /// `gzip_types *`.
    pub any_type: bool,
    /// `gzip_vary`.
    pub vary: bool,
    /// `gzip_proxied`.
    pub proxied: GzipProxied,
    /// `gzip_http_version`, default 1.1.
    pub http_version: GzipHttpVersion,
}
