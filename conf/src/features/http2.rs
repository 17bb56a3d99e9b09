//! HTTP/2 and HTTP/3 to clients, which are not spoken yet: what asks for them is read, checked and told of once.
//!
//! Clients speak HTTP/1.1 wherever one of these is offered, because the protocol is agreed on at each connection. Next: `listen`,
//! whose parameters `http2` and `quic` mean the same.

use super::context::{Contexts, HTTP, HTTP_SERVER, HTTP_SERVER_LOCATION, MAIN};
use super::{Apply, Row, idle, once};
use crate::reading::Reading;
use crate::source::Span;
use crate::tree::Directive;

const HTTP_1: &str = "clients are answered with HTTP/1.1";
const OBSOLETE: &str = "nginx has no use for it any more either";

const fn http2(name: &'static str, contexts: Contexts, doc: &'static str) -> Row {
    idle(name, contexts, (1, 1), "value", doc, HTTP_1)
}

const fn obsolete(name: &'static str, contexts: Contexts) -> Row {
    idle(name, contexts, (1, 1), "value", "Of earlier versions of nginx.", OBSOLETE)
}

/// The rows of these.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("http2", HTTP_SERVER, (1, 1), "on | off", "off",
        "Accepted with a warning: clients are answered with HTTP/1.1, which every client of HTTP/2 speaks as well.",
        Apply::Level(|_, d, r| asked(d, http2_is_not_spoken, r))),
    once("http3", HTTP_SERVER, (1, 1), "on | off", "on",
        "Accepted: without a `listen` with `quic`, which is not opened, it means nothing.",
        Apply::Level(|_, d, r| asked(d, |_, _| (), r))),
    http2("http2_body_preread_size", HTTP_SERVER, "How much of a body is read before it is asked for."),
    http2("http2_chunk_size", HTTP_SERVER_LOCATION, "How much of an answer goes into one frame."),
    http2("http2_max_concurrent_streams", HTTP_SERVER, "How many requests one connection may have open."),
    http2("http2_pool_size", HTTP_SERVER, "The memory pool of a request."),
    http2("http2_recv_buffer_size", HTTP, "The buffer that a worker reads into."),
    http2("http2_streams_index_size", HTTP_SERVER, "The hash table of a connection's requests."),
    obsolete("http2_idle_timeout", HTTP_SERVER),
    obsolete("http2_max_concurrent_pushes", HTTP_SERVER),
    obsolete("http2_max_field_size", HTTP_SERVER),
    obsolete("http2_max_header_size", HTTP_SERVER),
    obsolete("http2_max_requests", HTTP_SERVER),
    obsolete("http2_push", HTTP_SERVER_LOCATION),
    obsolete("http2_push_preload", HTTP_SERVER_LOCATION),
    obsolete("http2_recv_timeout", HTTP_SERVER),
    http2("http3_hq", HTTP_SERVER, "HTTP/0.9 over QUIC, for tests of interoperability."),
    http2("http3_max_concurrent_streams", HTTP_SERVER, "How many requests one connection may have open."),
    http2("http3_stream_buffer_size", HTTP_SERVER, "The buffer of a request."),
    http2("quic_active_connection_id_limit", HTTP_SERVER, "How many names of a connection are kept."),
    http2("quic_bpf", MAIN, "How packets find their worker."),
    http2("quic_gso", HTTP_SERVER, "Whether several packets are sent at once."),
    http2("quic_host_key", HTTP_SERVER, "The key that seals addresses."),
    http2("quic_retry", HTTP_SERVER, "Whether clients prove their address."),
];

fn asked(directive: &Directive, told: fn(Span, &mut Reading<'_>), reading: &mut Reading<'_>) {
    if reading.flag(&directive.args[0]) == Some(true) {
        told(directive.span, reading);
    }
}

/// Warns, once for a configuration, that there is no HTTP/2.
pub(super) fn http2_is_not_spoken(span: Span, reading: &mut Reading<'_>) {
    reading
        .diagnostics
        .warning(span, "Millstream does not speak HTTP/2 to clients (yet); they are answered with HTTP/1.1")
        .once();
}

/// Warns, once for a configuration, that an address is not opened for QUIC.
pub(super) fn quic_is_not_opened(span: Span, reading: &mut Reading<'_>) {
    reading
        .diagnostics
        .warning(span, "Millstream does not speak HTTP/3 (yet); addresses with \"quic\" are not opened")
        .help("clients that try HTTP/3 go on with TCP; leave out an Alt-Svc field that sends them here")
        .once();
}
