//! Names of upstream servers, asked of the system (hosts file, then DNS as the machine is set up).
//!
//! At start and reload the blocking form; while running the other, which works on threads of its own.

use crate::blocking;
use crate::timer::within;
use millstream_conf::model::{HostPort, RESOLVER_TIMEOUT};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Each once, in the system's order; never empty. Blocks.
pub fn resolve_blocking(name: &HostPort) -> io::Result<Vec<SocketAddr>> {
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in (name.host.as_str(), name.port).to_socket_addrs()? {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    }
    Ok(addresses)
}

/// As [`resolve_blocking`], off the caller's event loop and for at most nginx's `resolver_timeout`.
pub async fn resolve(name: &HostPort) -> io::Result<Vec<SocketAddr>> {
    let name = name.clone();
    within(RESOLVER_TIMEOUT, blocking::run_name(move || resolve_blocking(&name))).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(host: &str) -> HostPort {
        HostPort { host: host.to_owned(), port: 8000 }
    }

    #[test]
    fn the_hosts_file_is_read_and_each_address_comes_once() {
        let addresses = resolve_blocking(&name("localhost")).expect("every machine has one");
        assert!(addresses.iter().all(|address| address.ip().is_loopback() && address.port() == 8000));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        assert_eq!(runtime.block_on(resolve(&name("localhost"))).expect("as above"), addresses);
    }

    #[test]
    fn a_name_that_cannot_be_is_an_error() {
        assert!(resolve_blocking(&name("not a name")).is_err());
        assert!(resolve_blocking(&name("")).is_err());
        assert!(resolve_blocking(&name("nul\0inside")).is_err());
    }
}
