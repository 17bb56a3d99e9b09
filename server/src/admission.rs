//! What is settled about a request before anybody answers: host, server, framing, path; and its location, which may be found
//! more than once.
//!
//! It waits for nothing and answers nothing; a refusal is a status. A request that is only thought of (what would a GET
//! of this URL find?) is admitted here too, so that it comes out where a real one would. Next: `phase`.

use crate::client_certificate::judgement;
use crate::failure;
use crate::request::Request;
use crate::route::Undecided;
use crate::route::location::{self, PathMatch};
use crate::shows::Shows;
use millstream_conf::model::{Level, VerifyClient};
use millstream_wire::h1::framing;
use millstream_wire::target::Normal;
use millstream_wire::{Field, FieldId, Method, Span, host, target};

/// Checks a client's request, and the client itself. The error is a status.
pub fn admit_client(request: &mut Request) -> Result<(), u16> {
    let admitted = admit(request);
    if request.connection.is_plain_on_tls {
        return Err(failure::HTTP_TO_HTTPS);
    }
    admitted?;
    let verified = verified(request);
    if verified.is_err() {
        // An error page may lead on.
        request.route.shows.way |= Shows::WHO;
    }
    verified
}

/// Checks host, server, framing and path. The error is a status.
pub fn admit(request: &mut Request) -> Result<(), u16> {
    choose_host(request)?;
    settle_authority(request);
    request.received.framing = match framing::request(request.received.head.version, request.fields()) {
        Ok(framing) => framing,
        Err(error) => return Err(error.status()),
    };
    // A proxy in front of an API is no tunnel, and TRACE would show fields that were added on the way (RFC 9110 §9.3.8).
    if matches!(request.method, Method::Connect | Method::Trace) {
        return Err(405);
    }
    normalise(request)
}

fn choose_host(request: &mut Request) -> Result<(), u16> {
    let mut name = std::mem::take(&mut request.route.host);
    name.clear();
    let generation = request.generation.clone();
    let listener = request.connection.listener.get();
    let came = match request.received.head.authority {
        Some(span) => Some(span.of(&request.received.bytes)),
        None => request.field(FieldId::Host),
    };
    let came = came.unwrap_or_default();
    let last = generation.last_host.borrow();
    let (server, captured) = if let Some((host, server)) = last.find(listener, came) {
        name.extend_from_slice(host);
        (server, None)
    } else {
        drop(last);
        append_host(came, &mut name)?;
        let table = &generation.shared.hosts[listener];
        let (server, captured) = table.find(&name).map_err(|undecided| undecided_by(request, &undecided))?;
        let captured = captured.map(|captured| (captured, name.clone()));
        if name.is_empty() {
            name.extend_from_slice(generation.http().server(server).name.as_bytes());
        }
        if captured.is_none() {
            generation.last_host.borrow_mut().keep(listener, came, &name, server);
        }
        (server, captured)
    };
    request.route.server = server;
    request.route.location = request.server().own;
    if let Some((captured, from)) = captured {
        request.take_captures(captured, &from, Shows::NOTHING);
    }
    request.route.host = name;
    Ok(())
}

/// In lower case, without port and last dot. The error is a status.
fn append_host(came: &[u8], name: &mut Vec<u8>) -> Result<(), u16> {
    if came.is_empty() {
        return Ok(());
    }
    let valid = host::validate(came).map_err(|_| 400u16)?;
    name.extend(valid.host.iter().map(u8::to_ascii_lowercase));
    if name.last() == Some(&b'.') {
        name.pop();
    }
    Ok(())
}

/// Replaces the Host field by the authority of an absolute target (RFC 9112 §3.2.2), for variables and
/// upstreams alike.
fn settle_authority(request: &mut Request) {
    let Some(authority) = request.received.head.authority else { return };
    if let Some(field) = request.received.head.fields.iter_mut().find(|field| field.id == FieldId::Host) {
        field.value = authority;
        return;
    }
    // HTTP/1.0 may leave the field out; its name then stands behind the head.
    let start = request.received.bytes.len() as u32;
    request.received.bytes.extend_from_slice(b"Host");
    let name = Span { start, end: request.received.bytes.len() as u32 };
    request.received.head.fields.push(Field::new(FieldId::Host, name, authority));
}

/// The error is a status.
pub fn normalise(request: &mut Request) -> Result<(), u16> {
    let mut uri = std::mem::take(&mut request.route.uri);
    uri.clear();
    let merge = request.server().settings.client_header.merge_slashes;
    let path = request.received.head.path.of(&request.received.bytes);
    let outcome = target::normalise(path, merge, &mut uri);
    if matches!(outcome, Ok(Normal::Unchanged)) {
        uri.extend_from_slice(path);
    }
    if outcome.is_err() {
        uri.clear();
    }
    request.route.uri = uri;
    outcome.map(|_| ()).map_err(|_| 400)
}

fn verified(request: &Request) -> Result<(), u16> {
    let verify = request.server().settings.client_certificate.verify;
    if verify == VerifyClient::Off || request.connection.tls.is_none() {
        return Ok(());
    }
    if is_misdirected(request) {
        let what = "client attempted to request the server name different from the one that was negotiated";
        failure::log(request, Level::Info, format_args!("{what}"));
        return Err(failure::MISDIRECTED);
    }
    match judgement(request) {
        None if verify == VerifyClient::On => {
            failure::log(request, Level::Info, format_args!("client sent no required SSL certificate"));
            Err(failure::NO_CERTIFICATE)
        }
        None | Some(Ok(())) => Ok(()),
        Some(Err(why)) if verify == VerifyClient::OptionalNoCa && why.is_of_authority() => Ok(()),
        Some(Err(why)) => {
            let why = why.text();
            failure::log(request, Level::Info, format_args!("client SSL certificate verify error: ({why})"));
            Err(failure::CERTIFICATE_ERROR)
        }
    }
}

/// Whether the Host differs from the server negotiated by SNI.
fn is_misdirected(request: &Request) -> bool {
    let connection = &request.connection;
    let Some(negotiated) = connection.tls.as_ref().and_then(|tls| tls.server_name.as_deref()) else {
        return false;
    };
    let asks = request.received.head.authority.is_some()
        || request.field(FieldId::Host).is_some_and(|host| !host.is_empty());
    let hosts = &request.generation.shared.hosts[connection.listener.get()];
    asks && *request.route.host != *negotiated.as_bytes() && hosts.names(negotiated.as_bytes())
}

/// The error is a status.
pub fn route(request: &mut Request) -> Result<(), u16> {
    let generation = request.generation.clone();
    let server = generation.http().server(request.route.server);
    let found = location::find(generation.http(), &server.locations, &request.route.uri);
    match found.map_err(|undecided| undecided_by(request, &undecided))? {
        PathMatch::Server => request.enter(server.own),
        PathMatch::Slash(found) => request.enter(found),
        PathMatch::Location(found, captured) => {
            request.enter(found);
            for captured in captured {
                request.take_captures(captured, &request.route.uri, Shows::PATH | request.route.shows.path);
            }
        }
    }
    Ok(())
}

/// Logs that a regular expression hit its limit; returns the status.
pub fn undecided_by(request: &Request, undecided: &Undecided) -> u16 {
    failure::log(request, Level::Alert, format_args!("{undecided}"));
    500
}
