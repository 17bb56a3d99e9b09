//! Trailer fields: those of the upstream and `add_trailer`'s, behind the body of a chunked answer.
//!
//! Their values are evaluated when the body has gone out, each with those before it in view. Before: `filter/head`; next:
//! `client/sending`, which frames them.

use crate::filter::head;
use crate::filter::sink::Sink;
use crate::request::Request;
use millstream_wire::Fields;
use millstream_wire::h1::encode;

/// Whether the location wants fields behind the body of an answer with this status. Parts of an answer have none.
pub fn are_expected(request: &Request, status: u16) -> bool {
    let add = &request.location().settings.trailers.add;
    !add.is_empty() && status != 206 && head::applying(add, status).next().is_some()
}

/// Appends all of them.
pub fn write(out: &mut Vec<u8>, request: &mut Request, of_upstream: Option<Fields<'_>>) {
    let mut sent = std::mem::take(&mut request.sent.trailers);
    sent.clear();
    for (_, name, value) in of_upstream.into_iter().flat_map(|fields| fields.iter()) {
        encode::field(&mut sent, name, value);
    }
    let status = request.sent.status;
    request.sent.trailers = sent;
    for add in head::applying(&request.location().settings.trailers.add.clone(), status) {
        let mut line = Vec::new();
        head::write_add(&mut Sink::new(&mut line), request, add);
        request.sent.trailers.extend_from_slice(&line);
    }
    out.extend_from_slice(&request.sent.trailers);
}
