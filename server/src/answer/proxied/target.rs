//! The request target as it goes upstream, by the rules of `proxy_pass`.
//!
//! With a URI part, that replaces what the location's prefix matched of the normalised URI, and the result is escaped
//! again; without one, path and query go on as they came. Nothing that could end the request line gets through.

use crate::request::{Arguments, Request};
use millstream_conf::model::{LocationMatch, Proxy};
use millstream_wire::target::{encode_raw, escape_uri};

/// Appends the target. `evaluated` is the URI of a `proxy_pass` with variables, which stands for the whole.
pub(super) fn append(out: &mut Vec<u8>, request: &Request, proxy: &Proxy, evaluated: Option<&[u8]>) {
    let start = out.len();
    match (evaluated, &proxy.pass.uri) {
        (Some(uri), _) => {
            if !uri.starts_with(b"/") {
                out.push(b'/');
            }
            encode_raw(uri, out);
        }
        (None, Some(uri)) => {
            encode_raw(uri.as_bytes(), out);
            escape_uri(&request.uri[matched(request).min(request.uri.len())..], out);
            append_query(out, request);
        }
        // An internal redirect has replaced what came.
        (None, None) if request.redirects > 0 || matches!(request.arguments, Arguments::Replaced(_)) => {
            escape_uri(&request.uri, out);
            append_query(out, request);
        }
        (None, None) => request.head.write_origin_form(&request.bytes, out),
    }
    if out.len() == start {
        out.push(b'/');
    }
}

/// How much of the URI the location's prefix matched.
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
