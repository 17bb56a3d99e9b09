//! WebSockets on streams (RFC 8441): what opens one, what asks beside it, and how one ends.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread::JoinHandle;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use millstream_tests::frames::{End, Frames};
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::server::Server;
use millstream_tests::{ports, wait};
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::settings;
use rustix::net::sockopt::{set_socket_linger, set_socket_recv_buffer_size};
use sha1::{Digest, Sha1};
use std::time::Duration;

const SITE: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
    http {
        log_format done '$uri $request_completion'; access_log @DIR@/done.log done;
        server { listen 127.0.0.1:@PORT@; http2 on; proxy_upgrade on; @TIMES@
            location / { proxy_pass http://127.0.0.1:@API@; }
            location /own-key { proxy_pass http://127.0.0.1:@API@; proxy_set_header Sec-WebSocket-Key own; }
            location /asked { auth_request /who; proxy_pass http://127.0.0.1:@API@; }
            location /let-in { auth_request /yes; proxy_pass http://127.0.0.1:@API@; }
            location /denied { auth_request /no; proxy_pass http://127.0.0.1:@API@; }
            location /inner { internal; proxy_pass http://127.0.0.1:@API@; }
            location = /who { internal; proxy_pass http://127.0.0.1:@API@; }
            location = /yes { internal; return 200; }
            location = /no { internal; proxy_pass http://127.0.0.1:@API@; } }
    }";

fn start(port: u16, times: &str) -> Server {
    Server::start(SITE, &[("API", &port.to_string()), ("TIMES", times)])
}

/// RFC 6455 §4.2.2.
fn accept(key: &str) -> String {
    STANDARD.encode(Sha1::digest(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11")))
}

fn opening(key: &str) -> String {
    let accept = accept(key);
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    )
}

fn opened(request: &Request) -> Vec<Step> {
    let head = opening(request.field("sec-websocket-key").unwrap_or_default());
    vec![Step::Send(head.into_bytes()), Step::Send(b"hello".into()), Step::Close]
}

/// Speaks WebSocket except on the paths of other tests.
fn api() -> Origin {
    Origin::start(|request| match request.target() {
        "/who" => answer(200, &[], b"somebody"),
        "/no" => answer(403, &[], b""),
        "/gate" => answer(200, &[("X-Accel-Redirect", "/inner")], b""),
        _ if request.field("upgrade") == Some("websocket") => opened(request),
        _ => answer(404, &[], b""),
    })
}

#[test]
fn who_asks_for_a_websocket_may_be_asked_after_by_a_subrequest() {
    skip_on_nginx!();
    let origin = api();
    let server = start(origin.port(), "");
    let mut frames = Frames::connect(server.port());
    for (path, status) in [("/asked", 200), ("/let-in", 200), ("/denied", 403)] {
        let stream = frames.websocket(path);
        let answer = frames.answer(stream);
        assert_eq!((answer.status, answer.end), (status, End::Whole), "{path}: {}", server.log());
        assert_eq!(answer.text() == "hello", status == 200, "{path}");
    }
    let requests = origin.requests();
    let asked = requests.iter().find(|request| request.target() == "/who").expect("it was asked");
    assert!(asked.head.starts_with("GET /who HTTP/1.1\r\n"), "{}", asked.head);
    assert_eq!(asked.field("upgrade"), None, "it is a plain request");
}

#[test]
fn an_x_accel_redirect_leads_to_a_websocket() {
    skip_on_nginx!();
    let origin = api();
    let server = start(origin.port(), "");
    let mut frames = Frames::connect(server.port());
    let stream = frames.websocket("/gate");
    let answer = frames.answer(stream);
    assert_eq!((answer.status, answer.text().as_str()), (200, "hello"), "{}", server.log());
}

#[test]
fn a_101_that_opens_no_websocket_is_told_as_502() {
    skip_on_nginx!();
    let origin = Origin::start(|request| {
        let key = request.field("sec-websocket-key").unwrap_or_default();
        let good = opening(key);
        let head = match request.target() {
            "/other" => good.replace("Upgrade: websocket", "Upgrade: foo"),
            "/none" => good.replace("Upgrade: websocket\r\n", ""),
            "/unconnected" => good.replace("Connection: Upgrade\r\n", ""),
            "/unaccepted" => good.replace(&format!("Sec-WebSocket-Accept: {}\r\n", accept(key)), ""),
            "/misaccepted" => good.replace(&accept(key), &accept("another key")),
            _ => good,
        };
        vec![Step::Send(head.into_bytes()), Step::Send(b"hello".into()), Step::Close]
    });
    let server = start(origin.port(), "");
    let mut frames = Frames::connect(server.port());
    for (path, told) in [
        ("/other", "with an \"Upgrade\" other than \"websocket\""),
        ("/none", "without \"Upgrade\""),
        ("/unconnected", "without \"Connection: upgrade\""),
        ("/unaccepted", "without \"Sec-WebSocket-Accept\""),
        ("/misaccepted", "whose \"Sec-WebSocket-Accept\" does not match the key"),
    ] {
        let stream = frames.websocket(path);
        assert_eq!(frames.answer(stream).status, 502, "{path}: {}", server.log());
        server.says(&format!("upstream sent \"101 Switching Protocols\" {told}"));
    }
    // The key of the configuration is the one that counts.
    for path in ["/", "/own-key"] {
        let stream = frames.websocket(path);
        let answer = frames.answer(stream);
        assert_eq!((answer.status, answer.text().as_str()), (200, "hello"), "{path}: {}", server.log());
    }
}

#[test]
fn one_key_goes_up_and_it_is_not_the_clients() {
    skip_on_nginx!();
    let origin = api();
    let server = start(origin.port(), "");
    let mut frames = Frames::connect(server.port());
    let fields = [(":protocol", "websocket"), ("sec-websocket-key", "mine"), ("sec-websocket-version", "13")];
    let stream = frames.request("CONNECT", "/", &fields, false);
    assert_eq!(frames.answer(stream).status, 200, "{}", server.log());
    let head = origin.requests()[0].head.to_ascii_lowercase();
    assert_eq!(head.matches("sec-websocket-key:").count(), 1, "{head}");
    assert!(!head.contains("mine") && head.contains("sec-websocket-version: 13"), "{head}");
}

#[derive(Clone, Copy, PartialEq)]
enum ApiEnd {
    Halfway,
    Whole,
    Reset,
    Silent,
}

/// Accepts one WebSocket, sends its words and ends it; returns what came after the head of the request.
fn ending_websocket(how: ApiEnd, words: Vec<u8>) -> (u16, JoinHandle<String>) {
    let (listener, port) = ports::listener();
    let api = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the proxy comes");
        let (mut came, mut piece) = (Vec::new(), [0; 4096]);
        while !came.windows(4).any(|four| four == b"\r\n\r\n") {
            let count = stream.read(&mut piece).expect("a request");
            came.extend_from_slice(&piece[..count]);
        }
        let head = String::from_utf8_lossy(&came).to_ascii_lowercase();
        let at = head.find("sec-websocket-key: ").expect("a key") + "sec-websocket-key: ".len();
        let key = String::from_utf8_lossy(&came[at..]).split("\r\n").next().unwrap_or_default().to_owned();
        if how == ApiEnd::Silent {
            set_socket_recv_buffer_size(&stream, 4096).expect("a socket");
        }
        stream.write_all(opening(&key).as_bytes()).expect("the proxy reads");
        stream.write_all(&words).expect("the proxy reads");
        end(stream, how)
    });
    (port, api)
}

fn end(mut stream: TcpStream, how: ApiEnd) -> String {
    let mut said = String::new();
    match how {
        ApiEnd::Halfway => {
            stream.shutdown(Shutdown::Write).expect("it is open");
            stream.read_to_string(&mut said).expect("the client's last words");
        }
        ApiEnd::Whole => {}
        ApiEnd::Reset => set_socket_linger(&stream, Some(Duration::ZERO)).expect("a socket"),
        // The proxy closes some day, which the test does not wait for.
        ApiEnd::Silent => std::mem::forget(stream),
    }
    said
}

#[test]
fn it_ends_when_the_api_ends_it_and_breaks_when_the_api_breaks() {
    skip_on_nginx!();
    for how in [ApiEnd::Halfway, ApiEnd::Whole, ApiEnd::Reset] {
        let (port, api) = ending_websocket(how, b"first".to_vec());
        let server = start(port, "proxy_read_timeout 600s;");
        let mut frames = Frames::connect(server.port());
        let stream = frames.websocket("/");
        let answer = frames.answer(stream);
        let end = if how == ApiEnd::Reset { End::Reset(ErrorCode::Cancel) } else { End::Whole };
        assert_eq!((answer.status, answer.end), (200, end), "{}", server.log());
        if how == ApiEnd::Halfway {
            assert_eq!(answer.text(), "first");
            frames.data(stream, b"bye", true);
            assert_eq!(api.join().expect("the API ends"), "bye", "it still reads");
        }
    }
}

#[test]
fn what_the_api_said_before_it_closed_comes_also_behind_words_that_it_takes_no_more() {
    skip_on_nginx!();
    // Less than a window of TCP: all of it is in the proxy's socket when the API has closed.
    let words = vec![b'w'; 50_000];
    for pongs in [0, 5] {
        let (port, api) = ending_websocket(ApiEnd::Whole, words.clone());
        let server = start(port, "");
        let mut frames = Frames::connect_with(server.port(), &[(settings::INITIAL_WINDOW_SIZE, 1_000)]);
        let stream = frames.websocket("/");
        frames.until("the window is full", |now| now.so_far(stream).body.len() == 1_000);
        api.join().expect("the API has closed");
        for _ in 0..pongs {
            frames.data(stream, b"\x8a\x80abcd", false);
            // The answer says that what came before it was passed on.
            frames.round_trip();
        }
        frames.widen(stream, 1 << 20);
        let answer = frames.answer(stream);
        assert_eq!(answer.body.len(), words.len(), "{pongs} pongs");
        // Words that were lost are told of (RFC 8441 §5).
        let end = if pongs == 0 { End::Whole } else { End::Reset(ErrorCode::Cancel) };
        assert_eq!(answer.end, end, "{pongs} pongs");
        if pongs == 0 {
            frames.data(stream, b"", true);
        }
        let told = if pongs == 0 { "/ OK\n" } else { "/ \n" };
        wait::until("it is logged", || server.prefix().read("done.log") == told);
    }
}

#[test]
fn one_that_is_out_of_time_is_cut_and_not_ended() {
    skip_on_nginx!();
    for (times, talks) in
        [("proxy_read_timeout 300ms;", false), ("proxy_read_timeout 600s; proxy_send_timeout 300ms;", true)]
    {
        let (port, _api) = ending_websocket(ApiEnd::Silent, b"half a mess".to_vec());
        let server = start(port, times);
        let mut frames = Frames::connect(server.port());
        let stream = frames.websocket("/");
        frames.until("it is opened", |now| now.so_far(stream).body == b"half a mess");
        if talks {
            // More than the sockets between them hold.
            frames.upload(stream, &vec![b'u'; 32 << 20]);
        }
        assert_eq!(frames.answer(stream).end, End::Reset(ErrorCode::Cancel), "{times}");
        wait::until("it is logged", || server.prefix().read("done.log") == "/ \n");
        let why = "upstream timed out (110: Connection timed out) while proxying upgraded connection";
        wait::until("and why", || server.prefix().read("error.log").contains(why));
    }
}

#[test]
fn one_that_its_client_gives_up_is_not_complete() {
    skip_on_nginx!();
    let (port, api) = ending_websocket(ApiEnd::Silent, b"half a mess".to_vec());
    let server = start(port, "");
    let mut frames = Frames::connect(server.port());
    let stream = frames.websocket("/");
    frames.until("it is opened", |now| !now.so_far(stream).body.is_empty());
    frames.give_up(stream);
    api.join().expect("the API is silent");
    wait::until("it is logged", || server.prefix().read("done.log") == "/ \n");
}
