//! `Cache-Status` (RFC 9211): what the cache did with a request, in one field, where `proxy_cache_explain` is on.
//!
//! It is put together while a request is answered and written with the head; without the directive none of it is there.
//! It decides nothing. Next: `filter/head`, which writes it; `cached` and `exchange`, which know.

use millstream_cache::policy::Lifetime;
use millstream_cache::{Now, key};
use millstream_conf::model::ProxyCache;
use millstream_wire::structured;

#[cfg(test)]
mod tests;

const NAME: &[u8] = b"millstream";

/// RFC 9211 §2.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forward {
    /// The cache may not be used, or `proxy_cache_bypass` applies.
    Bypass,
    Method,
    Miss,
    /// The client demanded it (`proxy_cache_client_control`).
    Request,
    /// Stale, or always to be validated.
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

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CacheReport {
    pub key: Option<Box<[u8]>>,
    /// `None`: it did not go upstream.
    pub forward: Option<Forward>,
    pub forward_status: Option<u16>,
    pub stored: bool,
    /// Whether another request fetched the response.
    pub collapsed: bool,
    /// Seconds of freshness left; negative once stale.
    pub ttl: Option<i64>,
    /// Why a response is not stored, or why a stale one is used.
    pub detail: Option<&'static str>,
}

impl CacheReport {
    pub fn begin(cache: &ProxyCache, whole_key: Option<&[u8]>) -> Option<Box<CacheReport>> {
        cache.explain.then(|| {
            let key = whole_key.map(|whole| key::text(whole).into());
            Box::new(CacheReport { key, ..CacheReport::default() })
        })
    }

    pub fn note_lifetime(&mut self, lifetime: &Lifetime, now: Now) {
        let left = lifetime.fresh_until.saturating_sub(now.unix_milliseconds).div_euclid(1000);
        self.ttl = Some(left);
    }

    /// Appends the field's value; it belongs behind those of caches nearer to the origin.
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
