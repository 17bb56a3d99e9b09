//! What stands in place of a part of a field: what an expression makes of it, fit to be sent.

use crate::request::Request;
use crate::route::{Undecided, capture};
use crate::shows::Shows;
use crate::variables::value;
use millstream_conf::model::{Regex, Template};

pub(super) fn matched(
    request: &mut Request,
    from: &Regex,
    to: &Template,
    text: &[u8],
) -> Result<Option<Vec<u8>>, Undecided> {
    let Some(captured) = capture(from, text)? else { return Ok(None) };
    let before = request.route.captures.take();
    request.take_captures(captured, text, Shows::NOTHING);
    let replaced = value(to, request);
    request.route.captures.replace(before);
    Ok(Some(replaced))
}

/// Blanks line ends, which decoded variables may have, so that they start no new field.
pub(super) fn sanitised(mut text: Vec<u8>) -> Vec<u8> {
    text.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
    text
}
