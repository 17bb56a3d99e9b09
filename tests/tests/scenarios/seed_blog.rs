//! The three steps of the article about a WordPress blog: proxied with keep-alive, a microcache of one second, and one
//! with a lock that serves the old page while one request fetches the new one.

use std::time::Duration;

use millstream_tests::load;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::prefix::seed;
use millstream_tests::server::{Server, is_nginx};

/// A page that takes its time, as long as the article's.
const PAGE_TIME: Duration = Duration::from_millis(660);

fn slow_page() -> Origin {
    Origin::start(|_| {
        let mut steps = vec![Step::Pause(PAGE_TIME)];
        steps.extend(answer(
            200,
            &[("Content-Type", "text/html")],
            &b"<p>a page of many queries</p>".repeat(1000),
        ));
        steps
    })
}

#[test]
fn blog_1_keeps_connections_to_the_api_and_clears_the_fields_that_it_names() {
    let origin = Origin::fixed(200, &[], b"page");
    let server = Server::start(&seed("blog-1-proxy"), &[("ORIGIN", &origin.address())]);
    let mut client = server.client();
    for _ in 0..50 {
        let answer =
            client.get_with("/post/1?a=b", &[("Accept-Encoding", "gzip"), ("Connection", "keep-alive")]);
        assert_eq!(answer.expect("an answer").text(), "page");
    }
    assert_eq!(origin.connections(), 1, "one client needs one connection");
    let requests = origin.requests();
    assert_eq!(requests.len(), 50);
    for request in requests {
        assert!(request.head.starts_with("GET /post/1?a=b HTTP/1.1\r\n"), "{}", request.head);
        assert_eq!(
            (request.field("connection"), request.field("accept-encoding")),
            (None, None),
            "{}",
            request.head
        );
        assert_eq!(request.field("host"), Some("localhost"));
    }
}

#[test]
fn blog_2_asks_the_api_about_once_a_second_whatever_the_load() {
    let origin = slow_page();
    let server = Server::start(&seed("blog-2-microcache"), &[("ORIGIN", &origin.address())]);
    let report = load::run(server.port(), "/", 10, Duration::from_secs(6));
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    assert!(report.answered > 1000, "{report:?}");
    let asked = origin.count();
    if is_nginx() {
        assert!(asked <= 60, "ten clients at each of six expiries, not more: {asked}");
    } else {
        // Every 1.66 s a page is fetched; nobody else is sent along, lock or no lock.
        assert!(asked <= 6, "{asked} requests reached the API in six seconds");
    }
}

#[test]
fn blog_3_sends_one_request_at_a_time_and_nobody_waits_longer_than_the_first() {
    let origin = slow_page();
    let server = Server::start(&seed("blog-3-microcache-lock"), &[("ORIGIN", &origin.address())]);
    let report = load::run(server.port(), "/", 10, Duration::from_secs(8));
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    assert!(report.answered > 1000, "{report:?}");
    let asked = origin.count();
    assert!(asked <= 7, "{asked} requests reached the API in eight seconds");
    // A client that found the lock taken waits for the same fill; the slack is this machine's scheduling.
    let bound = PAGE_TIME + Duration::from_millis(if is_nginx() { 900 } else { 400 });
    assert!(report.slowest <= bound, "{:?}", report.slowest);
}
