//! The rest of an answer whose part is stored: asked for alone, and put together with what is there (RFC 9111 §3.4).
//!
//! Only what is provably of one representation is combined: the same strong tag, exactly the range that was asked for, the
//! same length of the whole, the same coding. With If-Range an upstream that has another representation sends that whole;
//! whatever else comes that does not fit, the part is forgotten and the whole is asked for.

use super::answered::Answered;
use super::filling::{StoredParts, fill};
use super::{Filling, Passing, Proxied};
use millstream_cache::{FillPermit, Hit, Now, Part, StoredHead};
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::range::ContentRange;
use millstream_wire::{FieldId, Fields, date, etag};
use std::borrow::Cow;
use std::rc::Rc;

pub struct Rest {
    hit: Rc<Hit>,
    part: Part,
    wanted: ContentRange,
    complete: u64,
}

impl Rest {
    /// `None` without a strong ETag or the complete length, or if both ends are missing.
    pub fn of(hit: &Rc<Hit>) -> Option<Rest> {
        let part = hit.entry.head().part?;
        let complete = part.complete?;
        let tag = hit.entry.head().etag()?;
        if !etag::is_valid(tag) || etag::is_weak(tag) || hit.entry.length() != part.last - part.first + 1 {
            return None;
        }
        let (first, last) = match (part.first, part.last + 1 == complete) {
            (0, false) => (part.last + 1, complete - 1),
            (1.., true) => (0, part.first - 1),
            _ => return None,
        };
        let wanted = ContentRange { first, last, complete: Some(complete) };
        Some(Rest { hit: hit.clone(), part, wanted, complete })
    }

    pub(super) fn fields(&self) -> [(&'static [u8], Cow<'_, [u8]>); 2] {
        let ContentRange { first, last, .. } = self.wanted;
        let value = if last + 1 == self.complete {
            format!("bytes={first}-")
        } else {
            format!("bytes={first}-{last}")
        };
        let tag = self.hit.entry.head().etag().unwrap_or_default();
        [(b"Range", value.into_bytes().into()), (b"If-Range", tag.into())]
    }

    fn is_in(&self, fields: Fields<'_>, announced: Option<u64>) -> bool {
        let stored = self.hit.entry.head();
        let same_tag = match (stored.etag(), fields.get(FieldId::ETag)) {
            (Some(own), Some(tag)) => etag::strong_match(own, tag),
            _ => false,
        };
        let coding =
            |fields: Fields<'_>| fields.get(FieldId::ContentEncoding).map(<[u8]>::to_ascii_lowercase);
        same_tag
            && fields.all(FieldId::ContentRange).count() == 1
            && fields.get(FieldId::ContentRange).and_then(ContentRange::parse) == Some(self.wanted)
            && announced.is_none_or(|length| length == self.wanted.length())
            && coding(stored.fields()) == coding(fields)
    }

    /// The stored bytes, before or behind those requested. `None` if they cannot be read.
    async fn kept(&self) -> Option<StoredParts> {
        let stored = self.hit.entry.body().open(0..self.hit.entry.length()).await.ok()?;
        let (before, after) = if self.part.first == 0 { (Some(stored), None) } else { (None, Some(stored)) };
        Some(StoredParts { before, after, expected: self.wanted.length() })
    }
}

/// The range of a 206; `None` if it is missing, doubled, or contradicts the framing: no one else can use it
/// (RFC 9110 §14.4).
pub(super) fn part(status: u16, fields: Fields<'_>, announced: Option<u64>) -> Option<Part> {
    if status != 206 || fields.all(FieldId::ContentRange).count() != 1 {
        return None;
    }
    let range = fields.get(FieldId::ContentRange).and_then(ContentRange::parse)?;
    let fits = announced.is_none_or(|length| length == range.length());
    fits.then_some(Part { first: range.first, last: range.last, complete: range.complete })
}

/// Whether a part cannot be matched with another for lack of a validator. A part that is the whole needs
/// none.
pub(super) fn fits_nothing(part: Option<Part>, fields: Fields<'_>) -> bool {
    part.is_some_and(|part| part.first > 0 || part.complete.is_none_or(|complete| part.last + 1 < complete))
        && !fields.has(FieldId::ETag)
        && fields.get(FieldId::LastModified).and_then(date::parse_http).is_none()
}

/// Combines a 206 with the stored part and stores the whole. Any other response caused by our range is
/// discarded, and the whole requested.
pub(super) async fn combine(
    passing: &mut Passing<'_>,
    answered: Answered,
    head: &ResponseHead,
    permit: FillPermit,
    rest: Box<Rest>,
) -> Proxied {
    let now = Now::read();
    let fields = answered.fields(head);
    let combined = match passing.proxy.cache.as_ref() {
        Some(cache) if head.status == 206 && rest.is_in(fields, answered.connection.remaining()) => {
            let mut headers = rest.hit.entry.head().updated(fields);
            headers.remove(FieldId::ContentRange);
            match passing.terms_of(&answered, cache, (200, false), headers.view(), now) {
                Ok((lifetime, tags)) => {
                    let complete = Some(rest.complete);
                    let mut stored = StoredHead::new(200, headers.view(), complete, lifetime, now);
                    stored.tags = tags;
                    Some(stored)
                }
                Err(_) => None,
            }
        }
        _ => None,
    };
    let kept = if combined.is_some() { rest.kept().await } else { None };
    let (Some(stored), Some(kept)) = (combined, kept) else {
        forget(passing, &rest.hit);
        passing.note_end(&answered.connection, 0, millstream_net::clock::now());
        return Proxied::Again(Filling::Permit(permit));
    };
    let begun = permit.begin(stored, passing.request.fields(), now);
    fill(passing, answered, begun, Some(kept)).await
}

fn forget(passing: &Passing<'_>, hit: &Rc<Hit>) {
    if let Some(cache) = &passing.proxy.cache {
        passing.request.generation.shared.zones.stores[cache.zone.0 as usize].forget(&hit.entry);
    }
}
