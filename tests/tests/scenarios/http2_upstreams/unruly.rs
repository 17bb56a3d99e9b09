//! Servers that hang, refuse, break the rules or turn every call away: what their clients get, and how often they are asked again.

use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use super::both_ways::read_until;
use super::{FRONT, answer, head_of, posted, scripted};
use millstream_tests::frames::frame;
use millstream_tests::gate::Gate;
use millstream_tests::server::Server;
use millstream_tests::wait;
use millstream_wire::h2::error_code::ErrorCode::{NoError, RefusedStream};
use millstream_wire::h2::frame::{flag, kind};
use millstream_wire::h2::hpack::encoder;
use millstream_wire::h2::settings::MAX_CONCURRENT_STREAMS;
use millstream_wire::h2::write;

#[test]
fn what_a_server_has_not_begun_is_asked_for_again_whatever_its_method() {
    skip_on_nginx!();
    for refusal in ["reset", "goaway"] {
        let port = scripted(move |at, stream| {
            let mut out = Vec::new();
            write::settings(&mut out, &[]);
            head_of(stream);
            match (at, refusal) {
                (0, "reset") => write::reset(&mut out, 1, RefusedStream),
                (0, _) => write::goaway(&mut out, 0, NoError, b""),
                _ => answer(&mut out, 204),
            }
            _ = stream.write_all(&out);
            // The rest of a connection is read until its other end closes it.
            let mut rest = stream.try_clone().expect("a descriptor");
            thread::spawn(move || std::io::copy(&mut rest, &mut std::io::sink()));
        });
        let front = Server::start(FRONT, &[("BACK", &port.to_string())]);
        let answer = posted(&front, "/pay", b"once");
        assert_eq!(answer.status, 204, "{refusal}: {}", front.log());
    }
}

#[test]
fn a_request_that_its_server_has_begun_to_answer_is_not_sent_again_whatever_it_refuses() {
    skip_on_nginx!();
    let cases =
        [103, 200].into_iter().flat_map(|status| ["reset", "goaway"].map(|refusal| (status, refusal)));
    for (status, refusal) in cases {
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        let heard = Arc::new(Gate::default());
        let passed = Arc::clone(&heard);
        // More than a window, so that the head comes while the request is sent.
        let body = if status == 200 { 200_000 } else { 4 };
        let port = scripted(move |_, stream| {
            counted.fetch_add(1, Relaxed);
            let (mut out, mut block) = (Vec::new(), Vec::new());
            write::settings(&mut out, &[]);
            _ = stream.write_all(&out);
            let mut seen = head_of(stream);
            read_until(stream, &mut seen, body.min(65_535));
            out.clear();
            encoder::status(&mut block, status);
            write::headers(&mut out, 1, &block, false, 16_384);
            if status == 103 {
                _ = stream.write_all(&out);
                out.clear();
                passed.pass();
            }
            match refusal {
                "reset" => write::reset(&mut out, 1, RefusedStream),
                _ => write::goaway(&mut out, 0, NoError, b""),
            }
            _ = stream.write_all(&out);
            let mut rest = stream.try_clone().expect("a descriptor");
            thread::spawn(move || std::io::copy(&mut rest, &mut std::io::sink()));
        });
        let front = Server::start(FRONT, &[("BACK", &port.to_string())]);
        let mut client = front.client();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {body}\r\n\r\n")).expect("sent");
        client.send(vec![b'x'; body]).expect("sent");
        if status == 103 {
            assert_eq!(client.head().expect("a head").status, 103);
            heard.open();
        }
        let answer = client.answer();
        assert!(
            answer.as_ref().map_or(status == 200, |answer| answer.status == 502),
            "{status} {refusal}: {answer:?}"
        );
        assert_eq!(connections.load(Relaxed), 1, "{status} {refusal}: {}", front.log());
    }
}

#[test]
fn a_server_that_turns_all_calls_away_is_not_connected_to_again_and_again() {
    skip_on_nginx!();
    for says_goodbye in [true, false] {
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        let port = scripted(move |_, stream| {
            counted.fetch_add(1, Relaxed);
            let mut stream = stream.try_clone().expect("a descriptor");
            thread::spawn(move || {
                let mut out = Vec::new();
                let calls = if says_goodbye { 100 } else { 0 };
                write::settings(&mut out, &[(MAX_CONCURRENT_STREAMS, calls)]);
                if says_goodbye {
                    write::goaway(&mut out, 0, NoError, b"");
                }
                _ = stream.write_all(&out);
                head_of(&mut stream);
                out.clear();
                write::reset(&mut out, 1, RefusedStream);
                _ = stream.write_all(&out);
                std::io::copy(&mut stream, &mut std::io::sink())
            });
        });
        let front = Server::start(FRONT, &[("BACK", &port.to_string())]);
        assert_eq!(posted(&front, "/pay", b"once").status, 502, "{}", front.log());
        front.says("upstream refused the request");
        let connections = connections.load(Relaxed);
        // A call is made nine times, and each time one connection may be in vain: whether a goodbye is heard before is chance.
        assert!(connections <= 18, "{connections} connections: {}", front.log());
    }
}

#[test]
fn a_connection_whose_server_hangs_costs_one_request() {
    skip_on_nginx!();
    let port = scripted(|at, stream| {
        let mut stream = stream.try_clone().expect("a descriptor");
        thread::spawn(move || {
            let mut out = Vec::new();
            write::settings(&mut out, &[]);
            _ = stream.write_all(&out);
            head_of(&mut stream);
            out.clear();
            if at > 0 {
                answer(&mut out, 204);
            }
            _ = stream.write_all(&out);
            std::io::copy(&mut stream, &mut std::io::sink())
        });
    });
    let site = FRONT.replace("http2 on;", "http2 on; proxy_read_timeout 300ms;");
    let front = Server::start(&site, &[("BACK", &port.to_string())]);
    let statuses = [(); 2].map(|()| front.get("/x").status);
    assert_eq!(statuses, [504, 204], "{}", front.log());
}

#[test]
fn a_server_that_breaks_the_rules_is_a_bad_gateway_with_its_cause_in_the_log() {
    skip_on_nginx!();
    type Say = fn(&mut Vec<u8>);
    let cases: [(Say, &str); 6] = [
        (
            |out| out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            "upstream sent an HTTP/1 response: it does not support HTTP/2",
        ),
        (
            |out| {
                write::settings(out, &[]);
                let mut block = Vec::new();
                encoder::status(&mut block, 200);
                encoder::field(&mut block, b"content-length", b"100");
                write::headers(out, 1, &block, true, 16_384);
            },
            "upstream sent a body that does not match its Content-Length",
        ),
        (
            |out| {
                write::settings(out, &[]);
                let mut block = Vec::new();
                encoder::status(&mut block, 103);
                (0..70).for_each(|_| write::headers(out, 1, &block, false, 16_384));
            },
            "upstream sent too many interim responses",
        ),
        (
            |out| out.extend_from_slice(b"\x15\x03\x01\0\x02\x02\x46"),
            "upstream sent a TLS record while reading response header from upstream (the upstream speaks TLS on this port; use https://)",
        ),
        (
            |out| {
                write::settings(out, &[]);
                write::data_head(out, 1, 0, true);
            },
            "upstream sent a DATA frame before the response header",
        ),
        (
            |out| {
                write::settings(out, &[]);
                answer(out, 101);
            },
            "upstream sent an interim response that ends its stream",
        ),
    ];
    for (say, told) in cases {
        let port = scripted(move |_, stream| {
            head_of(stream);
            let mut out = Vec::new();
            say(&mut out);
            _ = stream.write_all(&out);
            let mut rest = stream.try_clone().expect("a descriptor");
            thread::spawn(move || std::io::copy(&mut rest, &mut std::io::sink()));
        });
        let front = Server::start(FRONT, &[("BACK", &port.to_string())]);
        assert_eq!(front.get("/").status, 502, "{told}");
        front.says(told);
    }
}

#[test]
fn a_server_that_breaks_the_rules_behind_its_head_is_left_at_once_and_its_response_cut() {
    skip_on_nginx!();
    let data = |length: usize| frame(kind::DATA, 0, 1, &vec![b'x'; length]);
    let mut trailers = Vec::new();
    encoder::field(&mut trailers, b"x-sum", b"1");
    let cases = [
        (data(16_384).repeat(256), "upstream sent a frame that violates flow control"),
        (data(100_000), "upstream sent a frame larger than SETTINGS_MAX_FRAME_SIZE"),
        (
            [frame(kind::HEADERS, 0, 1, &trailers), frame(kind::CONTINUATION, 0, 1, b"").repeat(5_000)]
                .concat(),
            "upstream sent an endless header block",
        ),
        (
            [
                frame(kind::HEADERS, 0, 1, &trailers),
                frame(kind::CONTINUATION, 0, 1, &trailers).repeat(50_000),
            ]
            .concat(),
            "upstream sent an endless header block",
        ),
        (
            frame(kind::HEADERS, flag::END_HEADERS, 1, &trailers),
            "upstream sent trailers that do not end their stream",
        ),
    ];
    for (behind, told) in cases {
        let port = scripted(move |_, stream| {
            head_of(stream);
            let (mut out, mut block) = (Vec::new(), Vec::new());
            write::settings(&mut out, &[]);
            encoder::status(&mut block, 200);
            write::headers(&mut out, 1, &block, false, 16_384);
            out.extend_from_slice(&behind);
            _ = stream.write_all(&out);
            let mut rest = stream.try_clone().expect("a descriptor");
            thread::spawn(move || std::io::copy(&mut rest, &mut std::io::sink()));
        });
        let front = Server::start(FRONT, &[("BACK", &port.to_string())]);
        let mut client = front.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        front.says(told);
        assert!(client.answer().is_err_and(|error| error.kind() != ErrorKind::WouldBlock), "{told}");
    }
}

#[test]
fn what_a_client_asks_for_and_how_long_it_waits_says_nothing_about_its_server() {
    skip_on_nginx!();
    use millstream_wire::h2::error_code::ErrorCode::InternalError;
    const SITE: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
        http { log_format tries \"$status $upstream_status\"; http2 on;
            access_log @DIR@/tries.log tries;
            upstream two { zone two 64k; server 127.0.0.1:@ONE@; server 127.0.0.1:@OTHER@; }
            server { listen 127.0.0.1:@PORT@; location / { grpc_pass two; grpc_next_upstream error timeout; } } }";
    for (is_reset, method, fields, status, told) in [
        (
            false,
            "POST",
            "te: trailers\r\ngrpc-timeout: 50m\r\n",
            504,
            "the deadline of the call (grpc-timeout) expired",
        ),
        (true, "GET", "", 502, "upstream rejected the request with INTERNAL_ERROR"),
    ] {
        let [one, other] = [(), ()].map(|()| {
            scripted(move |_, stream| {
                let mut stream = stream.try_clone().expect("a descriptor");
                thread::spawn(move || {
                    let mut out = Vec::new();
                    write::settings(&mut out, &[]);
                    head_of(&mut stream);
                    if is_reset {
                        write::reset(&mut out, 1, InternalError);
                        write::goaway(&mut out, 1, InternalError, b"");
                    }
                    _ = stream.write_all(&out);
                    _ = std::io::copy(&mut stream, &mut std::io::sink());
                });
            })
        });
        let values = [("ONE", one.to_string()), ("OTHER", other.to_string())];
        let front = Server::start(SITE, &values.each_ref().map(|(name, value)| (*name, value.as_str())));
        for _ in 0..4 {
            assert_eq!(
                front.client().ask(format!("{method} /x HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).status,
                status,
                "{}",
                front.log()
            );
        }
        front.says(told);
        wait::until("all are logged", || front.prefix().read("tries.log").lines().count() == 4);
        // One server each, of which neither is out.
        assert_eq!(
            front.prefix().read("tries.log"),
            format!("{status} {status}\n").repeat(4),
            "{}",
            front.log()
        );
        assert!(!front.log().contains("temporarily disabled"), "{}", front.log());
    }
}
