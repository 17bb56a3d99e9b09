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

fn answered(status: u16, cache: Option<CacheStatus>) -> Finished {
    Finished { status, received: 100, sent: 2000, cache, took: Duration::from_millis(3) }
}

#[test]
fn a_zone_keeps_its_number_over_reloads_and_too_many_are_not_counted() {
    let registry = Registry::new();
    let worker = registry.worker();
    for index in 0..ServerPages::ROOM as u32 {
        assert_eq!(registry.server(&format!("zone {index}")), index);
    }
    assert_eq!(registry.server("zone 17"), 17);
    let location = registry.location("a /");
    worker.finished(17, location, &answered(200, Some(CacheStatus::Hit)));
    worker.finished(17, u32::MAX, &answered(999, None));
    worker.finished(17, u32::MAX, &answered(499, None));
    worker.finished(registry.server("one too many"), u32::MAX, &answered(200, None));
    let snapshot = registry.snapshot();
    let (name, zone) = &snapshot.servers[17];
    assert_eq!((name.as_str(), zone.requests(), zone.received, zone.sent), ("zone 17", 3, 300, 6000));
    assert_eq!((zone.responses, zone.cached(CacheStatus::Hit)), ([0, 1, 0, 0, 1, 1], 1));
    assert_eq!((zone.discarded(), zone.latency.count(), zone.latency.sum()), (1, 3, 9000));
    let total: u64 = snapshot.servers.iter().map(|(_, zone)| zone.requests()).sum();
    assert_eq!(total, 3);
    assert_eq!(snapshot.locations[location as usize].http.requests(), 1);
}

#[test]
fn what_a_cache_saves_counts_as_long_as_the_upstream_takes_and_never_falls() {
    let registry = Registry::new();
    let worker = registry.worker();
    let (server, location) = (registry.server("a"), registry.location("a /"));
    let saved = || registry.snapshot().locations[location as usize].origin;
    worker.finished(server, location, &answered(200, Some(CacheStatus::Miss)));
    worker.asked(location, 1, Duration::from_millis(100));
    for _ in 0..10 {
        worker.finished(server, location, &answered(200, Some(CacheStatus::Hit)));
    }
    let expected = Origin { requests: 1, time: 100_000, saved_requests: 10, saved_time: 1_000_000 };
    assert_eq!(saved(), expected);
    // The upstream has become faster: what is told stays, and new hits count less.
    worker.asked(location, 3, Duration::ZERO);
    worker.finished(server, location, &answered(200, Some(CacheStatus::Stale)));
    assert_eq!((saved().mean_time(), saved().saved_time, saved().saved_requests), (25_000, 1_025_000, 11));
}

#[test]
fn a_cache_zone_counts_answers_and_waits() {
    let registry = Registry::new();
    let zone = registry.cache("hot");
    registry.worker().cached(zone, CacheStatus::Updating, 500);
    registry.worker().waited(zone, Duration::from_millis(2));
    let (name, cache) = &registry.snapshot().caches[zone as usize];
    assert_eq!((name.as_str(), cache.waits, cache.waited), ("hot", 1, 2000));
    let updating = CacheStatus::Updating as usize;
    assert_eq!((cache.responses[updating], cache.bytes[updating]), (1, 500));
}

#[test]
fn a_part_is_handed_on_with_its_counts_when_its_thread_is_gone() {
    let parts = parts::Parts::<PeerCells>::default();
    let (one, other) = (parts.part(), parts.part());
    one.enter();
    other.enter();
    one.leave();
    one.failed(true);
    one.took(PeerTiming::Header, Duration::from_millis(1));
    let gone = Arc::as_ptr(&one);
    drop(one);
    let next = parts.part();
    assert_eq!(Arc::as_ptr(&next), gone);
    next.answered(503);
    let sum = parts.sum(PeerCounts::default(), PeerCells::add_to);
    assert_eq!((sum.requests, sum.active, sum.failures, sum.outages), (2, 1, 1, 1));
    assert_eq!((sum.responses, sum.timing(PeerTiming::Header).count()), ([0, 0, 0, 0, 1], 1));
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
        let is_fit = |byte: u8| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
        assert!(line.name.bytes().all(is_fit), "{}", line.name);
        assert!(line.doc.ends_with('.'), "{}", line.name);
    }
    for family in super::families().into_iter().flat_map(|(.., families)| families) {
        assert!(family.doc.ends_with('.'), "{}", family.name);
        assert_eq!(family.name.ends_with("_total"), family.kind == "counter", "{}", family.name);
        assert!(families.insert(family.name), "{} stands in two places", family.name);
    }
}

#[test]
fn the_text_has_heads_samples_and_cumulative_buckets() {
    let registry = Registry::new();
    let worker = registry.worker();
    let zone = registry.server("a\"b\\");
    worker.add(Counter::PurgesTag, 2);
    worker.observe(Timing::UpstreamHeader, Duration::from_micros(1_500_000));
    worker.observe(Timing::UpstreamHeader, Duration::from_micros(90));
    worker.finished(zone, u32::MAX, &answered(200, None));
    let mut snapshot = registry.snapshot();
    snapshot.set_gauge(Gauge::ConnectionsActive, 77);
    let cells = PeerCells::default();
    cells.enter();
    let mut counts = PeerCounts::default();
    cells.add_to(&mut counts);
    let peers = vec![UpstreamPeer { name: "127.0.0.1:1".to_owned(), counts, ..UpstreamPeer::default() }];
    snapshot.upstreams.push(Upstream { name: "api".to_owned(), peers });
    let text = snapshot.exposed(Exposition::Text);
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
        "millstream_zone_request_duration_seconds_sum{zone=\"a\\\"b\\\\\"} 0.003000",
        "millstream_upstream_peer_requests_total{upstream=\"api\",server=\"127.0.0.1:1\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
    let heads = text.lines().filter(|line| line.starts_with("# TYPE"));
    let names: Vec<_> = heads.collect();
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "a family has one head");
    let samples: Vec<_> =
        text.lines().filter(|line| !line.starts_with('#')).map(|line| line.rsplit_once(' ')).collect();
    assert_eq!(
        samples.iter().flatten().map(|(name, _)| name).collect::<HashSet<_>>().len(),
        samples.len(),
        "no sample twice"
    );
    let open = snapshot.exposed(Exposition::OpenMetrics);
    assert!(open.ends_with("\n# EOF\n") && open.contains("# TYPE millstream_cache_purges counter\n"));
    assert!(open.contains("millstream_cache_purges_total{by=\"tag\"} 2\n"));
}

#[test]
fn a_client_gets_the_exposition_that_it_asks_for() {
    let prometheus =
        "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
    for (accept, expected) in [
        ("", Exposition::Text),
        ("*/*", Exposition::Text),
        ("text/plain", Exposition::Text),
        ("application/openmetrics-text; version=1.0.0; q=0, text/plain", Exposition::Text),
        (prometheus, Exposition::OpenMetrics),
        ("text/html, Application/OpenMetrics-Text", Exposition::OpenMetrics),
    ] {
        assert_eq!(Exposition::wanted(accept.as_bytes()), expected, "{accept}");
    }
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
    assert_eq!(absent, MissCount { count: 2, last: 1_000, moved: 0 });
    let text = snapshot.exposed(Exposition::Text);
    assert!(text.contains("millstream_cache_misses_total{location=\"a /x\",cause=\"absent\"} 2\n"));
    let line = "millstream_cache_not_stored_total{location=\"a /\\\"y\\\"\",cause=\"set_cookie\"} 1\n";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("cause=\"expired\""));
    assert_eq!(Cause::not_stored("set_cookie"), Some(Cause::StoreSetCookie));
    assert_eq!(Cause::not_stored("absent"), None);
}
