//! The phase of limits: how many requests a second, and how many at a time.
//!
//! It comes before the access phase, once for a request however often its URI changes. In nginx's order a request is first
//! counted for its rate, perhaps delayed, and then for being under way. Next: `limit_req`, `limit_conn`; `limit_zone`, where is
//! counted; `phase`.

mod limit_req;
mod limit_conn;
pub mod exact;
pub mod limit_rate;

use crate::failure;
use crate::request::Request;
use exact::{Asking, Beginning};
use millstream_conf::model::{Level, Settings, Template};
use millstream_net::buffers;
use std::time::Instant;

pub enum Ruling {
    Passes,
    Until(Instant),
    Refused(u16),
    /// `sync=exact`: the engine is asked whether the request is in its rate.
    Asks(Box<Asking>),
    /// `sync=exact`: the engine is asked whether one more may be under way.
    Begins(Box<Beginning>),
}

pub fn pass(request: &mut Request, settings: &Settings) -> Ruling {
    let rates = &settings.limit_req;
    let ruling = if rates.is_exact { exact::pass(request, rates) } else { limit_req::pass(request, rates) };
    if !matches!(ruling, Ruling::Passes) {
        return ruling;
    }
    // What the engine decides is asked last.
    let mut exact = Vec::new();
    match limit_conn::pass(request, &settings.limit_conn, &mut exact) {
        Ruling::Passes if !exact.is_empty() => Ruling::Begins(Box::new(Beginning::new(exact))),
        ruling => ruling,
    }
}

/// Passes on a key built in a buffer of the thread. An empty one, or one over `longest` bytes, is not
/// counted, as in nginx.
fn with_key<T>(
    key: &Template,
    longest: usize,
    request: &Request,
    then: impl FnOnce(&[u8]) -> T,
) -> Option<T> {
    let mut buffer = buffers::take();
    crate::variables::evaluate(key, request, &mut buffer);
    let made = (1..=longest).contains(&buffer.len()).then(|| then(&buffer));
    if buffer.len() > longest {
        let source = &key.source;
        let what = format_args!("the value of the \"{source}\" key is longer than {longest} bytes");
        failure::log(request, Level::Error, what);
    }
    buffers::give(buffer);
    made
}
