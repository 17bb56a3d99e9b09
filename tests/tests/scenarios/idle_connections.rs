//! What comes over a connection that idled is what comes over a new one, whatever the API does with it.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use millstream_tests::client::Answer;
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step};
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
