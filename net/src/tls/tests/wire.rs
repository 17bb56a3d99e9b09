//! What a client sees of a server: records, groups, compressed certificates; and what a key log holds of both.

use super::*;
use rustls::NamedGroup;
use rustls::compress::{CertDecompressor, DecompressionFailed};
use rustls::{CertificateCompressionAlgorithm, crypto::SupportedKxGroup};
use std::os::unix::fs::PermissionsExt;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Context;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A socket that remembers all that came over it.
struct Remembering {
    socket: UnixStream,
    came: Vec<u8>,
}

impl AsyncRead for Remembering {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(context, buffer);
        self.came.extend_from_slice(&buffer.filled()[before..]);
        read
    }
}

impl AsyncWrite for Remembering {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

/// The lengths of the records (RFC 8446 §5.1) in what came.
fn records(mut came: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = came {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        lengths.push(length);
        came = &rest[length..];
    }
    lengths
}

#[test]
fn an_answer_comes_in_records_of_ssl_buffer_size() {
    const ANSWER: usize = 40_000;
    on_runtime(async {
        let mut files = Files::new();
        let pair = files.ecdsa();
        // What sealing adds: the kind and the tag in TLS 1.3, the nonce and the tag in TLS 1.2 (RFC 5288 §3).
        for (record_size, suite, added) in [
            (16 * 1024, "TLS_AES_128_GCM_SHA256", 17),
            (4 * 1024, "TLS_AES_128_GCM_SHA256", 17),
            (1400, "ECDHE-ECDSA-AES128-GCM-SHA256", 24),
        ] {
            let settings =
                Tls { record_size, session_tickets: false, session_cache: 0, ..tls(vec![pair.clone()]) };
            let server = ServerTls::read(&settings, None).expect("whole");
            let (left, right) = UnixStream::pair().expect("a pair");
            let acceptor = TlsAcceptor::new(|_: Option<&str>| Some(Arc::clone(&server)), false);
            let name = ServerName::try_from("api.example").expect("a name");
            let connector = Connector::from(files.client(&[suite]));
            let (accepted, connected) = tokio::join!(
                acceptor.accept(left.into()),
                connector.connect(name, Remembering { socket: right, came: Vec::new() })
            );
            let (mut accepted, mut connected) = (accepted.expect("agreed"), connected.expect("agreed"));
            connected.get_mut().0.came.clear();
            let (written, read) = tokio::join!(
                async {
                    accepted.write_all(&vec![b'x'; ANSWER]).await?;
                    accepted.flush().await
                },
                async { connected.read_exact(&mut vec![0; ANSWER]).await }
            );
            written.and(read).expect("it passes");
            let lengths = records(&connected.get_ref().0.came);
            let (last, whole) = lengths.split_last().expect("some");
            assert!(whole.iter().all(|length| *length == record_size + added), "{record_size}: {lengths:?}");
            assert_eq!(whole.len() * record_size + last - added, ANSWER, "{record_size}: {lengths:?}");
        }
    });
}

#[test]
fn keys_are_exchanged_by_the_first_group_of_a_client_that_the_server_has() {
    use rustls::crypto::aws_lc_rs::kx_group::{SECP256R1, X25519, X25519MLKEM768};
    on_runtime(async {
        let mut files = Files::new();
        let pair = files.ecdsa();
        // Each brings a key for its first group, the first client one for X25519 too.
        let offers: [&[&'static dyn SupportedKxGroup]; 3] =
            [&[X25519MLKEM768, X25519], &[X25519, SECP256R1], &[SECP256R1, X25519MLKEM768]];
        let (hybrid, plain) = (Some(NamedGroup::X25519MLKEM768), Some(NamedGroup::X25519));
        for (groups, expected) in [
            (Vec::new(), [hybrid, plain, Some(NamedGroup::secp256r1)]),
            (vec![TlsGroup::X25519], [plain, plain, None]),
            // The last one is sent back for a key that fits (RFC 8446 §4.1.4).
            (vec![TlsGroup::X25519MlKem768], [hybrid, None, hybrid]),
        ] {
            let server = ServerTls::read(&Tls { groups, ..tls(vec![pair.clone()]) }, None).expect("whole");
            for (offer, expected) in offers.into_iter().zip(expected) {
                let (stream, client) = handshake(&server, &files.client_with(&[], offer)).await;
                let group = client.ok().and_then(|client| client.get_ref().1.negotiated_key_exchange_group());
                assert_eq!(group.map(|group| group.name()), expected, "{offer:?}");
                let told = stream.ok().and_then(|stream| Some(stream.tls()?.group));
                assert_eq!(told, expected.map(ciphers::group));
            }
        }
    });
}

/// Opens certificates, and counts them.
#[derive(Debug)]
struct Opener(CertificateCompressionAlgorithm);

static OPENED: AtomicUsize = AtomicUsize::new(0);

impl CertDecompressor for Opener {
    fn decompress(&self, input: &[u8], output: &mut [u8]) -> Result<(), DecompressionFailed> {
        let mut opened = Vec::new();
        let done = match self.0 {
            CertificateCompressionAlgorithm::Brotli => brotli::BrotliDecompress(&mut &input[..], &mut opened),
            _ => io::copy(&mut flate2::read::ZlibDecoder::new(input), &mut opened).map(|_| ()),
        };
        OPENED.fetch_add(1, Ordering::Relaxed);
        match done.is_ok() && opened.len() == output.len() {
            true => output.copy_from_slice(&opened),
            false => return Err(DecompressionFailed),
        }
        Ok(())
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        self.0
    }
}

#[test]
fn a_certificate_comes_compressed_to_a_client_that_takes_it_where_that_is_on() {
    static BROTLI: Opener = Opener(CertificateCompressionAlgorithm::Brotli);
    static ZLIB: Opener = Opener(CertificateCompressionAlgorithm::Zlib);
    on_runtime(async {
        let mut files = Files::new();
        let pair = files.ecdsa();
        for (compresses_certificates, taken, opened) in [
            (true, vec![&BROTLI as &dyn CertDecompressor], 1),
            (true, vec![&ZLIB], 1),
            (true, Vec::new(), 0),
            (false, vec![&BROTLI], 0),
        ] {
            let settings = Tls { compresses_certificates, ..tls(vec![pair.clone()]) };
            let server = ServerTls::read(&settings, None).expect("whole");
            let mut client = Arc::unwrap_or_clone(files.client(&[]));
            client.cert_decompressors = taken;
            OPENED.store(0, Ordering::Relaxed);
            let (_, _, client) = agreed(&server, &Arc::new(client)).await;
            assert_eq!(OPENED.load(Ordering::Relaxed), opened);
            assert_eq!(client.get_ref().1.peer_certificates().map(<[_]>::len), Some(1));
        }
    });
}

#[test]
fn the_secrets_of_both_sides_are_added_to_a_key_log_that_its_owner_alone_may_read() {
    on_runtime(async {
        let mut files = Files::new();
        let (log, pair) = (files.folder.path().join("keys"), files.ecdsa());
        let settings = Tls { key_log: Some(log.clone()), ..tls(vec![pair.clone()]) };
        let server = ServerTls::read(&settings, None).expect("whole");
        let _ = agreed(&server, &files.client(&[])).await;
        let first = fs::read_to_string(&log).expect("a file");
        let labels: Vec<&str> = first.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(labels.contains(&"CLIENT_TRAFFIC_SECRET_0") && labels.contains(&"SERVER_TRAFFIC_SECRET_0"));
        assert_eq!(fs::metadata(&log).expect("a file").permissions().mode() & 0o777, 0o600);
        // The upstream's side, of another server that keeps no log.
        let server = ServerTls::read(&tls(vec![pair]), None).expect("whole");
        let connector =
            TlsConnector::new(&UpstreamTls { key_log: Some(log.clone()), ..upstream_tls() }).expect("whole");
        let acceptor = TlsAcceptor::new(|_: Option<&str>| Some(Arc::clone(&server)), false);
        let (left, right) = UnixStream::pair().expect("a pair");
        let (accepted, connected) =
            tokio::join!(acceptor.accept(left.into()), connector.connect(right.into(), "api.example"));
        assert!(accepted.is_ok() && connected.is_ok());
        let both = fs::read_to_string(&log).expect("a file");
        assert!(both.starts_with(&first) && both.len() > first.len());
        let missing = Tls { key_log: Some("/dev/null/keys".into()), ..settings };
        let error = ServerTls::read(&missing, None).expect_err("no file can be there").to_string();
        assert!(error.contains("cannot open key log \"/dev/null/keys\""), "{error}");
    });
}
