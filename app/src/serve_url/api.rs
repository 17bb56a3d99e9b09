//! The API as a start finds it: whether it is somebody else, and whether it is there.
//!
//! A start waits for no API, which may well come up later; but whoever forgot to start it, or named the wrong port, should not
//! have to find out from a 502. Before: `serve_url`, which made the configuration.

use crate::cli::Front;
use millstream_conf::model::{Configuration, HostPort, Level, ListenAddress, PeerAddress};
use millstream_server::generation::Shared;
use millstream_telemetry::error_log::ErrorLogs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest wait for the API to accept a connection.
const PATIENCE: Duration = Duration::from_secs(2);

/// An error if the API is what `serve` itself listens on: every request would loop.
pub fn is_itself(front: &Front, configuration: &Configuration) -> Option<String> {
    let servers = configuration.http.upstreams.iter().flat_map(|upstream| &upstream.servers);
    let listeners = || configuration.http.listeners.iter().map(|listener| &listener.address);
    let own = servers.zip(&front.urls).find(|(server, _)| {
        listeners().any(|listener| match (listener, &server.address) {
            (ListenAddress::Unix(own), PeerAddress::Unix(api)) => own == api,
            (ListenAddress::Tcp(own), PeerAddress::Tcp(api)) => reaches(*api, *own),
            (ListenAddress::Tcp(own), PeerAddress::Name(HostPort { host, port })) => {
                host == "localhost" && reaches(SocketAddr::new(loopback(own.ip()), *port), *own)
            }
            _ => false,
        })
    });
    own.map(|(_, url)| {
        if front.domains.is_given() {
            return format!("{url} is the address that millstream itself listens on: specify the address of the API");
        }
        format!(
            "{url} is the address that millstream itself listens on (--listen {}): specify the address of the API, or \
             another address to listen on, such as --listen 8081",
            front.listen
        )
    })
}

/// Whether connections to `api` reach a listener on `own`.
fn reaches(api: SocketAddr, own: SocketAddr) -> bool {
    let is_here = own.ip() == api.ip()
        || own.ip().is_unspecified() && (api.ip().is_loopback() || api.ip().is_unspecified());
    is_here && own.port() == api.port()
}

fn loopback(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
    }
}

/// Tries each API once, as the serving user, and logs failures. Nothing waits for it.
pub fn look(shared: &Shared, urls: &[String]) {
    let servers = shared.configuration.http.upstreams.iter().flat_map(|upstream| &upstream.servers);
    let addresses: Vec<(PeerAddress, String)> =
        servers.map(|server| server.address.clone()).zip(urls.iter().cloned()).collect();
    let user = shared.configuration.main.user.as_ref().map(|user| user.name.clone());
    let log = shared.logs.main.clone();
    let looking = std::thread::Builder::new().name("first look".into()).spawn(move || {
        let until_then = match addresses.len() {
            1 => "requests get 502 until the API is started",
            _ => "requests go to the other servers until it is started",
        };
        addresses.iter().for_each(|(address, url)| tell(address, url, until_then, user.as_deref(), &log));
    });
    // Where there is no thread for it, the requests will tell.
    drop(looking);
}

fn tell(address: &PeerAddress, url: &str, until_then: &str, user: Option<&str>, log: &ErrorLogs) {
    let Err(error) = connect(address) else { return };
    match (error.kind(), address) {
        (ErrorKind::PermissionDenied, PeerAddress::Unix(path)) => log.write(
            Level::Warn,
            format_args!(
                "{}{} cannot connect to {url}: give that user access to the parent directories of {} and write access \
                 to the socket, or serve as the user of the API with --user",
                if user.is_some() { "the user " } else { "this user" },
                user.unwrap_or_default(),
                path.display()
            ),
        ),
        (ErrorKind::ConnectionRefused | ErrorKind::NotFound, _) => log.write(
            Level::Warn,
            format_args!("no process is listening on {url} yet: {until_then}"),
        ),
        (ErrorKind::TimedOut, _) => {
            log.write(Level::Warn, format_args!("{url} does not accept connections: check the address of the API"));
        }
        _ => log.write(Level::Warn, format_args!("{url} cannot be reached: {error}")),
    }
}

fn connect(address: &PeerAddress) -> io::Result<()> {
    match address {
        PeerAddress::Tcp(address) => TcpStream::connect_timeout(address, PATIENCE).map(drop),
        PeerAddress::Unix(path) => UnixStream::connect(path).map(drop),
        PeerAddress::Name(HostPort { host, port }) => {
            let mut last = Err(ErrorKind::NotFound.into());
            for address in (host.as_str(), *port).to_socket_addrs()? {
                last = TcpStream::connect_timeout(&address, PATIENCE).map(drop);
                if last.is_ok() {
                    break;
                }
            }
            last
        }
    }
}
