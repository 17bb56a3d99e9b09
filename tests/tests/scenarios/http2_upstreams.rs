//! HTTP/2 to upstreams: behind `proxy_http_version 2` and `grpc_pass` all is as it is over HTTP/1, and what is HTTP/2's own holds too. The server
//! behind is another one of ours, whose own judges stand in `http2`.

mod both_ways;
mod unruly;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use millstream_tests::client::Answer;
use millstream_tests::frames::Frames;
use millstream_tests::origin::Origin;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::wait;
use millstream_wire::h2::hpack::encoder;
use millstream_wire::h2::settings::INITIAL_WINDOW_SIZE;
use millstream_wire::h2::write;
use rustix::process::Signal;

const BACK: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
    http { access_log @DIR@/access.log; http2 on; client_max_body_size 0;
        server { listen 127.0.0.1:@PORT@;
            location / { add_header X-Spoken $server_protocol; add_header X-Connection $connection;
                return 200 \"$request_method $request_uri $http_host $http_x_sent\"; }
            location /files/ { alias @DIR@/; }
            location /early { return 413 \"enough\"; }
            location /ranged/ { return 200 \"0123456789\"; }
            location /slow/ { limit_rate 10k; max_ranges 0; alias @DIR@/; }
            location /summed/ { add_trailer X-Sum 1; max_ranges 0; alias @DIR@/; }
            location /up { proxy_pass http://@ORIGIN@; } } }";

const FRONT: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
    http { access_log @DIR@/access.log; http2 on; client_max_body_size 0; proxy_http_version 2; proxy_next_upstream error timeout;
        proxy_cache_path memory keys_zone=z:1m memory=16m;
        charset_map koi8-r windows-1251 { E1 C0; }
        upstream back { server 127.0.0.1:@BACK@; }
        server { listen 127.0.0.1:@PORT@;
            location / { proxy_pass http://back; proxy_set_header X-Sent \"of $remote_addr\"; }
            location /named/ { proxy_pass http://back/; proxy_set_header Host other.example; }
            location /cached/ { proxy_pass http://back; proxy_cache z; proxy_cache_valid 200 1h; }
            location /passed/ { proxy_pass http://back/; proxy_request_buffering off; }
            location /kept/ { proxy_pass http://back/; proxy_request_buffering off; proxy_force_ranges on; }
            location /mapped/ { proxy_pass http://back/; proxy_force_ranges on; proxy_pass_trailers on;
                source_charset koi8-r; charset windows-1251; }
            location /read/ { proxy_pass http://back/; proxy_cache z; proxy_cache_valid 200 1h; proxy_pass_trailers on; } } }";

struct Pair {
    front: Server,
    back: Server,
    origin: Origin,
}

impl Pair {
    fn start() -> Pair {
        let origin = Origin::fixed(200, &[], b"taken");
        let back = Server::start_in(Prefix::new(), BACK, &[("ORIGIN", &origin.address())]);
        let port = back.port().to_string();
        Pair { front: Server::start_in(Prefix::new(), FRONT, &[("BACK", &port)]), back, origin }
    }
}

fn posted(server: &Server, path: &str, body: &[u8]) -> Answer {
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    server.ask([head.as_bytes(), body].concat())
}

#[test]
fn a_request_over_http2_says_what_one_over_http1_does() {
    skip_on_nginx!();
    let pair = Pair::start();
    let answer = pair.front.get_with("/a?b=c", &[("X-Sent", "by a client"), ("Connection", "x-sent")]);
    assert_eq!((answer.status, answer.text()), (200, "GET /a?b=c back of 127.0.0.1".to_owned()));
    assert_eq!(answer.field("x-spoken"), Some("HTTP/2.0"));
    assert_eq!(pair.front.get("/named/x").text(), "GET /x other.example ");
    let head = pair.front.client().request("HEAD", "/a", &[]).expect("an answer");
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn requests_share_one_connection_and_a_cached_answer_needs_none() {
    skip_on_nginx!();
    let pair = Pair::start();
    let connection = |path: &str| pair.front.get(path).field("x-connection").map(str::to_owned);
    let first = connection("/1");
    assert!(first.is_some() && (2..20).all(|at| connection(&format!("/{at}")) == first));
    let stored = pair.front.get("/cached/x");
    assert_eq!(pair.front.get("/cached/x").text(), stored.text());
    let front = &pair.front;
    let others: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|at| scope.spawn(move || connection_of(front, at))).collect();
        threads.into_iter().map(|thread| thread.join().expect("an answer")).collect()
    });
    assert!(others.iter().all(|other| *other == first), "{others:?}");
}

fn connection_of(front: &Server, at: usize) -> Option<String> {
    front.get(&format!("/other/{at}")).field("x-connection").map(str::to_owned)
}

#[test]
fn bodies_of_any_size_go_both_ways() {
    skip_on_nginx!();
    let pair = Pair::start();
    let large: Vec<u8> = (0..3_000_000u32).map(|at| (at * 7) as u8).collect();
    std::fs::write(pair.back.prefix().join("large"), &large).expect("own directory");
    assert!(pair.front.get("/files/large").body == large);
    let part = pair.front.get_with("/files/large", &[("Range", "bytes=10-19")]);
    assert_eq!((part.status, &part.body[..]), (206, &large[10..20]));
    for path in ["/up", "/passed/up"] {
        let answer = posted(&pair.front, path, &large);
        assert_eq!((answer.status, answer.text()), (200, "taken".to_owned()), "{path}");
        let came = pair.origin.requests();
        assert!(came.last().is_some_and(|request| request.body == large), "{path}");
    }
    // A server that has heard enough is not waited for.
    let refused = posted(&pair.front, "/early", &large);
    assert_eq!((refused.status, refused.text()), (413, "enough".to_owned()));
}

#[test]
fn a_range_is_whole_and_the_connection_goes_on_though_the_request_s_body_is_not() {
    skip_on_nginx!();
    let pair = Pair::start();
    pair.back.prefix().write("large", "0123456789".repeat(20_000));
    for path in ["/kept/ranged/x", "/kept/slow/large"] {
        for (framing, rest) in
            [("Content-Length: 8", "body"), ("Transfer-Encoding: chunked", "4\r\nbody\r\n0\r\n\r\n")]
        {
            let about = format!("{path} {framing}");
            let first = if framing.starts_with("Content") { "some" } else { "4\r\nsome\r\n" };
            let mut client = pair.front.client();
            let head =
                format!("GET {path} HTTP/1.1\r\nHost: a\r\nRange: bytes=2-4\r\n{framing}\r\n\r\n{first}");
            let part = client.ask(head);
            assert_eq!((part.status, part.text()), (206, "234".to_owned()), "{about}");
            client.send(rest).expect("it takes the rest");
            let next = client.get("/next").expect("an answer");
            assert_eq!(next.text(), "GET /next back of 127.0.0.1", "{about}");
        }
        let mut frames = Frames::connect(pair.front.port());
        let stream = frames.request("GET", path, &[("range", "bytes=2-4")], false);
        frames.data(stream, b"some", false);
        let part = frames.answer(stream);
        assert_eq!((part.status, part.text()), (206, "234".to_owned()), "{path}: {part:?}");
        frames.data(stream, b"body", true);
        assert_eq!(frames.whole("/next").text(), "GET /next back of 127.0.0.1", "{path}");
    }
}

#[test]
fn trailers_of_a_whole_response_do_not_follow_a_part_of_it() {
    skip_on_nginx!();
    let pair = Pair::start();
    pair.back.prefix().write("large", "0123456789".repeat(20_000));
    let cases = [
        ("/mapped/summed/large", "bytes=2-", 199_998),
        ("/mapped/summed/large", "bytes=2-4", 3),
        ("/read/summed/large", "bytes=2-", 199_998),
        ("/read/summed/large?part", "bytes=2-4", 3),
        ("/mapped/summed/large", "", 200_000),
        ("/read/summed/large?whole", "", 200_000),
    ];
    for (at, (path, range, length)) in cases.into_iter().enumerate() {
        let mut frames = Frames::connect_with(pair.front.port(), &[(INITIAL_WINDOW_SIZE, 2)]);
        frames.widen(0, 1 << 20);
        let stream = frames.get_with(path, &[("range", range)][..usize::from(!range.is_empty())]);
        frames.until("the response begins", |now| now.so_far(stream).body.len() == 2);
        // All of it has come before the client takes more.
        let sent = || pair.back.prefix().read("access.log").matches("/summed/").count();
        wait::until("its server has sent all", || sent() > at);
        frames.widen(stream, 1 << 20);
        let answer = frames.answer(stream);
        assert_eq!(answer.body.len(), length, "{path} {range}: {}", pair.front.log());
        assert_eq!(answer.trailers.is_empty(), !range.is_empty(), "{path} {range}: {answer:?}");
    }
}

/// `say` writes to each connection.
fn scripted(say: impl Fn(usize, &mut TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        for (at, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            say(at, &mut stream);
        }
    });
    port
}

/// Octets of bodies in what a client has sent from its preface on, in whole frames.
fn bodies_in(sent: &[u8]) -> usize {
    let (mut rest, mut count) = (sent.get(24..).unwrap_or_default(), 0);
    while let Some(&[high, middle, low, kind, ..]) = rest.first_chunk::<9>() {
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        let Some(next) = rest.get(9 + length..) else { break };
        count += if kind == millstream_wire::h2::frame::kind::DATA { length } else { 0 };
        rest = next;
    }
    count
}

/// Reads until the head of the first stream has come; returns all input.
fn head_of(stream: &mut TcpStream) -> Vec<u8> {
    let (mut seen, mut piece) = (Vec::new(), [0; 4096]);
    let is_there = |seen: &[u8]| seen.windows(9).any(|head| head[3] == 1 && head[5..9] == [0, 0, 0, 1]);
    while !is_there(&seen) {
        match stream.read(&mut piece) {
            Ok(count @ 1..) => seen.extend_from_slice(&piece[..count]),
            _ => break,
        }
    }
    seen
}

fn answer(out: &mut Vec<u8>, status: u16) {
    let mut block = Vec::new();
    encoder::status(&mut block, status);
    write::headers(out, 1, &block, true, 16_384);
}

#[test]
fn an_upload_that_its_server_does_not_read_keeps_no_other_waiting() {
    skip_on_nginx!();
    let (full, is_full) = std::sync::mpsc::channel();
    let port = scripted(move |at, stream| {
        let mut out = Vec::new();
        write::settings(&mut out, &[(INITIAL_WINDOW_SIZE, 1 << 20)]);
        let mut seen = head_of(stream);
        let mut rest = stream.try_clone().expect("a descriptor");
        if at > 0 {
            answer(&mut out, 204);
        }
        _ = stream.write_all(&out);
        let full = full.clone();
        thread::spawn(move || {
            // The first window of a connection is never opened further.
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = rest.read(&mut piece) {
                seen.extend_from_slice(&piece[..count]);
                if at == 0 && bodies_in(&seen) == 65_535 {
                    _ = full.send(());
                }
            }
        });
    });
    let front = Server::start(FRONT, &[("BACK", &port.to_string())]);
    let mut slow = front.client();
    let head = format!("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", 200_000);
    slow.send([head.as_bytes(), &[b'x'; 200_000]].concat()).expect("it takes the request");
    is_full.recv_timeout(std::time::Duration::from_secs(20)).expect("the window is used up");
    assert_eq!(posted(&front, "/quick", b"once").status, 204, "{}", front.log());
}

#[test]
fn a_websocket_is_not_said_to_be_there_where_its_server_merely_answers() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"a page");
    let site = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
        http { access_log off; http2 on; upstream back { server @ORIGIN@; keepalive 8; }
            server { listen 127.0.0.1:@PORT@; location / { proxy_pass http://back; proxy_upgrade on; } } }";
    let front = Server::start(site, &[("ORIGIN", &origin.address())]);
    let mut frames = Frames::connect(front.port());
    // The first on a new connection, the others on the one that is kept.
    for _ in 0..3 {
        let stream = frames.websocket("/ws");
        assert_eq!(frames.answer(stream).status, 502, "{}", front.log());
        assert_eq!(frames.whole("/page").text(), "a page");
    }
}

#[test]
fn what_asks_for_a_websocket_gets_no_success_from_the_cache_or_from_what_is_made_here() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[("Cache-Control", "max-age=60")], b"a page");
    let site = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
        http { access_log off; proxy_cache_path memory keys_zone=z:1m;
            server { listen 127.0.0.1:@PORT@; http2 on;
                location / { proxy_pass http://@ORIGIN@; proxy_cache z; }
                location /text { return 200 text; } location /none { return 204; } location /gone { return 410; }
                location /gif { empty_gif; } location /status { stub_status; } } }";
    let front = Server::start(site, &[("ORIGIN", &origin.address())]);
    let mut frames = Frames::connect(front.port());
    for _ in 0..2 {
        assert_eq!(frames.whole("/page").text(), "a page");
    }
    assert_eq!(origin.count(), 1, "it is stored");
    let cases =
        [("/page", 502), ("/text", 501), ("/none", 501), ("/gone", 410), ("/gif", 501), ("/status", 501)];
    for (path, status) in cases {
        let stream = frames.websocket(path);
        assert_eq!(frames.answer(stream).status, status, "{path}: {}", front.log());
    }
}

#[test]
fn an_idle_connection_closes_when_its_configuration_is_gone() {
    skip_on_nginx!();
    let pair = Pair::start();
    assert_eq!(pair.front.get("/").status, 200);
    pair.front.rewrite(&FRONT.replace("/named/", "/renamed/"), &[("BACK", &pair.back.port().to_string())]);
    pair.front.signal(Signal::HUP);
    let log = || std::fs::read_to_string(pair.back.prefix().join("error.log")).unwrap_or_default();
    wait::until("the new configuration answers", || {
        pair.front.get("/renamed/x").text().starts_with("GET /x ")
    });
    assert!(!log().contains("panicked") && !pair.front.log().contains("panicked"));
}
