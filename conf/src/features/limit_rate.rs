//! `limit_rate`: how fast an answer is sent to its client.
//!
//! Next: `millstream-server`'s `limits/limit_rate`.

use super::context::UP_TO_IF;
use super::level::settings;
use super::templates::Templates;
use super::{Apply, Row, once};
use crate::reading::Reading;
use crate::template::Template;
use crate::tree::Word;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestSize {
    /// In bytes; 0 = none.
    Fixed(u64),
    Variable(Template),
}

impl Templates for RequestSize {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        match self {
            RequestSize::Fixed(_) => {}
            RequestSize::Variable(template) => all.push(template),
        }
    }
}

settings! {
    pub struct LimitRate, LimitRateLevel(place, reading) {
        /// Bytes per second; 0 = unlimited.
        rate: RequestSize = RequestSize::Fixed(0),
        /// Bytes sent before the limit applies.
        after: RequestSize = RequestSize::Fixed(0),
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("limit_rate", UP_TO_IF, (1, 1), "rate", "0",
        "The rate at which a response is sent, in bytes per second; 0 disables the limit. It applies to each request: a client with two connections \
        gets twice as much. The value may contain variables. `X-Accel-Limit-Rate` in the upstream's response takes precedence.",
        Apply::Level(|l, d, r| l.limit_rate.rate = size(&d.args[0], r))),
    once("limit_rate_after", UP_TO_IF, (1, 1), "size", "0",
        "The number of bytes that are sent before `limit_rate` applies.",
        Apply::Level(|l, d, r| l.limit_rate.after = size(&d.args[0], r))),
];

pub(in crate::features) fn size(word: &Word, reading: &mut Reading<'_>) -> Option<RequestSize> {
    let template = reading.template(word);
    match template.as_literal() {
        Some(_) => reading.size(word).map(RequestSize::Fixed),
        None => Some(RequestSize::Variable(template)),
    }
}
