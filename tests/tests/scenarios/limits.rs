//! How many requests a second and at a time are let in, and what becomes of the others.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use millstream_tests::gate::Gate;
use millstream_tests::origin::Origin;
use millstream_tests::server::Server;
use millstream_tests::wait;
use rustix::process::Signal;

/// Two workers, a cache that is filled by `/stored`, and zones with the rates of the tests.
const LIMITED: &str = "worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {}
    http {
        log_format limits \"$uri $status $limit_req_status $limit_conn_status\";
        access_log @DIR@/access.log limits;
        proxy_cache_path @DIR@/cache keys_zone=answers:1m;
        proxy_cache_valid 1h;
        limit_req_zone $binary_remote_addr zone=slow:1m rate=1r/m;
        limit_req_zone $binary_remote_addr zone=quick:1m rate=5r/s;
        limit_req_zone $arg_user zone=users:1m rate=1r/m;
        limit_conn_zone $binary_remote_addr zone=one:1m;
        server {
            listen 127.0.0.1:@PORT@;
            add_header X-Limit $limit_req_status always;
            location / { proxy_pass http://@ORIGIN@; @HERE@ }
            location /stored { proxy_pass http://@ORIGIN@; proxy_cache answers; @HERE@ }
            location = /refused { return 200 refused; }
        }
    }";

fn start(origin: &Origin, here: &str) -> Server {
    Server::start(LIMITED, &[("ORIGIN", &origin.address()), ("HERE", here)])
}

fn at_once(server: &Server, count: usize, path: &'static str) -> Vec<u16> {
    let clients: Vec<_> = (0..count)
        .map(|_| {
            let mut client = server.client();
            thread::spawn(move || client.get(path).expect("an answer").status)
        })
        .collect();
    clients.into_iter().map(|client| client.join().expect("no panic")).collect()
}

fn count(statuses: &[u16], status: u16) -> usize {
    statuses.iter().filter(|&&one| one == status).count()
}

#[test]
fn of_a_hundred_clients_at_once_the_burst_and_one_are_let_in_by_all_workers_together() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = start(&origin, "limit_req zone=slow burst=20 nodelay; limit_req_status 429;");
    let statuses = at_once(&server, 100, "/stored");
    assert_eq!((count(&statuses, 200), count(&statuses, 429)), (21, 79), "{statuses:?}");
    assert_eq!(server.get("/stored").field("x-limit"), Some("REJECTED"));
    wait::until("it is told", || {
        let log = server.log();
        log.contains("[error]")
            && log.contains("limiting requests, excess: 2")
            && log.contains("by zone \"slow\"")
    });
}

#[test]
fn what_was_counted_outlives_a_reload() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = start(&origin, "limit_req zone=slow burst=1 nodelay;");
    assert_eq!(server.get("/").status, 200);
    assert_eq!(server.get("/").status, 200);
    assert_eq!(server.get("/").status, 503);
    let here = "limit_req zone=slow burst=1 nodelay; limit_req_status 429;";
    server.rewrite(LIMITED, &[("ORIGIN", &origin.address()), ("HERE", here)]);
    server.signal(Signal::HUP);
    wait::until("the new status is in force", || server.get("/").status == 429);
}

#[test]
fn a_request_that_is_early_waits_and_is_answered_from_the_cache_then() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = start(&origin, "limit_req zone=quick burst=5;");
    let began = Instant::now();
    let answers: Vec<_> = (0..4).map(|_| server.get("/stored")).collect();
    assert!(began.elapsed() >= Duration::from_millis(590), "5 a second: {:?}", began.elapsed());
    let passed: Vec<_> = answers.iter().map(|answer| (answer.status, answer.text())).collect();
    assert_eq!(passed, vec![(200, "ok".to_owned()); 4]);
    assert_eq!(origin.count(), 1, "the later ones were hits");
    assert!(answers[1..].iter().any(|answer| answer.field("x-limit") == Some("DELAYED")));
    wait::until("it is told", || {
        server.log().contains("[warn]") && server.log().contains("delaying request, excess: ")
    });
}

#[test]
fn a_client_that_leaves_while_it_is_delayed_is_given_up() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = start(&origin, "limit_req zone=slow burst=5;");
    assert_eq!(server.get("/first").status, 200);
    let mut client = server.client();
    client.send("GET /second HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("it is delayed", || server.log().contains("delaying request"));
    drop(client);
    wait::until("it is logged", || server.prefix().read("access.log").contains("/second 499 DELAYED"));
    assert_eq!(origin.count(), 1);
}

#[test]
fn every_zone_must_agree_and_one_without_a_key_counts_nothing() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = start(&origin, "limit_req zone=users nodelay; limit_req zone=slow burst=2 nodelay;");
    let statuses =
        ["/?user=a", "/?user=a", "/?user=b", "/", "/", "/?user=c"].map(|path| server.get(path).status);
    // The second of a user is refused by its own zone, and the address's then forgets it.
    assert_eq!(statuses, [200, 503, 200, 200, 503, 503]);
}

#[test]
fn a_refusal_may_have_a_page_and_is_counted_once() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = start(&origin, "limit_req zone=slow; error_page 503 /refused;");
    assert_eq!(server.get("/").text(), "ok");
    let refused = server.get("/");
    assert_eq!((refused.status, refused.text()), (503, "refused".to_owned()));
}

#[test]
fn a_dry_run_lets_in_and_tells() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = start(
        &origin,
        "limit_req zone=slow; limit_req_dry_run on; limit_req_log_level notice; limit_conn one 1; limit_conn_dry_run on;",
    );
    let answers = ["/", "/"].map(|path| server.get(path));
    assert_eq!(answers.each_ref().map(|answer| answer.status), [200, 200]);
    assert_eq!(answers[1].field("x-limit"), Some("REJECTED_DRY_RUN"));
    wait::until("it is told", || {
        let log = server.log();
        log.contains("[notice]") && log.contains("limiting requests, dry run, excess: ")
    });
}

#[test]
fn a_request_under_way_keeps_the_next_of_its_client_out_whichever_worker_has_it() {
    let gate = Arc::new(Gate::default());
    let origin = Origin::in_two(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no", &gate, b"k");
    let server = start(&origin, "limit_conn one 1; limit_conn_log_level warn; proxy_buffering off;");
    let mut client = server.client();
    client.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    assert_eq!(client.head().expect("the head of an answer").status, 200);
    let statuses = at_once(&server, 8, "/next");
    assert!(gate.open(), "all were answered meanwhile");
    assert_eq!(count(&statuses, 503), 8, "{statuses:?}");
    assert_eq!(client.exactly(2).expect("the body"), b"ok");
    // The connection that was counted stays open and idle, and counts no more.
    wait::until("the next is let in", || server.get("/next").status == 200);
    wait::until("all are in the log", || {
        let lines = server.prefix().read("access.log");
        lines.contains("/first 200 - PASSED") && lines.contains("/next 503 - REJECTED")
    });
    wait::until("it is told", || {
        let log = server.log();
        log.contains("[warn]") && log.contains("limiting connections by zone \"one\"")
    });
}
