//! Which bytes of an answer a request gets, and the head that goes with them (RFC 9110 §14).
//!
//! It selects and writes heads; the bytes come from whoever has them: `hit` and `stored` (the cache), `follow` (a fill
//! on its way), `file`. As in nginx, an answer that is compressed on its way has no ranges, and neither has one of unknown
//! length, or whose length filters change. Against RFC 9110 §14.2 nginx answers HEAD with ranges as well; here `Range` counts in GET alone.
//! Next: `multipart`, several ranges in one answer.

pub mod multipart;
#[cfg(test)]
mod tests;

use crate::filter::chain::{self, Change};
use crate::filter::coding::{self, Plain};
use crate::request::Request;
use millstream_net::clock;
use millstream_wire::conditional::{self, Validators};
use millstream_wire::range::{self, ContentRange, Ranges};
use millstream_wire::{FieldId, Fields, Headers, Method, date};
use std::ops::Range;

/// An answer out of which a range may be asked.
pub struct Offer<'a> {
    /// Its status; only a 200 has ranges.
    pub status: u16,
    /// Its fields.
    pub fields: Fields<'a>,
    /// What `If-Range` is compared with.
    pub validators: Validators<'a>,
    /// Length of the body, where known.
    pub length: Option<u64>,
    /// Whether its bytes come once and in order, so that there can only be one range.
    pub is_stream: bool,
}

impl Offer<'_> {
    /// What decides about its coding.
    fn plain(&self) -> Plain<'_> {
        Plain { status: self.status, fields: self.fields, length: self.length }
    }
}

/// What of an answer a request gets.
#[derive(Debug, PartialEq, Eq)]
pub enum Selection {
    /// All of it, with its own status.
    Whole,
    /// One range: 206.
    Part(Range<u64>),
    /// Several ranges, as they were asked for: 206, multipart.
    Parts(Vec<Range<u64>>),
    /// Nothing of what was asked exists: 416, see [`refuse`].
    Unsatisfiable(u64),
}

/// Selects what a request gets. Its conditions have been evaluated (RFC 9110 §13.2.2).
pub fn select(request: &Request, offer: &Offer<'_>) -> Selection {
    let Some(value) = request.field(FieldId::Range) else { return Selection::Whole };
    let (Method::Get, 200, Some(length)) = (request.method, offer.status, offer.length) else {
        return Selection::Whole;
    };
    let most = request.location().settings.ranges.max;
    if most == Some(0)
        || request.error_status.is_some_and(|status| status != 200)
        || !(offers_ranges(request, offer.fields))
        || !conditional::range_applies(request.fields(), offer.validators)
        || !is_strong(request, offer)
        || coding::choose(request, &offer.plain()).is_some()
    {
        return Selection::Whole;
    }
    let change = chain::change(request, offer.fields, offer.length);
    if change == Change::Length {
        return Selection::Whole;
    }
    match range::parse(value, length, if offer.is_stream { Some(1) } else { most }) {
        Ranges::Ignore => Selection::Whole,
        Ranges::Unsatisfiable => Selection::Unsatisfiable(length),
        Ranges::Parts(mut parts) if parts.len() == 1 => Selection::Part(parts.remove(0)),
        // What stands between the parts is not to be changed with them.
        Ranges::Parts(_) if change == Change::Bytes => Selection::Whole,
        Ranges::Parts(parts) => Selection::Parts(parts),
    }
}

/// A date in `If-Range` is only good where the answer did not change in the second it was made in (RFC 9110 §8.8.2.2).
fn is_strong(request: &Request, offer: &Offer<'_>) -> bool {
    let by_date = request.field(FieldId::IfRange).is_some_and(|value| !value.ends_with(b"\""));
    if !by_date {
        return true;
    }
    let made = offer.fields.get(FieldId::Date).and_then(date::parse_http);
    let made = made.unwrap_or_else(|| clock::wall().seconds);
    offer.validators.last_modified.is_some_and(|modified| modified < made)
}

/// Who has an answer whole can give any part of it; only where the origin says that there are none, there are none.
fn offers_ranges(request: &Request, fields: Fields<'_>) -> bool {
    forced(request)
        || !fields.get(FieldId::AcceptRanges).is_some_and(|value| value.eq_ignore_ascii_case(b"none"))
}

/// `proxy_force_ranges`.
pub fn forced(request: &Request) -> bool {
    request.location().settings.pass().is_some_and(|proxy| proxy.exchange.force_ranges)
}

/// Settles Accept-Ranges in the head of a whole answer that the cache can give parts of: it has ranges, unless the origin
/// says that there are none.
pub fn announce(request: &Request, status: u16, headers: &mut Headers) {
    if request.location().settings.ranges.max == Some(0) {
        headers.remove(FieldId::AcceptRanges);
    } else if status == 200 && offers_ranges(request, headers.view()) {
        headers.set(b"Accept-Ranges", b"bytes");
    }
}

/// Makes a head that of one range of a whole of `complete` bytes (`None`: not known).
pub fn describe_part(headers: &mut Headers, part: &Range<u64>, complete: Option<u64>) {
    let range = ContentRange { first: part.start, last: part.end.saturating_sub(1), complete };
    let mut value = Vec::with_capacity(48);
    range.write(&mut value);
    headers.remove(FieldId::AcceptRanges);
    headers.set(b"Content-Range", &value);
}

/// Nothing of what was asked exists: the page of the status says how long the whole is (RFC 9110 §15.5.17).
pub fn refuse(request: &mut Request, length: u64) -> u16 {
    let value = format!("bytes */{length}");
    request.accel_fields.get_or_insert_default().set(b"Content-Range", value.as_bytes());
    416
}
