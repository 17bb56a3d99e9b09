//! The parameters of a request to an application: `fastcgi_param`s and their kind, and the request's fields as CGI names them
//! (RFC 3875 §4.1.18).
//!
//! The same fields go on as in HTTP, and the host with them; lines of one name, in whatever spelling, become one value. A field named Proxy never does:
//! libraries take HTTP_PROXY for the proxy that they are to use.

#[cfg(test)]
mod tests;

use super::request_head::{
    RequestFraming, RequestPlan, WrittenHead, conditions, going_on, keep_codings_within,
};
use crate::client::ClientFailure;
use crate::variables;
use millstream_conf::model::{FastCgiPass, Param, Says, ScgiPass, UwsgiPass, Variable};
use millstream_conf::variables::Builtin;
use millstream_net::buffers;
use millstream_wire::fastcgi::{Kind, encode};
use millstream_wire::scgi;
use millstream_wire::uwsgi::Packet;
use std::collections::HashMap;

/// Default of HTTP_HOST, as nginx: `$host$is_request_port$request_port`, the server's name if the request has
/// no host.
const HOST: [Builtin; 3] = [Builtin::Host, Builtin::IsRequestPort, Builtin::RequestPort];

pub(super) fn write_fastcgi(out: &mut Vec<u8>, plan: &RequestPlan<'_>, pass: &FastCgiPass) -> WrittenHead {
    encode::begin(out, pass.keep_conn);
    let mut pairs = buffers::take();
    each(plan, &pass.params, |name, value| encode::pair(&mut pairs, name, value));
    encode::stream(out, Kind::Params, &pairs);
    buffers::give(pairs);
    WrittenHead { keep: pass.keep_conn, upgrade: false }
}

/// `HeadTooLarge` if the parameters exceed the protocol's limit.
pub(super) fn write_uwsgi(
    out: &mut Vec<u8>,
    plan: &RequestPlan<'_>,
    pass: &UwsgiPass,
) -> Result<WrittenHead, ClientFailure> {
    let mut packet = Packet::begin(out, [pass.modifier1, pass.modifier2]);
    each(plan, &pass.params, |name, value| packet.pair(name, value));
    packet.text(pass.string.as_bytes());
    let written = WrittenHead { keep: false, upgrade: false };
    if packet.end() { Ok(written) } else { Err(ClientFailure::HeadTooLarge) }
}

/// CONTENT_LENGTH is always there, and once: what the location says of it is what is sent anyway.
pub(super) fn write_scgi(out: &mut Vec<u8>, plan: &RequestPlan<'_>, pass: &ScgiPass) -> WrittenHead {
    let mut pairs = buffers::take();
    each(plan, &pass.params, |name, value| {
        if name != b"CONTENT_LENGTH" {
            scgi::pair(&mut pairs, name, value);
        }
    });
    let length = match plan.framed {
        RequestFraming::Length(length) => length,
        RequestFraming::None | RequestFraming::Chunked => 0,
    };
    scgi::head(out, length, &pairs);
    buffers::give(pairs);
    WrittenHead { keep: false, upgrade: false }
}

fn each(plan: &RequestPlan<'_>, params: &[Param], mut give: impl FnMut(&[u8], &[u8])) {
    let (mut name, mut value) = (Vec::new(), Vec::new());
    for param in params {
        value.clear();
        evaluate(param, plan, &mut value);
        if param.name.eq_ignore_ascii_case("HTTP_ACCEPT_ENCODING") {
            keep_codings_within(plan.codings, &param.value, &mut value, 0);
        }
        if !(param.if_not_empty && value.is_empty()) {
            give(param.name.as_bytes(), &value);
        }
    }
    for (field, value) in conditions(plan) {
        give(parameter(field, &mut name), &value);
    }
    if !params.iter().any(|param| param.name.eq_ignore_ascii_case("HTTP_HOST")) {
        value.clear();
        for part in HOST {
            variables::append(&Variable::Builtin(part), plan.request, &mut value);
        }
        if !value.is_empty() {
            give(b"HTTP_HOST", &value);
        }
    }
    // A client may send a thousand fields: each is compared with none of the others.
    let (mut joined, mut places) = (Vec::<(Vec<u8>, Vec<u8>)>::new(), HashMap::<Vec<u8>, usize>::new());
    for (_, field, line) in going_on(plan).filter(|(_, field, _)| !field.eq_ignore_ascii_case(b"proxy")) {
        let parameter = parameter(field, &mut name);
        match places.get(parameter) {
            Some(&at) => {
                let value = &mut joined[at].1;
                if !value.is_empty() {
                    value.extend_from_slice(if parameter == b"HTTP_COOKIE" { b"; " } else { b", " });
                }
                value.extend_from_slice(line);
            }
            None => {
                places.insert(parameter.to_vec(), joined.len());
                joined.push((parameter.to_vec(), line.to_vec()));
            }
        }
    }
    joined.iter().for_each(|(name, value)| give(name, value));
}

fn evaluate(param: &Param, plan: &RequestPlan<'_>, out: &mut Vec<u8>) {
    match (param.says, plan.framed) {
        (Says::Method, _) if plan.method != plan.request.method => {
            out.extend_from_slice(plan.method.name().unwrap_or_default().as_bytes());
        }
        // What is there to be read is what is sent, however it came.
        (Says::Length, RequestFraming::Length(length)) => {
            out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
        }
        // An application would wait for the body that this parameter announces; any other one only reports the client's.
        (Says::Length, RequestFraming::None) if param.name != "CONTENT_LENGTH" => {
            variables::evaluate(&param.value, plan.request, out);
        }
        (Says::Length, RequestFraming::None | RequestFraming::Chunked) => {}
        _ => variables::evaluate(&param.value, plan.request, out),
    }
}

/// `Accept-Language` → `HTTP_ACCEPT_LANGUAGE`.
fn parameter<'n>(field: &[u8], name: &'n mut Vec<u8>) -> &'n [u8] {
    name.clear();
    name.extend_from_slice(b"HTTP_");
    name.extend(field.iter().map(|byte| if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() }));
    name
}
