//! The embedded demo API: as slow as a real one behind Gunicorn, so that a user without one can see the difference.
//!
//! Floor 4: HTTP over a socket, and the clock. A pool of N workers each takes one request at a time and works on it for a set time; connections
//! beyond that wait. Everything is bounded and on threads of its own, away from the proxy's loops and from who measures; it is never part of
//! serving. Next: `work` (the pool), `pages` (what it answers), `connection` (HTTP/1.1 for one client).

mod work;
mod pages;
mod connection;
#[cfg(test)]
mod tests;

use pages::Pages;
use slab::Slab;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use work::Workers;

pub use work::Work;

/// Prefix of its threads' names; tells their CPU from that of a load generator in the same process.
pub const THREADS: &str = "demo ";

/// Clients served at once; further ones wait in the kernel's accept queue.
pub const CONNECTIONS: usize = 256;

/// How long [`DemoOrigin::stop`] waits for the threads of its connections.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// Longest pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Stack of a connection's thread.
const STACK: usize = 128 << 10;

/// How slow the API is, and how long its responses are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoOptions {
    /// Requests processed at once, at least 1. Gunicorn advises two per core and one.
    pub workers: usize,
    /// Time per request; `/slow` takes ten times as long.
    pub service_time: Duration,
    pub work: Work,
    /// Bytes of a JSON response, at least 64.
    pub body_bytes: usize,
}

impl Default for DemoOptions {
    /// Five workers that wait 10 ms, as for a database, and respond with 900 bytes.
    fn default() -> Self {
        DemoOptions { workers: 5, service_time: Duration::from_millis(10), work: Work::Wait, body_bytes: 900 }
    }
}

/// A running demo API. Dropping it stops it.
#[derive(Debug)]
pub struct DemoOrigin {
    /// On 127.0.0.1, a free port.
    pub address: SocketAddr,
    api: Arc<Api>,
    acceptor: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Api {
    workers: Workers,
    pages: Pages,
    clients: Mutex<Clients>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct Clients {
    open: Slab<TcpStream>,
    is_stopping: bool,
}

/// A demo API that listens but has no thread yet: clients wait.
#[derive(Debug)]
pub struct BoundDemo {
    /// On 127.0.0.1, a free port.
    pub address: SocketAddr,
    listener: TcpListener,
}

/// Opens a free port of 127.0.0.1 for the API.
pub fn bind() -> io::Result<BoundDemo> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(BoundDemo { address: listener.local_addr()?, listener })
}

/// Starts the API on a free port of 127.0.0.1.
pub fn start(options: &DemoOptions) -> io::Result<DemoOrigin> {
    bind()?.start(options)
}

impl BoundDemo {
    pub fn start(self, options: &DemoOptions) -> io::Result<DemoOrigin> {
        let BoundDemo { address, listener } = self;
        let api = Arc::new(Api {
            workers: Workers::new(options.workers, options.service_time, options.work),
            pages: Pages::new(options.body_bytes),
            clients: Mutex::default(),
            left: Condvar::new(),
        });
        let accepting = Arc::clone(&api);
        let acceptor =
            Builder::new().name(format!("{THREADS}accept")).spawn(move || accepting.accept(&listener))?;
        Ok(DemoOrigin { address, api, acceptor: Mutex::new(Some(acceptor)) })
    }
}

impl DemoOrigin {
    /// Requests processed so far: what a cache in front saves. Malformed ones and unknown paths do not count.
    pub fn served(&self) -> u64 {
        self.api.workers.served()
    }

    /// Cuts every connection and ends the threads, without finishing started work. Further calls do nothing.
    pub fn stop(&self) {
        let acceptor = self.acceptor.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(acceptor) = acceptor else { return };
        let mut clients = self.api.lock();
        clients.is_stopping = true;
        for (_, stream) in &clients.open {
            // A client that is gone already is what is wanted.
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(clients);
        self.api.left.notify_all();
        self.api.workers.stop();
        // The acceptor waits for a client, so it gets one.
        if TcpStream::connect(self.address).is_ok() {
            let _ = acceptor.join();
        }
        let is_busy = |clients: &mut Clients| !clients.open.is_empty();
        let _ = self.api.left.wait_timeout_while(self.api.lock(), STOP_WAIT, is_busy);
    }
}

impl Drop for DemoOrigin {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Api {
    fn lock(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Api>, listener: &TcpListener) {
        let is_full = |clients: &mut Clients| !clients.is_stopping && clients.open.len() >= CONNECTIONS;
        loop {
            let clients = self.left.wait_while(self.lock(), is_full);
            if clients.unwrap_or_else(PoisonError::into_inner).is_stopping {
                return;
            }
            let Ok((stream, _)) = listener.accept() else {
                // Most likely there is no descriptor left; one that leaves makes room.
                let _ = self.left.wait_timeout(self.lock(), ACCEPT_PAUSE);
                continue;
            };
            if let Err(error) = self.begin(stream) {
                // Without a thread or a descriptor this client is closed; the next may find one.
                eprintln!("demo API: {error}");
            }
        }
    }

    fn begin(self: &Arc<Api>, stream: TcpStream) -> io::Result<()> {
        let handle = stream.try_clone()?;
        let mut clients = self.lock();
        if clients.is_stopping {
            return Ok(());
        }
        let place = ConnectionPlace { api: Arc::clone(self), number: clients.open.insert(handle) };
        drop(clients);
        Builder::new().name(format!("{THREADS}client")).stack_size(STACK).spawn(move || {
            let api = &place.api;
            // A client that breaks off or sends nonsense has had its answer, if one was due.
            let _ = connection::serve(&api.workers, &api.pages, stream);
        })?;
        Ok(())
    }
}

/// A connection's place, given back when its thread ends, by a panic too.
struct ConnectionPlace {
    api: Arc<Api>,
    number: usize,
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.api.lock().open.remove(self.number);
        self.api.left.notify_all();
    }
}
