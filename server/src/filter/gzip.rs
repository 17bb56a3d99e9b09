//! Compression: which answers, and the compressor itself.
//!
//! The conditions are nginx's (`gzip*`); beyond them `no-transform` is honoured (RFC 9111 §5.2.2.6). Cached answers are
//! compressed once, by `answer/hit`, not here at every hit.

use crate::request::Request;
use flate2::Compression;
use flate2::write::GzEncoder;
use millstream_conf::model::{Gzip, GzipHttpVersion, GzipProxied};
use millstream_wire::{FieldId, Fields, accept_encoding, cache_control};
use std::io::Write;

/// Whether the answer is compressed on its way to this client.
pub fn applies(request: &Request, status: u16, fields: Fields<'_>, length: Option<u64>) -> bool {
    let gzip = &request.location().settings.gzip;
    gzip.enabled && eligible(gzip, status, fields, length) && accepted(gzip, request, fields)
}

/// Whether the answer would be compressed for a client that takes it: such an answer varies (`gzip_vary`).
pub fn eligible(gzip: &Gzip, status: u16, fields: Fields<'_>, length: Option<u64>) -> bool {
    gzip.enabled
        && matches!(status, 200 | 403 | 404)
        && length.is_none_or(|length| length >= gzip.min_length)
        && fields.get(FieldId::ContentEncoding).is_none()
        && fields.get(FieldId::ContentType).is_some_and(|value| type_listed(gzip, value))
        && !cache_control::parse(fields.all(FieldId::CacheControl)).no_transform
}

/// Whether this client takes a compressed answer.
pub fn accepted(gzip: &Gzip, request: &Request, fields: Fields<'_>) -> bool {
    let version_fits = gzip.http_version == GzipHttpVersion::Http10 || request.is_http11();
    version_fits
        && request.field(FieldId::AcceptEncoding).is_some_and(accept_encoding::accepts_gzip)
        && (request.field(FieldId::Via).is_none() || for_proxied(gzip, request, fields))
}

fn type_listed(gzip: &Gzip, value: &[u8]) -> bool {
    if gzip.any_type {
        return true;
    }
    let media = value.split(|&byte| byte == b';').next().unwrap_or(value).trim_ascii();
    media.eq_ignore_ascii_case(b"text/html")
        || gzip.types.iter().any(|listed| media.eq_ignore_ascii_case(listed.as_bytes()))
}

/// `gzip_proxied`: the request came through another proxy. As in nginx, once anything but `off` is set, an answer with
/// neither Expires nor Cache-Control is compressed unless `no_last_modified` or `no_etag` keep it from that.
fn for_proxied(gzip: &Gzip, request: &Request, fields: Fields<'_>) -> bool {
    let rule = &gzip.proxied;
    if *rule == GzipProxied::default() {
        return false;
    }
    if rule.any || rule.auth && request.field(FieldId::Authorization).is_some() {
        return true;
    }
    if let Some(expires) = fields.get(FieldId::Expires) {
        let now = millstream_net::clock::wall().seconds;
        let date = fields.get(FieldId::Date).and_then(millstream_wire::date::parse_http).unwrap_or(now);
        return rule.expired && millstream_wire::date::parse_http(expires).is_some_and(|at| at < date);
    }
    if fields.has(FieldId::CacheControl) {
        let control = cache_control::parse(fields.all(FieldId::CacheControl));
        return rule.no_cache && control.no_cache.is_present()
            || rule.no_store && control.no_store
            || rule.private && control.private.is_present();
    }
    !(rule.no_last_modified && fields.has(FieldId::LastModified) || rule.no_etag && fields.has(FieldId::ETag))
}

/// The level as this library has it: its first is faster than zlib's and leaves text half as large again, its second does
/// what zlib's, and so nginx's, first does.
fn compression(level: u32) -> Compression {
    Compression::new(level.max(2))
}

/// A gzip stream being made.
pub struct Compressor {
    encoder: GzEncoder<Vec<u8>>,
    /// Whether it was given something since the last time all of it was given out.
    holds: bool,
    input: u64,
    output: u64,
}

impl Compressor {
    /// A compressor of a level, 1–9.
    pub fn new(level: u32) -> Self {
        Compressor {
            encoder: GzEncoder::new(Vec::new(), compression(level)),
            holds: false,
            input: 0,
            output: 0,
        }
    }

    /// Compresses a piece; what is ready is appended to `out`.
    pub fn compress(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.input += piece.len() as u64;
        self.holds |= !piece.is_empty();
        // Writing into a vector cannot fail.
        _ = self.encoder.write_all(piece);
        self.drain(out);
    }

    /// Gives out all that was put in, so that the client can read it now. Each time costs some bytes, so it is for a
    /// source that pauses.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.holds) {
            _ = self.encoder.flush();
            self.drain(out);
        }
    }

    /// Ends the stream.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        _ = self.encoder.try_finish();
        self.drain(out);
    }

    /// Bytes in and out so far.
    pub fn totals(&self) -> (u64, u64) {
        (self.input, self.output)
    }

    fn drain(&mut self, out: &mut Vec<u8>) {
        let ready = self.encoder.get_mut();
        self.output += ready.len() as u64;
        out.append(ready);
    }
}

/// Compresses a whole body at once.
pub fn whole(body: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 3), compression(level));
    _ = encoder.write_all(body);
    encoder.finish().unwrap_or_default()
}
