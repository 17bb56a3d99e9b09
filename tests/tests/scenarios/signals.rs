//! nginx's signals, under load where it matters: reload, upgrade, reopen, both stops.

use std::sync::Arc;
use std::time::{Duration, Instant};

use millstream_tests::frames::Frames;
use millstream_tests::gate::Gate;
use millstream_tests::load::Load;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::process::{is_alive, send};
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::{client, wait};
use rustix::process::Signal;

const GENERATION: &str = "worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/error.log;
    events { worker_connections 1000; }
    http {
        access_log @DIR@/access.log;
        upstream api { server @ORIGIN@; keepalive 16; }
        server {
            listen 127.0.0.1:@PORT@;
            keepalive_requests 100000;
            add_header X-Generation @GENERATION@;
            location / { proxy_pass http://api; proxy_http_version 1.1; proxy_set_header Connection \"\"; }
            location /fixed { return 200 \"fixed\\n\"; }
        }
    }";

fn start(origin: &Origin) -> Server {
    Server::start(GENERATION, &[("ORIGIN", &origin.address()), ("GENERATION", "0")])
}

fn generation(answer: &client::Answer) -> String {
    answer.field("x-generation").unwrap_or_default().to_owned()
}

#[test]
fn ten_reloads_under_load_lose_no_request() {
    let origin = Origin::fixed(200, &[], b"body");
    let server = start(&origin);
    let mut old_connection = server.client();
    assert_eq!(generation(&old_connection.get("/").expect("an answer")), "0");
    let load = Load::start(server.port(), "/", 8);
    for number in 1..=10 {
        let number = number.to_string();
        server.rewrite(GENERATION, &[("ORIGIN", &origin.address()), ("GENERATION", &number)]);
        server.signal(Signal::HUP);
        wait::until("the new configuration answers", || generation(&server.get("/fixed")) == number);
    }
    if !is_nginx() {
        // Its worker may hear of it a moment later than the other one.
        wait::until("an old connection's next request sees the new configuration", || {
            generation(&old_connection.get("/").expect("a reload ends no connection")) == "10"
        });
    }
    wait::until("the load runs", || load.answered() > 100);
    let report = load.finish();
    if is_nginx() {
        // nginx may close an idle connection just as its client sends the next request.
        assert!(report.failures.len() <= 8 * 10, "{:?}", report.failures);
    } else {
        assert!(report.failures.is_empty(), "{:?}", report.failures);
    }
}

#[test]
fn a_reload_with_a_mistake_changes_nothing_and_says_why() {
    let origin = Origin::fixed(200, &[], b"body");
    let server = start(&origin);
    server.rewrite(
        &GENERATION.replace("proxy_pass", "proxy_psas"),
        &[("ORIGIN", &origin.address()), ("GENERATION", "1")],
    );
    server.signal(Signal::HUP);
    wait::until("the mistake is in the error log", || server.log().contains("proxy_psas"));
    let answer = server.get("/");
    assert_eq!((answer.status, generation(&answer)), (200, "0".to_owned()));
}

#[test]
fn an_upgrade_under_load_hands_over_the_port_and_loses_no_request() {
    let origin = Origin::fixed(200, &[], b"body");
    // nginx ignores USR2 unless it runs as a daemon.
    let server = Server::start_daemon(GENERATION, &[("ORIGIN", &origin.address()), ("GENERATION", "0")]);
    let old = server.current_id();
    let load = Load::start(server.port(), "/", 8);
    wait::until("the load runs", || load.answered() > 100);
    server.signal(Signal::USR2);
    wait::until("the pid file names a new process", || ![0, old].contains(&server.current_id()));
    let new = server.current_id();
    assert_eq!(server.prefix().read("nginx.pid.oldbin").trim(), old.to_string());
    wait::until("the new process has its workers", || server.get("/fixed").status == 200);
    send(old, Signal::QUIT);
    wait::until("the old process finishes and ends", || !is_alive(old));
    assert!(is_alive(new));
    let before = load.answered();
    wait::until("the new process carries the load", || load.answered() > before + 100);
    let report = load.finish();
    assert!(report.failures.is_empty() || is_nginx(), "{:?}", report.failures);
    send(new, Signal::TERM);
    wait::until("the new process ends", || !is_alive(new));
}

#[test]
fn reopening_the_logs_starts_a_new_file_and_loses_no_line() {
    let origin = Origin::fixed(200, &[], b"body");
    let server = start(&origin);
    let lines = |name: &str| server.prefix().read(name).lines().count();
    server.get("/");
    wait::until("the first line is written", || lines("access.log") == 1);
    std::fs::rename(server.prefix().join("access.log"), server.prefix().join("access.log.1"))
        .expect("own directory");
    server.get("/");
    wait::until("the renamed file gets the second", || lines("access.log.1") == 2);
    server.signal(Signal::USR1);
    wait::until("the file is there again", || server.prefix().join("access.log").exists());
    wait::until("new lines go to the new file", || {
        server.get("/");
        lines("access.log") > 0
    });
}

fn slow(pause: Duration) -> Origin {
    Origin::start(move |_| {
        let mut steps = vec![Step::Pause(pause)];
        steps.extend(answer(200, &[], b"late but whole"));
        steps
    })
}

#[test]
fn a_graceful_stop_finishes_what_is_in_flight() {
    let origin = slow(Duration::from_millis(700));
    let mut server = start(&origin);
    let mut client = server.client();
    let mut idle = server.client();
    assert_eq!(idle.get("/fixed").expect("an answer").status, 200);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("the API has the request", || origin.count() == 1);
    server.signal(Signal::QUIT);
    wait::until("nobody accepts any more", || client::Client::connect(server.port()).is_err());
    let late = client.answer().expect("the answer in flight");
    assert_eq!(late.text(), "late but whole");
    if !is_nginx() {
        assert_eq!(late.field("connection"), Some("close"), "its client is told that nothing follows");
    }
    assert!(idle.is_closed_by_server(), "an idle connection does not hold it up");
    assert!(server.stop(Signal::QUIT).is_some_and(|status| status.success()));
}

fn held_back() -> (Origin, [Arc<Gate>; 2]) {
    let gates = [Arc::new(Gate::default()), Arc::new(Gate::default())];
    let held = gates.each_ref().map(Arc::clone);
    let origin = Origin::start(move |request| {
        let gate = Arc::clone(&held[usize::from(request.target() != "/first")]);
        let mut steps = vec![Step::Pass(gate)];
        steps.extend(answer(200, &[], b"late but whole"));
        steps
    });
    (origin, gates)
}

#[test]
fn worker_shutdown_timeout_cuts_what_a_reload_leaves_behind_and_what_a_graceful_stop_waits_for() {
    let (origin, gates) = held_back();
    let template =
        GENERATION.replace("worker_processes 2;", "worker_processes 1; worker_shutdown_timeout 10ms;");
    let values = [("ORIGIN", &*origin.address()), ("GENERATION", "0")];
    let mut server = Server::start(&template, &values);
    let mut idle = server.client();
    idle.get("/fixed").expect("it is answered");
    let mut client = server.client();
    client.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("the API has the request", || origin.count() == 1);
    server.rewrite(&template, &[values[0], ("GENERATION", "1")]);
    server.signal(Signal::HUP);
    assert!(client.answer().is_err(), "a reload waits for nobody for longer");
    assert!(idle.is_closed_by_server(), "nor for a connection that idles");
    wait::until("the new configuration answers", || generation(&server.get("/fixed")) == "1");
    let mut second = server.client();
    second.send("GET /second HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("the API has both", || origin.count() == 2);
    assert!(server.stop(Signal::QUIT).is_some_and(|status| status.success()));
    assert!(gates[1].open(), "the stop did not wait for the second");
    assert!(second.answer().is_err(), "and it was cut");
}

#[test]
fn requests_over_http2_that_worker_shutdown_timeout_cuts_are_in_the_access_log() {
    let (origin, _gates) = held_back();
    let template = GENERATION
        .replace("worker_processes 2;", "worker_processes 1; worker_shutdown_timeout 10ms;")
        .replace("listen 127.0.0.1:@PORT@;", "listen 127.0.0.1:@PORT@; http2 on;");
    let mut server = Server::start(&template, &[("ORIGIN", &*origin.address()), ("GENERATION", "0")]);
    let mut frames = Frames::connect(server.port());
    frames.get("/first");
    frames.get("/second");
    wait::until("the API has both", || origin.count() == 2);
    assert!(server.stop(Signal::QUIT).is_some_and(|status| status.success()));
    let log = server.prefix().read("access.log");
    let cut = |path: &str| log.lines().any(|line| line.contains(&format!("\"GET {path} HTTP/2.0\" 499 ")));
    assert!(is_nginx() || cut("/first") && cut("/second"), "{log}");
}

#[test]
fn without_worker_shutdown_timeout_a_reload_cuts_nobody_off() {
    let (origin, gates) = held_back();
    let server = start(&origin);
    let mut client = server.client();
    client.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("the API has the request", || origin.count() == 1);
    server.rewrite(GENERATION, &[("ORIGIN", &origin.address()), ("GENERATION", "1")]);
    server.signal(Signal::HUP);
    wait::until("the new configuration answers", || generation(&server.get("/fixed")) == "1");
    assert!(gates[0].open(), "nothing waited for it");
    assert_eq!(client.answer().expect("it is answered").text(), "late but whole");
}

#[test]
fn a_fast_stop_does_not_wait() {
    let origin = slow(Duration::from_secs(8));
    let mut server = start(&origin);
    let mut client = server.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("the API has the request", || origin.count() == 1);
    let began = Instant::now();
    assert!(server.stop(Signal::TERM).is_some_and(|status| status.success()));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(!server.prefix().join("nginx.pid").exists(), "the pid file goes with the process");
}
