//! `sticky` of an upstream: how requests of one session come to one server.
//!
//! What was written, not what is: sessions that were learned are in `millstream-upstream`'s `sessions`. Before: `upstream`, which has
//! it; next: `millstream-server`'s `exchange/sticky`.

use crate::template::Template;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Sticky {
    /// What of a request identifies its session; the first non-empty value counts. Never empty.
    pub lookup: Box<[Template]>,
    pub way: StickyWay,
}

#[derive(Debug, Clone)]
pub enum StickyWay {
    /// The server itself, in a cookie of ours.
    Cookie(StickyCookie),
    /// The server itself, by its `route=`.
    Route,
    /// A session of the servers', whose server was observed.
    Learn(StickyLearn),
}

#[derive(Debug, Clone, Default)]
pub struct StickyCookie {
    /// Never empty.
    pub name: String,
    /// `None`: until the browser closes.
    pub expires: Option<CookieLife>,
    /// An empty value is not sent.
    pub domain: Option<Template>,
    pub path: Option<String>,
    pub http_only: bool,
    pub secure: bool,
    /// An empty value is not sent; a wrong one counts as `strict`.
    pub same_site: Option<Template>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookieLife {
    /// In whole seconds.
    For(Duration),
    /// To the end of 2037, as in nginx.
    Max,
}

#[derive(Debug, Clone)]
pub struct StickyLearn {
    /// What of an exchange identifies a session that begins or continues; the first non-empty value counts.
    pub create: Box<[Template]>,
    /// `zone=`, by which sessions survive a reload.
    pub zone: String,
    /// Sessions remembered at most: 8,192 per megabyte.
    pub most: usize,
    /// How long a session is remembered after its last request. Default 10 min.
    pub timeout: Duration,
    /// `header`: learnt from the response's head instead of at its end.
    pub from_header: bool,
}

impl StickyCookie {
    /// Allowed values of `samesite`, in any case.
    pub const SAME_SITE: [&str; 3] = ["strict", "lax", "none"];
}

impl Sticky {
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let (create, domain, same_site) = match &self.way {
            StickyWay::Cookie(cookie) => (&[][..], cookie.domain.as_ref(), cookie.same_site.as_ref()),
            StickyWay::Route => (&[][..], None, None),
            StickyWay::Learn(learn) => (&*learn.create, None, None),
        };
        self.lookup.iter().chain(create).chain(domain).chain(same_site)
    }
}
