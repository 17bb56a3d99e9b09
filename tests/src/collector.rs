//! An OpenTelemetry collector that keeps what it is sent: a real gRPC server of OTLP, on a thread of its own.
//!
//! It may be slow, or refuse. OTLP/HTTP needs none: an `Origin` keeps bodies, which `spans_of` and `metrics_of` read. Next: `origin`.

use crate::gate::Gate;
use crate::{ports, wait};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    HistogramDataPoint, Metric, NumberDataPoint, number_data_point,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status};

#[derive(Debug, Clone)]
pub struct Export {
    pub fields: Vec<(String, String)>,
    pub request: ExportTraceServiceRequest,
}

impl Export {
    pub fn spans(&self) -> Vec<Span> {
        spans(&self.request)
    }
}

pub struct Collector {
    port: u16,
    state: Arc<State>,
    _stop: tokio::sync::oneshot::Sender<()>,
}

#[derive(Default)]
struct State {
    exports: Mutex<Vec<Export>>,
    metrics: Mutex<Vec<ExportMetricsServiceRequest>>,
    /// If set, each call waits for it.
    gate: Option<Arc<Gate>>,
}

#[derive(Clone)]
struct Service(Arc<State>);

#[tonic::async_trait]
impl TraceService for Service {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let fields = request.metadata().clone().into_headers();
        let fields = fields
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        let export = Export { fields, request: request.into_inner() };
        self.0.exports.lock().expect("nobody panics with it").push(export);
        if let Some(gate) = self.0.gate.clone() {
            let waited = tokio::task::spawn_blocking(move || gate.pass()).await;
            waited.map_err(|_| Status::internal("the gate is gone"))?;
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Service {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.0.metrics.lock().expect("nobody panics with it").push(request.into_inner());
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

impl Collector {
    pub fn start() -> Collector {
        Collector::serve(ports::free(), None, None)
    }

    pub fn start_at(port: u16) -> Collector {
        Collector::serve(port, None, None)
    }

    pub fn behind(gate: &Arc<Gate>) -> Collector {
        Collector::serve(ports::free(), Some(gate.clone()), None)
    }

    pub fn secured(certificate: &str, key: &str) -> Collector {
        Collector::serve(ports::free(), None, Some(Identity::from_pem(certificate, key)))
    }

    fn serve(port: u16, gate: Option<Arc<Gate>>, identity: Option<Identity>) -> Collector {
        let state = Arc::new(State { gate, ..State::default() });
        let service = Service(state.clone());
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, listening) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let incoming = TcpIncoming::bind(address).expect("a free port");
                let mut server = Server::builder();
                if let Some(identity) = identity {
                    let tls = ServerTlsConfig::new().identity(identity);
                    server = server.tls_config(tls).expect("a certificate and its key");
                }
                _ = ready.send(());
                let router = server.add_service(TraceServiceServer::new(service.clone()));
                let router = router.add_service(MetricsServiceServer::new(service));
                let serving = router.serve_with_incoming(incoming);
                // Whoever is being served is cut off, as by a collector that is killed.
                tokio::select! { _ = serving => {}, _ = stopped => {} }
            });
            runtime.shutdown_background();
        });
        listening.recv().expect("it listens");
        Collector { port, state, _stop: stop }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn exports(&self) -> Vec<Export> {
        self.state.exports.lock().expect("nobody panics with it").clone()
    }

    pub fn metrics(&self) -> Vec<ExportMetricsServiceRequest> {
        self.state.metrics.lock().expect("nobody panics with it").clone()
    }

    pub fn spans(&self) -> Vec<Span> {
        self.exports().iter().flat_map(Export::spans).collect()
    }

    /// The request's own span first, once all are there.
    pub fn trace_of(&self, target: &str) -> Vec<Span> {
        let mut found = Vec::new();
        wait::until(&format!("the spans of {target}"), || {
            let all = self.spans();
            let own = all.iter().find(|span| attribute(span, "http.target").as_deref() == Some(target));
            found = own.map_or_else(Vec::new, |own| {
                let mut trace: Vec<Span> =
                    all.iter().filter(|span| span.trace_id == own.trace_id).cloned().collect();
                trace.sort_by_key(|span| span.span_id != own.span_id);
                trace
            });
            !found.is_empty()
        });
        found
    }
}

pub fn spans_of(body: &[u8]) -> Vec<Span> {
    spans(&ExportTraceServiceRequest::decode(body).expect("a message of OTLP"))
}

fn spans(request: &ExportTraceServiceRequest) -> Vec<Span> {
    let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| scope.spans.clone()).collect()
}

pub fn metrics_of(body: &[u8]) -> ExportMetricsServiceRequest {
    ExportMetricsServiceRequest::decode(body).expect("a message of OTLP")
}

pub fn families(export: &ExportMetricsServiceRequest) -> impl Iterator<Item = &Metric> {
    let scopes = export.resource_metrics.iter().flat_map(|resource| &resource.scope_metrics);
    scopes.flat_map(|scope| &scope.metrics)
}

pub fn sample(
    exports: &[ExportMetricsServiceRequest],
    name: &str,
    labels: &[(&str, &str)],
) -> Option<NumberDataPoint> {
    let found = exports.iter().rev().flat_map(families).filter(|metric| metric.name == name);
    let points = found.flat_map(|metric| match &metric.data {
        Some(Data::Sum(sum)) => sum.data_points.as_slice(),
        Some(Data::Gauge(gauge)) => gauge.data_points.as_slice(),
        _ => &[],
    });
    points.into_iter().find(|point| has(&point.attributes, labels)).cloned()
}

pub fn times(
    exports: &[ExportMetricsServiceRequest],
    name: &str,
    labels: &[(&str, &str)],
) -> Option<HistogramDataPoint> {
    let found = exports.iter().rev().flat_map(families).filter(|metric| metric.name == name);
    let points = found.flat_map(|metric| match &metric.data {
        Some(Data::Histogram(histogram)) => histogram.data_points.as_slice(),
        _ => &[],
    });
    points.into_iter().find(|point| has(&point.attributes, labels)).cloned()
}

fn has(attributes: &[KeyValue], labels: &[(&str, &str)]) -> bool {
    attributes.len() == labels.len()
        && labels.iter().all(|(name, wanted)| value(attributes, name).as_deref() == Some(wanted))
}

pub fn whole(point: &NumberDataPoint) -> Option<i64> {
    match point.value? {
        number_data_point::Value::AsInt(value) => Some(value),
        number_data_point::Value::AsDouble(_) => None,
    }
}

pub fn attribute(span: &Span, name: &str) -> Option<String> {
    value(&span.attributes, name)
}

pub fn value(attributes: &[KeyValue], name: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == name)?;
    text(found.value.as_ref()?.value.as_ref()?)
}

fn text(value: &any_value::Value) -> Option<String> {
    match value {
        any_value::Value::StringValue(text) => Some(text.clone()),
        any_value::Value::IntValue(number) => Some(number.to_string()),
        any_value::Value::ArrayValue(list) => {
            let parts: Vec<String> =
                list.values.iter().filter_map(|value| text(value.value.as_ref()?)).collect();
            Some(format!("[{}]", parts.join(",")))
        }
        _ => None,
    }
}

pub fn digits(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
