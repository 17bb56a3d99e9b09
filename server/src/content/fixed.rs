//! Answers made here: `return`, redirects, the built-in page of a status.

use super::media_type;
use crate::browser;
use crate::client::{AnswerHead, Client};
use crate::failure;
use crate::filter::chain;
use crate::filter::coding::{self, Plain};
use crate::filter::head::{self, HeadPlan};
use crate::grpc_status;
use crate::outcome::Outcome;
use crate::redirect;
use crate::representation::hit::Ready;
use crate::request::Request;
use crate::variables::{evaluate, value};
use millstream_conf::model::{Http, Instruction, LocationId, Return, ReturnBody};
use millstream_net::buffers::Pooled;
use millstream_wire::h1::framing::Framing;
use millstream_wire::{Field, FieldId, Fields, Headers, Span, accept, target};
use std::io::Write;

pub const REDIRECT: &str = "a \"rewrite\" redirects the client";
pub const SLASH: &str = "the client is redirected to the same path with a trailing slash";

/// Of a `return` of that level.
pub fn explanation(request: &Request, level: LocationId) -> &'static str {
    if level == request.server().own {
        "the server responds with \"return\""
    } else {
        "the location responds with \"return\""
    }
}

pub fn rule(http: &Http, level: LocationId, at: usize) -> Option<&Return> {
    match http.location(level).settings.rewrite.script.get(at) {
        Some(Instruction::Return(rule)) => Some(rule),
        _ => None,
    }
}

/// Prepares a `return` with a text for a single write; `None` if it needs more, or is no text.
pub fn at_once(request: &mut Request, rule: &Return, out: &mut Vec<u8>) -> Option<Ready> {
    let ReturnBody::Text(template) = &rule.body else { return None };
    let is_plain = request.received.framing == Framing::None && !request.is_extended_connect();
    if rule.status < 200 || !is_plain || chain::is_there(request) {
        return None;
    }
    let status = rule.status;
    request.sent.status = status;
    let (mut body, mut text) = (Pooled::take(), Pooled::take());
    evaluate(template, request, &mut body);
    typed(request, status, body, out, &mut text)
}

/// With the one field that it has written into `text`.
fn typed(
    request: &mut Request,
    status: u16,
    body: Pooled,
    out: &mut Vec<u8>,
    text: &mut Vec<u8>,
) -> Option<Ready> {
    text.extend_from_slice(b"Content-Type");
    let name = Span::new(0, text.len());
    text.extend_from_slice(media_type::of(request));
    let field = [Field::new(FieldId::ContentType, name, Span::new(name.end as usize, text.len()))];
    let (fields, length) = (Fields::new(text, &field), Some(body.len() as u64));
    let plain = Plain { status: request.outgoing(status), fields, length };
    if coding::choose(request, &plain).is_some() {
        return None;
    }
    let plan = HeadPlan { status, fields, length, chunked: false, coding: None, age: None };
    let has_body = head::encode(out, request, &plan);
    Some(if has_body { Ready::Text(body) } else { Ready::HeadOnly })
}

pub async fn returned(request: &mut Request, client: &mut Client, rule: &Return) -> Outcome {
    match &rule.body {
        // A success would say that the other protocol is spoken (RFC 8441 §5).
        _ if request.is_extended_connect() && (200..300).contains(&rule.status) => Outcome::Status(501),
        // As in nginx, which takes these for a client that has left or was too slow.
        ReturnBody::None if matches!(rule.status, 408 | 499) => {
            client.withhold(request);
            request.sent.status = rule.status;
            Outcome::Done
        }
        ReturnBody::None if (400..600).contains(&rule.status) => Outcome::Status(rule.status),
        ReturnBody::None if failure::has_page(rule.status) => page(request, client, rule.status).await,
        ReturnBody::None => {
            request.sent.status = rule.status;
            text(request, client, rule.status, b"").await
        }
        ReturnBody::Text(template) => {
            request.sent.status = rule.status;
            let body = value(template, request);
            text(request, client, rule.status, &body).await
        }
        ReturnBody::Url(url) => Outcome::Redirect(rule.status, value(url, request)),
    }
}

async fn text(request: &mut Request, client: &mut Client, status: u16, body: &[u8]) -> Outcome {
    let mut headers = Headers::default();
    headers.push(b"Content-Type", media_type::of(request));
    whole(request, client, status, &headers, body).await
}

/// Sets the Location of the next response, instead of an earlier one.
pub fn lead_to(request: &mut Request, url: &[u8]) {
    let mut url = redirect::absolute(request, url.to_vec());
    // A line end that came in through a variable must not become a field of its own.
    url.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n' | 0)).for_each(|byte| *byte = b' ');
    request.descent.accel_fields.get_or_insert_default().set(b"Location", &url);
}

pub fn redirect_with_slash(request: &Request) -> Outcome {
    let mut url = Vec::with_capacity(request.route.uri.len() + 1);
    target::escape_uri(&request.route.uri, &mut url);
    url.push(b'/');
    if let Some(query) = request.query().filter(|query| !query.is_empty()) {
        url.push(b'?');
        url.extend_from_slice(query);
    }
    Outcome::Redirect(301, url)
}

/// An error page has its own type, whatever response led to it by `X-Accel-Redirect`.
pub fn forget_type(request: &mut Request) {
    if let Some(fields) = &mut request.descent.accel_fields {
        fields.remove(FieldId::ContentType);
    }
}

pub async fn page(request: &mut Request, client: &mut Client, status: u16) -> Outcome {
    forget_type(request);
    if let Some(headers) = grpc_status::of(request, status) {
        return whole(request, client, failure::public_status(status), &headers, b"").await;
    }
    let mut headers = Headers::default();
    if let Some(body) = refresh(request, status) {
        request.descent.error_status = None;
        headers.push(b"Content-Type", b"text/html");
        return whole(request, client, 200, &headers, &body).await;
    }
    if request.field(FieldId::Accept).is_some_and(accept::prefers_json) {
        let body = failure::problem(status);
        if !body.is_empty() {
            headers.push(b"Content-Type", b"application/problem+json");
            headers.push(b"Vary", b"Accept");
            return whole(request, client, failure::public_status(status), &headers, &body).await;
        }
    }
    let body = failure::page(status, &failure::server_text(request));
    if !body.is_empty() {
        headers.push(b"Content-Type", b"text/html");
    }
    whole(request, client, failure::public_status(status), &headers, &body).await
}

/// `msie_refresh`: a page instead of a redirect, which then has no Location.
fn refresh(request: &mut Request, status: u16) -> Option<Vec<u8>> {
    let is_asked = matches!(status, 301 | 302) && request.location().settings.redirects.msie_refresh;
    if !is_asked || !request.field(FieldId::UserAgent).is_some_and(browser::is_msie) {
        return None;
    }
    let fields = request.descent.accel_fields.as_mut()?;
    let url = fields.view().get(FieldId::Location)?.to_vec();
    fields.remove(FieldId::Location);
    let mut page = b"<html><head><meta http-equiv=\"Refresh\" content=\"0; URL=".to_vec();
    for byte in url {
        if byte <= b' ' || byte >= b'~' || b"\"'<>\\^`{|".contains(&byte) {
            _ = write!(page, "%{byte:02X}");
        } else {
            page.push(byte);
        }
    }
    page.extend_from_slice(b"\"></head><body></body></html>\r\n");
    Some(page)
}

pub async fn whole(
    request: &mut Request,
    client: &mut Client,
    status: u16,
    headers: &Headers,
    body: &[u8],
) -> Outcome {
    let (fields, length) = (headers.view(), Some(body.len() as u64));
    client.begin(request, AnswerHead { status, fields, length, age: None });
    client.push(request, body);
    client.finish(request, None).await.into()
}
