//! The one who exports: takes batches out of the queue and carries them to the collector, one after the other.
//!
//! A batch that fails is lost and counted, as in nginx: a collector that is gone costs nothing but its spans. The log has one line when exports
//! begin to fail and one when they work again. Before: `queue`, `collector`; next: `millstream`'s `exporting`, whose thread it runs on.

use crate::collector::{self, Collector};
use crate::failure::ExportFailure;
use crate::message;
use crate::outage::{News, Outage};
use crate::queue::{SpanQueue, SpanSink};
use millstream_conf::model::{Level, OtelExporter, OtelResource};
use millstream_net::clock;
use millstream_net::timer::{Deadline, with_deadline};
use millstream_net::tls::{TlsConnector, TlsError};
use millstream_telemetry::error_log::ErrorLogs;
use millstream_telemetry::metrics::{Counter, WorkerMetrics};
use std::sync::Arc;
use std::time::Duration;

/// The longest that one export may take.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// What exporting needs, made once for all configurations that say the same.
#[derive(Debug)]
pub struct Tracing {
    /// Where spans are handed over.
    pub sink: SpanSink,
    settings: OtelExporter,
    resource: OtelResource,
    tls: Option<Arc<TlsConnector>>,
}

impl Tracing {
    /// Reads what the settings name.
    ///
    /// # Errors
    /// What is wrong with the certificates of authorities.
    pub fn new(settings: &OtelExporter, resource: &OtelResource) -> Result<Tracing, TlsError> {
        Ok(Tracing {
            sink: SpanSink::new(SpanQueue::new(settings.batch_size, settings.batch_count)),
            settings: settings.clone(),
            resource: resource.clone(),
            tls: collector::connector(settings)?,
        })
    }

    /// Whether another configuration says the same. A certificate may have changed in its file, so one that is spoken to over TLS is not.
    pub fn is_of(&self, settings: &OtelExporter, resource: &OtelResource) -> bool {
        let here = OtelExporter { span: settings.span, ..self.settings.clone() };
        !settings.endpoint.secured && here == *settings && self.resource == *resource
    }

    /// The one who exports what is handed over here. It does not keep the sink.
    pub fn exporter(&self) -> Exporter {
        Exporter {
            queue: self.sink.queue(),
            interval: self.settings.interval,
            authority: self.settings.endpoint.authority.clone(),
            resource: self.resource.clone(),
            collector: Collector::new(self.settings.clone(), self.tls.clone()),
        }
    }
}

/// Exports what comes out of one queue.
pub struct Exporter {
    queue: Arc<SpanQueue>,
    interval: Duration,
    authority: String,
    resource: OtelResource,
    collector: Collector,
}

impl Exporter {
    /// Exports until the queue is closed and empty.
    pub async fn run(mut self, metrics: &WorkerMetrics, log: &ErrorLogs) {
        let mut outage = Outage::default();
        while let Some(spans) = self.queue.next(self.interval).await {
            let count = spans.len() as u64;
            let message = message::encode(&self.resource, spans);
            let outcome = self.export(&message).await;
            let counter = if outcome.is_ok() { Counter::SpansExported } else { Counter::SpansFailed };
            metrics.add(counter, count);
            self.tell(outage.note(outcome.is_ok(), count), outcome.err(), log);
        }
    }

    async fn export(&mut self, message: &[u8]) -> Result<(), ExportFailure> {
        let mut deadline = Deadline::new();
        deadline.set(clock::now() + EXPORT_TIMEOUT);
        match with_deadline(&mut deadline, self.collector.export(message)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ExportFailure::TimedOut),
        }
    }

    fn tell(&self, news: Option<News>, failure: Option<ExportFailure>, log: &ErrorLogs) {
        let authority = &self.authority;
        match (news, failure) {
            (Some(News::Began), Some(failure)) => {
                log.write(Level::Error, format_args!("spans cannot be exported to {authority}: {failure}"));
            }
            (Some(News::Ended(lost)), _) => log.write(
                Level::Notice,
                format_args!("spans are exported to {authority} again, {lost} were lost meanwhile"),
            ),
            _ => {}
        }
    }
}
