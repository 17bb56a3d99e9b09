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
        "The maximum time between two writes of a response to the client. If the client receives nothing within this time, the connection is closed.",
        Apply::Level(|l, d, r| l.send.timeout = r.duration(&d.args[0]))),
    once("tcp_nodelay", HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
        "Sends small packets without delay (TCP_NODELAY).",
        Apply::Level(|l, d, r| l.send.tcp_nodelay = r.flag(&d.args[0]))),
    once("chunked_transfer_encoding", HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
        "Sends responses without a length in chunks to HTTP/1.1 clients. If off, such a response ends with the connection.",
        Apply::Level(|l, d, r| l.send.chunked = r.flag(&d.args[0]))),
    once("http2_chunk_size", HTTP_SERVER_LOCATION, (1, 1), "size", "8k",
        "The maximum amount of a response body in one HTTP/2 frame. A client may require smaller frames.",
        Apply::Level(http2_chunk_size)),
    idle("send_lowat", HTTP_SERVER_LOCATION, (1, 1), "size",
        "The low-water mark of client sockets.",
        "Linux does not support it for sending"),
    idle("tcp_nopush", HTTP_SERVER_LOCATION, (1, 1), "on | off",
        "Sends head and file in full packets (TCP_CORK).",
        "head and body are written together"),
    idle("sendfile", UP_TO_IF, (1, 1), "on | off",
        "Copies files to sockets in the kernel.",
        "files are always sent with it, popular ones from memory"),
    idle("sendfile_max_chunk", HTTP_SERVER_LOCATION, (1, 1), "size",
        "The maximum size of one sendfile call.",
        "the size of each call is always limited"),
    idle("postpone_output", HTTP_SERVER_LOCATION, (1, 1), "size",
        "The minimum amount of data that is sent.",
        "data is sent as soon as it is ready, together with the head"),
    idle("msie_padding", HTTP_SERVER_LOCATION, (1, 1), "on | off",
        "Adds comments to error pages for old browsers.",
        "error pages are sent unchanged"),
    idle("reset_timedout_connection", HTTP_SERVER_LOCATION, (1, 1), "on | off",
        "Resets timed-out connections to free their buffers.",
        "the buffers of a timed-out connection are always freed at once"),
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
