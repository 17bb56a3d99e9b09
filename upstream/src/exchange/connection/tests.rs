//! Exchanges with a scripted peer on a unix socket pair: what is read, when it ends, and what may be used again.

use super::{Connection, Deadline, Over, Part, Speaker};
use crate::dial::Dial;
use crate::error::ExchangeError;
use crate::peer::Peer;
use millstream_net::address::Address;
use millstream_net::stream::Stream;
use millstream_wire::Method;
use millstream_wire::h1::head::ResponseHead;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

const LONG: Duration = Duration::from_secs(30);

pub(crate) fn on_runtime<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

pub(crate) fn pair(id: u64) -> (Connection, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    let peer = Peer { id, address: Address::Unix(None), name: "unix:/api.sock".into() };
    (Connection::over(Over::Socket(Stream::from(ours)), &peer, &Dial::default(), Deadline::new()), theirs)
}

/// The response comes in the given pieces; `close` ends the connection after the last. Returns status, body
/// and whether the connection may be reused.
async fn talk(
    (speaker, keep): (Speaker, bool),
    head: &[u8],
    method: Method,
    pieces: &[&[u8]],
    close: bool,
) -> Result<(u16, Vec<u8>, bool), ExchangeError> {
    let (mut connection, mut peer) = pair(0);
    connection.begin(speaker, method, keep);
    connection.send(head, b"", true, LONG).await?;
    connection.sent_whole();
    let script = async {
        let mut request = [0; 64];
        let _ = peer.read(&mut request).await;
        for piece in pieces {
            let _ = peer.write_all(piece).await;
            tokio::task::yield_now().await;
        }
        if close {
            let _ = peer.shutdown().await;
        }
    };
    let talk = async {
        let mut head = ResponseHead::default();
        loop {
            connection.read_head(&mut head, 4096, LONG).await?;
            if !head.is_interim() {
                break;
            }
        }
        let mut body = Vec::new();
        while let Some(data) = connection.read_body(LONG).await? {
            body.extend_from_slice(data);
        }
        Ok((head.status, body, connection.reusable()))
    };
    tokio::join!(script, talk).1
}

async fn exchange(
    method: Method,
    pieces: &[&[u8]],
    close: bool,
) -> Result<(u16, Vec<u8>, bool), ExchangeError> {
    let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    talk((Speaker::http1(false), true), head, method, pieces, close).await
}

#[test]
fn bodies_end_where_their_framing_says() {
    let cases: &[(&str, &[u8], bool, &str, bool)] = &[
        ("length", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false, "hello", true),
        ("empty", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false, "", true),
        ("204", b"HTTP/1.1 204 No Content\r\n\r\n", false, "", true),
        (
            "chunked",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\nX-T: 1\r\n\r\n",
            false,
            "hello!",
            true,
        ),
        ("close", b"HTTP/1.1 200 OK\r\n\r\nhello", true, "hello", false),
        ("connection: close", b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", false, "hi", false),
        ("HTTP/1.0", b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", false, "hi", false),
        ("leftover", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi there", false, "hi", false),
        (
            "interim first",
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            false,
            "hi",
            true,
        ),
    ];
    for (name, answer, close, body, reusable) in cases {
        let whole = on_runtime(exchange(Method::Get, &[answer], *close)).expect("a good answer");
        assert_eq!((&whole.1[..], whole.2), (body.as_bytes(), *reusable), "{name}");
        let bytes: Vec<&[u8]> = answer.chunks(1).collect();
        let pieced = on_runtime(exchange(Method::Get, &bytes, *close)).expect("a good answer");
        assert_eq!(pieced.1, body.as_bytes(), "{name}, byte by byte");
    }
}

#[test]
fn an_answer_to_head_has_no_body_whatever_it_announces() {
    let answer: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n";
    let (status, body, reusable) =
        on_runtime(exchange(Method::Head, &[answer], false)).expect("a good answer");
    assert_eq!((status, body.len(), reusable), (200, 0, true));
}

#[test]
fn answers_that_are_cut_or_broken_are_errors() {
    let run = |answer: &[u8]| on_runtime(exchange(Method::Get, &[answer], true)).expect_err("a bad answer");
    assert!(matches!(run(b""), ExchangeError::ClosedEarly { any_bytes: false }));
    assert!(matches!(run(b"HTTP/1.1 200"), ExchangeError::ClosedEarly { any_bytes: true }));
    let cut = run(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
    assert!(matches!(cut, ExchangeError::ClosedEarly { any_bytes: true }));
    let cut = run(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    assert!(matches!(cut, ExchangeError::ClosedEarly { any_bytes: true }));
    let bad = run(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n");
    assert!(matches!(bad, ExchangeError::BadBody(_)));
    assert!(matches!(run(b"SSH-2.0-OpenSSH\r\n\r\n"), ExchangeError::BadHead(_)));
    assert!(matches!(run(b"\x15\x03\x01\0\x02\x02\x46"), ExchangeError::Tls(_)));
    let both = run(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello");
    assert!(matches!(both, ExchangeError::BadFraming(_)));
    let mut large = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
    large.resize(5000, b'x');
    assert!(matches!(run(&large), ExchangeError::HeadTooLarge));
}

#[test]
fn interim_answers_are_bounded() {
    let flood = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100);
    let error = on_runtime(exchange(Method::Get, &[&flood], false)).expect_err("too many");
    assert!(matches!(error, ExchangeError::TooManyInterim));
}

#[test]
fn small_chunks_that_have_come_together_are_one_part() {
    on_runtime(async {
        let (mut connection, mut peer) = pair(0);
        connection.begin(Speaker::http1(false), Method::Get, true);
        let large = "x".repeat(5_000);
        let body = format!("1\r\na\r\n2;x=y\r\nbc\r\n1388\r\n{large}\r\n1\r\nd\r\n0\r\nX-Sum: 4\r\n\r\n");
        let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        peer.write_all(answer.as_bytes()).await.expect("sent");
        let mut head = ResponseHead::default();
        connection.read_head(&mut head, 16_384, LONG).await.expect("a head");
        assert_eq!(connection.next_part().expect("a part"), Part::Data(format!("abc{large}").as_bytes()));
        assert_eq!(connection.next_part().expect("a part"), Part::Data(b"d"));
        assert_eq!(connection.next_part().expect("a part"), Part::End);
        assert_eq!(connection.trailers().and_then(|fields| fields.named(b"x-sum")), Some(&b"4"[..]));
    });
}

#[test]
fn head_and_small_body_come_in_one_read_and_stay_readable_together() {
    on_runtime(async {
        let (mut connection, mut peer) = pair(0);
        connection.begin(Speaker::http1(false), Method::Get, true);
        connection.send(b"GET / ", b"HTTP/1.1\r\n\r\n", true, LONG).await.expect("sent");
        connection.sent_whole();
        peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\n\r\nhi").await.expect("sent");
        let mut head = ResponseHead::default();
        connection.read_head(&mut head, 4096, LONG).await.expect("a head");
        assert_eq!(connection.next_part().expect("a part"), Part::Data(b"hi"));
        assert_eq!(head.view(connection.head_bytes()).named(b"x-a"), Some(&b"b"[..]));
        assert_eq!(connection.next_part().expect("a part"), Part::End);
        assert!(connection.reusable());
        assert_eq!(connection.traffic().1, 18);
    });
}

#[test]
fn a_connection_whose_request_was_not_sent_whole_is_not_used_again() {
    on_runtime(async {
        let (mut connection, mut peer) = pair(0);
        connection.begin(Speaker::http1(false), Method::Post, true);
        peer.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").await.expect("sent");
        let mut head = ResponseHead::default();
        connection.read_head(&mut head, 4096, LONG).await.expect("a head");
        assert_eq!(connection.read_body(LONG).await.expect("a body"), None);
        assert!(!connection.reusable());
    });
}

#[test]
fn a_silent_upstream_runs_into_read_timeout() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (mut connection, _peer) = pair(0);
        connection.begin(Speaker::http1(false), Method::Get, true);
        let mut head = ResponseHead::default();
        let error = connection.read_head(&mut head, 4096, Duration::from_millis(5)).await;
        assert!(matches!(error, Err(ExchangeError::ReadTimeout)));
    });
}

#[test]
fn while_an_answer_is_waited_for_no_buffer_is_held() {
    on_runtime(async {
        let (mut connection, mut peer) = pair(0);
        connection.begin(Speaker::http1(false), Method::Get, true);
        connection
            .send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"", true, LONG)
            .await
            .expect("the socket takes it");
        let mut head = ResponseHead::default();
        for (piece, holds) in [(&b""[..], false), (b"HTTP/1.1 200 OK\r\n", true), (b"A: b\r\n", true)] {
            peer.write_all(piece).await.expect("the socket takes it");
            tokio::task::yield_now().await;
            {
                let mut waiting = pin!(connection.read_head(&mut head, 4096, LONG));
                let looked = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context))).await;
                assert!(looked.is_pending(), "the head has not ended");
            }
            assert_eq!(connection.buffer.has_memory(), holds, "{:?}", piece.escape_ascii().to_string());
        }
    });
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("short").to_be_bytes();
    [&[1, kind, 0, 1, length[0], length[1], 0, 0], content].concat()
}

async fn applied(
    method: Method,
    pieces: &[&[u8]],
    close: bool,
) -> Result<(u16, Vec<u8>, bool), ExchangeError> {
    let speaker = Speaker::fastcgi(Box::new(|text| text == b"fatal"));
    talk((speaker, true), b"head", method, pieces, close).await
}

#[test]
fn an_applications_answer_ends_where_it_says_and_not_where_the_connection_does() {
    let end = record(3, &[0; 8]);
    let check = |name: &str, answer: Vec<u8>, method, close, expected: (u16, &str, bool)| {
        for size in [1, answer.len()] {
            let pieces: Vec<&[u8]> = answer.chunks(size).collect();
            let (status, body, reusable) = on_runtime(applied(method, &pieces, close)).expect(name);
            assert_eq!((status, &*String::from_utf8_lossy(&body), reusable), expected, "{name}, by {size}");
        }
    };
    let get = Method::Get;
    let closed = [record(6, b"\nx"), record(6, b"")].concat();
    let speaker = Speaker::fastcgi(Box::new(|_| false));
    let whole = on_runtime(talk((speaker, false), b"head", get, &[&closed], true)).expect("a good answer");
    assert_eq!(whole, (200, b"x".to_vec(), false), "closed stream, and then a connection that is not kept");
    let parts = [record(6, b"Status: 404 No\r"), record(7, b"oh"), record(6, b"\n\r\nhel"), record(6, b"lo")];
    check("stream", [&parts.concat()[..], &end].concat(), get, false, (404, "hello", true));
    let announced = record(6, b"Content-Length: 2\n\nhi");
    check("length", announced, get, false, (200, "hi", false));
    let empty = record(6, b"Content-Length: 2\n\n");
    check("HEAD, before its last record", empty, Method::Head, true, (200, "", false));
    let more = record(6, b"Content-Length: 2\n\nhi there");
    check("more than announced", [&more[..], &end].concat(), get, true, (200, "hi", false));
}

#[test]
fn an_applications_answer_that_is_cut_or_no_record_is_an_error() {
    let run = |answer: &[u8]| on_runtime(applied(Method::Get, &[answer], true)).expect_err("a bad answer");
    let (end, head) = (record(3, &[0; 8]), record(6, b"Content-Length: 5\n\nhel"));
    assert!(matches!(run(b""), ExchangeError::ClosedEarly { any_bytes: false }));
    assert!(matches!(run(&record(6, b"X: y\n")), ExchangeError::ClosedEarly { any_bytes: true }));
    assert!(matches!(run(&end), ExchangeError::EndedEarly));
    assert!(matches!(run(&[&head[..], &end].concat()), ExchangeError::EndedEarly));
    assert!(matches!(run(&record(6, b"X: y\n\nhel")), ExchangeError::ClosedEarly { .. }), "not by closing");
    let closed = [record(6, b"X: y\n\nhel"), record(6, b"")].concat();
    assert!(matches!(run(&closed), ExchangeError::ClosedEarly { .. }), "the end of the request is missing");
    assert!(matches!(run(b"HTTP/1.1 200 OK\r\n\r\n"), ExchangeError::BadRecord(_)));
    let caught = [record(7, b"fatal"), record(6, b"\n")].concat();
    assert!(matches!(run(&caught), ExchangeError::Caught));
    let long = record(6, &[b'x'; 5000]);
    assert!(matches!(run(&long), ExchangeError::HeadTooLarge));
}

#[test]
fn a_body_goes_to_an_application_in_records() {
    on_runtime(async {
        let (mut connection, mut peer) = pair(0);
        connection.begin(Speaker::fastcgi(Box::new(|text| text == b"fatal")), Method::Post, true);
        let body = vec![b'b'; 70_000];
        let send = async {
            connection.send(b"head", &body, false, LONG).await?;
            connection.send(b"", b"tail", true, LONG).await
        };
        let read = async {
            let mut sent = vec![0; 4 + 8 + 65_535 + 8 + 4465 + 8 + 4 + 8];
            peer.read_exact(&mut sent).await.map(|_| sent)
        };
        let (written, sent) = tokio::join!(send, read);
        written.expect("the socket takes it");
        let sent = sent.expect("all of it comes");
        let expected = [b"head".to_vec(), record(5, &body[..65_535]), record(5, &body[65_535..])];
        assert!(sent == [&expected.concat()[..], &record(5, b"tail"), &record(5, b"")].concat());
    });
}
