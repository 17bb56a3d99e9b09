//! HTTP/2 to clients, and what asks for HTTP/3, which is not spoken yet.
//!
//! It holds for a server as a whole: a connection is its address's default server's until a request says more. Next: `listen`, whose
//! parameters `http2` and `quic` mean the same; `millstream-server`'s `connection/h2`.

use super::context::{Contexts, HTTP, HTTP_SERVER, HTTP_SERVER_LOCATION, MAIN};
use super::level::settings;
use super::{Apply, Level, Row, idle, once};
use crate::reading::Reading;
use crate::source::Span;
use crate::tree::Directive;

settings! {
    pub struct Http2, Http2Level(place, reading) {
        enabled: bool = false,
        max_concurrent_streams: u32 = 128,
        /// `http2_body_preread_size`: how much of a body may arrive before it is read.
        body_preread: usize = 64 * 1024,
    }
}

/// The largest window (RFC 9113 §6.9.1).
const LARGEST_WINDOW: usize = (1 << 31) - 1;
/// Upper bound of streams per connection: each costs memory.
const MOST_STREAMS: u64 = 65_535;

const OBSOLETE: &str = "nginx no longer uses it either";

const fn quic(name: &'static str, contexts: Contexts, doc: &'static str) -> Row {
    idle(name, contexts, (1, 1), "value", doc, "HTTP/3 is not supported")
}

const fn obsolete(name: &'static str, contexts: Contexts) -> Row {
    idle(name, contexts, (1, 1), "value", "Obsolete in nginx.", OBSOLETE)
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("http2", HTTP_SERVER, (1, 1), "on | off", "off",
        "Enables HTTP/2: with TLS for clients that negotiate it (ALPN), without TLS for clients that start with its preface (prior knowledge). Other \
        clients use HTTP/1.1.",
        Apply::Level(|l, d, r| l.http2.enabled = r.flag(&d.args[0]))),
    once("http3", HTTP_SERVER, (1, 1), "on | off", "on",
        "Accepted for compatibility. HTTP/3 is not supported, and addresses with `listen … quic` are not opened.",
        Apply::Level(|_, d, r| _ = r.flag(&d.args[0]))),
    once("http2_max_concurrent_streams", HTTP_SERVER, (1, 1), "number", "128",
        "The maximum number of concurrent requests on an HTTP/2 connection. Further requests are refused (REFUSED_STREAM); most clients wait instead.",
        Apply::Level(|l, d, r| l.http2.max_concurrent_streams = r.number(&d.args[0], 1, MOST_STREAMS).map(|number| number as u32))),
    once("http2_body_preread_size", HTTP_SERVER, (1, 1), "size", "64k",
        "The size of the buffer for an HTTP/2 request body before it is processed.",
        Apply::Level(http2_body_preread_size)),
    idle("http2_pool_size", HTTP_SERVER, (1, 1), "size", "The memory pool of a request.", "requests have no memory pools"),
    idle("http2_recv_buffer_size", HTTP, (1, 1), "size", "The input buffer of a worker.",
        "all connections share one pool of buffers"),
    idle("http2_streams_index_size", HTTP_SERVER, (1, 1), "number", "The hash table of a connection's streams.",
        "streams are found in an ordered list"),
    obsolete("http2_idle_timeout", HTTP_SERVER),
    obsolete("http2_max_concurrent_pushes", HTTP_SERVER),
    obsolete("http2_max_field_size", HTTP_SERVER),
    obsolete("http2_max_header_size", HTTP_SERVER),
    obsolete("http2_max_requests", HTTP_SERVER),
    obsolete("http2_push", HTTP_SERVER_LOCATION),
    obsolete("http2_push_preload", HTTP_SERVER_LOCATION),
    obsolete("http2_recv_timeout", HTTP_SERVER),
    quic("http3_hq", HTTP_SERVER, "Enables HTTP/0.9 over QUIC for interoperability tests."),
    quic("http3_max_concurrent_streams", HTTP_SERVER, "The maximum number of concurrent requests on a connection."),
    quic("http3_stream_buffer_size", HTTP_SERVER, "The buffer size of a request."),
    quic("quic_active_connection_id_limit", HTTP_SERVER, "The maximum number of ids of a connection."),
    quic("quic_bpf", MAIN, "Routes packets to workers with eBPF."),
    quic("quic_gso", HTTP_SERVER, "Sends packets with segmentation offloading."),
    quic("quic_host_key", HTTP_SERVER, "The secret key that encrypts tokens."),
    quic("quic_retry", HTTP_SERVER, "Validates client addresses."),
];

fn http2_body_preread_size(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let Some(size) = reading.memory_size(&directive.args[0]) else { return };
    if size > LARGEST_WINDOW {
        let what = "\"http2_body_preread_size\" is larger than 2147483647, the largest window of HTTP/2";
        reading.error(directive.args[0].span, what).help("write a size such as 64k");
        return;
    }
    level.http2.body_preread = Some(size);
}

/// Once per configuration.
pub(super) fn quic_is_not_opened(span: Span, reading: &mut Reading<'_>) {
    reading
        .diagnostics
        .warning(span, "Millstream does not support HTTP/3 (yet); addresses with \"quic\" are not opened")
        .help("clients that try HTTP/3 fall back to TCP; remove an Alt-Svc field that refers them to it")
        .once();
}
