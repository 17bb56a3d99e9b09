//! The present second as text, made once a second on each thread: Date fields and log lines take it from here.

use millstream_net::clock;
use millstream_wire::date;
use std::cell::RefCell;

#[derive(Clone, Copy)]
pub struct TimeText {
    seconds: i64,
    /// `Date` (RFC 9110 §5.6.7).
    pub http: [u8; 29],
    /// `$time_local`.
    pub local: [u8; 26],
    /// `$time_iso8601`.
    pub iso8601: [u8; 25],
}

thread_local! {
    static NOW: RefCell<Option<TimeText>> = const { RefCell::new(None) };
}

pub fn with_now<R>(read: impl FnOnce(&TimeText) -> R) -> R {
    let seconds = clock::wall().seconds;
    NOW.with_borrow_mut(|now| match now {
        Some(text) if text.seconds == seconds => read(text),
        _ => read(now.insert(TimeText::at(seconds))),
    })
}

impl TimeText {
    fn at(seconds: i64) -> Self {
        let offset = clock::utc_offset(seconds);
        TimeText {
            seconds,
            http: date::format_http(seconds),
            local: date::format_clf(seconds, offset),
            iso8601: date::format_iso8601(seconds, offset),
        }
    }
}
