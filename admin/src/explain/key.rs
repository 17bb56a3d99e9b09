//! What made a key: its template, where that stands, and the value of each part.

use super::at;
use millstream_cache::key;
use millstream_conf::model::{Part, ProxyCache};
use millstream_server::caching::ignored_args;
use millstream_server::location_text::readable;
use millstream_server::request::Request;
use millstream_server::shown;
use millstream_server::variable_name;
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
                parts.push(KeyPart {
                    variable: variable_name::written(variable, request.generation.http()),
                    value,
                });
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
