//! `charset`: the Content-Type of an answer with the charset that the location says, and its text in that charset.
//!
//! Whether there is anything to convert is decided as in nginx; the conversion itself is `recode`'s. Before: `head`, which asks for
//! each Content-Type that it writes; next: `chain`.

use super::body::{BodyFilter, Draft};
use super::recode::Recode;
use crate::failure;
use crate::request::Request;
use crate::variables::value;
use millstream_conf::model::{Charset, Level};
use millstream_wire::{FieldId, Fields};

struct Decided {
    named: Vec<u8>,
    conversion: Option<usize>,
}

enum Unconverted {
    Unsaid,
    /// No `charset_map` from the first charset to the second.
    NoMap(Vec<u8>, Vec<u8>),
}

/// `X-Accel-Charset`.
pub fn take(request: &mut Request, fields: Fields<'_>) {
    let Some(name) = fields.get(FieldId::XAccelCharset) else { return };
    let pass = request.location().settings.pass();
    if pass.is_none_or(|pass| pass.exchange.ignore_headers.x_accel_charset) {
        return;
    }
    if !name.is_empty() && !is_known(request, name) {
        let what = String::from_utf8_lossy(name);
        failure::log(request, Level::Error, format_args!("unknown charset \"{what}\" to override"));
    }
    request.reply.accel_charset = (!name.is_empty()).then(|| name.into());
}

fn is_known(request: &Request, name: &[u8]) -> bool {
    let http = request.generation.http();
    let mapped = http.conversions.iter().map(|conversion| &conversion.from);
    http.charsets.iter().chain(mapped).any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

pub fn named(request: &Request, status: u16, media: &[u8], is_coded: bool) -> Option<Vec<u8>> {
    let settings = &request.location().settings.charset;
    if settings.name.is_none() && request.reply.accel_charset.is_none() {
        return None;
    }
    if matches!(status, 301 | 302) {
        return None;
    }
    decided(request, settings, media, is_coded).ok().map(|decided| decided.named)
}

/// Whether it is the same for all responses of a location.
pub fn is_fixed(settings: &Charset) -> bool {
    let names = settings.name.iter().chain(&settings.source);
    names.into_iter().all(|name| name.as_literal().is_some())
}

pub(super) fn begin(request: &Request, draft: &mut Draft) -> Option<Box<dyn BodyFilter>> {
    let settings = &request.location().settings.charset;
    if !settings.converts {
        return None;
    }
    let fields = draft.headers.view();
    let media = fields.get(FieldId::ContentType)?;
    let is_coded = fields.get(FieldId::ContentEncoding).is_some();
    let generation = request.generation.clone();
    match decided(request, settings, media, is_coded) {
        Ok(Decided { conversion: Some(conversion), .. }) => {
            let recode = Recode::new(generation, conversion);
            if !recode.keeps_length() {
                draft.resize();
            }
            Some(Box::new(recode))
        }
        Ok(_) | Err(Unconverted::Unsaid) => None,
        Err(Unconverted::NoMap(from, to)) => {
            let (from, to) = (String::from_utf8_lossy(&from), String::from_utf8_lossy(&to));
            let what = format_args!("no \"charset_map\" between the charsets \"{from}\" and \"{to}\"");
            failure::log(request, Level::Error, what);
            None
        }
    }
}

fn decided(
    request: &Request,
    settings: &Charset,
    content_type: &[u8],
    is_coded: bool,
) -> Result<Decided, Unconverted> {
    if content_type.is_empty() {
        return Err(Unconverted::Unsaid);
    }
    let mut parts = content_type.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let media = parts.next().unwrap_or_default();
    let others: Vec<&[u8]> = parts.clone().filter(|part| said(part).is_none()).collect();
    let own = parts.find_map(said);
    let is_listed = || {
        let types = settings.types.as_deref();
        types.is_none_or(|types| types.iter().any(|known| media.eq_ignore_ascii_case(known.as_bytes())))
    };
    let target = match (&request.reply.accel_charset, &settings.name) {
        // As in nginx one that is not known is no charset, and the location's is none either.
        (Some(target), _) => Some(target.to_vec()).filter(|target| is_known(request, target)),
        (None, Some(target)) if own.map_or_else(is_listed, |_| settings.overrides) => {
            Some(value(target, request)).filter(|target| is_name(target))
        }
        _ => None,
    };
    let Some(target) = target else { return Err(Unconverted::Unsaid) };
    let source = match own {
        Some(own) => Some(own.to_vec()),
        None => settings.source.as_ref().map(|source| value(source, request)),
    };
    let mut conversion = None;
    if let Some(source) = source.filter(|source| !source.eq_ignore_ascii_case(&target)) {
        if is_coded {
            return Err(Unconverted::Unsaid);
        }
        conversion = find(request, &source, &target);
        if conversion.is_none() {
            return Err(Unconverted::NoMap(source, target));
        }
    }
    let mut named = media.to_vec();
    for other in others {
        named.extend_from_slice(b"; ");
        named.extend_from_slice(other);
    }
    named.extend_from_slice(b"; charset=");
    named.extend_from_slice(&target);
    Ok(Decided { named, conversion })
}

fn find(request: &Request, source: &[u8], target: &[u8]) -> Option<usize> {
    let is = |name: &str, wanted: &[u8]| name.as_bytes().eq_ignore_ascii_case(wanted);
    let conversions = &request.generation.http().conversions;
    conversions.iter().position(|known| is(&known.from, source) && is(&known.to, target))
}

fn said(part: &[u8]) -> Option<&[u8]> {
    let (name, value) = part.split_at_checked(8)?;
    let bare = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
    name.eq_ignore_ascii_case(b"charset=").then_some(bare)
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:+".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::named;
    use crate::fixture::{admitted, worker};

    #[test]
    fn a_charset_is_said_of_the_types_that_it_holds_for() {
        let worker = worker(
            "charset_map koi8-r utf-8 { C0 D18E; }
             server { listen 80; charset_types text/css; charset utf-8;
                location /a { } location /o { override_charset on; } location /off { charset off; }
                location /v { charset $arg_c; charset_types *; } location /s { source_charset koi8-r; } }",
        );
        for (target, value, status, expected) in [
            ("/a", "text/html", 200, Some("text/html; charset=utf-8")),
            ("/a", "TEXT/CSS; a=b", 404, Some("TEXT/CSS; a=b; charset=utf-8")),
            ("/a", "text/html; charset=koi8-r", 200, None),
            ("/o", "text/html; Charset=KOI8-r", 200, Some("text/html; charset=utf-8")),
            ("/o", "text/html; charset=\"UTF-8\"", 200, Some("text/html; charset=utf-8")),
            ("/o", "text/html; charset=latin1", 200, None),
            ("/o", "image/png", 200, None),
            ("/a", "text/html", 301, None),
            ("/o", "text/html", 302, None),
            ("/o", "", 200, None),
            ("/off", "text/html", 200, None),
            ("/v?c=utf-8", "image/png", 200, Some("image/png; charset=utf-8")),
            ("/v?c=a;b", "image/png", 200, None),
            ("/v", "image/png", 200, None),
            ("/s", "text/html", 200, Some("text/html; charset=utf-8")),
        ] {
            let request = admitted(&worker, &format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let made = named(&request, status, value.as_bytes(), false);
            assert_eq!(made.as_deref(), expected.map(str::as_bytes), "{target} {value}");
        }
        let request = admitted(&worker, "GET /s HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(named(&request, 200, b"text/html", true), None, "what is coded is not converted");
    }
}
