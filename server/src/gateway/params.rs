//! The parameters of a FastCGI request: `fastcgi_param`s, and the request's fields as CGI names them (RFC 3875 §4.1.18).
//!
//! The same fields go on as in HTTP, and Host with them; lines of one name become one value. A field named Proxy never does:
//! libraries take HTTP_PROXY for the proxy that they are to use. Before: `request_head`, which says what goes on.

use super::request_head::{Framed, Plan, Written, conditions, going_on};
use crate::variables;
use millstream_conf::model::{FastCgiPass, Param, Says};
use millstream_net::buffers;
use millstream_wire::fastcgi::{Kind, encode};
use millstream_wire::{FieldId, Fields};

#[cfg(test)]
mod tests;

/// Appends the beginning of a request and its parameters.
pub(super) fn write(out: &mut Vec<u8>, plan: &Plan<'_>, fastcgi: &FastCgiPass) -> Written {
    encode::begin(out, fastcgi.keep_conn);
    let mut pairs = buffers::take();
    let mut value = Vec::new();
    for param in &fastcgi.params {
        value.clear();
        evaluate(param, plan, &mut value);
        if !(param.if_not_empty && value.is_empty()) {
            encode::pair(&mut pairs, param.name.as_bytes(), &value);
        }
    }
    let mut name = Vec::new();
    for (field, value) in conditions(plan) {
        encode::pair(&mut pairs, cgi_name(field, &mut name), &value);
    }
    append_fields(&mut pairs, plan, &mut name, &mut value);
    encode::stream(out, Kind::Params, &pairs);
    buffers::give(pairs);
    Written { keep: fastcgi.keep_conn, upgrade: false }
}

fn evaluate(param: &Param, plan: &Plan<'_>, out: &mut Vec<u8>) {
    match (param.says, plan.framed) {
        (Says::Method, _) if plan.method != plan.request.method => {
            out.extend_from_slice(plan.method.name().unwrap_or_default().as_bytes());
        }
        // What is there to be read is what is sent, however it came.
        (Says::Length, Framed::Length(length)) => {
            out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
        }
        (Says::Length, Framed::None | Framed::Chunked) => {}
        _ => variables::evaluate(&param.value, plan.request, out),
    }
}

fn append_fields(pairs: &mut Vec<u8>, plan: &Plan<'_>, name: &mut Vec<u8>, value: &mut Vec<u8>) {
    let fields = plan.request.fields();
    let sets_host = plan.proxy.set_headers().iter().any(|set| set.name == "host");
    if let Some(host) = fields.get(FieldId::Host).filter(|_| !sets_host) {
        encode::pair(pairs, b"HTTP_HOST", host);
    }
    for (_, field, first) in going_on(plan) {
        if field.eq_ignore_ascii_case(b"proxy") || !is_first(fields, field, first) {
            continue;
        }
        value.clear();
        for line in fields.all_named(field) {
            if !value.is_empty() {
                value.extend_from_slice(if field.eq_ignore_ascii_case(b"cookie") { b"; " } else { b", " });
            }
            value.extend_from_slice(line);
        }
        encode::pair(pairs, cgi_name(field, name), value);
    }
}

/// Whether a value is that of the first line of its name; both are places in the same bytes.
fn is_first(fields: Fields<'_>, name: &[u8], value: &[u8]) -> bool {
    fields.named(name).is_some_and(|first| std::ptr::eq(first, value))
}

/// `Accept-Language` → `HTTP_ACCEPT_LANGUAGE`.
fn cgi_name<'n>(field: &[u8], name: &'n mut Vec<u8>) -> &'n [u8] {
    name.clear();
    name.extend_from_slice(b"HTTP_");
    name.extend(field.iter().map(|byte| if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() }));
    name
}
