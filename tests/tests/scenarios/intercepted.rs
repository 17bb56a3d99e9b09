//! `proxy_intercept_errors` in front of a cache: an answer in whose place a page goes out is stored, and what is stored gets the page too.

use std::sync::Arc;
use std::time::Duration;

use millstream_tests::client::Answer;
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;

/// A site that has pages for 404 and 503, and a location beside it with the same cache that has none.
fn start(origin: &Origin, directives: &str) -> Server {
    let template = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off;
        proxy_cache_path @DIR@/cache keys_zone=answers:1m;
        proxy_cache answers;
        proxy_cache_key $arg_key;
        proxy_cache_bypass $arg_bypass;
        add_header X-Cache-Status $upstream_cache_status always;
        server {
            listen 127.0.0.1:@PORT@;
            location / {
                proxy_pass http://@ORIGIN@;
                proxy_intercept_errors on;
                error_page 404 =410 @page;
                error_page 503 @page;
                @DIRECTIVES@
            }
            location /plain { proxy_pass http://@ORIGIN@; }
            location @page { return 404 \"the page\"; }
        }
    }";
    Server::start(template, &[("ORIGIN", &origin.address()), ("DIRECTIVES", directives)])
}

fn told(answer: &Answer) -> (u16, String, &str) {
    (answer.status, answer.text(), answer.field("x-cache-status").unwrap_or("none"))
}

fn page(status: u16, cache: &str) -> (u16, String, &str) {
    (status, "the page".to_owned(), cache)
}

#[test]
fn an_error_that_gets_a_page_is_stored_and_hits_get_the_page_too() {
    let origin = Origin::start(|request| {
        if request.target().contains("bypass") {
            return answer(200, &[("Cache-Control", "max-age=60")], b"found");
        }
        answer(404, &[("Cache-Control", "max-age=60")], b"not here")
    });
    let server = start(&origin, "");
    assert_eq!(told(&server.get("/?key=a")), page(410, "MISS"));
    wait::until("it is stored", || told(&server.get("/?key=a")) == page(410, "HIT"));
    assert_eq!(told(&server.get("/?key=a")), page(410, "HIT"));
    let asked = origin.count();
    // Where nobody puts a page in its place it is what the upstream said.
    assert_eq!(told(&server.get("/plain?key=a")), (404, "not here".to_owned(), "HIT"));
    assert_eq!(told(&server.get("/?key=a")), page(410, "HIT"));
    assert_eq!(origin.count(), asked);
    // What goes past it takes its place.
    assert_eq!(told(&server.get("/?key=a&bypass=1")), (200, "found".to_owned(), "BYPASS"));
    assert_eq!(told(&server.get("/?key=a")), (200, "found".to_owned(), "HIT"));
}

#[test]
fn an_error_that_may_not_be_stored_is_asked_for_again_each_time() {
    let origin = Origin::start(|request| match request.target().contains("busy") {
        true => answer(503, &[], b"busy"),
        false => answer(404, &[("Cache-Control", "no-store")], b"not here"),
    });
    let server = start(&origin, "proxy_cache_valid 200 404 1m;");
    for asked in 1..4 {
        assert_eq!(told(&server.get("/?key=a")), page(410, "MISS"));
        assert_eq!(origin.count(), asked);
    }
    for asked in 4..7 {
        assert_eq!(server.get("/busy?key=b").status, 503);
        assert_eq!(origin.count(), asked);
    }
}

#[test]
fn nobody_waits_for_the_body_of_an_error_that_gets_a_page() {
    let gate = Arc::new(Gate::default());
    let origin = Origin::start({
        let gate = gate.clone();
        move |_| {
            vec![
                Step::Send(
                    b"HTTP/1.1 404 Not Found\r\nCache-Control: max-age=60\r\nContent-Length: 8\r\n\r\nnot"
                        .to_vec(),
                ),
                Step::Pass(gate.clone()),
                Step::Send(b" here".to_vec()),
            ]
        }
    });
    let server = start(&origin, "proxy_cache_unread_timeout 60s;");
    let first = server.get("/?key=a");
    assert_eq!(told(&first), page(410, "MISS"));
    // It is still arriving.
    assert_eq!(told(&server.get("/?key=a")), page(410, "HIT"));
    assert_eq!(origin.count(), 1);
    gate.open();
    wait::within(Duration::from_secs(20), || {
        (told(&server.get("/plain?key=a")) == (404, "not here".to_owned(), "HIT")).then_some(())
    })
    .expect("the whole of it was stored");
    assert_eq!(origin.count(), 1);
}

#[test]
fn clients_that_ask_at_once_for_an_error_that_gets_a_page_are_one_request_to_the_api() {
    let origin = Origin::start(|_| {
        let mut steps = vec![Step::Pause(Duration::from_millis(300))];
        steps.extend(answer(404, &[("Cache-Control", "max-age=60")], b"not here"));
        steps
    });
    let server = start(&origin, "proxy_cache_lock on;");
    std::thread::scope(|scope| {
        let ask = || scope.spawn(|| server.get("/?key=a"));
        let clients: Vec<_> = (0..8).map(|_| ask()).collect();
        for client in clients {
            let answer = client.join().expect("no panic");
            assert_eq!((answer.status, answer.text().as_str()), (410, "the page"));
        }
    });
    assert_eq!(origin.count(), 1);
}
