//! Whether a value shows who asks: a credential of the client's, or what an upstream said of the client, is in it.
//!
//! Values that are set and captured remember it ([`Slots`](crate::slots::Slots), [`Captures`](crate::slots::Captures)), so that it
//! is known of what is made of them as well. The address and the certificate are others' matter: `proxy_cache_vary address` and
//! `client_certificate`. Next: `caching/keyed`, which asks.

use super::append;
use crate::request::Request;
use millstream_conf::model::{Template, Variable, made};
use millstream_conf::variables::Builtin;
use millstream_wire::FieldId;
use millstream_wire::credential::is_credential;

/// Whether what the template comes to shows who asks. What is empty shows nothing.
pub fn is_personal(value: &Template, request: &Request) -> bool {
    value.variables().any(|variable| shows(variable, request) && has_value(variable, request))
}

/// Whether a variable has a value that is not empty.
pub fn has_value(variable: &Variable, request: &Request) -> bool {
    let mut value = Vec::new();
    append(variable, request, &mut value);
    !value.is_empty()
}

fn shows(variable: &Variable, request: &Request) -> bool {
    match variable {
        Variable::Made(_) => {
            let parts = made::made_of(&request.generation.http().made, variable);
            parts.into_iter().any(|part| !matches!(part, Variable::Made(_)) && shows(part, request))
        }
        Variable::RequestHeader(name) => is_credential(FieldId::of(name.as_bytes()), name.as_bytes()),
        Variable::Cookie(_)
        | Variable::SentHeader(_)
        | Variable::SentTrailer(_)
        | Variable::UpstreamHeader(_)
        | Variable::UpstreamCookie(_)
        | Variable::UpstreamTrailer(_) => true,
        Variable::Builtin(builtin) => {
            matches!(builtin, Builtin::RemoteUser | Builtin::UidGot | Builtin::UidSet)
        }
        Variable::Slot(number) => request.slots.is_personal(*number),
        Variable::Capture(_) => request.captures.borrow().is_personal,
        _ => false,
    }
}
