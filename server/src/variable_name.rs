//! The name of a variable as a configuration writes it.

use millstream_conf::model::{Http, ProxyProtocolTlv, Variable};
use millstream_conf::variables::VARIABLES;

pub fn written(variable: &Variable, http: &Http) -> String {
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
            let slot = http.slots.get(usize::from(*number));
            slot.map_or_else(String::new, |slot| format!("${}", slot.name))
        }
        Variable::Made(id) => {
            let made = http.made.get(usize::from(id.0));
            made.map_or_else(String::new, |made| format!("${}", made.name))
        }
    }
}
