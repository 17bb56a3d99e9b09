//! What a path of the API names, and the arguments behind it.
//!
//! The location's own prefix is taken off, then NGINX Plus's version and `http`. Pure.

use crate::request::Request;
use millstream_conf::model::LocationMatch;

/// Arguments of one request at the most.
const ARGUMENTS: usize = 256;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// The API itself.
    Root,
    /// All zones.
    Caches,
    /// One zone.
    Cache(String),
    /// Purging, in one zone or wherever it falls.
    Purge(Option<String>),
    /// Why a URL is answered as it is.
    Explain,
    /// Why requests were not answered from the cache.
    Misses,
    /// All that is counted.
    Metrics,
}

/// What a request's path names.
pub fn of(request: &Request) -> Option<Resource> {
    let prefix = match &request.location().matches {
        LocationMatch::Prefix { path, .. } | LocationMatch::Exact(path) => path.len(),
        LocationMatch::Regex(_) | LocationMatch::Named(_) | LocationMatch::Server => 0,
    };
    named(std::str::from_utf8(request.uri.get(prefix..)?).ok()?)
}

fn named(path: &str) -> Option<Resource> {
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.first().is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit())) {
        parts.remove(0);
    }
    if parts.first() == Some(&"http") {
        parts.remove(0);
    }
    Some(match parts[..] {
        [] => Resource::Root,
        ["caches"] => Resource::Caches,
        ["caches", zone] => Resource::Cache(zone.to_owned()),
        ["caches", zone, "purge"] => Resource::Purge(Some(zone.to_owned())),
        ["purge"] => Resource::Purge(None),
        ["explain"] => Resource::Explain,
        ["misses"] => Resource::Misses,
        ["metrics"] => Resource::Metrics,
        _ => return None,
    })
}

/// The arguments of a query, decoded, in order.
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

/// Percent-decodes; what is no escape stays as it is.
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

/// Percent-encodes a value so that [`arguments`] gives it back.
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
        check("", Some(Resource::Root));
        check("/9/http/caches/", Some(Resource::Caches));
        check("caches/one", Some(Resource::Cache("one".into())));
        check("/caches/one/purge", Some(Resource::Purge(Some("one".into()))));
        check("purge", Some(Resource::Purge(None)));
        check("/http/explain", Some(Resource::Explain));
        check("/caches/one/purge/more", None);
        check("/other", None);
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
