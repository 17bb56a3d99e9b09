//! All that is counted, as Prometheus reads it.
//!
//! Before: `snapshot`, the sums.

use crate::snapshot::snapshot;
use millstream_server::client::Client;
use millstream_server::content::fixed;
use millstream_server::outcome::Outcome;
use millstream_server::request::Request;
use millstream_telemetry::metrics::Exposition;
use millstream_wire::{FieldId, Headers};

pub(crate) async fn answer(request: &mut Request, client: &mut Client) -> Outcome {
    let exposition = Exposition::wanted(request.field(FieldId::Accept).unwrap_or_default());
    let snapshot = snapshot(&request.generation.shared, request.worker.log_writer.statistics());
    let text = snapshot.exposed(exposition);
    let mut headers = Headers::default();
    headers.push(b"Content-Type", exposition.content_type().as_bytes());
    headers.push(b"Cache-Control", b"no-store");
    headers.push(b"Vary", b"Accept");
    fixed::whole(request, client, 200, &headers, text.as_bytes()).await
}
