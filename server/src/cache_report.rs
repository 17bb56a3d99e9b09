//! `Cache-Status` (RFC 9211): what the cache did with a request, in one field, where `proxy_cache_explain` is on.
//!
//! It is put together while a request is answered and written with the head; without the directive none of it is there.
//! It decides nothing. Next: `filter/head`, which writes it; `answer/cached` and `gateway`, which know.

use millstream_cache::policy::Lifetime;
use millstream_cache::{Now, key};
use millstream_conf::model::ProxyCache;
use millstream_wire::structured;

#[cfg(test)]
mod tests;

/// Our name in the field.
const NAME: &[u8] = b"millstream";

/// Why a request went to the upstream (RFC 9211 §2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forward {
    /// The configuration sends it past the cache, or it may not use it.
    Bypass,
    /// Its method is not answered from the cache.
    Method,
    /// Nothing stored fits.
    Miss,
    /// The client asked for it (`proxy_cache_client_control`).
    Request,
    /// What is stored is stale, or says that it is to be validated.
    Stale,
}

impl Forward {
    fn name(self) -> &'static str {
        match self {
            Forward::Bypass => "bypass",
            Forward::Method => "method",
            Forward::Miss => "miss",
            Forward::Request => "request",
            Forward::Stale => "stale",
        }
    }
}

/// What is said about one request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CacheReport {
    /// The text of the key, where there is one.
    pub key: Option<Box<[u8]>>,
    /// Why it went to the upstream; `None`: it did not.
    pub forward: Option<Forward>,
    /// The status that the upstream answered with.
    pub forward_status: Option<u16>,
    /// Whether the upstream's answer is stored.
    pub stored: bool,
    /// Whether somebody else's request brought the answer.
    pub collapsed: bool,
    /// Seconds of freshness left; negative once it is stale.
    pub ttl: Option<i64>,
    /// A word more: why an answer is not stored, why a stale one is used.
    pub detail: Option<&'static str>,
}

impl CacheReport {
    /// A report to begin with, where the configuration wants one; `key` is the whole key.
    pub fn begin(cache: &ProxyCache, whole_key: Option<&[u8]>) -> Option<Box<CacheReport>> {
        cache.explain.then(|| {
            let key = whole_key.map(|whole| key::text(whole).into());
            Box::new(CacheReport { key, ..CacheReport::default() })
        })
    }

    /// Notes how long an answer is fresh.
    pub fn note_lifetime(&mut self, lifetime: &Lifetime, now: Now) {
        let left = lifetime.fresh_until.saturating_sub(now.unix_milliseconds).div_euclid(1000);
        self.ttl = Some(left);
    }

    /// Appends the field's value for an answer of this status. It stands behind those of caches nearer to the origin.
    pub fn write(&self, out: &mut Vec<u8>, status: u16) {
        out.extend_from_slice(NAME);
        match self.forward {
            None => out.extend_from_slice(b"; hit"),
            Some(forward) => {
                parameter(out, "fwd", forward.name());
                if let Some(upstream) = self.forward_status.filter(|upstream| *upstream != status) {
                    parameter(out, "fwd-status", itoa::Buffer::new().format(upstream));
                }
            }
        }
        if self.stored {
            out.extend_from_slice(b"; stored");
        }
        if self.collapsed {
            out.extend_from_slice(b"; collapsed");
        }
        if let Some(ttl) = self.ttl {
            parameter(out, "ttl", itoa::Buffer::new().format(ttl));
        }
        if let Some(key) = &self.key {
            out.extend_from_slice(b"; key=");
            structured::append_string(out, key);
        }
        if let Some(detail) = self.detail {
            parameter(out, "detail", detail);
        }
    }
}

fn parameter(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(b"; ");
    out.extend_from_slice(name.as_bytes());
    out.push(b'=');
    out.extend_from_slice(value.as_bytes());
}
