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
        "The time within which a client must send the head of a request. If it does not, it gets 408.",
        Apply::Level(|l, d, r| l.client_header.timeout = r.duration(&d.args[0]))),
    once("large_client_header_buffers", HTTP_SERVER, (2, 2), "number size", "4 8k",
        "Limits the size of a request's head. The request line must fit into one buffer (otherwise 414), as must each field (431), and the head into \
        all of them (431).",
        Apply::Level(large_client_header_buffers)),
    once("merge_slashes", HTTP_SERVER, (1, 1), "on | off", "on",
        "Treats adjacent slashes in a path as one.",
        Apply::Level(|l, d, r| l.client_header.merge_slashes = r.flag(&d.args[0]))),
    idle("client_header_buffer_size", HTTP_SERVER, (1, 1), "size",
        "The size of the first buffer for a request's head.",
        "all connections share one pool of buffers; large_client_header_buffers is the limit"),
    once("max_headers", HTTP_SERVER, (1, 1), "number", "1000",
        "The maximum number of fields in a request. A request with more gets 400.",
        Apply::Level(|l, d, r| {
            let number = r.number(&d.args[0], 0, MOST_FIELDS);
            l.client_header.max_fields = number.map(|number| number as usize);
        })),
    once("ignore_invalid_headers", HTTP_SERVER, (1, 1), "on | off", "on",
        "Drops request fields whose names contain characters other than letters, digits and hyphens, instead of passing them to the upstream. A request with a name that is \
        not a token (RFC 9110 §5.1) is always rejected.",
        Apply::Level(|l, d, r| l.client_header.ignore_invalid = r.flag(&d.args[0]))),
    once("underscores_in_headers", HTTP_SERVER, (1, 1), "on | off", "off",
        "Allows underscores in the names that `ignore_invalid_headers` checks. Many applications do not distinguish `_` from `-`, so that a client \
        could forge the field of a proxy.",
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
