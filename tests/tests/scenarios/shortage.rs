//! When descriptors or connections run short: clients wait for a moment, and nobody gets an error for it.

use millstream_tests::client::{self, Client};
use millstream_tests::endless::Endless;
use millstream_tests::frames::Frames;
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::allow_open_files;
use millstream_tests::server::Server;
use millstream_tests::{ports, wait};
use millstream_wire::h2::settings;
use std::sync::Arc;
use std::time::{Duration, Instant};

const CLIENTS: usize = 160;

/// As `ulimit -n 256` leaves it: enough for each client, not for an upstream connection beside each.
const FEW_FILES: &str = site! {
    main "worker_processes 1; worker_rlimit_nofile 256;" events "worker_connections 1024;"
    http "upstream api { server @ORIGIN@; keepalive 8; }"
    server "location / { proxy_pass http://api; } location /here { return 200; }"
};

#[test]
fn with_few_descriptors_clients_wait_and_none_gets_a_502() {
    skip_on_nginx!("it answers 500 and 502");
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

/// Only the shortage closes a slow head here.
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
    skip_on_nginx!("it sheds idle connections only");
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
    assert_eq!(last.ask("now\r\n\r\n").text(), "here\n");
    assert!(slow[0].is_closed_by_server(), "the longest wait is");
    wait::until("the log says what became of it", || {
        server.prefix().read("access.log").lines().any(|line| line.contains("\" 408 "))
    });
}

#[test]
fn a_head_that_goes_on_coming_outlives_those_that_do_not_however_long_it_takes() {
    skip_on_nginx!();
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
    assert_eq!(steady.ask("\r\n\r\n").text(), "here\n");
}

/// Only the shortage cuts a body here, or the close after a response.
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
    skip_on_nginx!();
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
    assert_eq!(steady.ask("a".repeat(50_000)).text(), "all of it");
    let cut = server.prefix().read("access.log").lines().filter(|line| line.contains("\" 408 ")).count();
    assert!(cut < 32, "{cut} were cut for four");
}

#[test]
fn handshakes_that_never_come_make_room_as_slow_heads_do() {
    skip_on_nginx!();
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

/// Only the shortage ends held connections here.
const HELD: &str = site! {
    main "worker_processes 1;" events "worker_connections 64;" log "info"
    http "dashboard 127.0.0.1:@DASHBOARD@;
        proxy_read_timeout 600s; send_timeout 600s; keepalive_timeout 600s; http2_max_concurrent_streams 512;"
    server "http2 on;
        location / { return 200 \"here\n\"; }
        location /slow { proxy_pass http://@ORIGIN@; }
        location /up { proxy_pass http://@UP@; }
        location /websocket {
            proxy_pass http://@ORIGIN@; proxy_upgrade on;
            proxy_set_header Sec-WebSocket-Key dGhlIHNhbXBsZSBub25jZQ==;
        }
        location /unbuffered { proxy_pass http://@ORIGIN@; proxy_request_buffering off; }
        location /fastcgi { fastcgi_pass @ORIGIN@; fastcgi_read_timeout 600s; }
        location /large { alias @DIR@/large; }"
};

fn held(origin: &str, dashboard: u16) -> Server {
    held_beside(origin, origin, dashboard)
}

fn held_beside(origin: &str, up: &str, dashboard: u16) -> Server {
    let values = [("ORIGIN", origin), ("UP", up), ("DASHBOARD", &dashboard.to_string())];
    let server = Server::start(HELD, &values);
    server.prefix().write("large", vec![b'x'; 32 << 20]);
    server
}

fn metric(dashboard: u16, name: &str) -> u64 {
    let text = client::get(dashboard, "/metrics").text();
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
}

/// While the other connections would hold their places for ten minutes.
fn four_hits(server: &Server, what: &str) {
    for _ in 0..4 {
        let asked = Instant::now();
        assert_eq!(server.get("/").text(), "here\n", "{what}");
        assert!(asked.elapsed() < Duration::from_secs(25), "{what}: {:?}", asked.elapsed());
    }
}

#[test]
fn requests_that_wait_for_a_slow_upstream_leave_places_for_hits() {
    skip_on_nginx!();
    for path in ["/slow", "/fastcgi"] {
        let (origin, dashboard) = (Endless::start(b""), ports::free());
        let server = held(&origin.address(), dashboard);
        let ask = || {
            let patience = Duration::from_millis(500);
            let mut client = Client::connect_with_patience(server.port(), patience).expect("it listens");
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).expect("sent");
            client
        };
        // All at once could take every client's place before the first connection to the upstream is made.
        let mut waiting: Vec<Client> = (0..20).map(|_| ask()).collect();
        wait::until("the upstream is busy", || origin.open() >= 20);
        waiting.extend((0..130).map(|_| ask()));
        four_hits(&server, path);
        assert!(metric(dashboard, "millstream_upstream_connections_refused_total ") > 0, "{path}");
        server.says("worker_connections are not enough while connecting to upstream");
        // How many more have places is nobody's to say.
        let refused = waiting.iter_mut().rev().find_map(|client| client.answer().ok());
        assert_eq!(refused.expect("not all have a place").status, 503, "{path}");
    }
}

#[test]
fn streams_that_wait_for_a_slow_upstream_count_as_connections_do() {
    skip_on_nginx!();
    let (origin, dashboard) = (Endless::start(b""), ports::free());
    let server = held(&origin.address(), dashboard);
    let mut greedy: Vec<Frames> = (0..4)
        .map(|_| {
            let mut frames = Frames::connect(server.port());
            frames.round_trip();
            for _ in 0..100 {
                frames.get("/slow");
            }
            frames.round_trip();
            frames
        })
        .collect();
    four_hits(&server, "streams");
    assert_eq!(greedy[0].whole("/").status, 200, "hits on the same connection too");
    let last = greedy.last_mut().expect("there are four");
    assert_eq!(last.answer(199).status, 503);
    assert!(origin.open() <= 56, "{} connections to the upstream", origin.open());
    assert!(metric(dashboard, "millstream_upstream_connections_refused_total ") > 0);
}

#[test]
fn requests_that_end_the_idling_of_their_connection_are_answered_where_places_are_short() {
    skip_on_nginx!();
    let (origin, dashboard) = (Endless::start(b""), ports::free());
    let server = held(&origin.address(), dashboard);
    let mut greedy = Frames::connect(server.port());
    (0..100).for_each(|_| _ = greedy.get("/slow"));
    wait::until("the upstream is busy", || origin.open() >= 16);
    assert_eq!(greedy.answer(199).status, 503);
    for (method, path, is_all, count) in [("POST", "/unbuffered", false, 1), ("GET", "/slow", true, 100)] {
        let mut frames = Frames::connect(server.port());
        assert_eq!(frames.whole("/").status, 200);
        // It idles for longer than the connections do that are not asked to close.
        frames.read_for(Duration::from_millis(300));
        let fields: &[(&str, &str)] = if is_all { &[] } else { &[("content-length", "5")] };
        let streams: Vec<u32> = (0..count).map(|_| frames.request(method, path, fields, is_all)).collect();
        for stream in streams {
            assert_eq!(frames.answer(stream).status, 503, "{method}, stream {stream}");
        }
        assert_eq!(frames.whole("/").status, 200, "the connection goes on");
    }
}

/// Opens a WebSocket for the configuration's key (RFC 6455 §1.3).
const SWITCHING: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

#[test]
fn websockets_that_idle_longest_make_room_for_requests() {
    skip_on_nginx!();
    let (origin, up) = (Endless::start(SWITCHING), Origin::fixed(200, &[], b"up"));
    let opening = "GET /websocket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let room_comes = |server: &Server, what: &str| {
        assert_eq!(server.get("/up").status, 503, "{what}: they have all places");
        wait::until(&format!("{what} make room"), || server.get("/up").status == 200);
    };
    let server = held_beside(&origin.address(), &up.address(), ports::free());
    let mut by_text: Vec<Client> = (0..28).map(|_| server.client()).collect();
    for client in &mut by_text {
        client.send(opening).expect("sent");
        assert_eq!(client.head().expect("a head").status, 101);
    }
    by_text[0].send(vec![b'x'; 4_000]).expect("sent");
    room_comes(&server, "connections");
    assert!(by_text[1].is_closed_by_server(), "the one that idles longest");
    server.says(
        "idle connection closed, worker_connections are not enough, while proxying upgraded connection",
    );
    drop((by_text, server));
    let server = held_beside(&origin.address(), &up.address(), ports::free());
    let mut frames = Frames::connect(server.port());
    frames.round_trip();
    let streams: Vec<u32> = (0..56).map(|_| frames.websocket("/websocket")).collect();
    frames.until("they are open", |now| {
        streams.iter().filter(|id| now.so_far(**id).status == 200).count() >= 50
    });
    room_comes(&server, "streams");
    assert_eq!(frames.whole("/").status, 200, "the connection goes on");
}

#[test]
fn clients_that_take_nothing_of_their_responses_make_room_for_new_ones() {
    skip_on_nginx!();
    let (origin, dashboard) = (Endless::start(b""), ports::free());
    let server = held(&origin.address(), dashboard);
    let by_text: Vec<Client> = (0..64)
        .map(|_| {
            let mut client = server.client();
            client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
            client
        })
        .collect();
    four_hits(&server, "connections that are not read");
    drop(by_text);
    let by_streams: Vec<Frames> = (0..64)
        .map(|_| {
            let mut frames = Frames::connect_with(server.port(), &[(settings::INITIAL_WINDOW_SIZE, 0)]);
            frames.get("/large");
            frames
        })
        .collect();
    four_hits(&server, "streams without a window");
    drop(by_streams);
    assert!(metric(dashboard, "millstream_client_connections_shed_total ") > 0);
    assert!(metric(dashboard, "millstream_client_connections_waited_total ") > 0);
}
