//! One server for each way to go wrong, and the sentence for it.

use super::*;
use crate::target::{Ask, Permission, resolve};
use crate::timed::work_on;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Answers one connection with these bytes; the address, and what a probe says.
fn probe(bytes: &'static [u8], most: usize) -> (SocketAddr, Result<Reply, ProbeError>) {
    probe_with(move |mut socket| _ = socket.write_all(bytes), most, Duration::from_secs(10))
}

fn probe_with(
    say: impl FnOnce(TcpStream) + Send + 'static,
    most: usize,
    limit: Duration,
) -> (SocketAddr, Result<Reply, ProbeError>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a client comes");
        let mut request = [0; 4096];
        _ = socket.read(&mut request);
        say(socket);
    });
    let told = once(&target(address), limit, most);
    server.join().expect("the server does not panic");
    (address, told)
}

fn target(address: SocketAddr) -> Target {
    let ask = Ask { url: format!("http://{address}/"), ..Ask::default() };
    resolve(&ask, Permission::default()).expect("an address of this machine")
}

#[test]
fn an_answer_comes_back_whole() {
    let (_, told) = probe(
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 404 Not Found\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n\
          3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        5,
    );
    let answer = told.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((answer.status, answer.body.as_slice()), (404, &b"abcde"[..]));
    assert_eq!(answer.field("x-a"), Some("1"));
    assert!(answer.first_byte <= answer.total);
    let (_, told) = probe(b"HTTP/1.0 200 OK\r\n\r\nto the end", 100);
    assert_eq!(told.map(|answer| answer.body), Ok(b"to the end".to_vec()));
}

#[test]
fn the_first_byte_is_none_of_an_interim_answer() {
    let say = |mut socket: TcpStream| {
        _ = socket.write_all(b"HTTP/1.1 103 Early Hints\r\n\r\n");
        work_on(&socket, Duration::from_millis(50));
        _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    };
    let (_, told) = probe_with(say, 5, Duration::from_secs(10));
    let answer = told.unwrap_or_else(|error| panic!("{error}"));
    assert!(answer.first_byte > Duration::from_millis(40), "{:?}", answer.first_byte);
}

#[test]
fn who_answered_is_told_where_others_of_its_addresses_do_not() {
    let gone =
        TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a port");
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a client comes");
        _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        _ = socket.read(&mut [0; 4096]);
    });
    let target = Target { addresses: vec![gone, address], ..target(gone) };
    let told = once(&target, Duration::from_secs(10), 10);
    assert_eq!(told.map(|answer| answer.address), Ok(address));
}

#[test]
fn what_went_wrong_is_one_sentence() {
    let check = |bytes: &'static [u8], most, words: &str| {
        let (address, told) = probe(bytes, most);
        let said = told.expect_err("no answer").to_string();
        assert!(
            said.contains(words) && said.contains(&address.to_string()) && !said.contains('\n'),
            "{said}"
        );
    };
    check(b"", 10, "without a response");
    check(b"HTTP/1.1 200", 10, "without a response");
    let short = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc";
    check(short, 10, "closed the connection after 3 bytes of the body");
    let long = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde";
    check(long, 4, "sends a body that is 5 bytes long");
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n";
    check(chunked, 4, "an endless body: more than 4 bytes arrived");
    check(b"\x15\x03\x03\x00\x02\x02\x46", 10, "uses TLS: write https://");
    let nginx = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 49\r\n\r\nThe plain HTTP request was sent to HTTPS port....";
    check(nginx, 100, "uses TLS: write https://");
    let (_, told) = probe(b"220 mail.example ESMTP\r\n", 10);
    let said = told.expect_err("no HTTP").to_string();
    assert!(said.contains("does not respond in HTTP/1") && said.contains("220 mail"), "{said}");
}

#[test]
fn a_certificate_that_is_not_trusted_comes_with_what_to_do_about_it() {
    use CertificateError as E;
    for (why, says) in [
        (
            E::UnknownIssuer,
            "its issuer is not trusted by this system; set SSL_CERT_FILE to a file with the issuer's certificate",
        ),
        (E::Expired, "it has expired; renew it"),
        (E::NotValidYet, "it is not valid yet; check the clocks"),
        (
            E::NotValidForName,
            "it is for another name; use that name in the URL, and --connect-to for this address",
        ),
        (E::BadSignature, "it is not valid (BadSignature); replace it"),
    ] {
        let told = Failed::Untrusted(untrusted(&why)).to_string();
        let whole = format!("sends a certificate that is not trusted: {says}, or use --insecure (-k)");
        assert_eq!(told, whole);
    }
}

#[test]
fn nobody_there_and_nobody_answering_are_told_apart() {
    let gone =
        TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a port");
    let said = |told: Result<Reply, ProbeError>| told.expect_err("no answer").to_string();
    assert_eq!(
        said(once(&target(gone), Duration::from_secs(10), 10)),
        format!("{gone} refuses connections: no process is listening there")
    );
    let limit = Duration::from_millis(50);
    let wait = |mut socket: TcpStream| _ = socket.read(&mut [0; 10]);
    let (address, told) = probe_with(wait, 10, limit);
    assert_eq!(said(told), format!("{address} did not respond within 50ms"));
    let half = |mut socket: TcpStream| {
        _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc");
        _ = socket.read(&mut [0; 10]);
    };
    let (address, told) = probe_with(half, 10, limit);
    let expected =
        format!("{address} did not complete its response within 50ms; 3 bytes of the body arrived");
    assert_eq!(said(told), expected);
}

#[test]
fn a_body_without_an_end_ends_at_the_bound() {
    let endless = |mut socket: TcpStream| {
        _ = socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while socket.write_all(&[0; 65536]).is_ok() {}
    };
    let (address, told) = probe_with(endless, 1 << 20, Duration::from_secs(30));
    let said = told.expect_err("no answer").to_string();
    assert_eq!(said, format!("{address} sends an endless body: more than 1048576 bytes arrived"));
}

#[test]
fn who_answered_is_told_where_the_first_address_refuses() {
    let closed = TcpListener::bind(("127.0.0.1", 0)).expect("a free port").local_addr().expect("it is bound");
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut socket, _) = listener.accept().expect("a client comes");
            _ = socket.read(&mut [0; 4096]);
            _ = socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
        });
        let both = Target { addresses: vec![closed, address], ..target(closed) };
        let told = once(&both, Duration::from_secs(10), 0);
        assert_eq!(told.map(|answer| answer.address), Ok(address));
    });
}

#[test]
fn who_wants_to_stop_need_not_wait_for_an_answer() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = silent.local_addr().expect("it is bound");
    let stop = Stop::new().expect("an event");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut socket, _) = silent.accept().expect("a client comes");
            _ = socket.read(&mut [0; 4096]);
            stop.ask();
            // Until the other side has gone.
            _ = socket.read(&mut [0; 1]);
        });
        let told = once_unless(&stop, &target(address), Duration::from_secs(3600));
        assert_eq!(told, Err(Stopped));
        assert_eq!(once_unless(&stop, &target(address), Duration::from_secs(3600)), Err(Stopped));
    });
}
