//! All that is counted, as Prometheus reads it: the counts of all threads, and the log writer's.
//!
//! The sums are made here, for each who asks; counting costs nothing for being read.

use crate::answer::{Outcome, fixed};
use crate::client::Client;
use crate::request::Request;
use millstream_telemetry::metrics::Snapshot;
use millstream_wire::Headers;

/// Answers with the text.
pub(super) async fn answer(request: &mut Request, client: &mut Client) -> Outcome {
    let mut snapshot = request.generation.shared.registry.snapshot();
    snapshot.add_logs(request.worker.log_writer.statistics());
    let text = snapshot.prometheus();
    let mut headers = Headers::default();
    headers.push(b"Content-Type", Snapshot::PROMETHEUS_CONTENT_TYPE.as_bytes());
    headers.push(b"Cache-Control", b"no-store");
    fixed::whole(request, client, 200, &headers, text.as_bytes()).await
}
