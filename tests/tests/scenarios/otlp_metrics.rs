//! Metrics over OTLP: what a collector is told is what was caused and what `/metrics` says, over reloads, outages and to the end.

use std::collections::BTreeSet;

use millstream_tests::collector::{Collector, families, metrics_of, sample, times, value, whole};
use millstream_tests::origin::Origin;
use millstream_tests::ports;
use millstream_tests::server::Server;
use millstream_tests::wait;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use rustix::process::Signal;
use std::time::{SystemTime, UNIX_EPOCH};

const TEMPLATE: &str = site! {
    main "worker_processes 2;" log "info"
    http "otel_exporter { endpoint @COLLECTOR@; metrics_interval @EVERY@; }
        otel_service_name shop;
        otel_resource_attr deployment.environment test;
        upstream api { server @ORIGIN@; }"
    server "server_name site.test;
        location / { proxy_pass http://api; }
        location /made { return 404; }
        location /api/ { status_zone off; api; }"
};

fn values<'v>(collector: &'v str, every: &'v str, origin: &'v str) -> [(&'static str, &'v str); 3] {
    [("COLLECTOR", collector), ("EVERY", every), ("ORIGIN", origin)]
}

fn start(collector: &str, every: &str, origin: &Origin) -> Server {
    Server::start(TEMPLATE, &values(collector, every, &origin.address()))
}

fn count(exports: &[ExportMetricsServiceRequest], name: &str, labels: &[(&str, &str)]) -> Option<i64> {
    whole(&sample(exports, name, labels)?)
}

fn nanoseconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64
}

#[test]
fn what_a_collector_is_told_is_what_was_caused() {
    let (collector, origin) = (Collector::start(), Origin::fixed(200, &[], b"hello"));
    let before = nanoseconds();
    let server = start(&collector.address(), "20ms", &origin);
    for _ in 0..5 {
        assert_eq!(server.get("/").status, 200);
    }
    for _ in 0..2 {
        assert_eq!(server.get("/made").status, 404);
    }
    let site = ("zone", "site.test");
    let well = [site, ("class", "2xx")];
    let zone = "millstream_zone_responses_total";
    wait::until("all is told", || {
        count(&collector.metrics(), zone, &well) == Some(5)
            && count(&collector.metrics(), zone, &[site, ("class", "4xx")]) == Some(2)
            && count(&collector.metrics(), "millstream_requests_total", &[]) >= Some(7)
    });
    let exports = collector.metrics();
    let peer = [("upstream", "api"), ("server", &*origin.address())];
    assert_eq!(count(&exports, "millstream_requests_total", &[]), Some(7));
    assert_eq!(count(&exports, "millstream_upstream_peer_requests_total", &peer), Some(5));
    assert_eq!(count(&exports, "millstream_upstream_peer_up", &peer), Some(1));
    let took = times(&exports, "millstream_zone_request_duration_seconds", &[site]).expect("it is told");
    assert_eq!((took.count, took.bucket_counts.iter().sum::<u64>()), (7, 7));
    assert_eq!(
        (took.explicit_bounds[0], took.bucket_counts.len()),
        (0.00005, took.explicit_bounds.len() + 1)
    );
    assert!(took.sum.is_some_and(|sum| sum > 0.0));
    let resource = exports[0].resource_metrics[0].resource.clone().expect("it says whose these are");
    assert_eq!(value(&resource.attributes, "service.name").as_deref(), Some("shop"));
    assert_eq!(value(&resource.attributes, "deployment.environment").as_deref(), Some("test"));
    let first = sample(&exports, zone, &well).expect("it is told");
    assert!(before <= first.start_time_unix_nano && first.start_time_unix_nano <= first.time_unix_nano);
    // A reload begins nothing anew.
    server.reload();
    assert_eq!(server.get("/").status, 200);
    wait::until("it is told", || count(&collector.metrics(), zone, &well) == Some(6));
    let after = sample(&collector.metrics(), zone, &well).expect("it is told");
    assert_eq!(after.start_time_unix_nano, first.start_time_unix_nano);
    assert!(first.time_unix_nano < after.time_unix_nano && after.time_unix_nano <= nanoseconds());
    assert!(server.log().matches("cannot be exported").next().is_none(), "{}", server.log());
}

#[test]
fn a_collector_is_told_of_every_family_that_prometheus_is() {
    let (collector, origin) = (Collector::start(), Origin::fixed(200, &[], b"hello"));
    let mut server = start(&collector.address(), "1h", &origin);
    assert_eq!(server.get("/").status, 200);
    let text = server.get("/api/9/metrics").text();
    let scraped: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert!(collector.metrics().is_empty());
    // What was counted last goes out with the end.
    assert!(server.stop(Signal::TERM).is_some_and(|status| status.success()));
    let exports = collector.metrics();
    let told: BTreeSet<&str> = exports.iter().flat_map(families).map(|metric| metric.name.as_str()).collect();
    assert_eq!(told, scraped);
    assert_eq!(count(&exports, "millstream_requests_total", &[]), Some(2));
}

#[test]
fn a_collector_over_http_gets_metrics_beside_traces() {
    let (collector, origin) = (Origin::fixed(200, &[], b""), Origin::fixed(200, &[], b"hello"));
    let endpoint = format!("http://{}/otlp/v1/traces", collector.address());
    let server = start(&endpoint, "20ms", &origin);
    assert_eq!(server.get("/").status, 200);
    wait::until("it is told", || {
        let newest: Vec<_> =
            collector.requests().last().map(|request| metrics_of(&request.body)).into_iter().collect();
        count(&newest, "millstream_requests_total", &[]) == Some(1)
    });
    for request in collector.requests() {
        assert!(request.head.starts_with("POST /otlp/v1/metrics HTTP/1.1\r\n"), "{}", request.head);
        assert_eq!(request.field("content-type"), Some("application/x-protobuf"));
    }
}

#[test]
fn an_outage_of_the_collector_is_told_twice_and_the_figures_go_on() {
    let (port, origin) = (ports::free(), Origin::fixed(200, &[], b"hello"));
    let server = start(&format!("127.0.0.1:{port}"), "10ms", &origin);
    assert_eq!(server.get("/").status, 200);
    let failed = || {
        let text = server.get("/api/9/metrics").text();
        let line = text.lines().find_map(|line| {
            line.strip_prefix("millstream_metric_exports_total{outcome=\"failed\"} ")?.parse::<u64>().ok()
        });
        line.expect("it is there")
    };
    wait::until("several have failed", || failed() >= 3);
    assert_eq!(server.log().matches("metrics cannot be exported to").count(), 1, "{}", server.log());
    let collector = Collector::start_at(port);
    wait::until("they arrive", || {
        count(&collector.metrics(), "millstream_metric_exports_total", &[("outcome", "failed")]) >= Some(3)
    });
    wait::until("the log says so", || server.log().contains("metrics are exported to"));
}
