//! When descriptors or connections run short: clients wait for a moment, and nobody gets an error for it.

use millstream_tests::client::Client;
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::allow_open_files;
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;
use std::sync::Arc;

const CLIENTS: usize = 160;

/// As `ulimit -n 256` leaves it: enough for each client, not for each client and an upstream connection beside it.
const FEW_FILES: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log;
    worker_rlimit_nofile 256;
    events { worker_connections 1024; }
    http {
        access_log off;
        upstream api { server @ORIGIN@; keepalive 8; }
        server { listen 127.0.0.1:@PORT@; location / { proxy_pass http://api; } location /here { return 200; } }
    }";

#[test]
fn with_few_descriptors_clients_wait_and_none_gets_a_502() {
    if is_nginx() {
        return; // It answers 500 and 502.
    }
    assert!(
        allow_open_files(1024),
        "the test itself needs a descriptor for each client and each upstream connection"
    );
    let gate = Arc::new(Gate::default());
    let closed = Arc::clone(&gate);
    let origin = Origin::start(move |_| {
        let mut steps = vec![Step::Pass(Arc::clone(&closed))];
        steps.extend(answer(200, &[], b"body"));
        steps
    });
    let server = Server::start(FEW_FILES, &[("ORIGIN", &origin.address())]);
    assert!(
        server.log().contains("[warn]") && server.log().contains("worker_connections"),
        "{}",
        server.log()
    );
    let early: Vec<Client> = (0..20).map(|_| server.client()).collect();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    }
    wait::until("the API is busy", || origin.count() >= 24);
    // Each is a turn of the worker's loop, in which it takes all that it will. Some may have been closed to make room.
    for mut client in early {
        _ = client.get("/here");
    }
    gate.open();
    let statuses: Vec<u16> =
        clients.into_iter().map(|mut client| client.answer().map_or(0, |answer| answer.status)).collect();
    assert_eq!(statuses.iter().filter(|status| **status != 200).count(), 0, "{statuses:?}\n{}", server.log());
}

/// Nothing but the shortage closes a slow head here.
const FEW_PLACES: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log;
    events { worker_connections 64; }
    http {
        access_log @DIR@/access.log;
        client_header_timeout 600s;
        @TLS@
        server { listen 127.0.0.1:@PORT@ @SSL@; location / { return 200 \"here\\n\"; } }
    }";

#[test]
fn slow_heads_that_hold_every_place_make_room_for_a_new_client_the_slowest_first() {
    if is_nginx() {
        return; // It sheds idle connections only.
    }
    let server = Server::start(FEW_PLACES, &[("TLS", ""), ("SSL", "")]);
    let mut slow: Vec<Client> = (0..64)
        .map(|_| {
            let mut client = server.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ").expect("sent");
            client
        })
        .collect();
    assert_eq!(server.get("/").text(), "here\n", "a new client does not wait for their timeout");
    let mut last = slow.pop().expect("there are 64");
    last.send("now\r\n\r\n").expect("sent");
    assert_eq!(last.answer().expect("the shortest wait is not cut").text(), "here\n");
    assert!(slow[0].is_closed_by_server(), "the longest wait is");
    wait::until("the log says what became of it", || {
        server.prefix().read("access.log").lines().any(|line| line.contains("\" 408 "))
    });
}

#[test]
fn a_head_that_goes_on_coming_outlives_those_that_do_not_however_long_it_takes() {
    if is_nginx() {
        return;
    }
    let server = Server::start(FEW_PLACES, &[("TLS", ""), ("SSL", "")]);
    let mut steady = server.client();
    steady.send("GET / HTTP/1.1\r\nHost: a\r\nX-Long: ").expect("sent");
    let begin = || {
        let mut client = server.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ").expect("sent");
        client
    };
    let mut slow: Vec<Client> = (0..62).map(|_| begin()).collect();
    steady.send("a".repeat(4000)).expect("sent");
    assert_eq!(server.get("/").text(), "here\n", "who comes behind it is answered, so it was read");
    slow.push(begin());
    assert_eq!(server.get("/").text(), "here\n");
    assert!(slow[0].is_closed_by_server());
    steady.send("\r\n\r\n").expect("sent");
    assert_eq!(steady.answer().expect("it was the first, and not the slowest").text(), "here\n");
}

/// Nothing but the shortage cuts a body here, nor the close behind an answer.
const UPLOADS: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log;
    events { worker_connections 64; }
    http {
        access_log @DIR@/access.log;
        client_body_timeout 600s; lingering_time 600s; lingering_timeout 600s;
        server {
            listen 127.0.0.1:@PORT@;
            location / { return 200 \"here\n\"; }
            location /up { proxy_pass http://@ORIGIN@; }
        }
    }";

#[test]
fn bodies_that_drip_make_room_for_a_new_client_and_those_that_come_do_not() {
    if is_nginx() {
        return;
    }
    let origin = Origin::fixed(200, &[], b"all of it");
    let server = Server::start(UPLOADS, &[("ORIGIN", &origin.address())]);
    let head = "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n";
    let mut steady = server.client();
    steady.send(head).expect("sent");
    let begin = || {
        let mut client = server.client();
        client.send(format!("{head}a")).expect("sent");
        client
    };
    let mut slow: Vec<Client> = (0..62).map(|_| begin()).collect();
    steady.send("a".repeat(50_000)).expect("sent");
    assert_eq!(server.get("/").text(), "here\n", "who comes behind it is answered, so it was read");
    slow.push(begin());
    assert_eq!(server.get("/").text(), "here\n", "a new client does not wait for their timeout");
    assert_eq!(slow[0].answer().expect("it is told").status, 408);
    // Those that were told make room in their turn, whether they close or not.
    for _ in 0..3 {
        assert_eq!(server.get("/").text(), "here\n");
    }
    steady.send("a".repeat(50_000)).expect("sent");
    assert_eq!(steady.answer().expect("it was not the slowest").text(), "all of it");
    let cut = server.prefix().read("access.log").lines().filter(|line| line.contains("\" 408 ")).count();
    assert!(cut < 32, "{cut} were cut for four");
}

#[test]
fn handshakes_that_never_come_make_room_as_slow_heads_do() {
    if is_nginx() {
        return;
    }
    let prefix = Prefix::with_certificate("localhost");
    let tls = "ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;";
    let template = FEW_PLACES.replace("@TLS@", tls);
    let server = Server::start_in(prefix, &template, &[("SSL", "ssl")]);
    // The first byte of a handshake, so that it is not merely idle.
    let slow: Vec<Client> = (0..64)
        .map(|_| {
            let mut client = server.client();
            client.send([0x16]).expect("sent");
            client
        })
        .collect();
    // Plain text on a TLS port is answered with 400 as soon as there is a place.
    assert_eq!(server.get("/").status, 400);
    drop(slow);
}
