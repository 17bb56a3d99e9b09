//! What makes no sense, and in which words it is told.

use super::*;

fn target(port: u16) -> Target {
    Target {
        url: format!("http://127.0.0.1:{port}/"),
        addresses: vec![SocketAddr::from(([127, 0, 0, 1], port))],
        tls: None,
        way: Way::default(),
        request: Arc::from(&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..]),
        http2: None,
        is_head: false,
        expect: Expect::default(),
    }
}

fn plan() -> Plan {
    Plan::closed(target(80), 10, 2, Duration::from_secs(1))
}

/// Changes a good plan and expects words of the complaint; none: it is still good.
fn check(change: impl Fn(&mut Plan), expected: Option<&str>) {
    let mut plan = plan();
    change(&mut plan);
    match (plan.check(), expected) {
        (Ok(()), None) => {}
        (Err(PlanError(said)), Some(words)) => assert!(said.contains(words), "{said:?} without {words:?}"),
        (got, _) => panic!("{got:?} where {expected:?} was expected"),
    }
}

#[test]
fn what_makes_no_sense_is_told_before_anything_is_opened() {
    check(|_| {}, None);
    check(|plan| plan.targets.clear(), Some("specify a URL"));
    check(|plan| plan.targets[0].addresses.clear(), Some("has no address"));
    check(|plan| plan.order = vec![0, 1], Some("target 1 of 1"));
    check(|plan| plan.connections = 0, Some("connections: must be at least 1"));
    check(|plan| plan.connections = 100_001, Some("more than the maximum of 100000"));
    check(|plan| plan.threads = 0, Some("threads: must be at least 1"));
    check(|plan| plan.threads = 11, Some("11 threads need"));
    check(|plan| plan.pipeline = 0, Some("pipeline: must be at least 1"));
    check(|plan| (plan.pipeline, plan.keep_alive) = (2, false), Some("keep-alive"));
    check(|plan| plan.requests = Some(0), Some("requests: must be at least 1"));
    check(|plan| plan.requests = Some(9), Some("9 requests cannot"));
    check(|plan| plan.duration = None, Some("no end"));
    check(|plan| (plan.duration, plan.requests) = (None, Some(10)), None);
    check(|plan| plan.duration = Some(Duration::ZERO), Some("above zero"));
    check(|plan| plan.duration = Some(LONGEST * 2), Some("one day"));
    check(|plan| plan.timeout = Duration::ZERO, Some("timeout"));
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        check(
            |plan| plan.mode = Mode::Open { rate, arrivals: Arrivals::Constant },
            Some("requests per second"),
        );
    }
}

#[test]
fn targets_of_one_server_share_its_connections() {
    let mut plan = plan();
    plan.targets = vec![target(80), target(81), target(80)];
    assert_eq!(plan.origins(), [vec![0, 2], vec![1]]);
    plan.order = vec![2, 0, 2];
    assert_eq!(plan.origins(), [vec![0, 2]], "nobody asks the other server");
    plan.order.clear();
    plan.targets[2].tls = Some("a".into());
    assert_eq!(plan.origins().len(), 3);
    (plan.connections, plan.threads) = (2, 1);
    assert_eq!(plan.check(), Err(PlanError("3 servers need at least as many connections, not 2".into())));
}
