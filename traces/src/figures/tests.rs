//! What the walk tells is what messages say, and none is too large.

use super::*;
use millstream_telemetry::metrics::{CacheStatus, Counter, Finished, Gauge as GaugeLine, Registry, Timing};
use std::time::Duration;

fn messages(registry: &Registry) -> Vec<ExportMetricsServiceRequest> {
    let resource = [("service.name".to_owned(), "shop".to_owned())].into();
    let mut messages = FigureMessages::new(&resource, (5, 7));
    registry.snapshot().walk(&mut messages);
    let messages = messages.end();
    assert!(messages.iter().all(|message| message.len() < 2 * MOST_BYTES));
    messages
        .iter()
        .map(|message| ExportMetricsServiceRequest::decode(&message[..]).expect("a message"))
        .collect()
}

/// The metrics of all messages.
fn metrics(messages: &[ExportMetricsServiceRequest]) -> Vec<&Metric> {
    let resources = messages.iter().flat_map(|message| &message.resource_metrics);
    resources.flat_map(|resource| &resource.scope_metrics).flat_map(|scope| &scope.metrics).collect()
}

fn named<'m>(metrics: &[&'m Metric], name: &str) -> &'m Metric {
    metrics.iter().find(|metric| metric.name == name).expect("it is there")
}

#[test]
fn sums_gauges_and_histograms_say_what_was_counted_and_since_when() {
    let registry = Registry::new();
    let worker = registry.worker();
    worker.add(Counter::Requests, 3);
    worker.add(Counter::PurgesTag, 2);
    worker.gauge_add(GaugeLine::ConnectionsActive, 4);
    for milliseconds in [1, 3, 20_000] {
        worker.observe(Timing::UpstreamHeader, Duration::from_millis(milliseconds));
    }
    let messages = messages(&registry);
    let metrics = metrics(&messages);
    let Some(Data::Sum(requests)) = &named(&metrics, "millstream_requests_total").data else {
        panic!("a sum")
    };
    assert!(requests.is_monotonic && requests.aggregation_temporality == CUMULATIVE);
    let point = &requests.data_points[0];
    assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (5, 7));
    assert_eq!(point.value, Some(Value::AsInt(3)));
    let purges = named(&metrics, "millstream_cache_purges_total");
    let Some(Data::Sum(purges)) = &purges.data else { panic!("a sum") };
    let by_tag = key_value("by".into(), text("tag".into()));
    let point = purges.data_points.iter().find(|point| point.attributes == [by_tag.clone()]);
    assert_eq!(point.and_then(|point| point.value), Some(Value::AsInt(2)));
    let Some(Data::Gauge(connections)) = &named(&metrics, "millstream_client_connections").data else {
        panic!("a gauge")
    };
    assert_eq!(connections.data_points[0].value, Some(Value::AsInt(4)));
    let header = named(&metrics, "millstream_upstream_header_duration_seconds");
    assert_eq!(header.unit, "s");
    let Some(Data::Histogram(header)) = &header.data else { panic!("a histogram") };
    let point = &header.data_points[0];
    assert_eq!((point.count, point.sum), (3, Some(20.004)));
    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
    assert_eq!(point.bucket_counts.iter().sum::<u64>(), 3);
    assert_eq!(point.bucket_counts.last(), Some(&1), "what is above the last bound");
    assert!(point.explicit_bounds.is_sorted());
}

#[test]
fn many_zones_take_several_messages_and_lose_nothing() {
    let registry = Registry::new();
    let worker = registry.worker();
    let request = Finished {
        status: 200,
        received: 1,
        sent: 1,
        cache: Some(CacheStatus::Hit),
        took: Duration::from_millis(1),
    };
    for number in 0..1000 {
        let location = registry.location(&format!("{number} {}", "long name ".repeat(10)));
        worker.finished(u32::MAX, location, &request);
    }
    let messages = messages(&registry);
    assert!(messages.len() > 1, "{}", messages.len());
    let sums = metrics(&messages)
        .into_iter()
        .filter(|metric| metric.name == "millstream_location_bytes_sent_total")
        .filter_map(|metric| match &metric.data {
            Some(Data::Sum(sum)) => Some(sum.data_points.len()),
            _ => None,
        });
    assert_eq!(sums.sum::<usize>(), 1000);
    for message in &messages {
        let resource = message.resource_metrics[0].resource.as_ref().expect("a resource");
        assert_eq!(resource.attributes[0].key, "service.name");
    }
}
