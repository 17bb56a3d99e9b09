//! Bodies in and answers out over a pair of sockets: framing, bounds, `100 Continue`, and what a cut answer looks like.

use super::{AnswerHead, BodyProgress, Client, ClientFailure, Ending};
use crate::fixture::{admitted, worker};
use crate::request::Request;
use millstream_net::clock;
use millstream_net::stream::Stream;
use millstream_net::timer::{Deadline, with_deadline};
use millstream_wire::Headers;
use std::cell::Cell;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be built").block_on(test)
}

fn request(server: &str, head: &str) -> Request {
    admitted(&worker(&format!("server {{ listen 80; {server} }}")), head)
}

fn pair() -> (Client, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("sockets can be made");
    let place = worker("server { listen 80; }").try_admit().expect("it is the first");
    (Client::new(Stream::Unix(ours), place, |_, _| {}), theirs)
}

async fn body(server: &str, fields: &str, sent: &str) -> Result<String, ClientFailure> {
    let mut request = request(server, &format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    let (mut client, mut other) = pair();
    other.write_all(sent.as_bytes()).await.expect("the socket takes it");
    other.shutdown().await.expect("it can be closed");
    if request.is_too_large() {
        return Err(ClientFailure::TooLarge);
    }
    client.expect_body(&request)?;
    let mut bytes = Vec::new();
    while client.read_body(&mut request, &mut bytes).await? == BodyProgress::More {}
    assert!(!client.body_pending());
    Ok(String::from_utf8(bytes).expect("it is text"))
}

#[test]
fn a_body_is_read_as_its_framing_says() {
    run(async {
        assert_eq!(body("", "Content-Length: 5\r\n", "hello").await.as_deref(), Ok("hello"));
        assert_eq!(body("", "Content-Length: 5\r\n", "hello more").await.as_deref(), Ok("hello"));
        let chunked = "Transfer-Encoding: chunked\r\n";
        assert_eq!(
            body("", chunked, "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nT: 1\r\n\r\n").await.as_deref(),
            Ok("hello")
        );
        assert_eq!(body("", "", "ignored").await.as_deref(), Ok(""));
    });
}

#[test]
fn of_a_chunked_body_that_is_here_nothing_is_waited_for_however_little_is_read_at_a_time() {
    run(async {
        let mut request = request("", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        for at_most in 1..20 {
            // The other end stays open: a read would wait.
            let (mut client, mut other) = pair();
            other
                .write_all(b"1;x=y\r\na\r\n00b\r\nhello world\r\n0\r\nT: 1\r\n\r\n")
                .await
                .expect("the socket takes it");
            client.expect_body(&request).expect("it fits");
            let mut bytes = Vec::new();
            let read = async {
                let mut progress = BodyProgress::More;
                while progress == BodyProgress::More {
                    progress = client.read_body_within(&mut request, &mut bytes, at_most).await?;
                }
                Ok::<(), ClientFailure>(())
            };
            let mut late = Deadline::new();
            late.set(clock::now() + Duration::from_secs(10));
            let read = with_deadline(&mut late, read).await;
            assert_eq!(read.expect("it waits for nothing"), Ok(()), "{at_most}");
            assert_eq!(bytes, b"ahello world", "{at_most}");
        }
    });
}

#[test]
fn a_body_that_breaks_off_or_breaks_the_rules_is_told_apart() {
    run(async {
        let chunked = "Transfer-Encoding: chunked\r\n";
        assert_eq!(body("", "Content-Length: 5\r\n", "hel").await, Err(ClientFailure::Gone));
        assert_eq!(body("", chunked, "5\r\nhel").await, Err(ClientFailure::Gone));
        assert_eq!(body("", chunked, "x\r\n").await, Err(ClientFailure::Malformed));
        assert_eq!(body("", chunked, "3\r\nhelXX").await, Err(ClientFailure::Malformed));
    });
}

#[test]
fn a_body_over_the_limit_is_refused_by_its_length_or_as_it_comes() {
    run(async {
        let limit = "client_max_body_size 4;";
        assert_eq!(body(limit, "Content-Length: 5\r\n", "").await, Err(ClientFailure::TooLarge));
        assert_eq!(body(limit, "Content-Length: 4\r\n", "four").await.as_deref(), Ok("four"));
        let chunked = "Transfer-Encoding: chunked\r\n";
        assert_eq!(body(limit, chunked, "5\r\nhello\r\n0\r\n\r\n").await, Err(ClientFailure::TooLarge));
        assert_eq!(
            body("client_max_body_size 0;", "Content-Length: 5\r\n", "hello").await.as_deref(),
            Ok("hello")
        );
    });
}

#[test]
fn the_client_is_told_to_continue_when_its_body_is_first_wanted() {
    run(async {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
        let mut request = request("", head);
        let (mut client, mut other) = pair();
        client.expect_body(&request).expect("it fits");
        assert!(client.awaits_continue());
        let mut bytes = Vec::new();
        let asking = async {
            let mut told = [0; 25];
            other.read_exact(&mut told).await.expect("it is told");
            assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
            other.write_all(b"ok").await.expect("the socket takes it");
        };
        let (read, ()) = tokio::join!(client.read_body(&mut request, &mut bytes), asking);
        assert_eq!((read, bytes.as_slice()), (Ok(BodyProgress::End), b"ok".as_slice()));
        assert!(!client.awaits_continue());
    });
}

#[test]
fn what_nobody_asked_for_is_read_to_its_end_so_that_the_connection_can_go_on() {
    run(async {
        let mut request = request("", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
        let (mut client, mut other) = pair();
        other.write_all(b"helloGET / HTTP/1.1").await.expect("the socket takes it");
        client.expect_body(&request).expect("it fits");
        client.discard_body(&mut request).await;
        assert!(!client.body_pending());
        assert_eq!(client.rest().as_slice(), b"GET / HTTP/1.1");
    });
}

async fn answer(head: &str, length: Option<u64>, pieces: &[&str], abandoned: bool) -> (String, bool, bool) {
    let mut request = request("", head);
    let (mut client, mut other) = pair();
    let headers = Headers::default();
    let fields = headers.view();
    client.begin(&mut request, AnswerHead { status: 200, fields, length, age: None });
    for piece in pieces {
        client.push(&mut request, piece.as_bytes());
    }
    if abandoned {
        client.abandon();
    } else {
        client.end(&mut request, None);
    }
    client.flush(&mut request).await.expect("the socket takes it");
    let whole = client.settle() == Ending::Whole;
    drop(client);
    let mut text = String::new();
    other.read_to_string(&mut text).await.expect("it is text");
    let (_, body) = text.split_once("\r\n\r\n").expect("there is a head");
    (body.to_owned(), whole, request.keep_alive)
}

#[test]
fn an_answer_ends_as_its_head_announces() {
    const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    run(async {
        let check = async |head, length, pieces: &[&str], expected: (&str, bool, bool)| {
            let (body, whole, keep) = answer(head, length, pieces, false).await;
            assert_eq!((body.as_str(), whole, keep), expected, "{head} {length:?}");
        };
        check(GET, Some(4), &["ab", "cd"], ("abcd", true, true)).await;
        check(GET, None, &["ab", "", "cd"], ("2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n", true, true)).await;
        check("GET / HTTP/1.0\r\n\r\n", None, &["ab", "cd"], ("abcd", false, false)).await;
        check("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", Some(4), &["ab", "cd"], ("", true, true)).await;
        // No more than was announced, and less is a cut.
        check(GET, Some(3), &["ab", "cd"], ("abc", true, true)).await;
        check(GET, Some(9), &["ab", "cd"], ("abcd", false, true)).await;
    });
}

#[test]
fn an_abandoned_answer_has_no_last_chunk() {
    run(async {
        let (body, whole, _) = answer("GET / HTTP/1.1\r\nHost: a\r\n\r\n", None, &["ab"], true).await;
        assert_eq!((body.as_str(), whole), ("2\r\nab\r\n", false));
    });
}

#[test]
fn others_have_their_turn_while_a_page_is_made() {
    run(async {
        let mut request = request("ssi on;", "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let (mut client, mut other) = pair();
        let mut headers = Headers::default();
        headers.push(b"Content-Type", b"text/html");
        let fields = headers.view();
        client.begin(&mut request, AnswerHead { status: 200, fields, length: None, age: None });
        let page = "<!--# if expr=\"$uri=/x|(.)/\" -->y<!--# endif -->".repeat(200);
        client.push(&mut request, page.as_bytes());
        client.end(&mut request, None);
        let (turns, is_made) = (Cell::new(0), Cell::new(false));
        let making = async {
            client.flush(&mut request).await.expect("the socket takes it");
            is_made.set(true);
        };
        let others = async {
            while !is_made.get() {
                turns.set(turns.get() + 1);
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(making, others);
        assert!(turns.get() > 10, "{} turns", turns.get());
        drop(client);
        let mut text = String::new();
        other.read_to_string(&mut text).await.expect("it is text");
        let (_, body) = text.split_once("\r\n\r\n").expect("there is a head");
        assert_eq!(body.matches('y').count(), 200);
    });
}
