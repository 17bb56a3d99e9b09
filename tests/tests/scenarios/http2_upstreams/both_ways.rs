//! A server that responds while it takes no more of the request: its response is passed on, and the request goes on once it reads.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;

use super::{bodies_in, head_of, scripted};
use millstream_tests::gate::Gate;
use millstream_tests::server::Server;
use millstream_wire::h2::hpack::encoder;
use millstream_wire::h2::write;

/// A little more than a window, and much more.
const BODIES: [usize; 3] = [66_000, 90_000, 200_000];
/// Of a connection and a stream whose server has not widened them (RFC 9113 §6.9.2).
const WINDOW: usize = 65_535;

/// Reads until this much of the body has come.
fn read_until(stream: &mut TcpStream, seen: &mut Vec<u8>, octets: usize) {
    let mut piece = [0; 4096];
    while bodies_in(seen) < octets {
        match stream.read(&mut piece) {
            Ok(count @ 1..) => seen.extend_from_slice(&piece[..count]),
            _ => return,
        }
    }
}

fn say(out: &mut Vec<u8>, text: &str, is_last: bool) {
    write::data_head(out, 1, text.len() as u32, is_last);
    out.extend_from_slice(text.as_bytes());
}

#[test]
fn a_response_that_begins_while_its_server_holds_the_window_is_passed_on_and_the_body_follows() {
    skip_on_nginx!();
    let ways = ["", "client_body_buffer_size 16k;", "proxy_request_buffering off;"];
    let statuses = [(200, 0), (413, 0), (200, 1), (200, 3)];
    let cases = ways.into_iter().flat_map(|way| statuses.map(|(status, hints)| (way, status, hints)));
    for ((way, status, hints), body) in cases.flat_map(|case| BODIES.map(|body| (case, body))) {
        let heard = Arc::new(Gate::default());
        let passed = Arc::clone(&heard);
        let port = scripted(move |_, stream| {
            let mut out = Vec::new();
            write::settings(&mut out, &[]);
            _ = stream.write_all(&out);
            let mut seen = head_of(stream);
            read_until(stream, &mut seen, WINDOW);
            out.clear();
            for _ in 0..hints {
                let mut block = Vec::new();
                encoder::status(&mut block, 103);
                write::headers(&mut out, 1, &block, false, 16_384);
            }
            let mut block = Vec::new();
            encoder::status(&mut block, status);
            write::headers(&mut out, 1, &block, false, 16_384);
            say(&mut out, "begun ", false);
            _ = stream.write_all(&out);
            passed.pass();
            out.clear();
            write::window_update(&mut out, 0, 1 << 20);
            write::window_update(&mut out, 1, 1 << 20);
            _ = stream.write_all(&out);
            read_until(stream, &mut seen, body);
            out.clear();
            say(&mut out, &format!("and read {}", bodies_in(&seen)), true);
            _ = stream.write_all(&out);
            let mut rest = stream.try_clone().expect("a descriptor");
            thread::spawn(move || std::io::copy(&mut rest, &mut std::io::sink()));
        });
        let template = site! {
            http "client_max_body_size 1m; client_body_buffer_size 1m;"
            server "location / { proxy_pass http://127.0.0.1:@BACK@; proxy_http_version 2; @WAY@ }"
        };
        let front = Server::start(template, &[("BACK", &port.to_string()), ("WAY", way)]);
        let mut client = front.client();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {body}\r\n\r\n")).expect("sent");
        client.send(vec![b'x'; body]).expect("sent");
        let mut head = client.head().expect("a head");
        for _ in 0..hints {
            assert_eq!(head.status, 103);
            head = client.head().expect("a head");
        }
        assert_eq!(head.status, status, "{way} {hints} {body}: {}", front.log());
        assert_eq!(client.line().expect("a chunk"), "6", "{way} {status} {hints} {body}");
        assert_eq!(client.exactly(8).expect("its data"), b"begun \r\n", "{way} {status} {hints} {body}");
        assert!(heard.open(), "{way} {status} {hints} {body}");
        assert_eq!(
            client.chunked().expect("the rest"),
            format!("and read {body}").into_bytes(),
            "{way} {status} {hints} {body}"
        );
    }
}
