//! What a value shows of who asks: whether a credential of the client's, or what an upstream said of the client, is in it.
//!
//! Where a variable's value comes from is a column of `conf`'s table. Values that are set and captured remember it
//! ([`Slots`](crate::slots::Slots), [`Captures`](crate::slots::Captures)), and so do path and query in force, so that it is known of
//! what is made of them as well. The certificate is another's matter: `client_certificate`. Next: `caching/keyed`, which asks.

use super::{append, unset};
use crate::client_certificate;
use crate::remembered::RememberedId;
use crate::request::Request;
use crate::shows::Shows;
use millstream_conf::model::{Template, Variable, made};
use millstream_conf::variables::{Builtin, Source};
use millstream_wire::FieldId;
use millstream_wire::client_address::is_client_address;
use millstream_wire::credential::is_credential;
use std::ops::BitOr;

pub fn shown_by(value: &Template, request: &Request) -> Shows {
    shown_by_all(value.variables(), request)
}

/// Empty values reveal nothing.
pub fn shown_by_all<'v>(variables: impl Iterator<Item = &'v Variable>, request: &Request) -> Shows {
    variables.fold(Shows::NOTHING, |all, variable| {
        let shows = of_variable(variable, request);
        if is_absent(variable, shows, request) { all } else { all | shows }
    })
}

/// The same if it includes the client's identity or address, else nothing: if none can reveal those, nothing is evaluated.
pub fn client_is_shown_by_all<'v>(
    variables: impl Iterator<Item = &'v Variable> + Clone,
    request: &Request,
) -> Shows {
    // Of one that is made only a look tells.
    let may_show = |variable: &Variable| {
        matches!(variable, Variable::Made(_)) || of_variable(variable, request).has(Shows::CLIENT)
    };
    let shows = match variables.clone().any(may_show) {
        true => shown_by_all(variables, request),
        false => Shows::NOTHING,
    };
    if shows.has(Shows::CLIENT) { shows } else { Shows::NOTHING }
}

/// What an upstream's word may reveal that redirects a request (`X-Accel-Redirect`, a command in a page): the
/// client's address, and its identity if the request has any.
pub fn shown_by_answer(request: &Request) -> Shows {
    let says = request.fields().iter().any(|(id, name, _)| is_credential(id, name));
    let is_known = says || client_certificate::shown(request).is_some();
    if is_known { Shows::CLIENT } else { Shows::ADDRESS }
}

/// Whether what a variable would reveal is missing. A set but empty variable may still identify the client;
/// path and query are not checked.
fn is_absent(variable: &Variable, shows: Shows, request: &Request) -> bool {
    if !shows.has(Shows::FIELD | Shows::WHO) || matches!(variable, Variable::Slot(_)) {
        return false;
    }
    let mut value = Vec::new();
    append(variable, request, &mut value);
    value.is_empty()
}

fn of_variable(variable: &Variable, request: &Request) -> Shows {
    let path = || Shows::PATH | request.route.shows.path;
    let query = || Shows::QUERY | request.route.shows.query;
    let folder = || shown_by(&request.location().settings.files.root.path, request);
    match (variable, variable.source()) {
        (Variable::Made(_), _) => {
            let parts = made::made_of(&request.generation.http().made, variable);
            let of_part = |part: &&Variable| match part {
                Variable::Made(_) => Shows::NOTHING,
                // It may have been read, and remembered, when that was another one.
                Variable::Capture(_) => request.route.captures.borrow().have_shown,
                // What the client has sent stays as it is; what path and query were may be remembered.
                part if part.source().is_as_sent() => shown_by_all(std::iter::once(*part), request),
                part => of_variable(part, request),
            };
            parts.iter().map(of_part).fold(Shows::NOTHING, BitOr::bitor)
        }
        (Variable::RequestHeader(name), Source::Field)
            if is_credential(FieldId::of(name.as_bytes()), name.as_bytes()) =>
        {
            Shows::WHO
        }
        (Variable::RequestHeader(name), Source::Field) if is_client_address(name.as_bytes()) => {
            Shows::FIELD | Shows::ADDRESS
        }
        (Variable::Slot(number), _) => {
            let is_set = request.route.slots.value(*number).is_some();
            let own = (!is_set).then(|| unset(*number, request)).flatten();
            let own = own.map(|variable| shown_by_all(std::iter::once(&variable), request));
            request.route.slots.shows(*number) | own.unwrap_or_default()
        }
        (Variable::Capture(_), _) => request.route.captures.borrow().shows,
        (_, Source::Common | Source::Once | Source::Connection) => Shows::NOTHING,
        (_, Source::Address) => Shows::ADDRESS,
        (_, Source::Field | Source::Body) => Shows::FIELD,
        (_, Source::Who) => Shows::WHO,
        (_, Source::Certificate | Source::OfCertificate) => {
            if client_certificate::shown(request).is_some() {
                Shows::WHO
            } else {
                Shows::NOTHING
            }
        }
        (_, Source::Path) => path(),
        (_, Source::Query) => query(),
        (_, Source::Target) => Shows::PATH | Shows::QUERY,
        (_, Source::Folder) => folder(),
        (_, Source::File) => folder() | path(),
        (_, Source::Link) => of_link(variable, request),
        // `$limit_rate`, which `set` or a response has changed.
        (_, Source::Kept) => {
            if request.reply.limit_rate.is_some() {
                Shows::WHO
            } else {
                Shows::NOTHING
            }
        }
    }
}

fn of_link(variable: &Variable, request: &Request) -> Shows {
    let Variable::Builtin(builtin) = variable else { return Shows::NOTHING };
    let known = || request.route.made.shows(RememberedId::Builtin(*builtin));
    if known().is_none() {
        append(variable, request, &mut Vec::new());
    }
    // While it is being made, it has no part in itself.
    known().unwrap_or_default()
}

pub(super) fn of_read(builtin: Builtin, request: &Request) -> Shows {
    if builtin.source() != Source::Link {
        return Shows::NOTHING;
    }
    let link = &request.location().settings.secure_link;
    let texts = link.link.iter().chain(&link.md5).flat_map(Template::variables);
    shown_by_all(texts, request) | Shows::PATH | Shows::QUERY
}
