//! Peers that stop, drip or break off: everything that waits for somebody has a bound, and a cut looks like one.

use std::io::ErrorKind;
use std::time::Duration;

use millstream_tests::client::Client;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {}
    http {
        access_log @DIR@/access.log;
        client_header_timeout 1s; send_timeout 1s; proxy_read_timeout 1s; proxy_send_timeout 1s;
        client_body_timeout 60s; proxy_http_version 1.1; proxy_buffer_size 64k; proxy_buffers 4 64k;
        proxy_busy_buffers_size 64k;
        proxy_request_buffering off;
        server {
            listen 127.0.0.1:@PORT@ @LISTEN@;
            location / { proxy_pass http://@ORIGIN@; proxy_set_header Connection \"\"; }
            location /up { proxy_pass http://@ORIGIN@; proxy_read_timeout 60s;
                proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }
            location /here { return 200 here; lingering_timeout 1s; }
            location /close { return 200 closing; lingering_timeout 30s; }
        }
    }";

fn start(origin: &Origin, listen: &str) -> Server {
    Server::start(SITE, &[("ORIGIN", &origin.address()), ("LISTEN", listen)])
}

/// A byte every 200 ms for ten seconds.
fn drip() -> impl Iterator<Item = Step> {
    (0..50).flat_map(|_| [Step::Pause(Duration::from_millis(200)), Step::Send(b"a".to_vec())])
}

#[test]
fn an_upstream_s_head_that_drips_is_given_up_after_the_timeout_for_all_of_it() {
    let origin = Origin::start(|_| {
        std::iter::once(Step::Send(b"HTTP/1.1 200 OK\r\nX-Drip: ".to_vec())).chain(drip()).collect()
    });
    let server = start(&origin, "");
    assert_eq!(server.get("/").status, 504);
}

#[test]
fn an_upstream_s_body_may_drip() {
    let origin = Origin::start(|_| {
        let head = Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n".to_vec());
        std::iter::once(head).chain(drip().take(20)).collect()
    });
    let server = start(&origin, "");
    assert_eq!(server.get("/").text(), "aaaaaaaaaa");
}

#[test]
fn a_request_s_head_that_drips_is_given_up_after_the_timeout_for_all_of_it() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = start(&origin, "");
    let mut client = server.client();
    client.send("GET / HTTP/1.1\r\nX-Drip: ").expect("sent");
    // Each look sends one more byte.
    wait::until("the connection is closed", || client.send("a").is_err());
    assert_eq!(origin.count(), 0);
}

#[test]
fn interim_answers_that_nobody_reads_hold_neither_client_nor_upstream() {
    skip_on_nginx!("it passes none on");
    let hint = format!("HTTP/1.1 103 Early Hints\r\nLink: <{}>\r\n\r\n", "x".repeat(60_000));
    let origin = Origin::start(move |_| {
        let mut steps = vec![Step::Send(hint.as_bytes().to_vec()); 63];
        steps.push(Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()));
        steps
    });
    let server = start(&origin, "sndbuf=8k");
    let mut client = server.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("the request is over", || !server.prefix().read("access.log").is_empty());
    drop(client);
}

#[test]
fn a_tunnel_whose_client_takes_nothing_is_closed_though_it_keeps_talking() {
    skip_on_nginx!("its timeout begins anew with what the client says");
    let origin = Origin::start(|request| {
        if request.field("upgrade").is_none() {
            return Vec::new();
        }
        let head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n".to_vec();
        vec![Step::Send(head), Step::Send(vec![b'x'; 16 << 20])]
    });
    // Buffers of fixed sizes: those that the kernel sizes itself may grow while the client waits, and each time is a byte taken.
    let server = start(&origin, "sndbuf=8k");
    let mut client = Client::connect_narrow(server.port()).expect("it listens");
    client.send("GET /up HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n").expect("sent");
    let closed = wait::within(Duration::from_secs(30), || client.send("still here").is_err().then_some(()));
    assert!(closed.is_some(), "the tunnel is not closed: {}", server.log());
}

#[test]
fn an_answer_without_a_length_that_was_cut_ends_with_a_reset() {
    skip_on_nginx!("it ends as if it were whole");
    let origin = Origin::start(|_| {
        let part = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n".to_vec();
        vec![Step::Send(part), Step::Close]
    });
    let server = start(&origin, "");
    let mut client = server.client();
    client.send("GET / HTTP/1.0\r\n\r\n").expect("sent");
    let ending = client.rest_of_connection().map_err(|error| error.kind());
    assert_eq!(ending, Err(ErrorKind::ConnectionReset));
}

#[test]
fn an_answer_without_a_length_that_is_whole_ends_cleanly() {
    let origin = Origin::start(|_| {
        vec![Step::Send(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_vec(),
        )]
    });
    let server = start(&origin, "");
    let mut client = server.client();
    client.send("GET / HTTP/1.0\r\n\r\n").expect("sent");
    assert!(client.rest_of_connection().expect("a clean end").ends_with(b"hello"));
}

#[test]
fn a_connection_that_its_client_wants_closed_is_closed_at_once() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = start(&origin, "");
    let mut client = server.client();
    let answer = client.get_with("/close", &[("Connection", "close")]).expect("an answer");
    assert_eq!(answer.text(), "closing");
    assert!(client.is_closed_by_server());
    // A socket that lingers would take this for half a minute.
    wait::until("nobody is there any more", || client.send("x").is_err());
}

#[test]
fn a_body_that_nobody_asked_for_is_waited_for_as_long_as_lingering_says() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = start(&origin, "");
    let mut client = server.client();
    assert_eq!(client.ask("POST /here HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf").text(), "here");
    assert!(client.is_closed_by_server(), "client_body_timeout would be a minute");
}

#[test]
fn a_large_body_that_nobody_asked_for_does_not_keep_its_sender_from_the_answer() {
    let origin = Origin::start(|_| answer(200, &[], b"ok"));
    let server = start(&origin, "");
    let mut client = server.client();
    client
        .send("POST /close HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 300000\r\n\r\n")
        .expect("sent");
    assert_eq!(client.ask(vec![b'x'; 300_000]).text(), "closing");
}

/// Memory in bytes of each waiting request.
fn held_by_each(server: &Server, count: u64, begin: impl Fn(&mut Client), began: impl Fn(u64)) -> u64 {
    let open = |count: u64| -> Vec<Client> {
        let mut clients: Vec<Client> = (0..count).map(|_| server.client()).collect();
        clients.iter_mut().for_each(&begin);
        clients
    };
    let first = open(50);
    began(50);
    let before = millstream_tests::process::resident_bytes(server.id());
    let more = open(count);
    began(50 + count);
    let each = millstream_tests::process::resident_bytes(server.id()).saturating_sub(before) / count;
    drop((first, more));
    each
}

const WAITING: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; worker_processes 1;
    worker_rlimit_nofile 20000; events { worker_connections 8000; }
    http {
        access_log off; client_max_body_size 0; client_body_temp_path @DIR@/bodies;
        server { listen 127.0.0.1:@PORT@; location / { proxy_pass http://@ORIGIN@; } }
    }";

#[test]
fn requests_that_wait_for_the_api_hold_no_buffers() {
    let gate = std::sync::Arc::new(millstream_tests::gate::Gate::default());
    let origin = Origin::in_two(b"", &gate, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let server = Server::start(WAITING, &[("ORIGIN", &origin.address())]);
    let begin = |client: &mut Client| client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    let each = held_by_each(&server, 500, begin, |count| {
        wait::until("all wait", || origin.count() as u64 == count);
    });
    gate.open();
    assert!(each <= 16 << 10, "{each} bytes each");
}

#[test]
fn slow_uploads_hold_little_more_than_client_body_buffer_size() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = Server::start(WAITING, &[("ORIGIN", &origin.address())]);
    let begin = |client: &mut Client| {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n").expect("sent");
        client.send(vec![b'x'; 60_000]).expect("sent");
    };
    let each = held_by_each(&server, 500, begin, |_| {
        // One more, on a connection of its own, is answered after all that came before.
        let mut last = server.client();
        last.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n").expect("sent");
        assert_eq!(last.ask(vec![b'x'; 40_000]).status, 200);
    });
    assert!(each <= 48 << 10, "{each} bytes each");
}
