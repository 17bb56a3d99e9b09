//! Directives of TLS.
//!
//! What a file asks for that is unsafe is dropped with a warning that says so. Files are looked at (are they there, may
//! they be read), never understood. Next: `tls_ciphers`; `millstream-net`'s `tls`, which loads them.

use std::fs::File;

use super::{Apply, HTTP_SERVER, MANY, Row, idle, often, once, tls_ciphers};
use crate::inherit::Level;
use crate::model::TlsVersion;
use crate::reading::Reading;
use crate::source::Span;
use crate::tree::{Directive, Word};
use std::path::PathBuf;

/// The rows of this family.
pub const ROWS: &[Row] = &[
    often(
        "ssl_certificate",
        HTTP_SERVER,
        (1, 1),
        "file",
        "",
        "A PEM file with the server's certificate and those that lead up to its authority. Relative names hang on the directory of \
         the main file.",
        Apply::Level(|l, d, r| {
            l.ssl_certificates.get_or_insert_default().push(pem_file(&d.args[0], "certificate", r));
        }),
    ),
    often(
        "ssl_certificate_key",
        HTTP_SERVER,
        (1, 1),
        "file",
        "",
        "A PEM file with the key of the certificate, in the order of the certificates.",
        Apply::Level(|l, d, r| {
            l.ssl_certificate_keys.get_or_insert_default().push(pem_file(&d.args[0], "certificate key", r));
        }),
    ),
    often(
        "ssl_protocols",
        HTTP_SERVER,
        (1, MANY),
        "TLSv1.2 | TLSv1.3 …",
        "TLSv1.2 TLSv1.3",
        "The versions that are offered. SSLv2, SSLv3, TLSv1 and TLSv1.1 are accepted as words and never offered.",
        Apply::Level(protocols),
    ),
    once(
        "ssl_ciphers",
        HTTP_SERVER,
        (1, 1),
        "list",
        "HIGH:!aNULL:!MD5",
        "The suites that are offered for TLS 1.2, in OpenSSL's words. Of what the list allows, those with ECDHE and AES-GCM or \
         ChaCha20 remain; the suites of TLS 1.3 are not chosen by it.",
        Apply::Level(|l, d, r| {
            l.ssl_ciphers = tls_ciphers::read(&d.args[0], r).map(|suites| (suites, d.args[0].span))
        }),
    ),
    once(
        "ssl_prefer_server_ciphers",
        HTTP_SERVER,
        (1, 1),
        "on | off",
        "off",
        "Whether the server's order of suites counts before the client's.",
        Apply::Level(|l, d, r| l.ssl_prefer_server_ciphers = r.flag(&d.args[0])),
    ),
    once(
        "ssl_session_cache",
        HTTP_SERVER,
        (1, 2),
        "off | none | builtin[:size] | shared:name:size",
        "none",
        "Keeps TLS sessions, 4,000 a megabyte. All workers share it.",
        Apply::Level(session_cache),
    ),
    once(
        "ssl_session_timeout",
        HTTP_SERVER,
        (1, 1),
        "time",
        "5m",
        "How long a session can be resumed.",
        Apply::Level(|l, d, r| l.ssl_session_timeout = r.duration(&d.args[0])),
    ),
    idle(
        "ssl_buffer_size",
        HTTP_SERVER,
        (1, 1),
        "size",
        "How much goes into one TLS record.",
        "the TLS library sizes its records by itself",
    ),
    idle(
        "ssl_dhparam",
        HTTP_SERVER,
        (1, 1),
        "file",
        "The parameters of suites with DHE.",
        "suites with DHE are not offered; those with ECDHE need no parameters",
    ),
];

fn pem_file(word: &Word, what: &str, reading: &mut Reading<'_>) -> (PathBuf, Span) {
    // A file that cannot be used goes on as one, so that nothing else is reported for want of it.
    let path = reading.conf_prefix.resolve(&word.text);
    if !reading.without_variables(word, "the name of a certificate") {
        return (path, word.span);
    }
    if ["data:", "engine:", "store:"].iter().any(|kind| word.text.starts_with(kind)) {
        reading
            .error(word.span, "nginx knows certificates that are not files, Millstream does not (yet)")
            .help("write the name of a PEM file");
        return (path, word.span);
    }
    let opened = File::open(&path).and_then(|file| file.metadata()).map(|about| about.is_file());
    let trouble = match opened {
        Ok(true) => None,
        Ok(false) => Some("it is not a file".to_owned()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(trouble) = trouble {
        reading
            .error(word.span, format!("cannot load {what} \"{}\": {trouble}", path.display()))
            .help("write the name of a PEM file that may be read; relative names hang on the directory of the main file");
    }
    (path, word.span)
}

fn protocols(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    const WORDS: [&str; 6] = ["SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];
    let mut offered = level.ssl_protocols.take().unwrap_or_default();
    let mut dropped = Vec::new();
    let mut misspelt = false;
    for word in &directive.args {
        match reading.one_of(word, &WORDS) {
            Some(4) => offered.push(TlsVersion::Tls12),
            Some(5) => offered.push(TlsVersion::Tls13),
            Some(old) => dropped.push(WORDS[old]),
            None => misspelt = true,
        }
    }
    offered.sort();
    offered.dedup();
    if offered.is_empty() && !misspelt {
        reading
            .error(directive.span, "ssl_protocols leaves no version that is safe")
            .help("write ssl_protocols TLSv1.2 TLSv1.3;");
        return;
    }
    if !dropped.is_empty() {
        let verb = if dropped.len() == 1 { "is" } else { "are" };
        reading
            .diagnostics
            .warning(directive.span, format!("{} {verb} not offered (RFC 8996)", dropped.join(", ")))
            .help("write ssl_protocols TLSv1.2 TLSv1.3;");
    }
    level.ssl_protocols = (!offered.is_empty()).then_some(offered);
}

fn session_cache(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    const PER_MEGABYTE: u64 = 4000;
    const SMALLEST_CACHE: u64 = 32 * 1024;
    let mut sessions = 0u64;
    for word in &directive.args {
        let mut pieces = word.text.splitn(3, ':');
        let kind = pieces.next().unwrap_or_default();
        match (kind, pieces.next(), pieces.next()) {
            ("off" | "none", None, None) => {}
            ("builtin", None, None) => sessions = sessions.max(20_480),
            ("builtin", Some(number), None) => {
                let number = reading.number(&Reading::part(word, number), 0, 1 << 32);
                sessions = sessions.max(number.unwrap_or(0));
            }
            ("shared", Some(name), Some(size)) if !name.is_empty() => {
                let Some(bytes) = reading.size(&Reading::part(word, size)) else { continue };
                if bytes < SMALLEST_CACHE {
                    reading
                        .error(word.span, format!("session cache \"{}\" is too small", word.text))
                        .help("write at least 32k; a megabyte holds 4,000 sessions");
                }
                sessions = sessions.max(bytes.saturating_mul(PER_MEGABYTE) / (1024 * 1024));
            }
            _ => {
                reading
                    .error(word.span, format!("invalid session cache \"{}\"", word.text))
                    .help("write off, none, builtin or shared:name:size, as in shared:SSL:10m");
            }
        }
    }
    level.ssl_session_cache = Some(usize::try_from(sessions).unwrap_or(usize::MAX));
}
