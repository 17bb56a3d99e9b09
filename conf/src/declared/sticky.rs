//! `sticky` of an upstream: how requests of one session come to one server.
//!
//! What was written, not what is: sessions that were learned are in `millstream-upstream`'s `sessions`. Before: `upstream`, which has
//! it; next: `millstream-server`'s `gateway/sticky`.

use crate::template::Template;
use std::time::Duration;

/// `sticky`.
#[derive(Debug, Clone)]
pub struct Sticky {
    /// What of a request names its session; the first that has a value counts. Never empty.
    pub lookup: Box<[Template]>,
    /// What that names, and how clients come to know it.
    pub way: StickyWay,
}

/// The ways to keep a session.
#[derive(Debug, Clone)]
pub enum StickyWay {
    /// `cookie`: the server itself, in a cookie of ours.
    Cookie(StickyCookie),
    /// `route`: the server itself, by its `route=`.
    Route,
    /// `learn`: a session of the servers', of which it was seen whose it is.
    Learn(StickyLearn),
}

/// The cookie of `sticky cookie`.
#[derive(Debug, Clone, Default)]
pub struct StickyCookie {
    /// Its name; never empty.
    pub name: String,
    /// How long it lives; nothing: as long as the browser runs.
    pub expires: Option<CookieLife>,
    /// `domain=`; empty values are not said.
    pub domain: Option<Template>,
    /// `path=`.
    pub path: Option<String>,
    /// `httponly`.
    pub http_only: bool,
    /// `secure`.
    pub secure: bool,
    /// `samesite=`; empty values are not said, wrong ones are `strict`.
    pub same_site: Option<Template>,
}

/// How long a cookie lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookieLife {
    /// So long, in whole seconds.
    For(Duration),
    /// `max`: to the end of 2037, as nginx says it.
    Max,
}

/// `sticky learn`.
#[derive(Debug, Clone)]
pub struct StickyLearn {
    /// What of an exchange names a session that begins, or goes on, with its server; the first that has a value counts.
    pub create: Box<[Template]>,
    /// The name of `zone=`, by which sessions outlive a reload.
    pub zone: String,
    /// How many sessions are remembered at the most: 8,192 a megabyte.
    pub most: usize,
    /// How long a session is remembered after its last request. Default 10 min.
    pub timeout: Duration,
    /// `header`: it begins with the answer's head, and not with its end.
    pub from_header: bool,
}

impl StickyCookie {
    /// What may stand for `samesite`, in any case.
    pub const SAME_SITE: [&str; 3] = ["strict", "lax", "none"];
}

impl Sticky {
    /// All its templates.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let (create, domain, same_site) = match &self.way {
            StickyWay::Cookie(cookie) => (&[][..], cookie.domain.as_ref(), cookie.same_site.as_ref()),
            StickyWay::Route => (&[][..], None, None),
            StickyWay::Learn(learn) => (&*learn.create, None, None),
        };
        self.lookup.iter().chain(create).chain(domain).chain(same_site)
    }
}
