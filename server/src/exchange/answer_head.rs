//! The upstream's head on its way to the client: what is hidden, what ends here, `proxy_redirect` and `proxy_cookie_*`.

use super::cookie;
use super::replacement::{matched, sanitised};
use crate::admission::undecided_by;
use crate::redirect;
use crate::request::Request;
use crate::route::Undecided;
use crate::variables::value;
use millstream_conf::model::{Exchange, Pass, Redirect};
use millstream_wire::connection::NamedFields;
use millstream_wire::{Field, FieldId, Fields, Headers};
use smallvec::SmallVec;

pub(super) type Visible = SmallVec<[Field; 32]>;

/// Fields for the client: without those of the connection, hidden ones, and repeats of singletons.
/// Content-Length is left out; the length is passed separately.
pub(super) fn visible(exchange: &Exchange, fields: Fields<'_>) -> Visible {
    let named = NamedFields::of(fields);
    let mut said = 0_u128;
    let is_repeated = |id: FieldId, said: &mut u128| {
        let bit = if id.is_said_once() { 1 << id as u8 } else { 0 };
        std::mem::replace(said, *said | bit) & bit != 0
    };
    let goes_on = |field: &Field| {
        let name = field.name(fields.bytes());
        !(is_repeated(field.id, &mut said)
            || field.id.is_hop_by_hop()
            || matches!(field.id, FieldId::ContentLength | FieldId::Trailer)
            || exchange.hides(name)
            || named.has(name))
    };
    fields.lines().filter(goes_on).collect()
}

/// Fields without meaning in trailers: routing, authentication, caching, content (RFC 9110 §6.5.1).
const NOT_BEHIND: [&[u8]; 20] = [
    b"age",
    b"authorization",
    b"cache-control",
    b"content-encoding",
    b"content-range",
    b"content-type",
    b"cookie",
    b"date",
    b"expires",
    b"host",
    b"location",
    b"pragma",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"range",
    b"retry-after",
    b"set-cookie",
    b"te",
    b"vary",
    b"www-authenticate",
];

fn visible_behind(exchange: &Exchange, fields: Fields<'_>) -> Headers {
    let shown = visible(exchange, fields);
    let may_stand = |name: &[u8]| !NOT_BEHIND.iter().any(|known| name.eq_ignore_ascii_case(known));
    Headers::copied_from(Fields::new(fields.bytes(), &shown), |_, name, _| may_stand(name))
}

/// Keeps an upstream's trailers for the log; returns those that the client gets.
pub(super) fn passed_trailers(
    proxy: &Pass,
    request: &mut Request,
    trailers: Option<Fields<'_>>,
) -> Option<Headers> {
    let trailers = trailers.filter(|trailers| !trailers.is_empty())?;
    request.tries.trailers = Some(Headers::from(trailers));
    let passed = visible_behind(&proxy.exchange, trailers);
    Some(passed).filter(|passed| proxy.passes_trailers() && !passed.view().is_empty())
}

/// Whether `proxy_redirect` or `proxy_cookie_*` may change a head.
pub(super) fn may_be_rewritten(proxy: &Pass, fields: Fields<'_>) -> bool {
    proxy.http().is_some_and(|http| {
        let leads_elsewhere = || fields.has(FieldId::Location) || fields.has(FieldId::Refresh);
        let redirects = !http.redirects.is_empty() && leads_elsewhere();
        redirects || !http.cookies.are_untouched() && fields.has(FieldId::SetCookie)
    })
}

/// Applies `proxy_redirect` to Location and Refresh, and `proxy_cookie_*`; `None` if nothing changes. The
/// error is a status.
pub(super) fn rewritten(
    request: &mut Request,
    proxy: &Pass,
    fields: Fields<'_>,
) -> Result<Option<Headers>, u16> {
    let Some(http) = proxy.http().filter(|_| may_be_rewritten(proxy, fields)) else { return Ok(None) };
    let mut changed = Vec::new();
    for (line, (id, _, text)) in fields.iter().enumerate() {
        let at = match id {
            FieldId::SetCookie if !http.cookies.are_untouched() => {
                let cookie = cookie::rewritten(request, &http.cookies, text);
                let cookie = cookie.map_err(|undecided| undecided_by(request, &undecided))?;
                changed.extend(cookie.map(|cookie| (line, cookie)));
                continue;
            }
            FieldId::Location => 0,
            FieldId::Refresh => match position_of_url(text) {
                Some(at) => at,
                None => continue,
            },
            _ => continue,
        };
        let found = redirect(request, &http.redirects, &text[at..]);
        let Some(mut url) = found.map_err(|undecided| undecided_by(request, &undecided))? else { continue };
        if id == FieldId::Location {
            // As in nginx, what is rewritten goes the way of our own redirects.
            url = redirect::absolute(request, url);
        }
        changed.push((line, [&text[..at], &url].concat()));
    }
    Ok((!changed.is_empty()).then(|| with_lines(fields, changed)))
}

/// Replaces the values of these lines, in order, in one pass: the upstream decides how many there are.
pub(super) fn with_lines(fields: Fields<'_>, changed: Vec<(usize, Vec<u8>)>) -> Headers {
    let mut headers = Headers::with_capacity(fields.len(), fields.bytes().len());
    let mut changed = changed.into_iter().peekable();
    for (line, (_, name, value)) in fields.iter().enumerate() {
        match changed.next_if(|(place, _)| *place == line) {
            Some((_, other)) => headers.push(name, &other),
            None => headers.push(name, value),
        }
    }
    headers
}

fn position_of_url(text: &[u8]) -> Option<usize> {
    text.windows(4).position(|window| window.eq_ignore_ascii_case(b"url=")).map(|at| at + 4)
}

fn redirect(request: &mut Request, rules: &[Redirect], url: &[u8]) -> Result<Option<Vec<u8>>, Undecided> {
    for rule in rules {
        let replaced = match rule {
            Redirect::Prefix { from, to } => {
                let from = value(from, request);
                let Some((start, rest)) = url.split_at_checked(from.len()) else { continue };
                if !start.eq_ignore_ascii_case(&from) {
                    continue;
                }
                let mut replaced = value(to, request);
                replaced.extend_from_slice(rest);
                replaced
            }
            Redirect::Regex { from, to } => match matched(request, from, to, url)? {
                Some(replaced) => replaced,
                None => continue,
            },
        };
        return Ok(Some(sanitised(replaced)));
    }
    Ok(None)
}

/// Keeps fields of a response with `X-Accel-Redirect` for the next one, as nginx: of several the last one's
/// type and ranges, and the other fields of each.
pub(super) fn hand_on(request: &mut Request, fields: Fields<'_>) {
    let handed_on = request.descent.accel_fields.get_or_insert_default();
    if let Some(media) = fields.get(FieldId::ContentType) {
        handed_on.set(b"Content-Type", media);
    }
    if let Some(ranges) = fields.get(FieldId::AcceptRanges) {
        handed_on.set(b"Accept-Ranges", ranges);
    }
    if let Some(expires) = fields.get(FieldId::Expires) {
        handed_on.push(b"Expires", expires);
    }
    for (id, name, value) in fields.iter() {
        if matches!(id, FieldId::SetCookie | FieldId::ContentDisposition | FieldId::CacheControl) {
            handed_on.push(name, value);
        }
    }
}

/// The announced length of a response without a body (HEAD, 304).
pub(super) fn announced(fields: Fields<'_>) -> Option<u64> {
    fields.get(FieldId::ContentLength).and_then(millstream_wire::octets::decimal)
}

/// `proxy_buffering`, unless `X-Accel-Buffering` overrides it.
pub(super) fn buffering(exchange: &Exchange, fields: Fields<'_>) -> bool {
    match fields.get(FieldId::XAccelBuffering).filter(|_| !exchange.ignore_headers.x_accel_buffering) {
        Some(value) if value.eq_ignore_ascii_case(b"no") => false,
        Some(value) if value.eq_ignore_ascii_case(b"yes") => true,
        _ => exchange.buffering,
    }
}

/// `X-Accel-Limit-Rate` in bytes a second; 0 is unlimited.
pub(super) fn limit_rate(exchange: &Exchange, fields: Fields<'_>) -> Option<u64> {
    let value = fields.get(FieldId::XAccelLimitRate).filter(|_| !exchange.ignore_headers.x_accel_limit_rate);
    value.and_then(millstream_wire::octets::decimal)
}
