//! The pseudo-header fields of a request (RFC 9113 §8.3.1, §8.5; RFC 8441 §4), and the request line made of them.
//!
//! They come before all fields in any order, and are collected at the start of the text until the first field comes. Then
//! the line takes their place: `GET /path?query HTTP/2.0`, and behind it the Host field, of `:authority`. Next: `request`.

use super::extra::{ConnectProtocol, Extra, Scheme};
use super::hpack::{Line, Pseudo};
use super::request_error::RequestError;
use crate::field::Field;
use crate::field_id::FieldId;
use crate::h1::head::RequestHead;
use crate::h1::limits::HeadLimits;
use crate::h1::target_form::{self, Target};
use crate::host;
use crate::method::Method;
use crate::octets::{self, NOT_TARGET, TARGET_RAW};
use crate::span::Span;
use crate::version::Version;

const VERSION_AND_END: &[u8] = b" HTTP/2.0\r\n";
const LINE_END: usize = 2;
const HOST: &[u8] = b"host: ";

#[derive(Debug, Default)]
pub(super) struct PseudoFields {
    method: Option<Span>,
    scheme: Option<Span>,
    authority: Option<Span>,
    path: Option<Span>,
    protocol: Option<Span>,
}

struct Parts {
    method: Span,
    target: Span,
    authority: Option<Span>,
    form: Method,
    extra: Extra,
}

fn malformed(what: &'static str) -> RequestError {
    RequestError::Malformed(what)
}

impl PseudoFields {
    #[inline]
    pub(super) fn take(
        &mut self,
        pseudo: Pseudo,
        line: &Line<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), RequestError> {
        let place = match pseudo {
            Pseudo::Method => &mut self.method,
            Pseudo::Scheme => &mut self.scheme,
            Pseudo::Authority => &mut self.authority,
            Pseudo::Path => &mut self.path,
            Pseudo::Protocol => &mut self.protocol,
            Pseudo::Status => return Err(malformed("\":status\" in a request")),
            Pseudo::Unknown => return Err(malformed("an unknown pseudo-header")),
        };
        if place.is_some() {
            return Err(malformed("a duplicate pseudo-header"));
        }
        if let Some(flaw) = line.flaw {
            return Err(malformed(flaw.what()));
        }
        let start = bytes.len();
        bytes.extend_from_slice(line.value());
        *place = Some(Span::new(start, bytes.len()));
        Ok(())
    }

    /// Replaces the values by the request line, and Host if `:authority` gives it.
    #[inline]
    pub(super) fn write(
        &self,
        bytes: &mut Vec<u8>,
        head: &mut RequestHead,
        limits: &HeadLimits,
        allows_connect_protocol: bool,
    ) -> Result<Extra, RequestError> {
        let parts = self.parts(bytes, allows_connect_protocol)?;
        let line = parts.method.len() + 1 + parts.target.len() + VERSION_AND_END.len();
        if line > limits.line {
            return Err(RequestError::TargetTooLong);
        }
        let collected = bytes.len();
        append(bytes, parts.method);
        bytes.push(b' ');
        append(bytes, parts.target);
        bytes.extend_from_slice(VERSION_AND_END);
        if let Some(authority) = parts.authority {
            if HOST.len() + authority.len() + LINE_END > limits.line {
                return Err(RequestError::TooLarge);
            }
            bytes.extend_from_slice(HOST);
            append(bytes, authority);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.drain(..collected);

        head.version = Version::Http2;
        head.method_text = Span::new(0, parts.method.len());
        head.method = Method::of(head.method_text.of(bytes));
        head.line = Span::new(0, line - LINE_END);
        let target = parts.method.len() + 1;
        head.target = Span::new(target, target + parts.target.len());
        let classes = octets::classes_of(head.target.of(bytes));
        if classes & NOT_TARGET != 0 {
            return Err(malformed("invalid request target"));
        }
        head.target_is_raw = classes & TARGET_RAW != 0;
        let Target { path, query, authority } =
            target_form::take_apart(bytes, parts.form, head.target, classes)
                .map_err(|error| malformed(error.what()))?;
        (head.path, head.query, head.authority) = (path, query, authority);
        if let Some(authority) = parts.authority {
            let value = Span::new(line + HOST.len(), line + HOST.len() + authority.len());
            host::validate(value.of(bytes)).map_err(|_| malformed("invalid \":authority\""))?;
            head.host = Some(value);
            head.fields.push(Field::new(FieldId::Host, Span::new(line, line + HOST.len() - 2), value));
        }
        Ok(parts.extra)
    }

    /// Checks which of them must be present, and which must not.
    #[inline]
    fn parts(&self, bytes: &[u8], allows_connect_protocol: bool) -> Result<Parts, RequestError> {
        let method = self.method.ok_or(malformed("a request without \":method\""))?;
        if !octets::is_token(method.of(bytes)) {
            return Err(malformed("invalid method"));
        }
        let form = Method::of(method.of(bytes));
        if form == Method::Connect && self.protocol.is_none() {
            // RFC 9113 §8.5.
            if self.scheme.is_some() || self.path.is_some() {
                return Err(malformed("CONNECT with \":scheme\" or \":path\""));
            }
            let target = self.authority.ok_or(malformed("CONNECT without \":authority\""))?;
            let extra = Extra { scheme: None, protocol: None };
            return Ok(Parts { method, target, authority: self.authority, form, extra });
        }
        let protocol = match self.protocol {
            None => None,
            Some(_) if !allows_connect_protocol => {
                return Err(malformed("\":protocol\" that is not allowed"));
            }
            Some(_) if form != Method::Connect => return Err(malformed("\":protocol\" without CONNECT")),
            Some(protocol) => Some(ConnectProtocol::of(protocol.of(bytes))),
        };
        let scheme = self.scheme.ok_or(malformed("a request without \":scheme\""))?;
        let scheme = Scheme::of(scheme.of(bytes)).ok_or(malformed("invalid \":scheme\""))?;
        let target = self.path.ok_or(malformed("a request without \":path\""))?;
        // An absolute target has no place here, whatever it says (§8.3.1); `*` is judged with the method.
        match target.of(bytes) {
            [b'/', ..] | b"*" => {}
            _ => return Err(malformed("invalid \":path\"")),
        }
        // With `:protocol` the target has the form of any other request's (RFC 8441 §4).
        let form = if protocol.is_some() { Method::Get } else { form };
        let extra = Extra { scheme: Some(scheme), protocol };
        Ok(Parts { method, target, authority: self.authority, form, extra })
    }
}

#[inline]
fn append(bytes: &mut Vec<u8>, span: Span) {
    debug_assert!(span.end as usize <= bytes.len());
    bytes.extend_from_within(span.start as usize..span.end as usize);
}
