//! Request methods: the registered ones the product treats specially, and all others as one value.
//!
//! Methods are case-sensitive (RFC 9110 §9.1): `get` is not GET but an unknown method. The text of an unknown
//! method is kept by whoever parsed it, see [`crate::h1::head::RequestHead::method_text`].

/// A request method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Delete,
    Connect,
    Options,
    Trace,
    /// PATCH (RFC 5789).
    Patch,
    /// QUERY: safe and idempotent, with a body.
    Query,
    /// PROPFIND (RFC 4918).
    Propfind,
    /// REPORT (RFC 3253).
    Report,
    /// SEARCH (RFC 5323).
    Search,
    /// Any other token; the text is in the head.
    Other,
}

impl Method {
    #[inline]
    pub fn of(text: &[u8]) -> Method {
        match text {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"CONNECT" => Method::Connect,
            b"OPTIONS" => Method::Options,
            b"TRACE" => Method::Trace,
            b"PATCH" => Method::Patch,
            b"QUERY" => Method::Query,
            b"PROPFIND" => Method::Propfind,
            b"REPORT" => Method::Report,
            b"SEARCH" => Method::Search,
            _ => Method::Other,
        }
    }

    /// `None` for [`Method::Other`], whose text only the head has.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Connect => "CONNECT",
            Method::Options => "OPTIONS",
            Method::Trace => "TRACE",
            Method::Patch => "PATCH",
            Method::Query => "QUERY",
            Method::Propfind => "PROPFIND",
            Method::Report => "REPORT",
            Method::Search => "SEARCH",
            Method::Other => return None,
        })
    }

    /// As in IANA's registry (RFC 9110 §16.1.1). Unknown methods count as unsafe.
    pub fn is_safe(self) -> bool {
        use Method::{Get, Head, Options, Propfind, Query, Report, Search, Trace};
        matches!(self, Get | Head | Options | Trace | Query | Propfind | Report | Search)
    }

    /// Whether a body in the request has no meaning that all servers know (RFC 9110 §9.3.1, §9.3.2, §9.3.5): some
    /// leave it unread, and take it for the next request.
    pub fn has_no_use_for_body(self) -> bool {
        matches!(self, Method::Get | Method::Head | Method::Delete | Method::Options | Method::Trace)
    }

    /// Whether repeating the request has the same effect (RFC 9110 §9.2.2), so that it may be retried on
    /// another upstream. Unknown methods count as not idempotent.
    pub fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Method::Put | Method::Delete)
    }
}
