//! `$invalid_referer`: whether the page that referred to this one may do so (`valid_referers`).
//!
//! Before: `millstream-conf`'s `features/valid_referers`.

use super::{Found, give, tell};
use crate::request::Request;
use crate::route::Undecided;
use millstream_conf::model::{Level, Regex, ServerName, ValidReferers};
use millstream_wire::FieldId;

/// Longer hosts are not matched, as in nginx.
const LONGEST_HOST: usize = 256;
/// Shorter fields are not parsed as a URL, as in nginx: `http://i.ru`.
const SHORTEST_URL: usize = 11;

/// `1` if it is invalid, nothing if valid.
pub(super) fn append(request: &Request, out: &mut Vec<u8>) -> Found {
    let valid = &request.location().settings.valid_referers;
    let is_valid = valid.as_ref().is_none_or(|valid| is_valid(valid, request));
    give(if is_valid { b"" } else { b"1" }, out)
}

fn is_valid(valid: &ValidReferers, request: &Request) -> bool {
    let Some(referer) = request.field(FieldId::Referer) else { return valid.none };
    let Some(rest) = behind_scheme(referer) else { return valid.blocked };
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b':')).unwrap_or(rest.len());
    if end > LONGEST_HOST {
        return false;
    }
    let host = rest[..end].to_ascii_lowercase();
    if let Some(path) = valid.hosts.find(&host) {
        let came = rest.iter().position(|byte| *byte == b'/').map_or(&[][..], |at| &rest[at..]);
        return path.as_ref().is_none_or(|path| came.starts_with(path.as_bytes()));
    }
    let of_server = valid.server_names.iter().filter_map(|name| match name {
        ServerName::Regex(regex) => Some(regex),
        _ => None,
    });
    matches(of_server, &host, request) || matches(valid.expressions.iter(), rest, request)
}

fn behind_scheme(referer: &[u8]) -> Option<&[u8]> {
    let behind = |scheme: &[u8]| {
        let (start, rest) = referer.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    if referer.len() < SHORTEST_URL { None } else { behind(b"http://").or_else(|| behind(b"https://")) }
}

/// One that hits its limit makes nothing valid.
fn matches<'e>(mut expressions: impl Iterator<Item = &'e Regex>, text: &[u8], request: &Request) -> bool {
    let matches = |regex: &Regex| match regex.is_match(text) {
        Ok(is_match) => is_match,
        Err(_) => {
            let undecided = Undecided { expression: regex.source.as_str().into(), text: text.into() };
            tell(request, Level::Alert, format_args!("{undecided}"));
            false
        }
    };
    expressions.any(matches)
}
