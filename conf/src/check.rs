//! Checks that need the whole http block.
//!
//! Nothing is changed here, only found. Next: `configuration`, which calls this last.

use crate::listeners::shown;
use crate::reading::Reading;

/// Checks what no single directive can see.
pub fn whole(reading: &mut Reading<'_>) {
    certificates(reading);
    // Where something is wrong already, what is missing may be what is wrong.
    if !reading.diagnostics.has_errors() {
        unused_zones(reading);
        unobeyed(reading);
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
