//! The request target as it goes upstream, by the rules of `proxy_pass`.
//!
//! With a URI part, that replaces what the location's prefix matched of the normalised URI, and the result is escaped
//! again; without one, path and query go on as they came. Nothing that could end the request line gets through.
//! The default `proxy_cache_key` ends in it. Next: `exchange/request_head`, which sends it.

use crate::request::{Arguments, Request};
use millstream_conf::model::{LocationMatch, Pass, Protocol};
use millstream_wire::target::{encode_raw, escape_uri};

/// `evaluated`: the URI of a `proxy_pass` with variables, which replaces all of it.
pub fn append(out: &mut Vec<u8>, request: &Request, proxy: &Pass, evaluated: Option<&[u8]>) {
    let start = out.len();
    match (evaluated, proxy.http().and_then(|http| http.uri.as_deref())) {
        (Some(uri), _) => {
            if !uri.starts_with(b"/") {
                out.push(b'/');
            }
            encode_raw(uri, out);
        }
        // A rewrite took the path out of the location: there is nothing that the URI could stand in place of.
        (None, Some(_)) if request.route.is_outside => append_rewritten(out, request),
        (None, Some(uri)) => {
            encode_raw(uri.as_bytes(), out);
            escape_uri(&request.route.uri[matched(request).min(request.route.uri.len())..], out);
            append_query(out, request);
        }
        // An internal redirect has replaced what came.
        (None, None) if is_replaced(request) => append_rewritten(out, request),
        (None, None) => request.received.head.write_origin_form(&request.received.bytes, out),
    }
    if out.len() == start {
        out.push(b'/');
    }
}

/// Adds a slash that a `rewrite` may have lost.
fn append_rewritten(out: &mut Vec<u8>, request: &Request) {
    if !request.route.uri.starts_with(b"/") {
        out.push(b'/');
    }
    escape_uri(&request.route.uri, out);
    append_query(out, request);
}

/// Whether the path or query differs from the received target.
pub fn is_replaced(request: &Request) -> bool {
    request.route.is_rewritten || matches!(request.route.arguments, Arguments::Replaced(_))
}

/// Bytes of the URI that the location's prefix matched.
fn matched(request: &Request) -> usize {
    match &request.location().matches {
        LocationMatch::Exact(path) | LocationMatch::Prefix { path, .. } => path.len(),
        LocationMatch::Regex(_) | LocationMatch::Named(_) | LocationMatch::Server => 0,
    }
}

fn append_query(out: &mut Vec<u8>, request: &Request) {
    if let Some(query) = request.query().filter(|query| !query.is_empty()) {
        out.push(b'?');
        encode_raw(query, out);
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    pub encrypted: bool,
    /// `host`, `host:port` or `unix:/path`.
    pub authority: &'a [u8],
    pub uri: &'a [u8],
}

impl<'u> Parts<'u> {
    /// `$proxy_host`, with the port unless it is the default, and `$proxy_port`. A socket has no host.
    pub fn host(&self) -> (&'u [u8], u16) {
        let usual = if self.encrypted { 443 } else { 80 };
        if self.authority.starts_with(b"unix:") {
            return (b"localhost", 0);
        }
        let colon = memchr::memrchr(b':', self.authority).filter(|_| !self.authority.ends_with(b"]"));
        let Some(colon) = colon else { return (self.authority, usual) };
        let port = std::str::from_utf8(&self.authority[colon + 1..]).ok().and_then(|text| text.parse().ok());
        match port.unwrap_or(usual) {
            port if port == usual => (&self.authority[..colon], port),
            port => (self.authority, port),
        }
    }
}

const HTTP: [&[u8]; 2] = [b"https://", b"http://"];
const GRPC: [&[u8]; 2] = [b"grpcs://", b"grpc://"];
const UWSGI: [&[u8]; 2] = [b"suwsgi://", b"uwsgi://"];

pub fn parts<'u>(url: &'u [u8], proxy: &Pass) -> Option<Parts<'u>> {
    match &proxy.protocol {
        Protocol::Http(_) => split(url, HTTP),
        Protocol::Grpc(_) => url_or_address(url, GRPC),
        Protocol::Uwsgi(_) => url_or_address(url, UWSGI),
        Protocol::FastCgi(_) | Protocol::Scgi(_) => address(url),
    }
}

fn url_or_address<'u>(url: &'u [u8], schemes: [&[u8]; 2]) -> Option<Parts<'u>> {
    let is_url = memchr::memmem::find(url, b"://").is_some();
    let parts = if is_url { split(url, schemes) } else { address(url) };
    parts.filter(|parts| parts.uri.is_empty())
}

fn address(address: &[u8]) -> Option<Parts<'_>> {
    let authority = match address.strip_suffix(b":") {
        Some(path) if path.starts_with(b"unix:") => path,
        _ => address,
    };
    (!authority.is_empty()).then_some(Parts { encrypted: false, authority, uri: b"" })
}

/// `http://host[:port][/uri]` and `http://unix:/path[:/uri]`, also for the encrypted scheme.
fn split<'u>(url: &'u [u8], [encrypted, plain]: [&[u8]; 2]) -> Option<Parts<'u>> {
    let begins = |scheme: &[u8]| {
        let (own, rest) = url.split_at_checked(scheme.len())?;
        (own.eq_ignore_ascii_case(scheme) && !rest.is_empty()).then_some(rest)
    };
    let (encrypted, rest) = match begins(encrypted) {
        Some(rest) => (true, rest),
        None => (false, begins(plain)?),
    };
    if let Some(path) = rest.strip_prefix(b"unix:") {
        let end = path.iter().position(|&byte| byte == b':').unwrap_or(path.len());
        let (authority, uri) = (&rest[..5 + end], path.get(end + 1..).unwrap_or_default());
        return Some(Parts { encrypted, authority, uri });
    }
    let end = rest.iter().position(|&byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    (end > 0).then(|| Parts { encrypted, authority: &rest[..end], uri: &rest[end..] })
}

#[cfg(test)]
mod tests {
    use super::{HTTP, Parts, split};

    #[test]
    fn the_host_of_an_evaluated_proxy_pass_has_the_port_that_is_not_the_scheme_s() {
        let check = |url: &str, expected: (&str, u16)| {
            let parts = split(url.as_bytes(), HTTP).expect("it is a URL");
            assert_eq!(parts.host(), (expected.0.as_bytes(), expected.1), "{url}");
        };
        check("http://api/x", ("api", 80));
        check("http://api:80", ("api", 80));
        check("https://api:443/", ("api", 443));
        check("https://api:80/", ("api:80", 80));
        check("http://127.0.0.1:8080", ("127.0.0.1:8080", 8080));
        check("http://[::1]:80/", ("[::1]", 80));
        check("http://[::1]/", ("[::1]", 80));
        check("http://unix:/run/api.sock:/v1", ("localhost", 0));
    }

    #[test]
    fn an_evaluated_proxy_pass_is_taken_apart() {
        let check = |url: &str, expected: Option<(&str, &str)>| {
            let expected = expected.map(|(authority, uri)| Parts {
                encrypted: url.starts_with("https"),
                authority: authority.as_bytes(),
                uri: uri.as_bytes(),
            });
            assert_eq!(split(url.as_bytes(), HTTP), expected, "{url}");
        };
        check("http://api", Some(("api", "")));
        check("HTTP://api:8080/v1/x?y", Some(("api:8080", "/v1/x?y")));
        check("http://api?x", Some(("api", "?x")));
        check("http://[::1]:80/", Some(("[::1]:80", "/")));
        check("http://unix:/run/api.sock", Some(("unix:/run/api.sock", "")));
        check("http://unix:/run/api.sock:/v1", Some(("unix:/run/api.sock", "/v1")));
        check("https://api/x", Some(("api", "/x")));
        check("https://", None);
        check("ftp://api", None);
        check("http://", None);
        check("api", None);
    }
}
