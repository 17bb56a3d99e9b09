//! Which codings an upstream is asked for where its response may be stored: those of the client's class, so that what is stored for
//! one client of it is right for all.
//!
//! What a `proxy_set_header` without variables asks for is the same for everybody. Before: nothing; next: `request_head`, `params`.

use crate::request::Request;
use millstream_conf::model::{Pass, Template};
use millstream_wire::FieldId;
use millstream_wire::accept_encoding::{self, AcceptEncoding};

/// The client's class in a location with a cache, and in one that is observed for it; `None`: its field is passed on
/// unchanged.
pub(super) fn class(request: &Request, proxy: &Pass) -> Option<AcceptEncoding> {
    if proxy.cache.is_none() && !request.location().settings.shadow {
        return None;
    }
    accept_encoding::class(request.fields().all(FieldId::AcceptEncoding))
}

/// Reduces a configured Accept-Encoding to the client's class, as it may differ within a class.
pub(super) fn keep_within(class: Option<AcceptEncoding>, made_by: &Template, out: &mut Vec<u8>, from: usize) {
    if out.len() == from || made_by.variables().next().is_none() {
        return;
    }
    let Some(class) = class else { return };
    let fitting = match accept_encoding::folded(std::iter::once(&out[from..])) {
        Some(made) => {
            let (gzip, br, zstd) = (made.gzip && class.gzip, made.br && class.br, made.zstd && class.zstd);
            let deflate = made.deflate && class.deflate;
            AcceptEncoding { gzip, br, zstd, deflate, ..AcceptEncoding::default() }
        }
        None => class,
    };
    out.truncate(from);
    out.extend_from_slice(fitting.class_field().unwrap_or(b"identity"));
}
