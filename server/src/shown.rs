//! Values of variables as others than an access log may tell them: what `explain` says of a key, and spans of a request. Secrets become `***`.
//!
//! Names of variables say more than text can: `$cookie_id` is a secret whatever it holds. Of what a `map` or a `set` makes of one only the text is looked
//! at. Before: `millstream-wire`'s `masked` and `credential`, which say what a secret is.

use crate::request::Request;
use crate::variables;
use millstream_conf::model::{Part, Template, Variable};
use millstream_conf::variables::Builtin;
use millstream_wire::{credential, masked};

pub fn value(template: &Template, request: &Request, read: impl Fn(&[u8]) -> String) -> String {
    let mut shown = String::new();
    let mut bytes = Vec::new();
    for part in template.parts.iter() {
        match part {
            Part::Literal(text) => shown.push_str(text),
            Part::Variable(variable) => {
                bytes.clear();
                variables::append(variable, request, &mut bytes);
                shown.push_str(&without_secrets(variable, read(&bytes)));
            }
        }
    }
    // A name may have stood in the text around it: `?token=$1`.
    masked::text(&shown).into_owned()
}

pub fn without_secrets(variable: &Variable, value: String) -> String {
    let is_secret = match variable {
        Variable::Cookie(_) | Variable::UpstreamCookie(_) => true,
        Variable::Argument(name) => credential::is_secret(name.as_bytes()),
        Variable::RequestHeader(name)
        | Variable::SentHeader(name)
        | Variable::SentTrailer(name)
        | Variable::UpstreamHeader(name)
        | Variable::UpstreamTrailer(name) => credential::is_secret(name.as_bytes()),
        _ => false,
    };
    match variable {
        _ if value.is_empty() => value,
        _ if is_secret => masked::MASK.to_owned(),
        Variable::Builtin(Builtin::Args | Builtin::QueryString | Builtin::RequestBody) => {
            masked::query(&value).into_owned()
        }
        _ => masked::text(&value).into_owned(),
    }
}
