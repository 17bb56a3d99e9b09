//! A value with variables in it, compiled at load to parts that are evaluated one after the other.
//!
//! It holds no values; who evaluates it brings the request. Next: `template`, which compiles;
//! `millstream-server`'s `variables`, which evaluates.

use crate::variables::Builtin;

/// Text with variables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    /// The parts in order; adjacent literals are merged.
    pub parts: Box<[Part]>,
    /// As written in the file.
    pub source: Box<str>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Fixed bytes.
    Literal(Box<str>),
    /// A variable.
    Variable(Variable),
}

/// A variable as the request path needs it: resolved to what it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    /// One of the fixed variables of the table in `variables`.
    Builtin(Builtin),
    /// Of the default `proxy_cache_key` alone, nobody can write it: the target as it goes upstream.
    SentTarget,
    /// `$http_NAME`: a request field; the name in lower case with `-` for `_`.
    RequestHeader(Box<str>),
    /// `$sent_http_NAME`: a field of the answer as sent.
    SentHeader(Box<str>),
    /// `$sent_trailer_NAME`.
    SentTrailer(Box<str>),
    /// `$upstream_http_NAME`: a field of the upstream's answer.
    UpstreamHeader(Box<str>),
    /// `$upstream_trailer_NAME`.
    UpstreamTrailer(Box<str>),
    /// `$upstream_cookie_NAME`, from the upstream's Set-Cookie fields.
    UpstreamCookie(Box<str>),
    /// `$cookie_NAME`.
    Cookie(Box<str>),
    /// `$arg_NAME`, names compared without case.
    Argument(Box<str>),
    /// `$1` to `$9`: of the last regular expression that matched.
    Capture(u8),
    /// A named capture of a `server_name` or `location` expression.
    NamedCapture(Box<str>),
}

impl Template {
    /// A template without variables.
    pub fn literal(text: &str) -> Self {
        let parts = if text.is_empty() { vec![] } else { vec![Part::Literal(text.into())] };
        Template { parts: parts.into(), source: text.into() }
    }

    /// The text, where no variable is in it.
    pub fn as_literal(&self) -> Option<&str> {
        match &*self.parts {
            [] => Some(""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The variables in it, in order.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(variable) => Some(variable),
            Part::Literal(_) => None,
        })
    }
}
