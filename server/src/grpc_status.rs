//! Failures as gRPC's clients understand them: beside the status of HTTP stands that of gRPC.
//!
//! It is for calls in a location with `grpc_pass`, whose client expects no page. The status of HTTP stays what it is, so that logs and `error_page`
//! mean what they mean everywhere. Next: `content/fixed`, which answers so, and `exchange/transfer`, which ends a stream so.

use crate::request::Request;
use millstream_wire::h1::encode;
use millstream_wire::{FieldId, Headers};

/// The response's fields for a gRPC call that failed with an HTTP status; `None` for other requests.
pub fn of(request: &Request, status: u16) -> Option<Headers> {
    if status < 400 || !is_call(request) {
        return None;
    }
    let mut headers = Headers::new();
    headers.push(b"Content-Type", b"application/grpc");
    push(&mut headers, status);
    Some(headers)
}

pub fn behind(request: &Request, status: u16) -> Option<Headers> {
    if !request.is_on_stream() || !is_call(request) {
        return None;
    }
    let mut headers = Headers::new();
    push(&mut headers, status);
    Some(headers)
}

fn push(headers: &mut Headers, status: u16) {
    headers.push(b"grpc-status", itoa::Buffer::new().format(code(status)).as_bytes());
    headers.push(b"grpc-message", format!("{status} {}", encode::reason(status)).as_bytes());
}

fn is_call(request: &Request) -> bool {
    const TYPE: &[u8] = b"application/grpc";
    let is_passed = request.location().settings.pass().is_some_and(|pass| pass.grpc().is_some());
    let media = request.field(FieldId::ContentType).unwrap_or_default();
    is_passed && media.strip_prefix(TYPE).is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

/// gRPC's "HTTP to gRPC Status Code Mapping", extended by sizes, timeouts and limits.
fn code(status: u16) -> u32 {
    match status {
        400 | 431 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        408 | 504 => 4,
        413 => 8,
        429 | 502 | 503 => 14,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn a_status_has_the_code_that_tells_a_caller_what_to_do() {
        for (status, expected) in [
            (401, 16),
            (403, 7),
            (404, 12),
            (413, 8),
            (429, 14),
            (502, 14),
            (503, 14),
            (504, 4),
            (500, 2),
            (418, 2),
        ] {
            assert_eq!(code(status), expected, "{status}");
        }
    }
}
