//! TLS: the same loop, handshakes that fail, and a probe that tells plain from secure.

use super::*;
use crate::probe::once;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A TLS server that answers every request with these bytes.
fn answering_tls(bytes: &'static [u8], closes: bool) -> SocketAddr {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a key");
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut configuration = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("its own")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .expect("they fit");
    configuration.alpn_protocols = vec![b"http/1.1".to_vec()];
    let configuration = Arc::new(configuration);
    serve(move |socket| {
        let tls = ServerConnection::new(Arc::clone(&configuration)).expect("a good configuration");
        let mut stream = StreamOwned::new(tls, socket);
        while request(&mut stream).is_some() {
            if stream.write_all(bytes).is_err() || closes {
                break;
            }
        }
        stream.conn.send_close_notify();
        _ = stream.flush();
    })
}

fn secure(address: SocketAddr) -> Target {
    let way = Way { insecure: true, ..Way::default() };
    let ask = Ask { url: format!("https://{address}/"), keep_alive: true, way, ..Ask::default() };
    resolve(&ask, Permission::default()).expect("an address of this machine")
}

#[test]
fn requests_go_over_tls() {
    let outcome = outcome_of(&counted(secure(answering_tls(FINE, false)), 50));
    assert_eq!((outcome.counts.answers, outcome.counts.connections, outcome.tls), (50, 2, true));
    let closing = Plan { keep_alive: false, ..counted(secure(answering_tls(FINE, true)), 6) };
    let outcome = outcome_of(&closing);
    assert_eq!((outcome.counts.answers, outcome.counts.connections), (6, 6));
    let until_end = b"HTTP/1.1 200 OK\r\n\r\nup to the end";
    assert_eq!(errors_of(&counted(secure(answering_tls(until_end, true)), 6)), (Errors::default(), 6));
}

#[test]
fn bodies_larger_than_any_buffer_come_whole_over_tls() {
    let body: &'static [u8] = Vec::leak(
        [b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n".to_vec(), vec![7; 1_000_000]].concat(),
    );
    let outcome = outcome_of(&counted(secure(answering_tls(body, false)), 6));
    assert_eq!((outcome.counts.answers, outcome.counts.bytes_body), (6, 6_000_000));
}

#[test]
fn tls_that_cannot_be_agreed_on_is_counted_as_such() {
    let plain = answering(FINE, false);
    let (errors, all) = errors_of(&Plan { timeout: Duration::from_millis(300), ..counted(secure(plain), 4) });
    assert_eq!((errors.tls, all), (4, 4));
    let untrusted = Target { way: Way::default(), ..secure(answering_tls(FINE, false)) };
    let untrusted = counted(untrusted, 4);
    // Without a list of trusted certificates on this machine the run does not start, which is as good.
    if let Ok(outcome) = run(&untrusted, &AtomicBool::new(false), &mut |_| {}) {
        assert_eq!((outcome.counts.errors.tls, outcome.counts.answers), (4, 0));
    }
}

#[test]
fn a_probe_tells_plain_and_tls_servers_apart() {
    let wait = Duration::from_secs(10);
    let tls = answering_tls(FINE, false);
    let said = |target: &Target| once(target, wait, 1000).map(drop).map_err(|error| error.to_string());
    let expected = format!("{tls} uses TLS: write https:// instead of http://");
    assert_eq!(said(&target(tls)), Err(expected));
    let plain = serve(|mut stream| {
        let mut buffer = [0; 1024];
        _ = stream.read(&mut buffer);
        _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    });
    let expected = format!("{plain} does not use TLS: write http:// instead of https://");
    assert_eq!(said(&secure(plain)), Err(expected));
    let answer = once(&secure(tls), wait, 1000).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"hello"[..]));
}
