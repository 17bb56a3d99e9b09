//! Conditional requests (RFC 9110 §13): does the stored or fixed representation go out, or only 304 or 412?
//!
//! Pure functions of the request's fields and of the representation's validators. Whether a request is of a kind
//! that has conditions at all (a 200 would be the answer otherwise) is for the caller to know.

use crate::date;
use crate::etag;
use crate::field_id::FieldId;
use crate::fields::Fields;
use crate::list;
use crate::method::Method;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Validators<'a> {
    /// As it stands in `ETag`.
    pub etag: Option<&'a [u8]>,
    /// In seconds since 1970.
    pub last_modified: Option<i64>,
}

impl<'a> Validators<'a> {
    pub fn of(answer: Fields<'a>) -> Validators<'a> {
        Validators {
            etag: answer.get(FieldId::ETag).filter(|tag| etag::is_valid(tag)),
            last_modified: answer.get(FieldId::LastModified).and_then(date::parse_http),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Proceed,
    /// 304: the client's copy is still current.
    NotModified,
    /// 412: what the client wants to change is not what it expects.
    PreconditionFailed,
}

/// Evaluates the request's conditions in the order of RFC 9110 §13.2.2, except Range.
pub fn evaluate(method: Method, request: Fields<'_>, validators: Validators<'_>) -> Outcome {
    let is_read = matches!(method, Method::Get | Method::Head);
    if request.has(FieldId::IfMatch) {
        if !any_tag(request, FieldId::IfMatch, validators, etag::strong_match) {
            return Outcome::PreconditionFailed;
        }
    } else if let Some(limit) = request.get(FieldId::IfUnmodifiedSince).and_then(date::parse_http)
        && validators.last_modified.is_some_and(|modified| modified > limit)
    {
        return Outcome::PreconditionFailed;
    }
    if request.has(FieldId::IfNoneMatch) {
        return match any_tag(request, FieldId::IfNoneMatch, validators, etag::weak_match) {
            false => Outcome::Proceed,
            true if is_read => Outcome::NotModified,
            true => Outcome::PreconditionFailed,
        };
    }
    match request.get(FieldId::IfModifiedSince).and_then(date::parse_http) {
        Some(since) if is_read && validators.last_modified.is_some_and(|modified| modified <= since) => {
            Outcome::NotModified
        }
        _ => Outcome::Proceed,
    }
}

/// Whether `Range` applies: there is no `If-Range`, or it names exactly this representation (RFC 9110
/// §13.1.5). A date must be equal; it counts as strong because the validator is the origin's own.
pub fn range_applies(request: Fields<'_>, validators: Validators<'_>) -> bool {
    match request.get(FieldId::IfRange) {
        None => true,
        Some(tag) if tag.ends_with(b"\"") => validators.etag.is_some_and(|own| etag::strong_match(own, tag)),
        Some(text) => {
            let date = date::parse_http(text);
            date.is_some() && date == validators.last_modified
        }
    }
}

/// `*` always matches: the caller only asks about an existing representation.
fn any_tag(
    request: Fields<'_>,
    id: FieldId,
    validators: Validators<'_>,
    matches: fn(&[u8], &[u8]) -> bool,
) -> bool {
    request.all(id).any(|value| {
        value == b"*" || validators.etag.is_some_and(|own| list::elements(value).any(|tag| matches(own, tag)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Headers;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const LATER: &str = "Mon, 07 Nov 1994 08:49:37 GMT";
    const EARLIER: &str = "Sat, 05 Nov 1994 08:49:37 GMT";

    fn fields(lines: &[(&str, &str)]) -> Headers {
        let mut headers = Headers::new();
        for (name, value) in lines {
            headers.push(name.as_bytes(), value.as_bytes());
        }
        headers
    }

    fn check(method: Method, request: &[(&str, &str)], expected: Outcome) {
        let answer = fields(&[("ETag", "\"a\""), ("Last-Modified", DATE)]);
        let request_fields = fields(request);
        let outcome = evaluate(method, request_fields.view(), Validators::of(answer.view()));
        assert_eq!(outcome, expected, "{method:?} {request:?}");
    }

    #[test]
    fn conditions_are_evaluated_in_the_order_of_the_rfc() {
        use Outcome::{NotModified, PreconditionFailed, Proceed};
        check(Method::Get, &[], Proceed);
        check(Method::Get, &[("If-None-Match", "\"b\", W/\"a\"")], NotModified);
        check(Method::Get, &[("If-None-Match", "*")], NotModified);
        check(Method::Put, &[("If-None-Match", "*")], PreconditionFailed);
        check(Method::Get, &[("If-None-Match", "\"b\"")], Proceed);
        check(Method::Get, &[("If-None-Match", "\"b\""), ("If-Modified-Since", DATE)], Proceed);
        check(Method::Get, &[("If-Modified-Since", DATE)], NotModified);
        check(Method::Head, &[("If-Modified-Since", LATER)], NotModified);
        check(Method::Get, &[("If-Modified-Since", EARLIER)], Proceed);
        check(Method::Get, &[("If-Modified-Since", "yesterday")], Proceed);
        check(Method::Post, &[("If-Modified-Since", DATE)], Proceed);
        check(Method::Get, &[("If-Match", "\"a\"")], Proceed);
        check(Method::Get, &[("If-Match", "W/\"a\"")], PreconditionFailed);
        check(Method::Get, &[("If-Match", "\"a\""), ("If-Unmodified-Since", EARLIER)], Proceed);
        check(Method::Get, &[("If-Unmodified-Since", EARLIER)], PreconditionFailed);
        check(Method::Get, &[("If-Unmodified-Since", DATE)], Proceed);
        check(Method::Get, &[("If-Match", "\"a\""), ("If-None-Match", "\"a\"")], NotModified);
    }

    #[test]
    fn a_range_applies_only_to_exactly_the_same_representation() {
        let answer = fields(&[("ETag", "\"a\""), ("Last-Modified", DATE)]);
        for (value, expected) in [
            ("\"a\"", true),
            ("W/\"a\"", false),
            ("\"b\"", false),
            (DATE, true),
            (LATER, false),
            ("x", false),
        ] {
            let request = fields(&[("If-Range", value)]);
            assert_eq!(range_applies(request.view(), Validators::of(answer.view())), expected, "{value}");
            assert!(!range_applies(request.view(), Validators::default()));
        }
    }
}
