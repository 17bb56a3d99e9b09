//! Checks that need the whole http block.
//!
//! Nothing is changed here, only found. Next: `configuration`, which calls this last.

use crate::listeners::shown;
use crate::reading::Reading;

/// Checks what no single directive can see.
pub fn whole(reading: &mut Reading<'_>) {
    certificates(reading);
    unused_zones(reading);
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
