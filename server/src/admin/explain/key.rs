//! What made a key: its template, where that stands, and the value of each part.

use super::at;
use crate::caching::ignored_args;
use crate::location_text::readable;
use crate::request::Request;
use crate::shown;
use millstream_cache::key;
use millstream_conf::model::{Part, ProxyCache, ProxyProtocolTlv, Variable};
use millstream_conf::variables::VARIABLES;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyMade {
    pub text: String,
    pub file: String,
    /// `proxy_cache_key` as written, or the default.
    pub template: String,
    /// Its place; absent for the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    pub parts: Vec<KeyPart>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPart {
    pub variable: String,
    pub value: String,
}

pub(super) fn made(request: &Request, cache: &ProxyCache) -> KeyMade {
    let (mut text, mut shown) = (Vec::new(), String::new());
    let written = cache.written.iter().rev().find(|(name, _)| *name == "proxy_cache_key");
    let mut parts = Vec::new();
    for part in &cache.key.parts {
        match part {
            Part::Literal(literal) => {
                text.extend_from_slice(literal.as_bytes());
                shown += literal;
            }
            Part::Variable(variable) => {
                let mut value = Vec::new();
                ignored_args::append(variable, request, &cache.ignored_args, &mut value);
                text.extend_from_slice(&value);
                let value = shown::without_secrets(variable, readable(&value));
                shown += &value;
                parts.push(KeyPart { variable: name(variable, request), value });
            }
        }
    }
    KeyMade {
        file: key::md5(&text).iter().map(|byte| format!("{byte:02x}")).collect(),
        text: shown,
        template: cache.key.source.to_string(),
        at: written.map(|(_, span)| at(request, *span)),
        parts,
    }
}

fn name(variable: &Variable, request: &Request) -> String {
    let prefixed = |prefix: &str, name: &str| format!("${prefix}{}", name.replace('-', "_"));
    match variable {
        Variable::Builtin(builtin) => VARIABLES
            .iter()
            .find(|(known, ..)| known == builtin)
            .map_or_else(String::new, |(_, name, _)| format!("${name}")),
        // As the documentation of the default key has it.
        Variable::SentTarget => "$request_uri".to_owned(),
        Variable::SentOrigin => "$proxy_host".to_owned(),
        Variable::RequestHeader(name) => prefixed("http_", name),
        Variable::SentHeader(name) => prefixed("sent_http_", name),
        Variable::SentTrailer(name) => prefixed("sent_trailer_", name),
        Variable::UpstreamHeader(name) => prefixed("upstream_http_", name),
        Variable::UpstreamTrailer(name) => prefixed("upstream_trailer_", name),
        Variable::UpstreamCookie(name) => format!("$upstream_cookie_{name}"),
        Variable::ProxyProtocolTlv(ProxyProtocolTlv::Value(kind)) => {
            format!("$proxy_protocol_tlv_0x{kind:02x}")
        }
        Variable::ProxyProtocolTlv(ProxyProtocolTlv::OfTls(kind)) => {
            format!("$proxy_protocol_tlv_ssl_0x{kind:02x}")
        }
        Variable::ProxyProtocolTlv(ProxyProtocolTlv::TlsVerify) => {
            "$proxy_protocol_tlv_ssl_verify".to_owned()
        }
        Variable::Cookie(name) => format!("$cookie_{name}"),
        Variable::Argument(name) => format!("$arg_{name}"),
        Variable::Capture(number) => format!("${number}"),
        Variable::Slot(number) => {
            let slot = request.generation.http().slots.get(usize::from(*number));
            slot.map_or_else(String::new, |slot| format!("${}", slot.name))
        }
        Variable::Made(id) => {
            let made = request.generation.http().made.get(usize::from(id.0));
            made.map_or_else(String::new, |made| format!("${}", made.name))
        }
    }
}
