//! How answers are sent to clients.
//!
//! Next: `millstream-server`'s `client/sending`.

use std::time::Duration;

use super::context::{HTTP_SERVER_LOCATION, UP_TO_IF};
use super::level::settings;
use super::{Apply, Row, idle, once};

settings! {
    /// `send_timeout`, `tcp_nodelay`, `chunked_transfer_encoding` of a location.
    pub struct Sending, SendLevel(place, reading) {
        /// `send_timeout`, default 60 s, between two writes.
        timeout: Duration = Duration::from_secs(60),
        /// `tcp_nodelay`, default on.
        tcp_nodelay: bool = true,
        /// `chunked_transfer_encoding`, default on.
        chunked: bool = true,
    }
}

/// The rows of this feature.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("send_timeout", HTTP_SERVER_LOCATION, (1, 1), "time", "60s",
        "How long a client may pause between two reads of an answer; then the connection is closed.",
        Apply::Level(|l, d, r| l.send.timeout = r.duration(&d.args[0]))),
    once("tcp_nodelay", HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
        "Whether small pieces are sent at once (TCP_NODELAY).",
        Apply::Level(|l, d, r| l.send.tcp_nodelay = r.flag(&d.args[0]))),
    once("chunked_transfer_encoding", HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
        "Whether answers without a length are chunked for HTTP/1.1 clients; else the connection's end is theirs.",
        Apply::Level(|l, d, r| l.send.chunked = r.flag(&d.args[0]))),
    idle("send_lowat", HTTP_SERVER_LOCATION, (1, 1), "size",
        "The low-water mark of sockets to clients.",
        "the system this runs on has no such mark for sending"),
    idle("tcp_nopush", HTTP_SERVER_LOCATION, (1, 1), "on | off",
        "Whether nginx sends head and file in full packets (TCP_CORK).",
        "head and body leave in one write, so there is nothing to hold back"),
    idle("sendfile", UP_TO_IF, (1, 1), "on | off",
        "Whether nginx copies files to sockets inside the kernel.",
        "hot answers are served from memory, where sendfile has nothing to save"),
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
