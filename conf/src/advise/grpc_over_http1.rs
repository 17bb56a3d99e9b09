//! `grpc_pass` where nobody can come with a call: the server takes no HTTP/2.

use crate::model::{Http, Server, ServerId};
use crate::reading::Reading;

pub(super) fn advise(http: &Http, reading: &mut Reading<'_>) {
    let takes_http2 = |id: ServerId, server: &Server| {
        let mut listeners = http.listeners.iter().filter(|listener| listener.servers.contains(&id));
        server.settings.http2.enabled || listeners.any(|listener| listener.http2)
    };
    let deaf = (0..).map(ServerId).zip(&http.servers).filter(|(id, server)| !takes_http2(*id, server));
    let mut spans: Vec<_> = deaf
        .flat_map(|(_, server)| http.locations_of(server))
        .map(|id| http.location(id))
        .filter(|location| location.settings.pass().is_some_and(|pass| pass.grpc().is_some()))
        .map(|location| location.span)
        .collect();
    spans.sort();
    spans.dedup();
    for span in spans {
        reading
            .diagnostics
            .warning(
                span,
                "gRPC calls are passed on here, but the server does not accept HTTP/2, which they need",
            )
            .help("write http2 on; in the server block")
            .once();
    }
}
