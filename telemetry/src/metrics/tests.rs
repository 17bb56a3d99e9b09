//! Sums over threads, zones over reloads, and text that Prometheus can read.

use super::*;
use std::collections::HashSet;

#[test]
fn a_snapshot_sums_the_threads() {
    let registry = Registry::new();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let worker = registry.worker();
            scope.spawn(move || {
                for _ in 0..1000 {
                    worker.add(Counter::Requests, 1);
                    worker.gauge_add(Gauge::ConnectionsActive, 1);
                    worker.observe(Timing::UpstreamHeader, Duration::from_millis(2));
                }
                worker.gauge_add(Gauge::ConnectionsActive, -990);
            });
        }
    });
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.counter(Counter::Requests), 3000);
    assert_eq!(snapshot.gauge(Gauge::ConnectionsActive), 30);
    assert_eq!(snapshot.timing(Timing::UpstreamHeader).count(), 3000);
}

#[test]
fn the_counts_of_a_thread_that_is_gone_stay_and_its_cells_are_used_again() {
    let registry = Registry::new();
    let first = registry.worker();
    first.add(Counter::Requests, 5);
    let second = registry.worker();
    assert!(!Arc::ptr_eq(&first, &second));
    let gone = Arc::as_ptr(&first);
    drop(first);
    let third = registry.worker();
    assert_eq!(Arc::as_ptr(&third), gone);
    third.add(Counter::Requests, 1);
    assert_eq!(registry.snapshot().counter(Counter::Requests), 6);
}

#[test]
fn a_zone_keeps_its_number_over_reloads_and_too_many_are_not_counted() {
    let registry = Registry::new();
    let worker = registry.worker();
    for index in 0..ZONES as u32 {
        assert_eq!(registry.zone(&format!("zone {index}")), index);
    }
    assert_eq!(registry.zone("zone 17"), 17);
    worker.zone_request(17, 200, 100, 2000, Some(CacheStatus::Hit));
    worker.zone_request(17, 999, 1, 1, None);
    worker.zone_request(registry.zone("one too many"), 200, 1, 1, None);
    let zone = &registry.snapshot().zones[17];
    assert_eq!((zone.name.as_str(), zone.requests, zone.received, zone.sent), ("zone 17", 2, 101, 2001));
    assert_eq!((zone.responses, zone.cache[CacheStatus::Hit as usize]), ([0, 1, 0, 0, 1], 1));
    let total: u64 = registry.snapshot().zones.iter().map(|zone| zone.requests).sum();
    assert_eq!(total, 2);
}

#[test]
fn every_status_has_its_number() {
    for (number, status) in CacheStatus::ALL.into_iter().enumerate() {
        assert_eq!(status as usize, number);
    }
}

#[test]
fn families_stand_together_and_names_follow_prometheus() {
    let counters = Counter::ALL.iter().map(|counter| (counter.line(), true));
    let others =
        Gauge::ALL.iter().map(|gauge| gauge.line()).chain(Timing::ALL.iter().map(|timing| timing.line()));
    let (mut families, mut lines, mut last) = (HashSet::new(), HashSet::new(), "");
    for (line, is_counter) in counters.chain(others.map(|line| (line, false))) {
        if line.name != last {
            assert!(families.insert(line.name), "{} stands in two places", line.name);
            last = line.name;
        }
        assert!(lines.insert((line.name, line.labels)), "{line:?} twice");
        assert_eq!(line.name.ends_with("_total"), is_counter, "{}", line.name);
        assert!(line.name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase()), "{}", line.name);
        assert!(line.doc.ends_with('.'), "{}", line.name);
    }
}

#[test]
fn the_text_has_heads_samples_and_cumulative_buckets() {
    let registry = Registry::new();
    let worker = registry.worker();
    let zone = registry.zone("a\"b\\");
    worker.add(Counter::PurgesTag, 2);
    worker.observe(Timing::UpstreamHeader, Duration::from_micros(1_500_000));
    worker.observe(Timing::UpstreamHeader, Duration::from_micros(90));
    worker.zone_request(zone, 200, 1, 2, None);
    let mut snapshot = registry.snapshot();
    snapshot.set_gauge(Gauge::ConnectionsActive, 77);
    let text = snapshot.prometheus();
    for line in [
        "# TYPE millstream_cache_purges_total counter",
        "millstream_cache_purges_total{by=\"tag\"} 2",
        "millstream_client_connections{state=\"active\"} 77",
        "# TYPE millstream_upstream_header_duration_seconds histogram",
        "millstream_upstream_header_duration_seconds_bucket{le=\"0.00005\"} 0",
        "millstream_upstream_header_duration_seconds_bucket{le=\"0.0001\"} 1",
        "millstream_upstream_header_duration_seconds_bucket{le=\"2.5\"} 2",
        "millstream_upstream_header_duration_seconds_bucket{le=\"+Inf\"} 2",
        "millstream_upstream_header_duration_seconds_sum 1.500090",
        "millstream_upstream_header_duration_seconds_count 2",
        "millstream_zone_responses_total{zone=\"a\\\"b\\\\\",class=\"2xx\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
    let heads = text.lines().filter(|line| line.starts_with("# TYPE"));
    let names: Vec<_> = heads.collect();
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "a family has one head");
}

#[test]
fn causes_of_misses_are_counted_by_location_and_only_those_that_came_up_are_printed() {
    let registry = Registry::new();
    let (one, other) = (registry.location("a /x"), registry.location("a /\"y\""));
    assert_eq!((registry.location("a /x"), other), (one, one + 1));
    let worker = registry.worker();
    worker.miss(one, Cause::Absent, 1_000);
    registry.worker().miss(one, Cause::Absent, 900);
    worker.miss(other, Cause::StoreSetCookie, 1_100);
    worker.miss(u32::MAX, Cause::Absent, 1_200);
    let snapshot = registry.snapshot();
    let absent = snapshot.locations[one as usize].causes[Cause::Absent as usize];
    assert_eq!(absent, MissCount { count: 2, last: 1_000 });
    let text = snapshot.prometheus();
    assert!(text.contains("millstream_cache_misses_total{location=\"a /x\",cause=\"absent\"} 2\n"));
    let line = "millstream_cache_not_stored_total{location=\"a /\\\"y\\\"\",cause=\"set_cookie\"} 1\n";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("cause=\"expired\""));
    assert_eq!(Cause::not_stored("set_cookie"), Some(Cause::StoreSetCookie));
    assert_eq!(Cause::not_stored("absent"), None);
}
