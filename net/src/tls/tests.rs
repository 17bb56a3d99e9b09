//! Handshakes over pairs of unix sockets with certificates made on the spot.

use super::*;
use crate::clock;
use crate::outlet::Outlet;
use crate::stream::{Hangup, Stream};
use crate::timer::{Deadline, is_elapsed};
use millstream_conf::model::{Template, UpstreamTls};
use millstream_conf::source::Span;
use rcgen::{CertifiedKey, KeyPair};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use std::fs;
use std::future::poll_fn;
use std::io::IoSlice;
use std::path::Path;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector as Connector;
use tokio_rustls::client::TlsStream;

mod wire;

pub(super) fn on_runtime<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

pub(super) struct Files {
    folder: tempfile::TempDir,
    roots: rustls::RootCertStore,
}

impl Files {
    pub(super) fn new() -> Self {
        Files { folder: tempfile::tempdir().expect("a folder"), roots: rustls::RootCertStore::empty() }
    }

    /// Writes a self-signed certificate for api.example and its key.
    pub(super) fn pair(&mut self, name: &str, key: KeyPair) -> (PathBuf, PathBuf) {
        let cert = rcgen::CertificateParams::new(vec!["api.example".to_owned(), "www.example".to_owned()])
            .and_then(|params| params.self_signed(&key))
            .expect("a certificate");
        let certified = CertifiedKey { cert, signing_key: key };
        let certificate = self.folder.path().join(format!("{name}.crt"));
        let key = self.folder.path().join(format!("{name}.key"));
        fs::write(&certificate, certified.cert.pem()).expect("written");
        fs::write(&key, certified.signing_key.serialize_pem()).expect("written");
        self.roots.add(certified.cert.der().clone()).expect("a certificate");
        (certificate, key)
    }

    pub(super) fn ecdsa(&mut self) -> (PathBuf, PathBuf) {
        self.pair("ecdsa", KeyPair::generate().expect("a key"))
    }

    pub(super) fn rsa(&mut self) -> (PathBuf, PathBuf) {
        self.pair("rsa", KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).expect("a key"))
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.folder.path().join(name);
        fs::write(&file, text).expect("written");
        file
    }

    /// A client that trusts these certificates and offers only the suites with these names; all where none is
    /// named.
    pub(super) fn client(&self, suites: &[&str]) -> Arc<ClientConfig> {
        self.client_with(suites, &aws_lc_rs::default_provider().kx_groups)
    }

    /// The same, which offers these groups.
    fn client_with(&self, suites: &[&str], groups: &[&'static dyn SupportedKxGroup]) -> Arc<ClientConfig> {
        let mut provider = aws_lc_rs::default_provider();
        provider.kx_groups = groups.to_vec();
        if !suites.is_empty() {
            provider.cipher_suites.retain(|suite| suites.contains(&ciphers::name(suite.suite())));
        }
        let tls12 = provider.cipher_suites.iter().any(|suite| suite.tls13().is_none());
        let tls13 = provider.cipher_suites.iter().any(|suite| suite.tls13().is_some());
        let versions: &[&'static SupportedProtocolVersion] = match (tls12, tls13) {
            (true, true) => &[&rustls::version::TLS13, &rustls::version::TLS12],
            (true, false) => &[&rustls::version::TLS12],
            _ => &[&rustls::version::TLS13],
        };
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(versions)
            .expect("offered")
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    }
}

pub(super) fn tls(certificates: Vec<(PathBuf, PathBuf)>) -> Tls {
    Tls {
        certificates: certificates.into_iter().map(|(one, key)| (one.into(), key.into())).collect(),
        passwords: None,
        certificate_cache: None,
        key_log: None,
        span: Span::default(),
        protocols: vec![TlsVersion::Tls12, TlsVersion::Tls13],
        ciphers: Vec::new(),
        prefer_server_ciphers: false,
        session_cache: 4000,
        session_timeout: Duration::from_secs(300),
        session_tickets: true,
        ticket_keys: Vec::new(),
        groups: Vec::new(),
        tls13_suites: None,
        prioritizes_chacha: false,
        tickets: 2,
        replacing: Vec::new(),
        stapling: None,
        record_size: 16 * 1024,
        compresses_certificates: false,
        rejects: false,
    }
}

pub(super) type Client = TlsStream<UnixStream>;

pub(super) async fn handshake(
    server: &Arc<ServerTls>,
    client: &Arc<ClientConfig>,
) -> (Result<Stream, HandshakeError>, io::Result<Client>) {
    let (left, right) = UnixStream::pair().expect("a pair");
    let acceptor = TlsAcceptor::new(|_: Option<&str>| Some(Arc::clone(server)), true);
    let name = ServerName::try_from("api.example").expect("a name");
    let connector = Connector::from(Arc::clone(client));
    tokio::join!(acceptor.accept(left.into()), connector.connect(name, right))
}

async fn agreed(server: &Arc<ServerTls>, client: &Arc<ClientConfig>) -> (TlsInfo, Stream, Client) {
    let (stream, client) = handshake(server, client).await;
    let stream = stream.expect("agreed");
    (stream.tls().expect("encrypted").clone(), stream, client.expect("agreed"))
}

#[test]
fn bytes_pass_both_ways_and_the_end_is_clean() {
    on_runtime(async {
        let mut files = Files::new();
        let server = ServerTls::read(&tls(vec![files.ecdsa()]), None).expect("whole");
        let (info, mut stream, mut client) = agreed(&server, &files.client(&[])).await;
        assert_eq!(info.protocol, "TLSv1.3");
        assert_eq!(info.cipher, "TLS_AES_256_GCM_SHA384");
        assert_eq!(info.server_name.as_deref(), Some("api.example"));
        assert!(!info.resumed);
        assert_eq!(client.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));

        let mut deadline = Deadline::new();
        client.write_all(b"request").await.expect("room");
        stream.readable(&mut deadline).await.expect("bytes");
        let mut buffer = Vec::with_capacity(64);
        // Less than the record at first: the rest waits inside the session, where the socket knows nothing of
        // it.
        assert_eq!(stream.read_into(&mut buffer, 3, &mut deadline).await.expect("bytes"), 3);
        assert!(!stream.is_quiet());
        stream.readable(&mut deadline).await.expect("bytes");
        stream.read_into(&mut buffer, 64, &mut deadline).await.expect("bytes");
        assert_eq!(buffer, b"request");

        let body = vec![b'y'; 300_000];
        let mut parts = [IoSlice::new(b"head"), IoSlice::new(&body)];
        let mut answer = Vec::new();
        let (written, read) = tokio::join!(
            async {
                Outlet::new(&mut stream, &mut deadline, Duration::from_secs(60))
                    .write_all(&mut parts)
                    .await?;
                stream.shutdown_write().await
            },
            client.read_to_end(&mut answer)
        );
        written.expect("it is read");
        read.expect("a clean end");
        assert_eq!(answer.len(), 4 + body.len());
        assert_eq!(stream.peer(), crate::Address::Unix(None));
    });
}

/// Writes 60 KB to a client through a socket with room for a few, so that most of it waits inside the session.
#[test]
fn a_hangup_is_seen_behind_records_that_nobody_reads() {
    on_runtime(async {
        let mut files = Files::new();
        let server = ServerTls::read(&tls(vec![files.ecdsa()]), None).expect("whole");
        let (_, mut stream, mut client) = agreed(&server, &files.client(&[])).await;
        let mut hangup = Hangup::of(&stream).expect("a descriptor");
        client.write_all(b"first").await.expect("room");
        client.flush().await.expect("room");
        stream.readable(&mut Deadline::new()).await.expect("it came");
        assert!(poll_fn(|context| Poll::Ready(hangup.poll(context).is_pending())).await);
        drop(client);
        poll_fn(|context| hangup.poll(context)).await;
        let mut buffer = Vec::with_capacity(64);
        assert_eq!(stream.read_into(&mut buffer, 64, &mut Deadline::new()).await.expect("bytes"), 5);
    });
}

async fn write_what_the_session_holds_back(
    timeout: Duration,
    read: impl AsyncFnOnce(&mut UnixStream),
) -> io::Result<()> {
    let mut files = Files::new();
    let server = ServerTls::read(&tls(vec![files.ecdsa()]), None).expect("whole");
    let (_, mut stream, mut client) = agreed(&server, &files.client(&[])).await;
    rustix::net::sockopt::set_socket_send_buffer_size(&stream, 4096).expect("a socket");
    let body = vec![b'y'; 60_000];
    let mut parts = [IoSlice::new(&body)];
    let mut deadline = Deadline::new();
    let writing = Outlet::new(&mut stream, &mut deadline, timeout).write_all(&mut parts);
    let (written, ()) = tokio::join!(writing, read(client.get_mut().0));
    written
}

#[test]
fn a_client_that_takes_nothing_of_what_the_session_holds_back_times_out() {
    on_runtime(async {
        let written = write_what_the_session_holds_back(Duration::from_millis(50), async |_| {}).await;
        assert!(is_elapsed(&written.expect_err("nobody reads")));
    });
}

#[test]
fn a_client_that_takes_a_little_of_it_at_a_time_does_not_time_out() {
    on_runtime(async {
        // Far longer altogether than the timeout, which begins anew whenever the socket takes something.
        let read_slowly = async |socket: &mut UnixStream| {
            let (mut piece, mut left) = ([0; 2048], 60_000usize);
            while left > 0 {
                let mut pause = Deadline::new();
                pause.set(clock::now() + Duration::from_millis(100));
                pause.passed().await;
                left = left.saturating_sub(socket.read(&mut piece).await.expect("bytes"));
            }
        };
        let written = write_what_the_session_holds_back(Duration::from_millis(1500), read_slowly).await;
        written.expect("it is read, if slowly");
    });
}

#[test]
fn the_clients_suites_choose_between_certificates() {
    on_runtime(async {
        let mut files = Files::new();
        let server = ServerTls::read(&tls(vec![files.rsa(), files.ecdsa()]), None).expect("whole");
        for suite in
            ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_AES_128_GCM_SHA256"]
        {
            let (info, ..) = agreed(&server, &files.client(&[suite])).await;
            assert_eq!(info.cipher, suite);
            assert_eq!(info.protocol, if suite.starts_with("TLS_") { "TLSv1.3" } else { "TLSv1.2" });
        }
    });
}

#[test]
fn sessions_are_resumed_in_both_versions_and_over_a_reload() {
    on_runtime(async {
        let mut files = Files::new();
        let settings = tls(vec![files.ecdsa()]);
        for suite in ["ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_AES_128_GCM_SHA256"] {
            let client = files.client(&[suite]);
            for expected in [false, true, true] {
                let server = ServerTls::read(&settings, None).expect("whole");
                let (info, mut stream, mut connection) = agreed(&server, &client).await;
                assert_eq!(info.resumed, expected, "{suite}");
                // In TLS 1.3 tickets come after the handshake, so that the client must read to have them.
                stream.write_all(b"x").await.expect("room");
                stream.flush().await.expect("room");
                connection.read_exact(&mut [0]).await.expect("a byte");
            }
        }
    });
}

#[test]
fn only_what_is_offered_is_agreed_on() {
    on_runtime(async {
        let mut files = Files::new();
        let pair = files.ecdsa();
        let mut settings = tls(vec![pair]);
        settings.protocols = vec![TlsVersion::Tls12];
        settings.ciphers = vec!["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256".into(), "ECDHE-RSA-RC4-SHA".into()];
        settings.prefer_server_ciphers = true;
        let server = ServerTls::read(&settings, None).expect("whole");
        let (info, ..) = agreed(&server, &files.client(&[])).await;
        assert_eq!((info.protocol, info.cipher), ("TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"));
        let (refused, _) = handshake(&server, &files.client(&["TLS_AES_128_GCM_SHA256"])).await;
        assert!(matches!(refused, Err(HandshakeError::Failed(_))));
        settings.ciphers = vec!["ECDHE-RSA-RC4-SHA".into()];
        assert!(matches!(ServerTls::read(&settings, None), Err(TlsError::NoCiphers)));
        settings.protocols.push(TlsVersion::Tls13);
        let server = ServerTls::read(&settings, None).expect("version 1.3 is left");
        let (info, ..) = agreed(&server, &files.client(&[])).await;
        assert_eq!(info.protocol, "TLSv1.3");
    });
}

#[test]
fn plain_http_comes_back_unread_and_noise_is_an_error() {
    on_runtime(async {
        let mut files = Files::new();
        let server = ServerTls::read(&tls(vec![files.ecdsa()]), None).expect("whole");
        let acceptor = TlsAcceptor::new(|_: Option<&str>| Some(Arc::clone(&server)), true);
        let (left, mut right) = UnixStream::pair().expect("a pair");
        right.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("room");
        let Err(HandshakeError::PlainHttp(mut stream)) = acceptor.accept(left.into()).await else {
            panic!("it is HTTP")
        };
        let mut buffer = Vec::with_capacity(64);
        stream.read_into(&mut buffer, 64, &mut Deadline::new()).await.expect("bytes");
        assert!(buffer.starts_with(b"GET /"));
        for noise in [&b"\x16\x03\x01\xff\xff\x02"[..], &[0; 64], b""] {
            let (left, mut right) = UnixStream::pair().expect("a pair");
            right.write_all(noise).await.expect("room");
            right.shutdown().await.expect("open");
            assert!(matches!(acceptor.accept(left.into()).await, Err(HandshakeError::Failed(_))));
        }
    });
}

#[test]
fn the_name_a_client_asks_for_chooses_and_may_be_refused() {
    on_runtime(async {
        let mut files = Files::new();
        let server = ServerTls::read(&tls(vec![files.ecdsa()]), None).expect("whole");
        let acceptor = TlsAcceptor::new(
            |name: Option<&str>| (name == Some("www.example")).then(|| Arc::clone(&server)),
            false,
        );
        for (asked, agreed) in [("WWW.example", true), ("api.example", false)] {
            let (left, right) = UnixStream::pair().expect("a pair");
            let name = ServerName::try_from(asked.to_owned()).expect("a name");
            let connector = Connector::from(files.client(&[]));
            let (stream, client) = tokio::join!(acceptor.accept(left.into()), async {
                // Kept until the server has written its tickets, dropped by an error at once.
                connector.connect(name, right).await
            });
            assert_eq!(stream.is_ok(), agreed);
            if let Err(error) = client {
                assert!(error.to_string().contains("UnrecognisedName"), "{error}");
            }
        }
    });
}

#[test]
fn each_wrong_file_is_named_with_what_is_wrong() {
    let mut files = Files::new();
    let (certificate, key) = files.ecdsa();
    let (_, other_key) = files.pair("other", KeyPair::generate().expect("a key"));
    let empty = files.write("empty.pem", "nothing here\n");
    let torn = files.write("torn.pem", "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n");
    let broken = files.write("broken.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    let missing = files.folder.path().join("missing.pem");
    let check = |certificate: &Path, key: &Path, wrong: &Path, expected: &str| {
        let error = ServerTls::read(&tls(vec![(certificate.into(), key.into())]), None)
            .expect_err(expected)
            .to_string();
        assert!(error.contains(expected) && error.contains(&wrong.display().to_string()), "{error}");
    };
    check(&missing, &key, &missing, "cannot read");
    check(&certificate, &missing, &missing, "cannot read");
    check(&empty, &key, &empty, "contains no certificate");
    check(&certificate, &empty, &empty, "contains no usable private key");
    check(&certificate, &certificate, &certificate, "contains no usable private key");
    check(&torn, &key, &torn, "not well-formed PEM");
    check(&certificate, &broken, &broken, "cannot be used");
    check(&certificate, &other_key, &other_key, "does not match the certificate");
    assert!(matches!(ServerTls::read(&tls(Vec::new()), None), Err(TlsError::NoneNamed)));
}

/// Of version 1, as `openssl req -x509` makes them without extensions; the library takes none, clients do.
pub(super) const VERSION_1: &str = "-----BEGIN CERTIFICATE-----
MIIBKDCBzwIUcDfYHFssvx3jSoQhBMBA5KgGsckwCgYIKoZIzj0EAwIwFjEUMBIG
A1UEAwwLYXBpLmV4YW1wbGUwIBcNMjYxMTIyMTY0NzI0WhgPMjEyNjEwMjkxNjQ3
MjRaMBYxFDASBgNVBAMMC2FwaS5leGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAE/I8dhLjGcwRxnOgCVbbhoonWlnfTqYXtj7sxGux7XBbfbjy7lR+bH0ij
h6YuVF32WN89+7uXA3iQ7a+h0hzSiDAKBggqhkjOPQQDAgNIADBFAiBjcMB4MUe8
q5XvZIlvnIsf6Jg1FZBn0zhbm2UvvLMPvAIhAKI3rgR7PUOMt2zZYtoNP1+LxnMz
fEdVw8PJItmqEFBC
-----END CERTIFICATE-----
";
pub(super) const VERSION_1_KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQguiBz5VwFI9rviSjd
dehZc+i8ssBiHByNQRpRcFjls/ShRANCAAT8jx2EuMZzBHGc6AJVtuGiidaWd9Op
he2PuzEa7HtcFt9uPLuVH5sfSKOHpi5UXfZY3z37u5cDeJDtr6HSHNKI
-----END PRIVATE KEY-----
";

#[test]
fn a_certificate_of_version_1_is_served_with_its_own_key_only() {
    on_runtime(async {
        let mut files = Files::new();
        let pair = (files.write("v1.crt", VERSION_1), files.write("v1.key", VERSION_1_KEY));
        let server = ServerTls::read(&tls(vec![pair.clone()]), None).expect("nginx serves it");
        let (_, client) = handshake(&server, &files.client(&[])).await;
        let refused = client.expect_err("this client takes no version 1").to_string();
        assert!(refused.contains("UnsupportedCertVersion"), "{refused}");
        let (_, other) = files.ecdsa();
        assert!(ServerTls::read(&tls(vec![(pair.0, other)]), None).is_err());
    });
}

#[test]
fn the_groups_of_ssl_ecdh_curve_are_those_that_keys_are_exchanged_by() {
    on_runtime(async {
        let mut files = Files::new();
        let settings = Tls { groups: vec![TlsGroup::P384], ..tls(vec![files.ecdsa()]) };
        let server = ServerTls::read(&settings, None).expect("whole");
        let (_, _, client) = agreed(&server, &files.client(&[])).await;
        let group = client.get_ref().1.negotiated_key_exchange_group().expect("agreed");
        assert_eq!(group.name(), rustls::NamedGroup::secp384r1);
    });
}

#[test]
fn without_tickets_and_without_a_cache_no_session_is_resumed() {
    on_runtime(async {
        let mut files = Files::new();
        let pair = files.ecdsa();
        for (session_tickets, resumed) in [(true, true), (false, false)] {
            let settings = Tls { session_tickets, session_cache: 0, ..tls(vec![pair.clone()]) };
            let server = ServerTls::read(&settings, None).expect("whole");
            let client = files.client(&[]);
            for expected in [false, resumed] {
                let (info, mut stream, mut peer) = agreed(&server, &client).await;
                assert_eq!(info.resumed, expected);
                // The ticket comes before the answer, which the client reads to its end.
                stream.shutdown_write().await.expect("open");
                let mut answer = Vec::new();
                peer.read_to_end(&mut answer).await.expect("a clean end");
            }
        }
    });
}

fn upstream_tls() -> UpstreamTls {
    UpstreamTls {
        sends_name: true,
        verifies: false,
        trusted: None,
        revoked: None,
        depth: 1,
        certificate: None,
        certificate_cache: None,
        passwords: None,
        key_log: None,
        protocols: vec![TlsVersion::Tls12, TlsVersion::Tls13],
        ciphers: Vec::new(),
        tls13_suites: None,
        groups: Vec::new(),
        reuses_sessions: true,
        session_tickets: true,
    }
}

#[test]
fn a_session_with_an_upstream_is_resumed_unless_that_is_off() {
    on_runtime(async {
        let mut files = Files::new();
        let old = (files.write("v1.crt", VERSION_1), files.write("v1.key", VERSION_1_KEY));
        let pair = files.ecdsa();
        for (own, version, reuses_sessions, name) in [
            (&pair, TlsVersion::Tls13, true, "api.example:1"),
            (&pair, TlsVersion::Tls12, true, "api.example:1"),
            (&old, TlsVersion::Tls13, true, "127.0.0.1:1"),
            (&pair, TlsVersion::Tls13, false, "api.example:1"),
        ] {
            let settings = Tls { protocols: vec![version], ..tls(vec![own.clone()]) };
            let server = ServerTls::read(&settings, None).expect("whole");
            let acceptor = TlsAcceptor::new(|_: Option<&str>| Some(Arc::clone(&server)), false);
            let connector =
                TlsConnector::new(&UpstreamTls { reuses_sessions, ..upstream_tls() }).expect("whole");
            for resumed in [false, reuses_sessions, reuses_sessions] {
                let (left, right) = UnixStream::pair().expect("a pair");
                let (accepted, connected) =
                    tokio::join!(acceptor.accept(left.into()), connector.connect(right.into(), name));
                let (mut accepted, mut connected) = (accepted.expect("agreed"), connected.expect("agreed"));
                assert_eq!(accepted.tls().expect("encrypted").resumed, resumed, "{version:?} {name}");
                accepted.write_all(b"x").await.expect("room");
                accepted.flush().await.expect("room");
                connected.read_exact(&mut [0]).await.expect("a byte");
            }
        }
    });
}

#[test]
fn a_certificate_whose_name_has_variables_is_read_at_each_handshake_and_anew_once_it_has_changed() {
    on_runtime(async {
        let mut files = Files::new();
        let (first, second) = (files.ecdsa(), files.pair("other", KeyPair::generate().expect("a key")));
        let directory = files.folder.path().to_path_buf();
        let named = |end: &str| {
            let text = Template { parts: Box::new([]), source: format!("$name.{end}").into() };
            PemSource::Variable(text, directory.clone())
        };
        let settings = Tls { certificates: vec![(named("crt"), named("key"))], ..tls(Vec::new()) };
        let server = ServerTls::read(&settings, None).expect("nothing is read yet");
        let acceptor = TlsAcceptor::new(|_: Option<&str>| Some(Arc::clone(&server)), false);
        let shown = async |name: &str, client: Arc<ClientConfig>| {
            let (left, right) = UnixStream::pair().expect("a pair");
            let asked = ServerName::try_from("api.example").expect("a name");
            let say = |text: &Template, _: Option<&str>| text.source.replace("$name", name).into_bytes();
            let connector = Connector::from(client);
            let (stream, client) =
                tokio::join!(acceptor.accept_as(left.into(), say), connector.connect(asked, right));
            stream.map_err(|error| error.to_string())?;
            let client = client.expect("agreed");
            let shown = client.get_ref().1.peer_certificates().and_then(|chain| chain.first()).cloned();
            Ok::<_, String>(shown.expect("one is shown"))
        };
        let own = |pair: &(PathBuf, PathBuf)| {
            let items: Vec<CertificateDer<'static>> = pem::items(&pair.0).expect("PEM");
            items[0].clone()
        };
        for _ in 0..2 {
            assert_eq!(shown("ecdsa", files.client(&[])).await, Ok(own(&first)));
            assert_eq!(shown("other", files.client(&[])).await, Ok(own(&second)));
        }
        for (from, to) in [(&second.0, &first.0), (&second.1, &first.1)] {
            fs::rename(from, to).expect("renamed");
        }
        assert_eq!(shown("ecdsa", files.client(&[])).await, Ok(own(&first)));
        let missing = shown("nobody", files.client(&[])).await.expect_err("there is none");
        assert!(missing.contains("cannot read"), "{missing}");
    });
}

#[test]
fn an_upstream_is_verified_only_where_that_is_asked_for() {
    on_runtime(async {
        let mut files = Files::new();
        let pair = files.ecdsa();
        let (stranger, _) = files.pair("stranger", KeyPair::generate().expect("a key"));
        let old = (files.write("v1.crt", VERSION_1), files.write("v1.key", VERSION_1_KEY));
        for (own, trusted, name, agreed) in [
            (&pair, Some(&pair.0), "api.example:8443", true),
            (&pair, Some(&pair.0), "other.example", false),
            // Of version 1, with a common name alone.
            (&old, Some(&old.0), "api.example", true),
            (&old, Some(&old.0), "other.example", false),
            (&old, Some(&pair.0), "api.example", false),
            (&pair, Some(&pair.0), "", false),
            (&pair, Some(&stranger), "api.example", false),
            (&pair, None, "other.example", true),
            (&old, None, "", true),
        ] {
            let server = ServerTls::read(&tls(vec![own.clone()]), None).expect("whole");
            let acceptor = TlsAcceptor::new(|_: Option<&str>| Some(Arc::clone(&server)), true);
            let connector = TlsConnector::new(&UpstreamTls {
                verifies: trusted.is_some(),
                trusted: trusted.cloned(),
                certificate: Some((pair.0.clone().into(), pair.1.clone().into())),
                ..upstream_tls()
            })
            .expect("whole");
            let (left, right) = UnixStream::pair().expect("a pair");
            let (_, client) =
                tokio::join!(acceptor.accept(left.into()), connector.connect(right.into(), name));
            assert_eq!(client.is_ok(), agreed, "{name}: {client:?}");
        }
    });
}

#[test]
fn a_file_that_nobody_writes_or_that_does_not_end_is_an_error_and_no_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs");
    assert!(made.success());
    for path in [fifo.as_path(), Path::new("/dev/zero"), folder.path()] {
        let error = pem::read(path).expect_err("no regular file").to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }
}
