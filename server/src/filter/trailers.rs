//! Trailer fields: those of the upstream and `add_trailer`'s, behind the body of a chunked answer.
//!
//! Their values are evaluated when the body has gone out, each with those before it in view. Before: `filter/head`; next:
//! `client/sending`, which frames them.

use crate::filter::head;
use crate::filter::sink::{Sink, Writing};
use crate::request::Request;
use millstream_conf::model::Pass;
use millstream_wire::Fields;
use millstream_wire::h1::encode;
use millstream_wire::h2::hpack::encoder;

/// Partial responses have none.
pub fn are_expected(request: &Request, status: u16) -> bool {
    let add = &request.location().settings.trailers.add;
    !add.is_empty() && status != 206 && head::applying(add, status).next().is_some()
}

/// Whether the upstream may send some behind a body of known length (RFC 9113 §8.1).
pub fn may_come(request: &Request) -> bool {
    let passes = |pass: &Pass| pass.is_http2() && pass.passes_trailers();
    !request.tries.list.is_empty() && request.location().settings.pass().is_some_and(passes)
}

pub fn write(out: &mut Vec<u8>, request: &mut Request, of_upstream: Option<Fields<'_>>) {
    make(request, of_upstream);
    out.extend_from_slice(&request.sent.trailers);
}

pub fn block(request: &mut Request, of_upstream: Option<Fields<'_>>) -> Option<Vec<u8>> {
    make(request, of_upstream);
    let mut block = Vec::new();
    for line in request.sent.trailers.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(colon) = line.iter().position(|byte| *byte == b':') {
            encoder::field(&mut block, &line[..colon], line[colon + 1..].trim_ascii());
        }
    }
    (!block.is_empty()).then_some(block)
}

/// Each may refer to those before it.
fn make(request: &mut Request, of_upstream: Option<Fields<'_>>) {
    let mut sent = std::mem::take(&mut request.sent.trailers);
    sent.clear();
    for (_, name, value) in of_upstream.into_iter().flat_map(|fields| fields.iter()) {
        encode::field(&mut sent, name, value);
    }
    let status = request.sent.status;
    request.sent.trailers = sent;
    for add in head::applying(&request.location().settings.trailers.add.clone(), status) {
        let mut line = Vec::new();
        head::write_add(&mut Sink::new(&mut line, Writing::Text), request, add);
        request.sent.trailers.extend_from_slice(&line);
    }
}
