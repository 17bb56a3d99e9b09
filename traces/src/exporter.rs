//! The one who exports: takes batches of spans out of the queue, and all figures at each interval, and carries both to the collector.
//!
//! What fails is lost and counted, as in nginx: a collector that is gone costs nothing but its spans, and figures are told anew with the next
//! interval. The log has one line when exports begin to fail and one when they work again. Before: `queue`, `figures`, `collector`; next:
//! `millstream`'s `exporting`, whose thread it runs on.

use crate::collector::{self, Collector, Signal};
use crate::failure::ExportFailure;
use crate::figures::FigureMessages;
use crate::message;
use crate::outage::{News, Outage};
use crate::queue::{SpanQueue, SpanSink};
use millstream_conf::model::{Level, OtelExporter, OtelResource};
use millstream_net::clock;
use millstream_net::timer::{Deadline, with_deadline, within};
use millstream_net::tls::{TlsConnector, TlsError};
use millstream_telemetry::error_log::ErrorLogs;
use millstream_telemetry::metrics::{Counter, Snapshot, WorkerMetrics};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Shared by all configurations with the same settings.
#[derive(Debug)]
pub struct Tracing {
    pub sink: SpanSink,
    settings: OtelExporter,
    resource: OtelResource,
    tls: Option<Arc<TlsConnector>>,
}

pub struct FigureSource {
    /// Start of counting, in nanoseconds since 1970.
    pub since: u64,
    /// Returns the present values; `None` once no configuration is in force.
    pub take: Box<dyn Fn() -> Option<Snapshot> + Send>,
}

impl Tracing {
    pub fn new(settings: &OtelExporter, resource: &OtelResource) -> Result<Tracing, TlsError> {
        Ok(Tracing {
            sink: SpanSink::new(SpanQueue::new(settings.batch_size, settings.batch_count)),
            settings: settings.clone(),
            resource: resource.clone(),
            tls: collector::connector(settings)?,
        })
    }

    /// Whether another configuration has the same settings. Over TLS never: the certificate's file may have
    /// changed.
    pub fn is_of(&self, settings: &OtelExporter, resource: &OtelResource) -> bool {
        let here = OtelExporter { span: settings.span, ..self.settings.clone() };
        !settings.endpoint.secured && here == *settings && self.resource == *resource
    }

    /// Exports the spans handed over here, and metrics if they are wanted. It does not keep the sink open.
    pub fn exporter(&self, figures: FigureSource) -> Exporter {
        let carrier = |signal| Carrier {
            resource: self.resource.clone(),
            authority: self.settings.endpoint.authority.clone(),
            collector: Collector::new(self.settings.clone(), self.tls.clone(), signal),
            outage: Outage::default(),
        };
        let figures = |interval| FigureExporter { interval, figures, carrier: carrier(Signal::Figures) };
        Exporter {
            spans: SpanExporter {
                queue: self.sink.queue(),
                interval: self.settings.interval,
                carrier: carrier(Signal::Spans),
            },
            figures: self.settings.metrics_interval.map(figures),
        }
    }
}

/// Exports one queue, and metrics until that is closed.
pub struct Exporter {
    spans: SpanExporter,
    figures: Option<FigureExporter>,
}

impl Exporter {
    /// Returns when the queue is closed and empty, after a last export of metrics. Neither waits for the
    /// other.
    pub async fn run(self, metrics: &WorkerMetrics, log: &ErrorLogs) {
        let (open, closed) = oneshot::channel::<()>();
        let spans = async {
            self.spans.run(metrics, log).await;
            drop(open);
        };
        let figures = async {
            if let Some(figures) = self.figures {
                figures.run(closed, metrics, log).await;
            }
        };
        tokio::join!(spans, figures);
    }
}

struct SpanExporter {
    queue: Arc<SpanQueue>,
    interval: Duration,
    carrier: Carrier,
}

impl SpanExporter {
    async fn run(mut self, metrics: &WorkerMetrics, log: &ErrorLogs) {
        while let Some(spans) = self.queue.next(self.interval).await {
            let count = spans.len() as u64;
            let message = message::encode(&self.carrier.resource, spans);
            let outcome = self.carrier.export(&message).await;
            let counter = if outcome.is_ok() { Counter::SpansExported } else { Counter::SpansFailed };
            metrics.add(counter, count);
            self.carrier.tell(("spans", "were lost"), count, outcome, log);
        }
    }
}

struct FigureExporter {
    interval: Duration,
    figures: FigureSource,
    carrier: Carrier,
}

impl FigureExporter {
    /// Exports at each interval and once more after `over`, so that the last counts are not lost.
    async fn run(mut self, mut over: oneshot::Receiver<()>, metrics: &WorkerMetrics, log: &ErrorLogs) {
        let mut due = Deadline::new();
        let mut next = clock::now() + self.interval;
        loop {
            due.set(next);
            let is_over = with_deadline(&mut due, &mut over).await.is_ok();
            self.export(metrics, log).await;
            if is_over {
                return;
            }
            next = (next + self.interval).max(clock::now());
        }
    }

    async fn export(&mut self, metrics: &WorkerMetrics, log: &ErrorLogs) {
        let Some(snapshot) = (self.figures.take)() else { return };
        let period = (self.figures.since, clock::unix_nanoseconds());
        // It borrows the resource, and the collector is written to meanwhile.
        let resource = self.carrier.resource.clone();
        let mut messages = FigureMessages::new(&resource, period);
        snapshot.walk(&mut messages);
        let mut outcome = Ok(());
        for message in messages.end() {
            outcome = self.carrier.export(&message).await;
            if outcome.is_err() {
                break;
            }
        }
        let counter = if outcome.is_ok() { Counter::FiguresExported } else { Counter::FiguresFailed };
        metrics.add(counter, 1);
        self.carrier.tell(("metrics", "exports were lost"), 1, outcome, log);
    }
}

struct Carrier {
    resource: OtelResource,
    authority: String,
    collector: Collector,
    outage: Outage,
}

impl Carrier {
    async fn export(&mut self, message: &[u8]) -> Result<(), ExportFailure> {
        match within(EXPORT_TIMEOUT, self.collector.export(message)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ExportFailure::TimedOut),
        }
    }

    /// Counts and logs the outcome for so many items.
    fn tell(
        &mut self,
        (what, lose): (&str, &str),
        count: u64,
        outcome: Result<(), ExportFailure>,
        log: &ErrorLogs,
    ) {
        let authority = &self.authority;
        match (self.outage.note(outcome.is_ok(), count), outcome) {
            (Some(News::Began), Err(failure)) => {
                log.write(Level::Error, format_args!("{what} cannot be exported to {authority}: {failure}"));
            }
            (Some(News::Ended(lost)), _) => log.write(
                Level::Notice,
                format_args!("{what} are exported to {authority} again, {lost} {lose} meanwhile"),
            ),
            _ => {}
        }
    }
}
