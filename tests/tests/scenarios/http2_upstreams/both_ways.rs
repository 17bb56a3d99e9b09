//! A server that responds while it takes no more of the request: its response is passed on, and the request goes on once it reads.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::{bodies_in, head_of, posted, scripted};
use millstream_tests::frames::{End, Frames};
use millstream_tests::gate::Gate;
use millstream_tests::server::Server;
use millstream_wire::h2::error_code::ErrorCode::{Cancel, InternalError, NoError, RefusedStream};
use millstream_wire::h2::hpack::encoder;
use millstream_wire::h2::settings::INITIAL_WINDOW_SIZE;
use millstream_wire::h2::write;

/// A little more than a window, and much more.
const BODIES: [usize; 3] = [66_000, 90_000, 200_000];
/// Of a connection and a stream whose server has not widened them (RFC 9113 §6.9.2).
const WINDOW: usize = 65_535;

const SITE: &str = site! {
    http "client_max_body_size 1m; client_body_buffer_size 1m; proxy_cache_path memory keys_zone=z:1m memory=8m;"
    server "http2 on; location / { proxy_pass http://127.0.0.1:@BACK@; proxy_http_version 2; @WAY@ }
        location = /page { return 200 page; }
        location = /clock { proxy_pass http://127.0.0.1:@SILENT@; proxy_read_timeout 1s; }"
};
const BUFFERED: &str = "";
const IN_FILE: &str = "client_body_buffer_size 16k;";
const STREAMED: &str = "proxy_request_buffering off;";
/// What a client still sends is read by it alone, so that nothing is stored of a streamed request.
const WAYS: [(&str, bool); 6] = [
    (BUFFERED, false),
    (IN_FILE, false),
    (STREAMED, false),
    (BUFFERED, true),
    (IN_FILE, true),
    (STREAMED, true),
];

fn start(port: u16, (way, is_cached): (&str, bool), more: &str) -> Server {
    let cache = "proxy_cache z; proxy_cache_methods POST; proxy_cache_valid any 1m;";
    let way = format!("{way} {} {more}", if is_cached { cache } else { "" });
    let silent = scripted(|_, stream| drain(stream)).to_string();
    Server::start(SITE, &[("BACK", &port.to_string()), ("WAY", &way), ("SILENT", &silent)])
}

/// Reads the first request of a connection as far as its windows let it come.
fn read_window(stream: &mut TcpStream) -> Vec<u8> {
    let mut out = Vec::new();
    write::settings(&mut out, &[]);
    _ = stream.write_all(&out);
    let mut seen = head_of(stream);
    read_until(stream, &mut seen, WINDOW);
    seen
}

fn widen(stream: &mut TcpStream) {
    let mut out = Vec::new();
    write::window_update(&mut out, 0, 1 << 20);
    write::window_update(&mut out, 1, 1 << 20);
    _ = stream.write_all(&out);
}

/// Reads to the end without being waited for.
fn drain(stream: &TcpStream) {
    let mut rest = stream.try_clone().expect("a descriptor");
    thread::spawn(move || std::io::copy(&mut rest, &mut std::io::sink()));
}

/// Reads until this much of the body has come.
pub(super) fn read_until(stream: &mut TcpStream, seen: &mut Vec<u8>, octets: usize) {
    let mut piece = [0; 4096];
    while bodies_in(seen) < octets {
        match stream.read(&mut piece) {
            Ok(count @ 1..) => seen.extend_from_slice(&piece[..count]),
            _ => return,
        }
    }
}

fn begin(out: &mut Vec<u8>, status: u16) {
    let mut block = Vec::new();
    encoder::status(&mut block, status);
    write::headers(out, 1, &block, false, 16_384);
}

fn say(out: &mut Vec<u8>, text: &str, is_last: bool) {
    write::data_head(out, 1, text.len() as u32, is_last);
    out.extend_from_slice(text.as_bytes());
}

#[test]
fn a_response_that_begins_while_its_server_holds_the_window_is_passed_on_and_the_body_follows() {
    skip_on_nginx!();
    let statuses = [(200, 0), (413, 0), (200, 1), (200, 3)];
    let cases = WAYS.into_iter().flat_map(|way| statuses.map(|(status, hints)| (way, status, hints)));
    for ((way, status, hints), body) in cases.flat_map(|case| BODIES.map(|body| (case, body))) {
        let about = format!("{way:?} {status} {hints} {body}");
        let heard = Arc::new(Gate::default());
        let passed = Arc::clone(&heard);
        let port = scripted(move |_, stream| {
            let mut seen = read_window(stream);
            let mut out = Vec::new();
            (0..hints).for_each(|_| begin(&mut out, 103));
            begin(&mut out, status);
            say(&mut out, "begun ", false);
            _ = stream.write_all(&out);
            passed.pass();
            widen(stream);
            read_until(stream, &mut seen, body);
            out.clear();
            say(&mut out, &format!("and read {}", bodies_in(&seen)), true);
            _ = stream.write_all(&out);
            drain(stream);
        });
        let front = start(port, way, "");
        let mut client = front.client();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {body}\r\n\r\n")).expect("sent");
        client.send(vec![b'x'; body]).expect("sent");
        let mut head = client.head().expect("a head");
        for _ in 0..hints {
            assert_eq!(head.status, 103);
            head = client.head().expect("a head");
        }
        assert_eq!(head.status, status, "{about}: {}", front.log());
        assert_eq!(client.line().expect("a chunk"), "6", "{about}");
        assert_eq!(client.exactly(8).expect("its data"), b"begun \r\n", "{about}");
        assert!(heard.open(), "{about}");
        let rest = format!("and read {body}");
        assert_eq!(client.chunked().expect("the rest"), rest.as_bytes(), "{about}");
        if let ("" | IN_FILE, true) = way {
            assert_eq!(posted(&front, "/", b"stored").text(), format!("begun {rest}"), "{about}");
        }
    }
}

#[test]
fn a_response_behind_a_page_is_stored_though_its_server_reads_the_request_first() {
    skip_on_nginx!();
    for way in [BUFFERED, IN_FILE] {
        let (read, is_read) = mpsc::channel();
        let port = scripted(move |_, stream| {
            let mut seen = read_window(stream);
            let mut out = Vec::new();
            begin(&mut out, 413);
            _ = stream.write_all(&out);
            widen(stream);
            read_until(stream, &mut seen, 200_000);
            out.clear();
            say(&mut out, "whole", true);
            _ = stream.write_all(&out);
            _ = read.send(bodies_in(&seen));
            drain(stream);
        });
        let front = start(port, (way, true), "proxy_intercept_errors on; error_page 413 /page;");
        let page = posted(&front, "/", &[b'x'; 200_000]);
        assert_eq!((page.status, page.text().as_str()), (413, "page"), "{way}: {}", front.log());
        assert_eq!(is_read.recv_timeout(Duration::from_secs(20)), Ok(200_000), "{way}");
        assert_eq!(posted(&front, "/", b"stored").text(), "page", "{way}: {}", front.log());
    }
}

#[test]
fn a_response_that_has_come_whole_is_passed_on_however_its_stream_ends() {
    skip_on_nginx!();
    let codes = [NoError, Cancel, InternalError, RefusedStream].map(Some);
    for (way, code) in WAYS
        .into_iter()
        .flat_map(|way| [codes[0], codes[1], codes[2], codes[3], None].map(|code| (way, code)))
    {
        let port = scripted(move |_, stream| {
            read_window(stream);
            let mut out = Vec::new();
            begin(&mut out, 413);
            say(&mut out, "enough", true);
            if let Some(code) = code {
                write::reset(&mut out, 1, code);
            }
            _ = stream.write_all(&out);
            if code.is_none() {
                _ = stream.shutdown(Shutdown::Write);
            }
            drain(stream);
        });
        let front = start(port, way, "");
        let answer = posted(&front, "/", &[b'x'; 200_000]);
        let got = (answer.status, answer.text());
        assert_eq!(got, (413, "enough".to_owned()), "{way:?} {code:?}: {}", front.log());
    }
}

#[test]
fn a_response_that_has_come_whole_is_not_cut_though_its_server_never_takes_the_request() {
    skip_on_nginx!();
    for way in WAYS {
        let (reset, is_reset) = mpsc::channel();
        let port = scripted(move |_, stream| {
            let mut seen = read_window(stream);
            let mut out = Vec::new();
            begin(&mut out, 200);
            let quarter = "x".repeat(15_000);
            (1..=4).for_each(|at| say(&mut out, &quarter, at == 4));
            _ = stream.write_all(&out);
            out.clear();
            write::reset(&mut out, 1, Cancel);
            let mut piece = [0; 4096];
            while !seen.windows(out.len()).any(|sent| sent == out) {
                let Ok(count @ 1..) = stream.read(&mut piece) else { return };
                seen.extend_from_slice(&piece[..count]);
            }
            _ = reset.send(());
        });
        let front = start(port, way, "proxy_send_timeout 300ms; proxy_buffer_size 4k; proxy_buffers 4 4k;");
        let mut frames = Frames::connect_with(front.port(), &[(INITIAL_WINDOW_SIZE, 1000)]);
        let stream = frames.request("POST", "/", &[], false);
        frames.upload(stream, &[b'x'; 200_000]);
        frames.until("the response begins", |now| now.so_far(stream).body.len() == 1000);
        assert_eq!(front.get("/clock").status, 504, "longer than proxy_send_timeout");
        frames.widen(stream, 1 << 20);
        let answer = frames.answer(stream);
        assert_eq!((answer.body.len(), answer.end), (60_000, End::Whole), "{way:?}: {}", front.log());
        assert!(is_reset.recv_timeout(Duration::from_secs(20)).is_ok(), "{way:?}: its stream ends");
    }
}

#[test]
fn trailers_behind_a_body_of_known_length_reach_the_client_however_late_they_come() {
    skip_on_nginx!();
    for is_cached in [false, true] {
        let gate = Arc::new(Gate::default());
        let late = Arc::clone(&gate);
        let port = scripted(move |_, stream| {
            head_of(stream);
            let (mut out, mut block) = (Vec::new(), Vec::new());
            write::settings(&mut out, &[]);
            encoder::status(&mut block, 200);
            encoder::field(&mut block, b"content-length", b"4");
            write::headers(&mut out, 1, &block, false, 16_384);
            say(&mut out, "body", false);
            _ = stream.write_all(&out);
            late.pass();
            (out, block) = (Vec::new(), Vec::new());
            encoder::field(&mut block, b"x-sum", b"1");
            write::headers(&mut out, 1, &block, true, 16_384);
            _ = stream.write_all(&out);
            drain(stream);
        });
        let front = start(port, (BUFFERED, is_cached), "proxy_pass_trailers on;");
        let mut frames = Frames::connect(front.port());
        let stream = frames.get("/");
        frames.until("the body is there", |now| now.so_far(stream).body == b"body");
        assert!(gate.open());
        let answer = frames.answer(stream);
        assert_eq!(answer.trailers, [("x-sum".to_owned(), "1".to_owned())], "{is_cached}: {answer:?}");
        assert_eq!(answer.end, End::Whole, "{is_cached}");
    }
}
