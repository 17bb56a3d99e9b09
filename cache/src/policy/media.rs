//! Media types of responses that may have no end: later clients would get a beginning that is of no use to them.
//!
//! Next: `judge`, which stores none of them.

/// Media types of streams: server-sent events (WHATWG HTML §9.2), replacing images, gRPC.
pub(super) fn is_endless(content_type: &[u8]) -> bool {
    let media = media_type(content_type);
    [b"text/event-stream" as &[u8], b"multipart/x-mixed-replace"]
        .iter()
        .any(|known| media.eq_ignore_ascii_case(known))
        || media.get(..16).is_some_and(|start| start.eq_ignore_ascii_case(b"application/grpc"))
}

/// Media types of consecutive records, which may be a file or a stream.
pub(super) fn is_in_records(content_type: &[u8]) -> bool {
    const TYPES: [&[u8]; 9] = [
        b"application/x-ndjson",
        b"application/ndjson",
        b"application/jsonl",
        b"application/x-jsonl",
        b"application/jsonlines",
        b"application/x-jsonlines",
        b"application/json-seq",
        b"application/stream+json",
        b"application/x-json-stream",
    ];
    let media = media_type(content_type);
    TYPES.iter().any(|known| media.eq_ignore_ascii_case(known))
}

fn media_type(content_type: &[u8]) -> &[u8] {
    content_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii()
}
