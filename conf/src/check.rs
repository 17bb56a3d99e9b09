//! Checks that need the whole http block.
//!
//! Nothing is changed here, only found. Next: `configuration`, which calls this last.

use crate::listeners::shown;
use crate::model::{ManageRight, Network};
use crate::reading::Reading;

/// Checks what no single directive can see.
pub fn whole(reading: &mut Reading<'_>) {
    certificates(reading);
    unused_zones(reading);
    unobeyed(reading);
    unknown_clients(reading);
}

/// Rights by address need the client's own: with `set_real_ip_from` left out it would be that of the proxy in front,
/// and with it everybody's.
fn unknown_clients(reading: &mut Reading<'_>) {
    let by_address = |right: &ManageRight| {
        right.allow.iter().flatten().any(|network| matches!(network, Network::Ip(_, 1..)))
    };
    let is_written = reading.http.locations.iter().any(|location| {
        let cache = location.settings.proxy.as_ref().and_then(|proxy| proxy.cache.as_ref());
        cache.is_some_and(|cache| by_address(&cache.purge_right))
            || location.settings.api.as_ref().is_some_and(|api| by_address(&api.right))
            || location.settings.purge_at.as_ref().is_some_and(|place| by_address(&place.right))
    });
    if !is_written {
        return;
    }
    for (name, span) in std::mem::take(&mut reading.unknown_clients) {
        reading
            .error(span, format!("\"{name}\" cannot be left out beside addresses that may purge or use the API"))
            .help("without it they would be compared with the address of the proxy in front; write a token instead");
    }
}

/// What purges, tags or explains without a cache, and who may use an API that is nowhere.
fn unobeyed(reading: &mut Reading<'_>) {
    let locations = &reading.http.locations;
    let has_api = locations.iter().any(|location| location.settings.api.is_some());
    for (name, span) in std::mem::take(&mut reading.dependent) {
        let (is_obeyed, needs, help) = match name.starts_with("api_") {
            true => (has_api, "location with \"api\"", "write api; in the location that is to be the API"),
            false => (
                reading.obeyed.contains(&span),
                "location with \"proxy_pass\" and \"proxy_cache\"",
                "write proxy_cache and the name of a zone in the location, or take this out",
            ),
        };
        if !is_obeyed {
            reading
                .diagnostics
                .warning(span, format!("\"{name}\" has no effect: there is no {needs} for it"))
                .help(help);
        }
    }
}

/// An address with `ssl` needs a certificate in its default server, else (as in nginx) in every server.
fn certificates(reading: &mut Reading<'_>) {
    let http = &reading.http;
    let mut missing = Vec::new();
    for listener in http.listeners.iter().filter(|listener| listener.ssl) {
        // A server whose certificate could not be used has its own error already, and its `tls`.
        if http.server(listener.default_server).tls.is_none() {
            missing.push((http.server(listener.default_server).span, shown(&listener.address)));
        }
    }
    for (span, address) in missing {
        reading
            .error(
                span,
                format!("no \"ssl_certificate\" is defined for the \"listen {address} ssl\" of this server"),
            )
            .help("write ssl_certificate and ssl_certificate_key with the files of its certificate and key");
    }
}

/// A zone that no location uses is most often one whose `proxy_cache` was forgotten.
fn unused_zones(reading: &mut Reading<'_>) {
    let unused: Vec<_> = (reading.http.cache_zones.iter())
        .zip(&reading.used_zones)
        .filter(|(_, used)| !**used)
        .map(|(zone, _)| (zone.span, zone.name.clone()))
        .collect();
    for (span, name) in unused {
        reading
            .diagnostics
            .warning(span, format!("no \"proxy_cache\" uses the zone \"{name}\", so nothing is cached in it"))
            .help(format!(
                "write proxy_cache {name}; in the http, server or location block that is to use it"
            ));
    }
}
