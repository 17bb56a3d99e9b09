//! What a path of the API names, and the arguments behind it.
//!
//! The location's own prefix is taken off, then NGINX Plus's version and `http`. Pure.

use crate::dashboard::Asset;
use crate::status::Subject;
use millstream_conf::model::LocationMatch;
use millstream_server::request::Request;

const ARGUMENTS: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    Versions,
    Root,
    Http,
    Status(Subject, Vec<String>),
    Purge(Option<String>),
    Explain,
    Misses,
    Shadow,
    Cluster,
    Metrics,
    Asset(Asset),
    Live,
    Health,
    Readiness,
}

pub fn of(request: &Request, on_dashboard: bool) -> Option<Resource> {
    let prefix = match &request.location().matches {
        LocationMatch::Prefix { path, .. } | LocationMatch::Exact(path) => path.len(),
        LocationMatch::Regex(_) | LocationMatch::Named(_) | LocationMatch::Server => 0,
    };
    // As it was sent, so that a name may have a slash in it (`%2F`), where the prefix stands there as it is written.
    let sent = request.request_uri().split(|&byte| byte == b'?').next().unwrap_or_default();
    let as_sent = sent.get(..prefix) == request.route.uri.get(..prefix);
    let path = if as_sent { sent.get(prefix..)? } else { request.route.uri.get(prefix..)? };
    let path = std::str::from_utf8(path).ok()?;
    if on_dashboard { beside_page(path) } else { named(path) }
}

/// Next to the dashboard: its page, health checks, and the API below its name.
pub(crate) fn beside_page(path: &str) -> Option<Resource> {
    Some(match path {
        "metrics" => Resource::Metrics,
        "healthz" => Resource::Health,
        "readyz" => Resource::Readiness,
        "live" => Resource::Live,
        "api" => Resource::Versions,
        _ => {
            let rest = path.strip_prefix("api/");
            return rest.map_or_else(|| Asset::named(path).map(Resource::Asset), named);
        }
    })
}

fn named(path: &str) -> Option<Resource> {
    let decode = |part: &str| String::from_utf8_lossy(&decoded(part.as_bytes())).into_owned();
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decode).collect();
    let mut parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let versioned = parts.first().is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    if versioned {
        parts.remove(0);
    }
    let in_http = parts.first() == Some(&"http");
    if in_http {
        parts.remove(0);
    }
    Some(match parts[..] {
        [] if in_http => Resource::Http,
        [] if versioned => Resource::Root,
        [] => Resource::Versions,
        ["caches", zone, "purge"] => Resource::Purge(Some(zone.to_owned())),
        ["purge"] => Resource::Purge(None),
        ["explain"] => Resource::Explain,
        ["misses"] => Resource::Misses,
        ["shadow"] => Resource::Shadow,
        ["cluster"] => Resource::Cluster,
        ["metrics"] => Resource::Metrics,
        ["live"] => Resource::Live,
        [name, ref rest @ ..] => {
            // The zones of caches are found without `http` as well.
            let subject = Subject::named(name, in_http).or_else(|| Subject::named(name, true))?;
            Resource::Status(subject, rest.iter().map(|part| (*part).to_owned()).collect())
        }
    })
}

pub fn arguments(query: &[u8]) -> Vec<(String, Vec<u8>)> {
    let each = query.split(|&byte| byte == b'&').filter(|one| !one.is_empty()).take(ARGUMENTS);
    each.map(|one| {
        let (name, value) = match one.iter().position(|&byte| byte == b'=') {
            Some(at) => (&one[..at], &one[at + 1..]),
            None => (one, &[][..]),
        };
        (String::from_utf8_lossy(&decoded(name)).into_owned(), decoded(value))
    })
    .collect()
}

/// Leaves malformed escapes as they are.
fn decoded(text: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|&byte| char::from(byte).to_digit(16));
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match (byte, digit(text.get(at + 1)), digit(text.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

/// The inverse of [`arguments`].
pub fn encoded(text: &[u8], out: &mut String) {
    for &byte in text {
        if byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_known_with_and_without_version() {
        let check = |path: &str, expected| assert_eq!(named(path), expected, "{path}");
        let status = |subject, rest: &[&str]| {
            Some(Resource::Status(subject, rest.iter().map(|part| (*part).to_owned()).collect()))
        };
        check("", Some(Resource::Versions));
        check("/9/", Some(Resource::Root));
        check("/9/http", Some(Resource::Http));
        check("/9/http/caches/", status(Subject::Caches, &[]));
        check("caches/one", status(Subject::Caches, &["one"]));
        check("/9/nginx", status(Subject::Nginx, &[]));
        check("/9/http/nginx", None);
        check("/9/http/upstreams/a%20b/servers/1", status(Subject::Upstreams, &["a b", "servers", "1"]));
        check("/9/http/location_zones/a%20%2F", status(Subject::LocationZones, &["a /"]));
        check("/caches/one/purge", Some(Resource::Purge(Some("one".into()))));
        check("purge", Some(Resource::Purge(None)));
        check("/http/explain", Some(Resource::Explain));
        check("/caches/one/purge/more", status(Subject::Caches, &["one", "purge", "more"]));
        check("/other", None);
        check("/live", Some(Resource::Live));
    }

    #[test]
    fn what_is_encoded_comes_back() {
        let value = "http://a/b c?d=e&f=%41\u{e9}".as_bytes();
        let mut query = "url=".to_owned();
        encoded(value, &mut query);
        query.push_str("&empty=&bare");
        let expected = vec![
            ("url".to_owned(), value.to_vec()),
            ("empty".to_owned(), Vec::new()),
            ("bare".to_owned(), Vec::new()),
        ];
        assert_eq!(arguments(query.as_bytes()), expected);
        assert_eq!(arguments(b"a=%4"), vec![("a".to_owned(), b"%4".to_vec())]);
    }
}
