//! Directives for the connection to the client: time limits, buffers, the request's body.
//!
//! Every wait and every buffer of the client side is bounded by one of these. Next: `millstream-server`'s `connection`.

use super::{Apply, HTTP_SERVER, HTTP_SERVER_LOCATION, Row, idle, once};
use crate::inherit::Level;
use crate::model::LingeringClose;
use crate::reading::Reading;
use crate::tree::Directive;

/// The rows of this family.
pub const ROWS: &[Row] = &[
    once(
        "keepalive_timeout",
        HTTP_SERVER_LOCATION,
        (1, 2),
        "timeout [header_timeout]",
        "75s",
        "How long an idle connection of a client stays open; 0 closes it after each answer. The second time is sent as \
         `Keep-Alive: timeout=`.",
        Apply::Level(keepalive_timeout),
    ),
    once(
        "keepalive_requests",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "number",
        "1000",
        "How many requests one connection of a client may bring.",
        Apply::Level(|l, d, r| l.keepalive_requests = r.number(&d.args[0], 0, u64::MAX)),
    ),
    once(
        "keepalive_time",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "time",
        "1h",
        "How old a connection of a client may become before it is closed after an answer.",
        Apply::Level(|l, d, r| l.keepalive_time = r.duration(&d.args[0])),
    ),
    once(
        "client_header_timeout",
        HTTP_SERVER,
        (1, 1),
        "time",
        "60s",
        "How long a client may take to send a request's head; then it gets 408.",
        Apply::Level(|l, d, r| l.client_header_timeout = r.duration(&d.args[0])),
    ),
    once(
        "client_header_buffer_size",
        HTTP_SERVER,
        (1, 1),
        "size",
        "1k",
        "The first buffer for a request's head.",
        Apply::Level(|l, d, r| l.client_header_buffer_size = r.memory_size(&d.args[0])),
    ),
    once(
        "large_client_header_buffers",
        HTTP_SERVER,
        (2, 2),
        "number size",
        "4 8k",
        "How large a request's head may become: its line must fit one buffer (414), a field must too (431), and the whole head \
         all of them (431).",
        Apply::Level(large_client_header_buffers),
    ),
    once(
        "client_body_timeout",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "time",
        "60s",
        "How long a client may pause between two pieces of a body; then it gets 408.",
        Apply::Level(|l, d, r| l.client_body_timeout = r.duration(&d.args[0])),
    ),
    once(
        "client_max_body_size",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "1m",
        "How large a request's body may be; a larger one gets 413. 0 sets no bound.",
        Apply::Level(|l, d, r| l.client_max_body_size = r.offset(&d.args[0])),
    ),
    once(
        "client_body_buffer_size",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "16k",
        "How much of a body is held in memory; a longer one that must be held whole goes to a file.",
        Apply::Level(|l, d, r| l.client_body_buffer_size = r.memory_size(&d.args[0])),
    ),
    once(
        "client_body_temp_path",
        HTTP_SERVER_LOCATION,
        (1, 4),
        "path [level1 [level2 [level3]]]",
        "",
        "The directory for such files, which must be usable by `user`; only its last part is made where it is missing. The levels \
         are accepted and not needed: the files have no names. Where none is written: `client_body_temp` below the prefix \
         if that is there already, else $TMPDIR, `/var/tmp`, `/tmp`, `/dev/shm`, the first that can be used.",
        Apply::Level(|l, d, r| l.client_body_temp_path = r.temp_path(&d.args)),
    ),
    once(
        "send_timeout",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "time",
        "60s",
        "How long a client may pause between two reads of an answer; then the connection is closed.",
        Apply::Level(|l, d, r| l.send_timeout = r.duration(&d.args[0])),
    ),
    once(
        "lingering_close",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "off | on | always",
        "on",
        "Whether what a client still sends is read and thrown away before a connection is closed, so that it can read its answer.",
        Apply::Level(|l, d, r| {
            const CHOICES: [LingeringClose; 3] =
                [LingeringClose::Off, LingeringClose::On, LingeringClose::Always];
            l.lingering_close = r.one_of(&d.args[0], &["off", "on", "always"]).map(|index| CHOICES[index]);
        }),
    ),
    once(
        "lingering_time",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "time",
        "30s",
        "How long that goes on at most.",
        Apply::Level(|l, d, r| l.lingering_time = r.duration(&d.args[0])),
    ),
    once(
        "lingering_timeout",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "time",
        "5s",
        "How long it waits for the next piece.",
        Apply::Level(|l, d, r| l.lingering_timeout = r.duration(&d.args[0])),
    ),
    once(
        "tcp_nodelay",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "on",
        "Whether small pieces are sent at once (TCP_NODELAY).",
        Apply::Level(|l, d, r| l.tcp_nodelay = r.flag(&d.args[0])),
    ),
    idle(
        "tcp_nopush",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "Whether nginx sends head and file in full packets (TCP_CORK).",
        "head and body leave in one write, so there is nothing to hold back",
    ),
    idle(
        "sendfile",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "Whether nginx copies files to sockets inside the kernel.",
        "hot answers are served from memory, where sendfile has nothing to save",
    ),
    idle(
        "sendfile_max_chunk",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "How much one call of sendfile may send.",
        "sendfile is not used; every write is bounded, so no connection can hold a worker",
    ),
    idle(
        "aio",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off | threads[=pool]",
        "Asynchronous reading of files.",
        "files are never read on a worker's loop in the first place",
    ),
    idle(
        "aio_write",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "Asynchronous writing of files.",
        "files are never written on a worker's loop in the first place",
    ),
    idle(
        "directio",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size | off",
        "Reading of large files past the page cache.",
        "files are read through the page cache",
    ),
    idle(
        "directio_alignment",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "The alignment for `directio`.",
        "files are read through the page cache",
    ),
    idle(
        "read_ahead",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "How far the kernel reads files ahead.",
        "the kernel's own choice stays",
    ),
    idle(
        "output_buffers",
        HTTP_SERVER_LOCATION,
        (2, 2),
        "number size",
        "Buffers for reading an answer from disk.",
        "files are read in pieces of a fixed size",
    ),
    idle(
        "postpone_output",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "How much nginx collects before it sends.",
        "what is ready is sent at once, together with the head",
    ),
    idle(
        "connection_pool_size",
        HTTP_SERVER,
        (1, 1),
        "size",
        "The memory pool of a connection.",
        "connections have no memory pools",
    ),
    idle(
        "request_pool_size",
        HTTP_SERVER,
        (1, 1),
        "size",
        "The memory pool of a request.",
        "requests have no memory pools",
    ),
    idle(
        "client_body_in_single_buffer",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "Whether a body is kept in one piece.",
        "no variable reads the body, so its pieces do not matter",
    ),
    idle(
        "msie_padding",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "Comments that make error pages longer for old browsers.",
        "error pages are sent as they are",
    ),
    idle(
        "reset_timedout_connection",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "Whether connections that timed out are reset.",
        "buffers of a connection that timed out are given back at once in any case",
    ),
];

fn keepalive_timeout(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    level.keepalive_timeout = reading.duration(&directive.args[0]);
    level.keepalive_header = directive.args.get(1).and_then(|word| reading.duration(word));
}

/// nginx asks that a line buffer is no smaller than the pool it hangs on.
const SMALLEST_LINE_BUFFER: usize = 512;

fn large_client_header_buffers(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let Some((number, size)) = reading.pieces(&directive.args, 1) else { return };
    if size < SMALLEST_LINE_BUFFER {
        reading
            .error(directive.args[1].span, "the \"large_client_header_buffers\" size must be at least 512")
            .help("write at least 512, better 8k: the request line must fit into one");
        return;
    }
    level.large_client_header_buffers = Some((number, size));
}
