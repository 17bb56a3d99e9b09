//! What comes over a connection that idled is what comes over a new one, whatever the API does with it.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use millstream_tests::client::Answer;
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;

const PROXY: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        log_format told '$request_uri $request_method $status $body_bytes_sent $upstream_status $upstream_response_length';
        access_log @DIR@/access.log told;
        upstream api { server @API@; keepalive 4; }
        server {
            listen 127.0.0.1:@PORT@;
            proxy_http_version 1.1;
            proxy_redirect http://api/ /there/;
            location /kept/ { proxy_pass http://api/; proxy_set_header Connection ''; }
            location /closed/ { proxy_pass http://api/; proxy_set_header Connection close; }
            location /inside { internal; return 200 inside; }
        }
    }";

/// A method, the pieces of a response, and whether the connection ends after them.
type Case = (&'static str, &'static [&'static str], bool);

const CASES: &[Case] = &[
    ("GET", &["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello"], false),
    ("GET", &["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "he", "llo"], false),
    ("GET", &["HTTP/1.1 200 OK\r\nContent-", "Length: 5\r\n", "\r\nhello"], false),
    ("GET", &["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"], false),
    ("HEAD", &["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"], false),
    ("HEAD", &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"], false),
    ("DELETE", &["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"], false),
    ("GET", &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"], false),
    (
        "GET",
        &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "lo\r\n0\r\nX-T: u\r\n", "\r\n"],
        false,
    ),
    ("GET", &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"], true),
    ("GET", &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfive\r\nhello"], true),
    ("GET", &["HTTP/1.1 200 OK\r\n\r\nhello"], true),
    ("GET", &["HTTP/1.0 200 OK\r\n\r\nhello"], true),
    ("GET", &["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"], true),
    ("GET", &["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"], true),
    ("GET", &["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more"], true),
    ("GET", &["HTTP/1.1 204 No Content\r\n\r\n"], false),
    ("GET", &["HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"], false),
    ("GET", &["HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://api/x\r\n\r\n"], false),
    ("GET", &["HTTP/1.1 301 Moved\r\nContent-Length: 0\r\nLocation: http://elsewhere/x\r\n\r\n"], false),
    ("GET", &["HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone"], false),
    ("GET", &["HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"], false),
    (
        "GET",
        &["HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"],
        false,
    ),
    ("GET", &["HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"], false),
    ("GET", &["HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"], true),
    ("GET", &["HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Accel-Redirect: /inside\r\n\r\n"], false),
    ("GET", &["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Accel-Buffering: no\r\n\r\nhe", "llo"], false),
    ("GET", &["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"], true),
    ("GET", &["what is this\r\n\r\n"], true),
];

fn steps((_, pieces, closes): &Case) -> Vec<Step> {
    let mut steps = Vec::new();
    for piece in *pieces {
        if !steps.is_empty() {
            steps.push(Step::Pause(Duration::from_millis(10)));
        }
        steps.push(Step::Send(piece.as_bytes().to_vec()));
    }
    steps.extend(closes.then_some(Step::Close));
    steps
}

/// Including its log line.
fn seen(server: &Server, prefix: &str, number: usize, method: &str) -> (Result<Answer, ErrorKind>, String) {
    let target = format!("/{prefix}/{number}");
    let answer = server.client().request(method, &target, &[]);
    let start = format!("{target} ");
    let line = wait::within(Duration::from_secs(15), || {
        let log = server.prefix().read("access.log");
        log.lines().find_map(|line| line.strip_prefix(&start).map(str::to_owned))
    });
    let line = line.expect("its line is in the log");
    (answer.map_err(|error| error.kind()), line)
}

#[test]
fn what_comes_over_an_idle_connection_is_what_comes_over_a_new_one() {
    let origin = Origin::start(|request| match request.target().trim_matches('/').parse::<usize>() {
        Ok(number) => steps(&CASES[number]),
        Err(_) => millstream_tests::origin::answer(200, &[], b"warm"),
    });
    let server = Server::start(PROXY, &[("API", &origin.address())]);
    for (number, case) in CASES.iter().enumerate() {
        assert_eq!(server.get("/kept/warm").text(), "warm");
        let (kept, kept_line) = seen(&server, "kept", number, case.0);
        let asked = origin.requests();
        let [.., warm, last] = &asked[..] else { panic!("two requests came") };
        assert_eq!(warm.connection, last.connection, "{case:?} was asked over the idle connection");
        let (fresh, fresh_line) = seen(&server, "closed", number, case.0);
        assert_eq!(kept_line, fresh_line, "{case:?}");
        match (kept, fresh) {
            (Ok(kept), Ok(fresh)) => {
                assert_eq!((kept.status, &kept.body), (fresh.status, &fresh.body), "{case:?}");
                let others = |answer: &Answer| {
                    let fields = answer.fields.iter().filter(|(name, _)| name != "Date");
                    fields.cloned().collect::<Vec<_>>()
                };
                assert_eq!(others(&kept), others(&fresh), "{case:?}");
            }
            (kept, fresh) => assert_eq!(kept.err(), fresh.err(), "{case:?}"),
        }
    }
}

#[test]
fn a_client_that_leaves_is_noticed_while_an_idle_connection_is_asked() {
    let gate = Arc::new(Gate::default());
    let held = Arc::clone(&gate);
    let origin = Origin::start(move |request| match request.target() {
        "/held" => vec![Step::Pass(Arc::clone(&held))],
        _ => millstream_tests::origin::answer(200, &[], b"warm"),
    });
    let server = Server::start(PROXY, &[("API", &origin.address())]);
    assert_eq!(server.get("/kept/warm").text(), "warm");
    let mut client = server.client();
    client.send("GET /kept/held HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("the API is asked", || origin.count() == 2);
    drop(client);
    wait::until("it is logged as one who left", || {
        server.prefix().read("access.log").lines().any(|line| line.starts_with("/kept/held GET 499 "))
    });
    gate.open();
    assert_eq!(origin.connections(), 1);
}

/// An API that reads no bodies: what follows a head is the next head, as with Python's http.server.
fn reads_no_bodies() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let (mut came, mut piece) = (Vec::new(), [0; 4096]);
                while let Ok(count @ 1..) = stream.read(&mut piece) {
                    came.extend_from_slice(&piece[..count]);
                    while let Some(end) = came.windows(4).position(|window| window == b"\r\n\r\n") {
                        let head = String::from_utf8_lossy(&came[..end]).into_owned();
                        came.drain(..end + 4);
                        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
                        let length = target.len();
                        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{target}");
                        if stream.write_all(answer.as_bytes()).is_err()
                            || head.to_ascii_lowercase().contains("\r\nconnection: close")
                        {
                            return;
                        }
                    }
                }
            });
        }
    });
    port
}

#[test]
fn a_body_that_the_api_leaves_unread_is_nobodys_request() {
    let server = Server::start(PROXY, &[("API", &format!("127.0.0.1:{}", reads_no_bodies()))]);
    for (method, framed) in [
        ("GET", "Content-Length: 33\r\n\r\nGET /evil HTTP/1.1\r\nHost: api\r\n\r\n"),
        ("GET", "Content-Length: 28\r\n\r\nGET /evil HTTP/1.1\r\nX-Take: "),
        (
            "GET",
            "Transfer-Encoding: chunked\r\n\r\n21\r\nGET /evil HTTP/1.1\r\nHost: api\r\n\r\n\r\n0\r\n\r\n",
        ),
        ("HEAD", "Content-Length: 33\r\n\r\nGET /evil HTTP/1.1\r\nHost: api\r\n\r\n"),
        ("DELETE", "Content-Length: 33\r\n\r\nGET /evil HTTP/1.1\r\nHost: api\r\n\r\n"),
        ("OPTIONS", "Content-Length: 33\r\n\r\nGET /evil HTTP/1.1\r\nHost: api\r\n\r\n"),
    ] {
        for round in 0..3 {
            let mut client = server.client();
            client.send(format!("{method} /kept/own HTTP/1.1\r\nHost: a\r\n{framed}")).expect("it is open");
            let (others, own) = (format!("/others-{round}"), format!("/kept/others-{round}"));
            assert_eq!(client.answer_to(method).expect("an answer").status, 200, "{method} {framed}");
            assert_eq!(server.get(&own).text(), others, "{method} {framed}");
        }
    }
}

#[test]
fn a_body_where_none_may_be_is_nobodys_answer() {
    let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    for (method, head) in [
        ("HEAD", format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", evil.len())),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n".to_owned()),
        ("GET", format!("HTTP/1.1 204 No Content\r\nContent-Length: {}\r\n\r\n", evil.len())),
        ("GET", "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned()),
    ] {
        let (gate, written) = (Arc::new(Gate::default()), Arc::new(Mutex::new(Vec::new())));
        let then = (gate.clone(), written.clone());
        let origin = Origin::start(move |request| match request.target() {
            "/odd" => vec![
                Step::Send(head.clone().into_bytes()),
                Step::Pass(then.0.clone()),
                Step::Send(evil.as_bytes().to_vec()),
                Step::Note(then.1.clone()),
            ],
            _ => answer(200, &[], b"own"),
        });
        let server = Server::start(PROXY, &[("API", &origin.address())]);
        let odd = server.request(method, "/kept/odd", &[]);
        assert!(matches!(odd.status, 200 | 204 | 304));
        gate.open();
        wait::until("the body is written", || !written.lock().expect("nobody panics with it").is_empty());
        assert_eq!(server.get("/kept/own").text(), "own", "{method}");
    }
}
