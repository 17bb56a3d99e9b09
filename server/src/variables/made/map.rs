//! `map`: the value of the first key that a text is, in nginx's order.
//!
//! A look-up without expressions allocates nothing. What an expression captures is what `$1` and its names are from there on,
//! as in nginx.

use crate::request::Request;
use crate::route::capture;
use crate::variables::personal::shown_by;
use crate::variables::{evaluate, tell};
use millstream_conf::model::{Level, Map};

pub(super) fn append(map: &Map, request: &Request, out: &mut Vec<u8>) {
    let start = out.len();
    evaluate(&map.source, request, out);
    if map.hostnames && out.len() > start && out.last() == Some(&b'.') {
        out.pop();
    }
    // Behind the text for as long as it is looked up, a copy in lower case.
    let end = out.len();
    out.extend_from_within(start..);
    out[end..].make_ascii_lowercase();
    let found = map.keys.find(&out[end..]).copied();
    out.truncate(end);
    let found = found.or_else(|| by_expression(map, request, &out[start..])).or(map.default);
    out.truncate(start);
    if let Some(value) = found.and_then(|found| map.values.get(found as usize)) {
        evaluate(value, request, out);
    }
}

/// Never for an empty text, as in nginx. One that hits its limit ends the search, with `default`.
fn by_expression(map: &Map, request: &Request, text: &[u8]) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    for (regex, value) in &map.expressions {
        match capture(regex, text) {
            Ok(None) => {}
            Ok(Some(captured)) => {
                request.take_captures(captured, text, shown_by(&map.source, request));
                return Some(*value);
            }
            Err(undecided) => {
                tell(request, Level::Alert, format_args!("{undecided}"));
                return None;
            }
        }
    }
    None
}
