//! `cargo xtask bench handshakes`: what a TLS handshake costs, full and resumed, beside nginx.
//!
//! Both have one worker and an ECDSA certificate (P-256). The client is our own: a few threads that each connect, shake hands, ask once
//! and close. Both sides must say of every handshake what it was: the client's library its kind, and the server's answer
//! `$ssl_session_reused`. The client wants as much CPU as the server, so how many handshakes there were in a second says little; how many
//! the server's own CPU would carry does, and that is where the bar is.

use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use millstream_net::tls::Anybody;
use millstream_tests::prefix::Prefix;
use millstream_tests::process::cpu_time;
use millstream_tests::workspace;
use rustls::client::{ClientSessionMemoryCache, Resumption};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, Error, HandshakeKind, Stream, SupportedProtocolVersion};

use crate::peers::{self, Started};
use crate::product::{self, Product};
use crate::{Options, beside};

const FILE: &str = "bench/conf/handshakes.conf";
/// Threads, each with one connection at a time.
const CLIENTS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(10);
/// The bar: fewest handshakes per second of CPU, as a multiple of nginx's.
const BAR: f64 = 1.0;

struct Shaking {
    about: &'static str,
    version: &'static SupportedProtocolVersion,
    resumes: bool,
    /// Tickets, or the server's session cache.
    tickets: bool,
}

#[rustfmt::skip]
const ROWS: &[Shaking] = &[
    Shaking { about: "full, TLS 1.3", version: &TLS13, resumes: false, tickets: true },
    Shaking { about: "full, TLS 1.2", version: &TLS12, resumes: false, tickets: true },
    Shaking { about: "resumed by ticket, TLS 1.3", version: &TLS13, resumes: true, tickets: true },
    Shaking { about: "resumed by ticket, TLS 1.2", version: &TLS12, resumes: true, tickets: true },
    Shaking { about: "resumed from the cache, TLS 1.3", version: &TLS13, resumes: true, tickets: false },
    Shaking { about: "resumed from the cache, TLS 1.2", version: &TLS12, resumes: true, tickets: false },
];

pub(crate) fn run(options: &Options, ours: &Path) -> Result<String, String> {
    let nginx = options.nginx.clone().or_else(|| product::find("nginx")).ok_or("no nginx: --nginx PATH")?;
    let files = Prefix::new();
    let without_tickets = without_tickets(&files)?;
    let mut table = format!(
        "### Handshakes, ECDSA P-256, X25519\n\n`cargo xtask bench handshakes --rounds {} --duration {}`: medians.\n\n| handshake | Millstream, \
         µs | nginx, µs | Millstream, a core | nginx, a core | on the same CPU | |\n| --- | ---: | ---: | ---: | ---: | ---: | --- |\n",
        options.rounds, options.duration,
    );
    let mut holds = true;
    for row in ROWS {
        let file = if row.tickets { FILE } else { &without_tickets };
        let servers = [
            peers::on_nginx_file(Product::Millstream, ours, file, 0)?,
            peers::on_nginx_file(Product::Nginx, &nginx, file, 0)?,
        ];
        let [[own], [other]] =
            beside::medians(options, &servers, |server, seconds| Ok([turn(server, row, seconds)?]))?;
        let ratio = other / own;
        let passes = ratio >= BAR;
        holds &= passes;
        // Writing to a String cannot fail.
        let _ = writeln!(
            table,
            "| {} | {own:.1} | {other:.1} | {:.0} | {:.0} | {ratio:.2}x (at least {BAR}) | {} |",
            row.about,
            1e6 / own,
            1e6 / other,
            if passes { "pass" } else { "**FAIL**" }
        );
    }
    if holds { Ok(table) } else { Err(table) }
}

/// The file for both servers, with session caches only.
fn without_tickets(files: &Prefix) -> Result<String, String> {
    let text = std::fs::read_to_string(workspace().join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    let path =
        files.write("cached.conf", text.replace("ssl_session_tickets on;", "ssl_session_tickets off;"));
    Ok(path.to_str().unwrap_or_default().to_owned())
}

/// Microseconds of CPU per handshake, with its connection and request.
fn turn(server: &Started, row: &Shaking, seconds: u32) -> Result<f64, String> {
    let failed =
        |error: String| format!("{}, {}: {error}\n{}", server.product.name(), row.about, server.log());
    let clients = (0..CLIENTS).map(|_| Shaker::new(server.port, row)).collect::<Result<Vec<_>, _>>();
    let clients = clients.map_err(|error| failed(error.to_string()))?;
    // Those that resume want a session first.
    for client in clients.iter().filter(|_| row.resumes) {
        client.shake(HandshakeKind::Full).map_err(failed)?;
    }
    let kind = if row.resumes { HandshakeKind::Resumed } else { HandshakeKind::Full };
    let before = cpu_time(server.id());
    let end = Instant::now() + Duration::from_secs(seconds.into());
    let counted: Vec<Result<u64, String>> = std::thread::scope(|scope| {
        let shaking = |client| scope.spawn(move || shake_until(client, kind, end));
        let threads: Vec<_> = clients.iter().map(shaking).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Err("a client panicked".to_owned())))
            .collect()
    });
    let spent = cpu_time(server.id()) - before;
    let count = counted.into_iter().sum::<Result<u64, String>>().map_err(failed)?.max(1) as f64;
    Ok(spent.as_micros() as f64 / count)
}

fn shake_until(client: &Shaker, kind: HandshakeKind, end: Instant) -> Result<u64, String> {
    let mut count = 0;
    while Instant::now() < end {
        client.shake(kind)?;
        count += 1;
    }
    Ok(count)
}

/// A client with its own session store.
struct Shaker {
    port: u16,
    configuration: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Shaker {
    fn new(port: u16, row: &Shaking) -> Result<Shaker, Error> {
        let mut provider = aws_lc_rs::default_provider();
        // Every OpenSSL prefers the first of these, so that both servers do the same; TLS 1.2 wants that of the certificate offered too.
        provider.kx_groups = vec![aws_lc_rs::kx_group::X25519, aws_lc_rs::kx_group::SECP256R1];
        let provider = Arc::new(provider);
        let mut configuration = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[row.version])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody::of(&provider)))
            .with_no_client_auth();
        configuration.resumption = match row.resumes {
            true => Resumption::store(Arc::new(ClientSessionMemoryCache::new(4))),
            false => Resumption::disabled(),
        };
        let name = ServerName::try_from("localhost").map_err(|error| Error::General(error.to_string()))?;
        Ok(Shaker { port, configuration: Arc::new(configuration), name })
    }

    fn shake(&self, kind: HandshakeKind) -> Result<(), String> {
        let (found, answer) = self.exchange().map_err(|error| error.to_string())?;
        let word = if kind == HandshakeKind::Resumed { "r" } else { "." };
        let said = answer.rsplit("\r\n").next().unwrap_or_default();
        match found == Some(kind) && said == word {
            true => Ok(()),
            false => Err(format!("a handshake was {found:?} and not {kind:?}; the server said {said:?}")),
        }
    }

    fn exchange(&self) -> io::Result<(Option<HandshakeKind>, String)> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let mut session = ClientConnection::new(Arc::clone(&self.configuration), self.name.clone())
            .map_err(io::Error::other)?;
        let mut stream = Stream::new(&mut session, &mut socket);
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok((session.handshake_kind(), answer))
    }
}
