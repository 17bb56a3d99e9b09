//! Connections to upstream servers.
//!
//! No timeout of its own: the caller holds the deadline (`proxy_connect_timeout`) and drops the future.

use crate::address::Address;
use crate::clock;
use crate::kernel;
use crate::stream::Stream;
use crate::timer::Deadline;
use socket2::SockRef;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream, UnixStream};

/// First wait after a unix socket's queue was full; doubles with each attempt.
const QUEUE_FULL_WAIT: Duration = Duration::from_millis(1);
/// 127 ms in all.
const QUEUE_FULL_ATTEMPTS: u32 = 8;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Local {
    /// Port 0 is any.
    pub address: Option<SocketAddr>,
    /// The address need not be one of this machine's (IP_TRANSPARENT).
    pub transparent: bool,
    /// SO_KEEPALIVE.
    pub keepalive: bool,
}

/// TCP_NODELAY is on. Fails with `InvalidInput` for a nameless unix socket.
pub async fn connect(address: &Address, local: Option<&Local>) -> io::Result<Stream> {
    match address {
        Address::Tcp(peer) => {
            let socket = match local {
                Some(local) => connect_from(*peer, local).await?,
                None => connect_socket(new_socket(*peer)?, *peer).await?,
            };
            socket.set_nodelay(true)?;
            Ok(Stream::Tcp(socket, *peer))
        }
        Address::Unix(Some(path)) => connect_unix(path).await.map(Stream::Unix),
        Address::Unix(None) => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn new_socket(peer: SocketAddr) -> io::Result<TcpSocket> {
    if peer.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }
}

/// Dropping the future resets a half-made connection, which leaves no TIME_WAIT behind.
async fn connect_socket(socket: TcpSocket, peer: SocketAddr) -> io::Result<TcpStream> {
    socket.set_zero_linger()?;
    let stream = socket.connect(peer).await?;
    SockRef::from(&stream).set_linger(None)?;
    Ok(stream)
}

async fn connect_from(peer: SocketAddr, local: &Local) -> io::Result<TcpStream> {
    let socket = new_socket(peer)?;
    if local.keepalive {
        socket.set_keepalive(true)?;
    }
    let Some(from) = local.address else { return connect_socket(socket, peer).await };
    if local.transparent {
        let raw = SockRef::from(&socket);
        let allowed =
            if peer.is_ipv4() { raw.set_ip_transparent_v4(true) } else { raw.set_ip_transparent_v6(true) };
        allowed.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => io::Error::new(error.kind(), NOT_TRANSPARENT),
            _ => error,
        })?;
    }
    if from.port() == 0 {
        // Else each connection has a port to itself, whoever it is to. Kernels before 4.2 do so.
        _ = kernel::bind_without_port(socket.as_fd());
    }
    socket
        .bind(from)
        .map_err(|error| io::Error::new(error.kind(), format!("bind({from}) failed: {error}")))?;
    connect_socket(socket, peer).await
}

const NOT_TRANSPARENT: &str =
    "binding to a foreign address requires CAP_NET_RAW, which workers have only with \"user root\"";

/// A unix socket with a full queue returns EAGAIN at once, and nothing signals room. An API server empties
/// its queue within milliseconds, so a few attempts spare the client an error.
async fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    let mut wait = QUEUE_FULL_WAIT;
    let mut next_attempt = Deadline::new();
    for _ in 1..QUEUE_FULL_ATTEMPTS {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                next_attempt.set(clock::now() + wait);
                next_attempt.passed().await;
            }
            result => return result,
        }
        wait *= 2;
    }
    UnixStream::connect(path).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_runtime<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime")
            .block_on(future)
    }

    #[test]
    fn a_tcp_connection_has_no_delay_and_knows_its_peer() {
        on_runtime(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = Address::Tcp(listener.local_addr().expect("bound"));
            let stream = connect(&address, None).await.expect("it listens");
            assert_eq!(stream.peer(), address);
            let Stream::Tcp(socket, _) = &stream else { panic!("TCP was asked for") };
            assert!(socket.nodelay().expect("readable"));
        });
    }

    #[test]
    fn a_connection_comes_from_the_address_that_is_asked_for() {
        on_runtime(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = Address::Tcp(listener.local_addr().expect("bound"));
            let from: SocketAddr = "127.0.0.2:0".parse().expect("an address");
            let local = Local { address: Some(from), transparent: false, keepalive: true };
            let stream = connect(&address, Some(&local)).await.expect("it listens");
            let Stream::Tcp(socket, _) = &stream else { panic!("TCP was asked for") };
            assert!(SockRef::from(socket).keepalive().expect("readable"));
            let (_, seen) = listener.accept().await.expect("it came");
            assert_eq!(seen.ip(), from.ip());
        });
    }

    #[test]
    fn a_unix_connection_knows_its_path() {
        on_runtime(async {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("api.sock");
            let _listener = tokio::net::UnixListener::bind(&path).expect("a free path");
            let address = Address::Unix(Some(path));
            assert_eq!(connect(&address, None).await.expect("it listens").peer(), address);
        });
    }

    #[test]
    fn a_full_queue_is_tried_again_until_there_is_room() {
        on_runtime(async {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("api.sock");
            let listener =
                socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).expect("a socket");
            listener.bind(&socket2::SockAddr::unix(&path).expect("a short path")).expect("a free path");
            listener.listen(0).expect("it listens");
            let first = UnixStream::connect(&path).await.expect("one fits the queue");
            let address = Address::Unix(Some(path.clone()));
            let mut second = std::pin::pin!(connect(&address, None));
            std::future::poll_fn(|context| {
                assert!(second.as_mut().poll(context).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            drop(listener.accept().expect("the first is queued"));
            second.await.expect("there is room now");
            drop(first);
        });
    }

    #[test]
    fn refusals_are_errors_at_once() {
        on_runtime(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
            let free: SocketAddr = listener.local_addr().expect("bound");
            drop(listener);
            let refused = connect(&Address::Tcp(free), None).await.expect_err("nobody listens");
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
            let missing = connect(&Address::Unix(Some("/nowhere/at/all".into())), None)
                .await
                .expect_err("no such file");
            assert_eq!(missing.kind(), io::ErrorKind::NotFound);
            assert!(connect(&Address::Unix(None), None).await.is_err());
        });
    }
}
