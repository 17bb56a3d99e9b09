//! How a request's head is read: time, buffers, slashes.
//!
//! It holds for a server as a whole, since no location is known yet. Next: `millstream-server`'s `connection` and `admission`.

use std::time::Duration;

use super::context::HTTP_SERVER;
use super::level::settings;
use super::{Apply, Level, Row, idle, once};
use crate::reading::Reading;
use crate::tree::Directive;

settings! {
    pub struct ClientHeader, ClientHeaderLevel(place, reading) {
        timeout: Duration = Duration::from_secs(60),
        /// A line must fit one buffer (414, 431), the head all of them.
        large_buffers: (usize, usize) = (4, 8192),
        merge_slashes: bool = true,
        max_fields: usize = 1000,
        ignore_invalid: bool = true,
        underscores: bool = false,
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("client_header_timeout", HTTP_SERVER, (1, 1), "time", "60s",
        "How long a client may take to send a request's head; then it gets 408.",
        Apply::Level(|l, d, r| l.client_header.timeout = r.duration(&d.args[0]))),
    once("large_client_header_buffers", HTTP_SERVER, (2, 2), "number size", "4 8k",
        "How large a request's head may become: its line must fit one buffer (414), a field must too (431), and the whole head \
        all of them (431).",
        Apply::Level(large_client_header_buffers)),
    once("merge_slashes", HTTP_SERVER, (1, 1), "on | off", "on",
        "Whether several slashes in a row count as one.",
        Apply::Level(|l, d, r| l.client_header.merge_slashes = r.flag(&d.args[0]))),
    idle("client_header_buffer_size", HTTP_SERVER, (1, 1), "size",
        "The first buffer for a request's head.",
        "every connection reads into a buffer from one pool, and large_client_header_buffers is the bound"),
    once("max_headers", HTTP_SERVER, (1, 1), "number", "1000",
        "The maximum number of fields in a request; more get 400.",
        Apply::Level(|l, d, r| {
            let number = r.number(&d.args[0], 0, MOST_FIELDS);
            l.client_header.max_fields = number.map(|number| number as usize);
        })),
    once("ignore_invalid_headers", HTTP_SERVER, (1, 1), "on | off", "on",
        "Whether fields whose name has other characters than letters, digits and hyphens stay behind when a request is passed on. \
        A name that is no token (RFC 9110 §5.1) is refused either way.",
        Apply::Level(|l, d, r| l.client_header.ignore_invalid = r.flag(&d.args[0]))),
    once("underscores_in_headers", HTTP_SERVER, (1, 1), "on | off", "off",
        "Whether an underscore counts as a letter there. Many applications take `_` and `-` for the same, so that a client could \
        pretend to be a proxy.",
        Apply::Level(|l, d, r| l.client_header.underscores = r.flag(&d.args[0]))),
    idle("connection_pool_size", HTTP_SERVER, (1, 1), "size",
        "The memory pool of a connection.",
        "connections have no memory pools"),
    idle("request_pool_size", HTTP_SERVER, (1, 1), "size",
        "The memory pool of a request.",
        "requests have no memory pools"),
];

/// nginx requires a line buffer of at least `connection_pool_size`, which is at least this.
const SMALLEST_LINE_BUFFER: usize = 128;
/// Upper bound of `max_headers`.
const MOST_FIELDS: u64 = 100_000;

fn large_client_header_buffers(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let Some((number, size)) = reading.pieces(&directive.args, 1) else { return };
    if size < SMALLEST_LINE_BUFFER {
        reading
            .error(directive.args[1].span, "the \"large_client_header_buffers\" size must be at least 128")
            .help("write at least 128, better 8k: the request line must fit into one");
        return;
    }
    level.client_header.large_buffers = Some((number, size));
}
