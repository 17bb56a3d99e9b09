//! What the span of a request says: the conventions for HTTP that nginx's module writes (version 1.16), and `otel_span_attr`.
//!
//! Before: `tracing`.

use crate::location_text;
use crate::request::Request;
use crate::shown;
use millstream_conf::model::{LocationMatch, SpanAttribute};
use millstream_net::Address;
use millstream_traces::span::{Attribute, Value, text};
use millstream_wire::{FieldId, Version, masked};

pub(super) fn of_request(request: &Request) -> Vec<Attribute> {
    let (connection, location) = (&*request.connection, request.location());
    let is_secure = connection.tls.is_some();
    let mut all = Says(Vec::with_capacity(16));
    all.text("http.method", request.received.head.method_text.of(&request.received.bytes));
    all.shown("http.target", request.received.head.target.of(&request.received.bytes));
    if !matches!(location.matches, LocationMatch::Server) {
        all.text("http.route", location_text::name(&location.matches).as_bytes());
    }
    all.text("http.scheme", if is_secure { b"https" } else { b"http" });
    all.text("http.flavor", flavor(request.received.head.version));
    if let Some(agent) = request.field(FieldId::UserAgent) {
        all.shown("http.user_agent", agent);
    }
    all.number("http.request_content_length", length(request));
    all.number("http.response_content_length", i64::try_from(request.sent.body_bytes).unwrap_or(i64::MAX));
    if request.sent.status > 0 {
        all.number("http.status_code", request.sent.status.into());
    }
    let name = request.server().name.as_bytes();
    all.text("net.host.name", if name.is_empty() { &request.route.host } else { name });
    if let Some(port) = port(&connection.local).filter(|port| *port != if is_secure { 443 } else { 80 }) {
        all.number("net.host.port", port.into());
    }
    all.text("net.sock.peer.addr", request.client_text().as_bytes());
    if let Some(port) = port(request.client()) {
        all.number("net.sock.peer.port", port.into());
    }
    if let Some(status) = request.cache.status {
        all.text("millstream.cache.status", status.name().as_bytes());
    }
    for attribute in location.settings.otel.attributes.iter() {
        all.0.push(own(attribute, request));
    }
    all.0
}

/// `otel_span_attr`; header fields are lists.
fn own(attribute: &SpanAttribute, request: &Request) -> Attribute {
    let value = shown::value(&attribute.value, request, text);
    let is_field = ["http.request.header.", "http.response.header."]
        .iter()
        .any(|start| attribute.name.starts_with(start));
    let value = if is_field { Value::Texts(value) } else { Value::Text(value) };
    (attribute.name.clone().into(), value)
}

/// 0 without Content-Length.
fn length(request: &Request) -> i64 {
    let said = request.field(FieldId::ContentLength).and_then(|value| std::str::from_utf8(value).ok());
    said.and_then(|value| value.parse().ok()).unwrap_or(0)
}

fn port(address: &Address) -> Option<u16> {
    match address {
        Address::Tcp(address) => Some(address.port()),
        Address::Unix(_) => None,
    }
}

pub(super) struct Says(pub(super) Vec<Attribute>);

impl Says {
    pub(super) fn text(&mut self, name: &'static str, value: &[u8]) {
        self.0.push((name.into(), Value::Text(text(value))));
    }

    /// Removes secrets.
    fn shown(&mut self, name: &'static str, value: &[u8]) {
        self.0.push((name.into(), Value::Text(masked::text(&text(value)).into_owned())));
    }

    pub(super) fn number(&mut self, name: &'static str, value: i64) {
        self.0.push((name.into(), Value::Number(value)));
    }
}

fn flavor(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"1.0",
        Version::Http11 => b"1.1",
        Version::Http2 => b"2.0",
    }
}
