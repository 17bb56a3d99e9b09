//! The phase of limits: how many requests a second, and how many at a time.
//!
//! It comes before the access phase, once for a request however often its URI changes. In nginx's order a request is first
//! counted for its rate, perhaps delayed, and then for being under way. Next: `limit_req`, `limit_conn`; `limit_zone`, where is
//! counted; `phase`.

mod limit_req;
mod limit_conn;
pub mod limit_rate;

use crate::failure;
use crate::request::Request;
use millstream_conf::model::{Level, Settings, Template};
use millstream_net::buffers;
use std::time::Instant;

pub enum Ruling {
    Passes,
    Until(Instant),
    Refused(u16),
}

pub fn pass(request: &mut Request, settings: &Settings) -> Ruling {
    match limit_req::pass(request, &settings.limit_req) {
        Ruling::Passes => {}
        ruling => return ruling,
    }
    match limit_conn::pass(request, &settings.limit_conn) {
        Ok(()) => Ruling::Passes,
        Err(status) => Ruling::Refused(status),
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
