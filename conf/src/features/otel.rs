//! `otel_*`: which requests are traced, what their spans are called and say, and how contexts travel.
//!
//! Directives, defaults and inheritance are those of nginx's otel module. Before: `otel/exporter`, where spans go; next: `millstream-server`'s
//! `tracing`, which makes them.

mod exporter;

use std::sync::Arc;

use super::context::{HTTP, HTTP_SERVER_LOCATION};
use super::level::level;
use super::phases::Phases;
use super::templates::{record, without_templates};
use super::{Apply, Feature, Level, Place, Row, often, once};
use crate::reading::Reading;
use crate::source::Span;
use crate::template::Template;
use crate::tree::Directive;

/// What happens to the context of a request (W3C Trace Context).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OtelContext {
    /// It becomes the parent of the request's span.
    pub extract: bool,
    /// The upstream is sent a context that names our span.
    pub inject: bool,
}

without_templates!(OtelContext);

record! {
    pub struct SpanAttribute {
        pub name: String,
        pub value: Template,
    }
}

record! {
    pub struct Otel {
        /// `None` = never.
        pub trace: Option<Template>,
        pub context: OtelContext,
        /// `None` = the location's name.
        pub span_name: Option<Template>,
        pub attributes: Arc<[SpanAttribute]>,
    }
}

level! {
    pub struct OtelLevel {
        trace: (Template, Span),
        context: OtelContext,
        span_name: Template,
        attributes: Vec<SpanAttribute>,
    }
}

impl Feature for OtelLevel {
    type Settings = Otel;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, reading: &mut Reading<'_>) -> Otel {
        if let Some((_, span)) = &self.trace
            && reading.declared.otel_exporter.is_none()
        {
            reading
                .error(*span, "\"otel_exporter\" block is missing")
                .help("write otel_exporter { endpoint 127.0.0.1:4317; } in the http block")
                .once();
        }
        Otel {
            trace: self.trace.as_ref().map(|(template, _)| template.clone()),
            context: self.context.unwrap_or_default(),
            span_name: self.span_name.clone(),
            attributes: self.attributes.clone().unwrap_or_default().into(),
        }
    }

    fn phases(otel: &Otel) -> Phases {
        Phases::TRACING.only_if(otel.trace.is_some() || otel.context.inject)
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("otel_exporter", HTTP, (0, 0), "{ … }", "",
        "Defines where spans, and optionally metrics, are exported. `endpoint host:port;` is a collector with OTLP/gRPC, over TLS with `https://`. An \
        endpoint with a path, such as `http://host:4318/v1/traces`, uses OTLP/HTTP. `trusted_certificate file;` sets the CA certificates that verify \
        its certificate, instead of those of the system. `header name value;` adds a field to each export. `interval` (5s) is the maximum time \
        between two exports, `batch_size` (512) the maximum number of spans in one, and `batch_count` (4) the maximum number of waiting batches; \
        further spans are dropped and counted. With `metrics_interval time;`, all metrics of `/metrics` are exported at this interval; over \
        OTLP/HTTP, the path has `/v1/metrics` instead of `/v1/traces`.",
        Apply::DeclareLines(exporter::read)),
    once("otel_service_name", HTTP, (1, 1), "name", "unknown_service:millstream",
        "Sets the `service.name` attribute of the resource.",
        Apply::Declare(|d, r| r.declared.otel_service_name = Some(d.args[0].text.clone()))),
    often("otel_resource_attr", HTTP, (2, 2), "name value", "",
        "Sets an attribute of the resource. `otel_service_name` takes precedence over an attribute named `service.name`.",
        Apply::Declare(|d, r| _ = r.declared.otel_resource.insert(d.args[0].text.clone(), d.args[1].text.clone()))),
    once("otel_trace", HTTP_SERVER_LOCATION, (1, 1), "on | off | $variable", "off",
        "Enables tracing if the value is `on` or `1`; any other value disables it. The value may contain variables, as in `otel_trace \
        $otel_parent_sampled`. It needs an `otel_exporter`.",
        Apply::Level(|l, d, r| l.otel.trace = Some((r.template(&d.args[0]), d.span)))),
    once("otel_trace_context", HTTP_SERVER_LOCATION, (1, 1), "extract | inject | propagate | ignore", "ignore",
        "Sets how the fields traceparent and tracestate (W3C Trace Context) are handled. `extract`: their span is the parent of the request's span. \
        `inject`: the upstream receives the request's span instead. `propagate`: both. `ignore`: they are passed unchanged.",
        Apply::Level(|l, d, r| {
            let (extract, inject) = (true, true);
            l.otel.context = r.choice(&d.args[0], &[
                ("extract", OtelContext { extract, inject: false }),
                ("inject", OtelContext { extract: false, inject }),
                ("propagate", OtelContext { extract, inject }),
                ("ignore", OtelContext::default()),
            ]);
        })),
    once("otel_span_name", HTTP_SERVER_LOCATION, (1, 1), "name", "",
        "Sets the name of the request's span, which may contain variables. By default, this is the name of the location.",
        Apply::Level(|l, d, r| l.otel.span_name = Some(r.template(&d.args[0])))),
    often("otel_span_attr", HTTP_SERVER_LOCATION, (2, 2), "name value", "",
        "Adds an attribute to the request's span. The value may contain variables. These directives are inherited only if the current level has none.",
        Apply::Level(attribute)),
];

fn attribute(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let value = reading.template(&directive.args[1]);
    let attribute = SpanAttribute { name: directive.args[0].text.clone(), value };
    level.otel.attributes.get_or_insert_default().push(attribute);
}
