//! How answers are sent to clients.
//!
//! Next: `millstream-server`'s `client/sending`.

use std::time::Duration;

use super::context::{HTTP_SERVER_LOCATION, UP_TO_IF};
use super::level::settings;
use super::{Apply, Level, Row, idle, once};
use crate::reading::Reading;
use crate::tree::Directive;

settings! {
    pub struct Sending, SendLevel(place, reading) {
        /// Between two writes.
        timeout: Duration = Duration::from_secs(60),
        tcp_nodelay: bool = true,
        chunked: bool = true,
        /// The largest frame of a response's body, at least 1 and below 2^24.
        http2_chunk: u32 = 8 * 1024,
    }
}

/// The largest frame of HTTP/2 (RFC 9113 §4.2).
const LARGEST_FRAME: usize = (1 << 24) - 1;

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("send_timeout", HTTP_SERVER_LOCATION, (1, 1), "time", "60s",
        "The maximum time between two reads of a response by the client; then the connection is closed.",
        Apply::Level(|l, d, r| l.send.timeout = r.duration(&d.args[0]))),
    once("tcp_nodelay", HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
        "Whether small pieces are sent at once (TCP_NODELAY).",
        Apply::Level(|l, d, r| l.send.tcp_nodelay = r.flag(&d.args[0]))),
    once("chunked_transfer_encoding", HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
        "Sends responses without a length chunked to HTTP/1.1 clients; otherwise the connection is closed at the end.",
        Apply::Level(|l, d, r| l.send.chunked = r.flag(&d.args[0]))),
    once("http2_chunk_size", HTTP_SERVER_LOCATION, (1, 1), "size", "8k",
        "The maximum part of a response's body in one HTTP/2 frame; a client may accept less.",
        Apply::Level(http2_chunk_size)),
    idle("send_lowat", HTTP_SERVER_LOCATION, (1, 1), "size",
        "The low-water mark of sockets to clients.",
        "the system this runs on has no such mark for sending"),
    idle("tcp_nopush", HTTP_SERVER_LOCATION, (1, 1), "on | off",
        "Whether nginx sends head and file in full packets (TCP_CORK).",
        "head and body leave in one write, so there is nothing to hold back"),
    idle("sendfile", UP_TO_IF, (1, 1), "on | off",
        "Whether nginx copies files to sockets inside the kernel.",
        "hot responses are served from memory, where sendfile saves nothing"),
    idle("sendfile_max_chunk", HTTP_SERVER_LOCATION, (1, 1), "size",
        "How much one call of sendfile may send.",
        "sendfile is not used; every write is bounded, so no connection can hold a worker"),
    idle("postpone_output", HTTP_SERVER_LOCATION, (1, 1), "size",
        "How much nginx collects before it sends.",
        "what is ready is sent at once, together with the head"),
    idle("msie_padding", HTTP_SERVER_LOCATION, (1, 1), "on | off",
        "Comments that make error pages longer for old browsers.",
        "error pages are sent as they are"),
    idle("reset_timedout_connection", HTTP_SERVER_LOCATION, (1, 1), "on | off",
        "Whether connections that timed out are reset.",
        "buffers of a connection that timed out are given back at once in any case"),
];

fn http2_chunk_size(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    match reading.memory_size(&directive.args[0]) {
        Some(0) => {
            let word = &directive.args[0];
            reading.error(word.span, "a size of zero is not possible here").help("write a size such as 8k");
        }
        size => level.send.http2_chunk = size.map(|size| size.min(LARGEST_FRAME) as u32),
    }
}
