//! A server in this process, of one thread, whose behaviour is known exactly: what a measurement of it must say can be computed.

use std::net::TcpStream;
use std::time::Duration;

use millstream_tests::{ports, wait};

use crate::epoll::{Respond, serve};

pub(crate) const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
pub(crate) const REFUSED: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

/// Starts the server, which ends with this process; returns the port.
pub(crate) fn start<R: Respond>(respond: impl Fn() -> R + Send + Sync + 'static) -> Result<u16, String> {
    let port = ports::free();
    std::thread::spawn(move || serve(port, 1, respond));
    wait::within(Duration::from_secs(10), || TcpStream::connect(("127.0.0.1", port)).ok())
        .map(|_| port)
        .ok_or_else(|| "the embedded server did not start".to_owned())
}
