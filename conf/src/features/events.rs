//! Directives of the events context.
//!
//! Most are idle: how connections are accepted is settled by one socket per worker. Next: `main`, which holds what they set.

use super::context::EVENTS;
use super::{Apply, Row, idle, once};

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("worker_connections", EVENTS, (1, 1), "number", "512",
        "The maximum number of connections of a worker, including those to upstreams. Further connections wait to be accepted. If the limit is \
        reached, connections that have been idle longest or send their requests slowest are closed first. If the limit on open files is too low \
        for this number, a warning at start reports the possible number.",
        Apply::Main(|main, d, r| {
            if let Some(number) = r.number(&d.args[0], 1, 100_000_000) {
                main.worker_connections = number as u32;
            }
        })),
    once("multi_accept", EVENTS, (1, 1), "on | off", "off",
        "Accepts all waiting connections before the accepted ones are served.",
        Apply::Main(|main, d, r| main.multi_accept = r.flag(&d.args[0]).unwrap_or(false))),
    idle("accept_mutex", EVENTS, (1, 1), "on | off",
        "Workers take turns accepting connections.",
        "each worker has its own listening socket"),
    idle("accept_mutex_delay", EVENTS, (1, 1), "time",
        "How long a worker waits before it tries to accept again.",
        "each worker has its own listening socket"),
    idle("use", EVENTS, (1, 1), "method",
        "The method of waiting for events.",
        "epoll is always used"),
    idle("worker_aio_requests", EVENTS, (1, 1), "number",
        "The maximum number of asynchronous disk operations of a worker.",
        "disk operations run on separate threads, whose number is limited"),
];
