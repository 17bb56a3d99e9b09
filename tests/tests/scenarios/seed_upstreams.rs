//! The configurations with two APIs: fair shares, kept connections, and an API that goes away.

use millstream_tests::client::Client;
use millstream_tests::origin::Origin;
use millstream_tests::prefix::seed;
use millstream_tests::server::{Server, is_nginx};

fn two() -> (Origin, Origin) {
    (Origin::fixed(200, &[], b"one"), Origin::fixed(200, &[], b"two"))
}

fn start(name: &str, one: &Origin, two: &Origin) -> Server {
    Server::start(&seed(name), &[("ORIGIN2", &two.address()), ("ORIGIN", &one.address())])
}

#[test]
fn two_apis_of_equal_weight_get_equal_shares() {
    let (one, two) = two();
    let server = start("two-apis", &one, &two);
    let mut client = server.client();
    for _ in 0..100 {
        assert_eq!(client.get("/").expect("an answer").status, 200);
    }
    let (first, second) = (one.count(), two.count());
    assert_eq!(first + second, 100);
    assert!(first.abs_diff(second) <= if is_nginx() { 2 } else { 0 }, "{first} and {second}");
    let request = one.requests().remove(0);
    assert_eq!(request.field("x-real-ip"), Some("127.0.0.1"));
    assert_eq!(request.field("x-forwarded-for"), Some("127.0.0.1"));
}

#[test]
fn an_api_that_goes_away_is_left_out_and_nobody_notices() {
    let (one, two) = two();
    let server = start("two-apis", &one, &two);
    assert_eq!(server.get("/").status, 200);
    drop(two);
    for _ in 0..20 {
        let answer = server.get("/");
        assert_eq!((answer.status, answer.text().as_str()), (200, "one"));
    }
}

#[test]
fn keepalive_reuses_connections_to_both_apis_and_adds_its_header_fields() {
    let (one, two) = two();
    let server = start("keepalive", &one, &two);
    let mut clients: Vec<Client> = (0..4).map(|_| server.client()).collect();
    for _ in 0..25 {
        for client in &mut clients {
            let answer = client.get("/").expect("an answer");
            assert_eq!(answer.status, 200);
            assert_eq!(answer.field("cache-control"), Some("no-store"));
            assert_eq!(answer.field("pragma"), Some("no-cache"));
        }
    }
    assert_eq!(one.count() + two.count(), 100);
    let opened = one.connections() + two.connections();
    assert!(opened <= 8, "{opened} connections for four clients and two APIs");
    let request = one.requests().remove(0);
    assert_eq!(request.field("host"), Some("localhost"), "$Host is $host: names of variables have no case");
    assert_eq!(request.field("connection"), None);
}

#[test]
fn an_idle_connection_that_the_api_closes_costs_no_request() {
    // Each API ends its connection after every third answer.
    let origin = || {
        let count = std::sync::atomic::AtomicUsize::new(0);
        Origin::start(move |_| {
            let mut steps = millstream_tests::origin::answer(200, &[], b"ok");
            if count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) % 3 == 2 {
                steps.push(millstream_tests::origin::Step::Close);
            }
            steps
        })
    };
    let (one, two) = (origin(), origin());
    let server = start("keepalive", &one, &two);
    let mut client = server.client();
    for number in 0..100 {
        assert_eq!(client.get("/").expect("an answer").status, 200, "request {number}");
    }
}
