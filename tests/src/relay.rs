//! A link between a program and a server that can be cut without either noticing, or made slow and lossy.

use crate::ports;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What happens to bytes on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Whole,
    /// Nothing passes, in neither direction.
    Cut,
    /// Each read arrives after so long, and of eight one is lost and arrives as late as a retransmission does.
    Lossy(Duration),
}

/// The retransmission timeout of Linux for a link on which it has measured little.
const RETRANSMISSION: Duration = Duration::from_millis(200);

pub struct Relay {
    port: u16,
    link: Arc<(Mutex<Link>, Condvar)>,
}

impl Relay {
    pub fn to(address: &str) -> Relay {
        let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let relay = Relay { port, link: Arc::new((Mutex::new(Link::Whole), Condvar::new())) };
        let (link, address) = (relay.link.clone(), address.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&address) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else { continue };
                    let link = link.clone();
                    thread::spawn(move || carry(from, to, &link));
                }
            }
        });
        relay
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn set(&self, link: Link) {
        *self.link.0.lock().unwrap_or_else(PoisonError::into_inner) = link;
        self.link.1.notify_all();
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, link: &(Mutex<Link>, Condvar)) {
    let mut bytes = [0; 16 * 1024];
    let mut reads = 0_u64;
    while let Ok(count) = from.read(&mut bytes) {
        reads += 1;
        let now = link.0.lock().unwrap_or_else(PoisonError::into_inner);
        let passes = link.1.wait_while(now, |link| *link == Link::Cut);
        let passes = *passes.unwrap_or_else(PoisonError::into_inner);
        if let Link::Lossy(latency) = passes {
            thread::sleep(if reads.is_multiple_of(8) { latency + RETRANSMISSION } else { latency });
        }
        if count == 0 || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    _ = to.shutdown(Shutdown::Both);
}
