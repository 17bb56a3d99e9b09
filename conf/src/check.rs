//! Checks that need the whole http block.
//!
//! Nothing is changed here, only found. Before: `advise`, whose rules come last; next: `configuration`, which calls this.

use crate::advise;
use crate::listeners::shown;
use crate::model::Http;
use crate::reading::Reading;

/// Checks what no single directive can see.
pub fn whole(http: &Http, reading: &mut Reading<'_>) {
    certificates(http, reading);
    if !reading.diagnostics.has_errors() {
        advise::whole(&http.locations, reading);
    }
}

/// An address with `ssl` needs a certificate in its default server, else (as in nginx) in every server.
fn certificates(http: &Http, reading: &mut Reading<'_>) {
    let mut missing = Vec::new();
    for listener in http.listeners.iter().filter(|listener| listener.ssl) {
        // A server whose certificate could not be used has its own error already, and its `tls`.
        if http.server(listener.default_server).settings.tls.is_none() {
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
