//! What one client sees on one connection: pipelining, interim answers, upgrades, limits, slow senders.

use std::sync::Arc;
use std::time::Duration;

use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::server::Server;

const PROXY: &str = site! {
    http "client_header_timeout 1s; client_body_timeout 1s; client_max_body_size 1k;"
    server "location / { proxy_pass http://@ORIGIN@; proxy_http_version 1.1; proxy_set_header Connection \"\"; }
        location /up { proxy_pass http://@ORIGIN@; proxy_http_version 1.1;
            proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }"
};

fn start(origin: &Origin) -> Server {
    Server::start(PROXY, &[("ORIGIN", &origin.address())])
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let origin = Origin::start(|request| answer(200, &[], request.target().as_bytes()));
    let server = start(&origin);
    let mut client = server.client();
    let requests: String =
        (0..10).map(|number| format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    client.send(requests).expect("sent");
    for number in 0..10 {
        assert_eq!(client.answer().expect("an answer").text(), format!("/{number}"));
    }
}

#[test]
fn a_request_cut_at_every_byte_is_the_same_request() {
    let origin = Origin::start(|request| answer(200, &[], &request.body));
    let server = start(&origin);
    let mut client = server.client();
    for byte in b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" {
        client.send([*byte]).expect("sent");
    }
    assert_eq!(client.answer().expect("an answer").text(), "hello");
}

#[test]
fn a_client_that_asks_before_sending_its_body_is_told_to_go_on() {
    let origin = Origin::start(|request| answer(200, &[], &request.body));
    let server = start(&origin);
    let mut client = server.client();
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        .expect("sent");
    assert_eq!(client.head().expect("an interim answer").status, 100);
    assert_eq!(client.ask("body").text(), "body");
}

#[test]
fn a_head_request_gets_the_length_and_no_body() {
    let origin = Origin::start(|request| {
        let body = if request.head.starts_with("HEAD") { "" } else { "0123456789" };
        vec![Step::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{body}").into_bytes())]
    });
    let server = start(&origin);
    let mut client = server.client();
    for _ in 0..3 {
        let answer = client.request("HEAD", "/", &[]).expect("an answer");
        assert_eq!((answer.status, answer.field("content-length"), answer.body.len()), (200, Some("10"), 0));
        assert_eq!(client.get("/").expect("an answer").text(), "0123456789");
    }
}

#[test]
fn a_chunked_body_passes_both_ways() {
    let origin = Origin::start(|_| {
        vec![
            Step::Send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n".to_vec()),
            Step::Pause(Duration::from_millis(30)),
            Step::Send(b"7\r\n second\r\n0\r\n\r\n".to_vec()),
        ]
    });
    let server = start(&origin);
    let request =
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    assert_eq!(server.ask(request).text(), "first second");
    let request = origin.requests().remove(0);
    let whole = request.field("content-length") == Some("5") && request.body == b"abcde";
    let chunked =
        request.field("transfer-encoding") == Some("chunked") && request.body.ends_with(b"0\r\n\r\n");
    assert!(whole != chunked, "one framing and no other: {request:?}");
}

#[test]
fn an_upgraded_connection_carries_bytes_both_ways() {
    let origin = Origin::start(|request| match request.field("upgrade") {
        Some("echo") => vec![Step::Send(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nhello first"
                .to_vec(),
        )],
        // What follows the upgrade comes as bytes; the scripted origin reads "requests", so the test sends one.
        _ => vec![Step::Send(b"echo of bytes".to_vec()), Step::Close],
    });
    let server = start(&origin);
    let mut client = server.client();
    client.send("GET /up HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n").expect("sent");
    assert_eq!(client.head().expect("an answer").status, 101);
    assert_eq!(client.exactly(11).expect("bytes"), b"hello first");
    client.send("raw bytes, no HTTP\r\n\r\n").expect("sent");
    assert_eq!(client.exactly(13).expect("bytes"), b"echo of bytes");
    assert!(client.is_closed_by_server());
}

#[test]
fn what_is_too_large_is_refused_with_the_status_that_says_so() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = start(&origin);
    let long = "x".repeat(40_000);
    assert_eq!(server.client().get(&format!("/{long}")).expect("an answer").status, 414);
    let field = server.client().get_with("/", &[("X-Long", &long)]).expect("an answer").status;
    assert!(field == 431 || field == 400, "nginx says 400 where RFC 6585 has 431: {field}");
    assert_eq!(server.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n").status, 413);
    assert_eq!(origin.count(), 0);
}

#[test]
fn a_client_that_stops_half_way_is_let_go() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = start(&origin);
    let mut head = server.client();
    head.send("GET / HTTP/1.1\r\nHost:").expect("sent");
    let mut body = server.client();
    body.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf").expect("sent");
    for client in [&mut head, &mut body] {
        // Either a 408 and the end, or the end alone, as nginx for a head that never came whole.
        let rest = client.rest_of_connection().unwrap_or_default();
        let text = String::from_utf8_lossy(&rest).into_owned();
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 408"), "{text}");
    }
}

#[test]
fn a_client_of_http_1_0_is_given_no_other_protocol_and_the_upstream_is_asked_for_none() {
    let origin = Origin::start(|request| match request.field("upgrade") {
        Some(_) => vec![Step::Send(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n".to_vec(),
        )],
        None => answer(200, &[], request.field("connection").unwrap_or("none").as_bytes()),
    });
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; server { listen 127.0.0.1:@PORT@;
            location / { proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; proxy_pass http://@ORIGIN@; }
            location /fixed { proxy_set_header Upgrade x; proxy_set_header Connection upgrade; proxy_pass http://@ORIGIN@; } }
            map $http_upgrade $connection_upgrade { default \"keep-alive, Upgrade\"; \"\" close; } }",
        &[("ORIGIN", &origin.address())],
    );
    for path in ["/", "/fixed"] {
        let got = server.ask(format!("GET {path} HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"));
        assert_eq!((got.status, got.text().as_str()), (200, "none"), "{path}");
    }
}

#[test]
fn a_tunnel_that_one_side_has_ended_is_over_though_the_other_says_nothing() {
    skip_on_nginx!();
    let gate = Arc::new(Gate::default());
    let held = gate.clone();
    let origin = Origin::start(move |_| {
        let switched = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n";
        vec![Step::Send(switched.to_vec()), Step::Pass(held.clone())]
    });
    let server = start(&origin);
    let mut client = server.client();
    client.send("GET /up HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n").expect("sent");
    assert_eq!(client.head().expect("an answer").status, 101);
    client.finish_writing().expect("it is open");
    assert!(client.is_closed_by_server());
    assert!(gate.open(), "the API has said nothing until then");
}
