//! The demo API as its clients see it, over real sockets.

use super::*;
use std::io::{Read, Write};

fn options() -> DemoOptions {
    DemoOptions { service_time: Duration::ZERO, ..DemoOptions::default() }
}

fn talk(origin: &DemoOrigin, request: &str) -> String {
    let mut stream = TcpStream::connect(origin.address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(origin: &DemoOrigin, path: &str) -> (String, String) {
    let answer = talk(origin, &format!("GET {path} HTTP/1.1\r\nHost: demo\r\n\r\n"));
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

#[test]
fn every_path_says_how_long_it_may_be_kept() {
    let origin = start(&options()).unwrap();
    for (path, line, bytes) in [
        ("/", "Cache-Control: public, max-age=10", 900),
        ("/?page=2", "Cache-Control: public, max-age=10", 900),
        ("/slow", "Cache-Control: public, max-age=10", 900),
        ("/page", "Cache-Control: public, max-age=60", 60 << 10),
        ("/private", "Set-Cookie: session=4f1c; Path=/; HttpOnly", 900),
        ("/uncacheable", "Cache-Control: no-store", 900),
    ] {
        let (head, body) = get(&origin, path);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("\r\nServer: millstream-demo\r\n"), "{head}");
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{path}: {head}");
        assert_eq!(body.len(), bytes, "{path}");
    }
    assert_eq!(origin.served(), 6);
    assert!(get(&origin, "/").1.starts_with("{\"served\":7,"));
    assert!(get(&origin, "/missing").0.starts_with("HTTP/1.1 404 "));
    assert_eq!(origin.served(), 7);
}

#[test]
fn a_connection_carries_many_requests_with_bodies_and_without() {
    let origin = start(&options()).unwrap();
    let answers = talk(
        &origin,
        "HEAD / HTTP/1.1\r\nHost: demo\r\n\r\n\
         POST / HTTP/1.1\r\nHost: demo\r\nContent-Length: 5\r\n\r\nhello\
         POST / HTTP/1.1\r\nHost: demo\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
         DELETE / HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n\r\n\
         GET / HTTP/1.1\r\nHost: demo\r\n\r\n",
    );
    let statuses: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["200", "200", "200", "405"]);
    assert_eq!(answers.matches("Cache-Control: no-store").count(), 2);
}

#[test]
fn nonsense_is_answered_and_ends_the_connection() {
    let origin = start(&options()).unwrap();
    let both = "POST / HTTP/1.1\r\nHost: demo\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let large = format!("GET / HTTP/1.1\r\nHost: demo\r\nA: {}\r\n\r\n", "b".repeat(70_000));
    let body = "POST / HTTP/1.1\r\nHost: demo\r\nContent-Length: 99999999\r\n\r\n";
    for (request, status) in [("nonsense\r\n\r\n", 400), (both, 400), (&large, 431), (body, 413)] {
        let mut stream = TcpStream::connect(origin.address).unwrap();
        // It may be answered and closed before all is sent.
        let _ = stream.write_all(request.as_bytes());
        let mut status_line = [0; 12];
        stream.read_exact(&mut status_line).unwrap();
        assert_eq!(status_line, format!("HTTP/1.1 {status}").as_bytes());
    }
    assert_eq!(origin.served(), 0);
}

#[test]
fn a_worker_serves_one_request_at_a_time() {
    let time = Duration::from_millis(20);
    for work in [Work::Wait, Work::Cpu] {
        let origin = start(&DemoOptions { workers: 1, service_time: time, work, ..options() }).unwrap();
        let before = millstream_net::clock::now();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| get(&origin, "/"));
            }
        });
        let took = millstream_net::clock::now().duration_since(before);
        assert_eq!(origin.served(), 3);
        if work == Work::Wait {
            assert!(took >= 3 * time, "{took:?}");
        }
    }
}

#[test]
fn stopping_cuts_idle_and_working_connections() {
    let origin = start(&DemoOptions { service_time: Duration::from_secs(600), ..options() }).unwrap();
    let mut idle = TcpStream::connect(origin.address).unwrap();
    let mut working = TcpStream::connect(origin.address).unwrap();
    working.write_all(b"GET / HTTP/1.1\r\nHost: demo\r\n\r\n").unwrap();
    origin.stop();
    let mut rest = Vec::new();
    for stream in [&mut idle, &mut working] {
        // Closed or reset, but over.
        let _ = stream.read_to_end(&mut rest);
    }
    assert!(rest.is_empty());
    assert!(TcpStream::connect(origin.address).is_err());
    assert_eq!(origin.served(), 0);
    origin.stop();
}
