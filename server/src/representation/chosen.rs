//! What of a response a client gets, for every response at hand: its conditions, range and coding, in this order.
//!
//! The one file that decides it, whether the response is in memory, in a file, arriving or fresh from the upstream: an [`Offer`] becomes
//! what is [`Chosen`], and that a [`Shape`], the head with the extent of the body. As in nginx, a response that is compressed on its way
//! has no ranges, nor has one whose length is unknown or changed by filters. nginx answers HEAD with ranges as well; here `Range` counts
//! in GET alone (RFC 9110 §14.2). Next: `multipart`, several ranges in one response; `hit` and `follow`, which send.

use super::multipart::Multipart;
use crate::client::{AnswerHead, Client};
use crate::filter::chain::{self, Change};
use crate::filter::coding::{self, Plain};
use crate::filter::head;
use crate::request::Request;
use millstream_cache::Head;
use millstream_conf::model::IfModifiedSince;
use millstream_net::clock;
use millstream_wire::conditional::{self, Outcome, Validators};
use millstream_wire::range::{self, ContentRange, Ranges, Spec};
use millstream_wire::{Coding, FieldId, Fields, Headers, Method, date};
use std::ops::Range;

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// Conditions and ranges need a 200.
    pub status: u16,
    pub fields: Fields<'a>,
    pub validators: Validators<'a>,
    pub length: Option<u64>,
    /// Whether its bytes come once and in order, which allows only one range.
    pub is_stream: bool,
}

impl<'a> Offer<'a> {
    #[inline]
    pub fn stored(head: Head<'a>, length: Option<u64>, is_stream: bool) -> Offer<'a> {
        let validators = Validators { etag: head.etag(), last_modified: head.last_modified };
        Offer { status: head.status, fields: head.fields(), validators, length, is_stream }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// With its own status; coded here unless filters come first.
    Whole(Option<Coding>),
    /// 206.
    Part(Range<u64>),
    /// 206, multipart, in the requested order.
    Parts(Vec<Range<u64>>),
    /// 304.
    NotModified,
    /// 412.
    PreconditionFailed,
    /// 416, with the complete length.
    Unsatisfiable(u64),
}

/// What the response cannot satisfy: an error, see [`refuse`].
#[derive(Debug)]
pub enum Unmet {
    Condition,
    Range(u64, Box<Headers>),
}

/// A head, and which part of the body follows.
#[derive(Debug)]
pub struct Shape {
    pub status: u16,
    pub headers: Headers,
    /// Before coding.
    pub length: Option<u64>,
    pub extent: Extent,
}

#[derive(Debug)]
pub enum Extent {
    Nothing,
    Whole,
    Part(Range<u64>),
    Parts(Multipart),
}

/// By conditions, then by range (RFC 9110 §13.2.2).
pub fn choose(request: &Request, offer: &Offer<'_>) -> Chosen {
    // Most requests ask for the whole: one look at their fields tells.
    if offer.status == 200 && request.received.head.fields.iter().any(|field| asks_for_less(field.id)) {
        match evaluate(request, offer.validators) {
            Outcome::Proceed => {}
            Outcome::NotModified => return Chosen::NotModified,
            Outcome::PreconditionFailed => return Chosen::PreconditionFailed,
        }
    }
    choose_range(request, offer)
}

/// By range alone: the upstream has judged the conditions.
pub fn choose_range(request: &Request, offer: &Offer<'_>) -> Chosen {
    let Offer { status, fields, length, .. } = *offer;
    let coding = coding::choose(request, &Plain { status: request.outgoing(status), fields, length });
    if coding.is_none()
        && let Some(value) = request.field(FieldId::Range)
        && let (Method::Get, 200, Some(length)) = (request.method, status, length)
        && may_have_ranges(request, offer)
    {
        let most = if offer.is_stream { Some(1) } else { request.location().settings.ranges.max };
        let change = chain::change(request, fields, Some(length));
        match range::parse(value, length, most) {
            _ if change == Change::Length => {}
            Ranges::Ignore => {}
            Ranges::Unsatisfiable => return Chosen::Unsatisfiable(length),
            Ranges::Parts(mut parts) if parts.len() == 1 => return Chosen::Part(parts.remove(0)),
            // What stands between the parts is not to be changed with them.
            Ranges::Parts(_) if change == Change::Bytes || offer.is_stream => {}
            Ranges::Parts(parts) => return Chosen::Parts(parts),
        }
    }
    Chosen::Whole(coding.filter(|_| !chain::is_there(request)))
}

/// From a stored part; `None` unless it contains the single requested range. Positions are in the whole.
pub fn choose_within(request: &Request, head: Head<'_>) -> Option<Chosen> {
    let (part, validators) = (head.part?, Offer::stored(head, None, false).validators);
    if request.method != Method::Get
        || has_no_ranges(request)
        || !conditional::range_applies(request.fields(), validators)
    {
        return None;
    }
    let spec = range::only(request.field(FieldId::Range)?)?;
    let range = match (spec, part.complete) {
        (_, Some(complete)) => spec.of(complete),
        (Spec::Between(first, last), None) => first..last.checked_add(1)?,
        (Spec::From(_) | Spec::Last(_), None) => return None,
    };
    let is_within = range.start < range.end && range.start >= part.first && range.end <= part.last + 1;
    is_within.then(|| match evaluate(request, validators) {
        Outcome::Proceed => Chosen::Part(range),
        Outcome::NotModified => Chosen::NotModified,
        Outcome::PreconditionFailed => Chosen::PreconditionFailed,
    })
}

impl Chosen {
    /// `headers` as to be passed on; `length` is that of the whole.
    pub fn shape(
        self,
        request: &mut Request,
        mut headers: Headers,
        status: u16,
        length: Option<u64>,
    ) -> Result<Shape, Unmet> {
        if !matches!(self, Chosen::Whole(_)) {
            // What is made of a page has a status of its own, which nothing takes the place of.
            request.descent.error_status = None;
        }
        if matches!(self, Chosen::NotModified | Chosen::Part(_) | Chosen::Parts(_)) {
            head::vary_as_whole(request, &mut headers, length);
        }
        let (status, length, extent) = match self {
            Chosen::Whole(_) => {
                announce(request, status, &mut headers);
                // RFC 9110 §8.6: an answer that never has a body says nothing about its length.
                (status, length.filter(|_| request.outgoing(status) != 204), Extent::Whole)
            }
            Chosen::Part(part) => {
                describe_part(&mut headers, &part, length);
                (206, Some(part.end - part.start), Extent::Part(part))
            }
            Chosen::Parts(ranges) => {
                let layout = Multipart::new(&mut headers, ranges, length.unwrap_or_default());
                (206, Some(layout.length()), Extent::Parts(layout))
            }
            Chosen::NotModified => {
                describe_no_body(&mut headers);
                (304, None, Extent::Nothing)
            }
            Chosen::PreconditionFailed => return Err(Unmet::Condition),
            Chosen::Unsatisfiable(length) => return Err(Unmet::Range(length, Box::new(headers))),
        };
        let extent = if request.gets_body(status) { extent } else { Extent::Nothing };
        Ok(Shape { status, headers, length, extent })
    }
}

fn asks_for_less(id: FieldId) -> bool {
    matches!(
        id,
        FieldId::IfMatch | FieldId::IfNoneMatch | FieldId::IfModifiedSince | FieldId::IfUnmodifiedSince
    )
}

impl Shape {
    pub fn begin(&self, request: &mut Request, client: &mut Client, age: Option<u64>) {
        let Shape { status, length, .. } = *self;
        client.begin(request, AnswerHead { status, fields: self.headers.view(), length, age });
    }
}

fn evaluate(request: &Request, validators: Validators<'_>) -> Outcome {
    // The page of an error is not what the client has a copy of.
    if is_page_of_error(request) {
        return Outcome::Proceed;
    }
    match conditional::evaluate(request.method, request.fields(), validators) {
        Outcome::NotModified if !date_counts(request, validators) => Outcome::Proceed,
        outcome => outcome,
    }
}

/// Whether `if_modified_since` confirms a 304 by date alone: as in nginx the default demands the exact date.
fn date_counts(request: &Request, validators: Validators<'_>) -> bool {
    if request.fields().has(FieldId::IfNoneMatch) {
        return true;
    }
    match request.location().settings.ranges.if_modified_since {
        IfModifiedSince::Off => false,
        IfModifiedSince::Exact => {
            request.field(FieldId::IfModifiedSince).and_then(date::parse_http) == validators.last_modified
        }
        IfModifiedSince::Before => true,
    }
}

fn is_page_of_error(request: &Request) -> bool {
    request.descent.error_status.is_some_and(|status| status != 200)
}

/// `max_ranges 0`, or an error page.
fn has_no_ranges(request: &Request) -> bool {
    request.location().settings.ranges.max == Some(0) || is_page_of_error(request)
}

fn may_have_ranges(request: &Request, offer: &Offer<'_>) -> bool {
    !has_no_ranges(request)
        && offers_ranges(request, offer.fields)
        && conditional::range_applies(request.fields(), offer.validators)
        && is_strong(request, offer)
}

/// A date in `If-Range` counts only if the response did not change in the second it was made (RFC 9110
/// §8.8.2.2).
fn is_strong(request: &Request, offer: &Offer<'_>) -> bool {
    let by_date = request.field(FieldId::IfRange).is_some_and(|value| !value.ends_with(b"\""));
    if !by_date {
        return true;
    }
    let made = offer.fields.get(FieldId::Date).and_then(date::parse_http);
    let made = made.unwrap_or_else(|| clock::wall().seconds);
    offer.validators.last_modified.is_some_and(|modified| modified < made)
}

/// Any part of a whole response can be served, unless the origin says otherwise.
fn offers_ranges(request: &Request, fields: Fields<'_>) -> bool {
    forced(request)
        || !fields.get(FieldId::AcceptRanges).is_some_and(|value| value.eq_ignore_ascii_case(b"none"))
}

/// `proxy_force_ranges`.
pub fn forced(request: &Request) -> bool {
    request.location().settings.pass().is_some_and(|proxy| proxy.exchange.force_ranges)
}

/// Sets Accept-Ranges of a whole response, unless the origin says that there are no ranges.
pub fn announce(request: &Request, status: u16, headers: &mut Headers) {
    if request.location().settings.ranges.max == Some(0) {
        headers.remove(FieldId::AcceptRanges);
    } else if status == 200 && !is_page_of_error(request) && offers_ranges(request, headers.view()) {
        headers.set(b"Accept-Ranges", b"bytes");
    }
}

/// `complete`: the whole's length; `None` if unknown.
fn describe_part(headers: &mut Headers, part: &Range<u64>, complete: Option<u64>) {
    let range = ContentRange { first: part.start, last: part.end.saturating_sub(1), complete };
    let mut value = Vec::with_capacity(48);
    range.write(&mut value);
    headers.remove(FieldId::AcceptRanges);
    headers.set(b"Content-Range", &value);
}

/// Removes fields about a body (RFC 9110 §15.4.5).
fn describe_no_body(headers: &mut Headers) {
    for id in [FieldId::ContentType, FieldId::ContentEncoding, FieldId::ContentRange, FieldId::AcceptRanges] {
        headers.remove(id);
    }
}

/// Returns the status. As in nginx the page of 416 has the response's fields except those about its body. It
/// adds the complete length (RFC 9110 §15.5.17) and drops freshness, which does not apply to it.
pub fn refuse(request: &mut Request, unmet: Unmet) -> u16 {
    let Unmet::Range(length, fields) = unmet else { return 412 };
    let handed_on = request.descent.accel_fields.get_or_insert_default();
    for (_, name, value) in fields.view().iter().filter(|(id, name, _)| !is_of_whole(*id, name)) {
        handed_on.push(name, value);
    }
    handed_on.set(b"Content-Range", format!("bytes */{length}").as_bytes());
    416
}

/// Whether a field describes the whole body, its time or its freshness.
fn is_of_whole(id: FieldId, name: &[u8]) -> bool {
    use FieldId as F;
    const OTHERS: [&str; 4] = ["content-md5", "content-digest", "digest", "repr-digest"];
    match id {
        F::ContentDisposition | F::ContentEncoding | F::ContentLanguage | F::ContentLocation => true,
        F::ContentLength | F::ContentRange | F::ContentType | F::AcceptRanges | F::Trailer => true,
        F::ETag | F::LastModified | F::Date => true,
        F::Age | F::CacheControl | F::CdnCacheControl | F::Expires | F::Pragma | F::SurrogateControl => true,
        _ => OTHERS.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes())),
    }
}
