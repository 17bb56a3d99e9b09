//! The block `otel_exporter`: its lines, and where its endpoint leads.
//!
//! Whether a collector is there is not asked. Before: `otel`, the directives around it; next: `declared/otel`, what comes of it.

use crate::address::{HostPort, PeerAddress};
use crate::declared::otel::{OtelEndpoint, OtelExporter, OtelProtocol};
use crate::features::made::lines;
use crate::parts::PathUse;
use crate::reading::Reading;
use crate::suggest;
use crate::tree::{Directive, Word};
use std::time::Duration;

/// Each with the number of its words.
const LINES: [(&str, usize); 7] = [
    ("endpoint", 1),
    ("trusted_certificate", 1),
    ("header", 2),
    ("interval", 1),
    ("metrics_interval", 1),
    ("batch_size", 1),
    ("batch_count", 1),
];

const GRPC_PORT: u16 = 4317;
const HTTP_PORT: u16 = 4318;

/// Upper bounds of spans per export and of waiting batches: a span takes about a kilobyte.
const MOST_SPANS: u64 = 1 << 16;
const MOST_BATCHES: u64 = 1 << 10;

/// Fields of the export itself, which must not be set twice.
const OWN_FIELDS: [&str; 8] = [
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "te",
    "upgrade",
    "keep-alive",
];

pub(super) fn read(directive: &Directive, reading: &mut Reading<'_>) {
    let (mut endpoint, mut trusted, mut headers) = (None, None, Vec::new());
    let (mut interval, mut batch_size, mut batch_count) = (None, None, None);
    let mut metrics_interval = None;
    let mut seen: Vec<&str> = Vec::new();
    for (key, words) in lines(directive, reading) {
        if !is_line(key, words, reading) {
            continue;
        }
        if key.text != "header" && seen.contains(&key.text.as_str()) {
            reading.error(key.span, format!("\"{}\" is duplicate", key.text)).help("keep one of them");
            continue;
        }
        seen.push(&key.text);
        match key.text.as_str() {
            "endpoint" => endpoint = self::endpoint(&words[0], reading),
            "trusted_certificate" => {
                trusted = Some(reading.named_path(&words[0], &words[0].text, PathUse::Certificate))
            }
            "header" => headers.extend(header(&words[0], &words[1], reading)),
            "interval" => interval = interval_of(&words[0], reading),
            "metrics_interval" => {
                metrics_interval = interval_of(&words[0], reading).map(|every| (every, key.span))
            }
            "batch_size" => batch_size = reading.number(&words[0], 1, MOST_SPANS),
            _ => batch_count = reading.number(&words[0], 1, MOST_BATCHES),
        }
    }
    if !seen.contains(&"endpoint") {
        reading
            .error(directive.span, "\"otel_exporter\" requires \"endpoint\"")
            .help("write where the collector is, as in endpoint 127.0.0.1:4317;");
    }
    // Where it is wrong, what is traced is not said to have no exporter besides.
    let endpoint = endpoint.unwrap_or_else(|| OtelEndpoint {
        authority: String::new(),
        address: PeerAddress::Name(HostPort { host: String::new(), port: GRPC_PORT }),
        secured: false,
        protocol: OtelProtocol::Grpc,
    });
    if let Some((_, span)) = metrics_interval
        && endpoint.protocol != OtelProtocol::Grpc
        && endpoint.metrics_path().is_none()
    {
        reading
            .error(span, "\"metrics_interval\" needs an endpoint whose path ends in /v1/traces")
            .help("metrics are then posted to /v1/metrics");
    }
    reading.declared.otel_exporter = Some(OtelExporter {
        span: directive.span,
        endpoint,
        trusted,
        headers,
        interval: interval.unwrap_or(Duration::from_secs(5)),
        metrics_interval: metrics_interval.map(|(every, _)| every),
        batch_size: batch_size.unwrap_or(512) as usize,
        batch_count: batch_count.unwrap_or(4) as usize,
    });
}

fn is_line(key: &Word, words: &[Word], reading: &mut Reading<'_>) -> bool {
    let Some((_, takes)) = LINES.into_iter().find(|(name, _)| *name == key.text) else {
        let names = LINES.map(|(name, _)| name);
        let help = suggest::did_you_mean(&key.text, names)
            .unwrap_or_else(|| format!("write one of: {}", names.join(", ")));
        reading
            .error(key.span, format!("unknown directive \"{}\" in \"otel_exporter\"", key.text))
            .help(help);
        return false;
    };
    if words.len() != takes {
        let message =
            format!("invalid number of arguments in \"{}\" directive of \"otel_exporter\"", key.text);
        reading.error(key.span, message).help(format!("it takes {takes}"));
        return false;
    }
    words.iter().all(|word| reading.without_variables(word, "otel_exporter"))
}

fn interval_of(word: &Word, reading: &mut Reading<'_>) -> Option<Duration> {
    let interval = reading.duration(word)?;
    if interval.is_zero() {
        reading.error(word.span, "the interval is zero").help("write a time such as 5s");
        return None;
    }
    Some(interval)
}

/// `[scheme://]host[:port][path]`.
fn endpoint(word: &Word, reading: &mut Reading<'_>) -> Option<OtelEndpoint> {
    let found = parse(&word.text);
    if found.is_none() {
        reading
            .error(word.span, format!("invalid endpoint \"{}\" in \"otel_exporter\"", word.text))
            .help("write host:port for OTLP/gRPC, or a URL such as http://host:4318/v1/traces for OTLP/HTTP");
    }
    found
}

fn parse(text: &str) -> Option<OtelEndpoint> {
    let without = |scheme: &str| {
        let (start, rest) = text.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    let (secured, rest) = match (without("https://"), without("http://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => (false, text),
    };
    // The slashes of a socket's path are no path of a URL.
    let (authority, path) = match rest.find('/').filter(|_| !rest.starts_with("unix:")) {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    let protocol = match path {
        "" | "/" => OtelProtocol::Grpc,
        path => OtelProtocol::Http(path.to_owned()),
    };
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    let port = if protocol == OtelProtocol::Grpc { GRPC_PORT } else { HTTP_PORT };
    let address = PeerAddress::parse(authority, port).filter(|_| is_plain(rest))?;
    let authority = match &address {
        PeerAddress::Unix(_) => "localhost".to_owned(),
        _ => authority.to_owned(),
    };
    Some(OtelEndpoint { authority, address, secured, protocol })
}

/// HTTP/2 requires lower case (RFC 9113 §8.2.1).
fn header(name: &Word, value: &Word, reading: &mut Reading<'_>) -> Option<(String, String)> {
    let lower = name.text.to_ascii_lowercase();
    let is_name =
        lower.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    let is_own = OWN_FIELDS.contains(&lower.as_str()) || lower.starts_with("grpc-");
    if lower.is_empty() || !is_name || is_own {
        reading
            .error(name.span, "\"header\" directive of \"otel_exporter\" has invalid header name")
            .help("write letters, digits and hyphens; fields of the protocol itself cannot be set");
        return None;
    }
    if !value.text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        reading
            .error(value.span, "\"header\" directive of \"otel_exporter\" has invalid header value")
            .help("write printable characters");
        return None;
    }
    Some((lower, value.text.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_without_a_path_is_grpc_and_one_with_a_path_is_http() {
        let http = |path: &str| OtelProtocol::Http(path.to_owned());
        for (text, expected) in [
            ("127.0.0.1:4317", Some(("127.0.0.1:4317", false, OtelProtocol::Grpc))),
            ("collector", Some(("collector", false, OtelProtocol::Grpc))),
            ("http://collector:4317", Some(("collector:4317", false, OtelProtocol::Grpc))),
            ("HTTPS://collector:4317/", Some(("collector:4317", true, OtelProtocol::Grpc))),
            ("[::1]:4317", Some(("[::1]:4317", false, OtelProtocol::Grpc))),
            ("http://c:4318/v1/traces", Some(("c:4318", false, http("/v1/traces")))),
            ("https://c/v1/traces", Some(("c", true, http("/v1/traces")))),
            ("unix:/run/otel.sock", Some(("localhost", false, OtelProtocol::Grpc))),
            ("", None),
            ("http://", None),
            ("collector:0", None),
            ("collector:99999", None),
            ("http://c:1/v1/tr\u{e4}ces", None),
        ] {
            let found = parse(text);
            let seen = found.as_ref().map(|at| (at.authority.as_str(), at.secured, at.protocol.clone()));
            assert_eq!(seen, expected, "{text}");
        }
    }
}
