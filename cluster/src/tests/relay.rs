//! A link between a node and the engine that can be cut without either noticing.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

#[derive(Clone)]
pub(super) struct Relay {
    pub(super) port: u16,
    is_cut: Arc<AtomicBool>,
}

impl Relay {
    pub(super) fn to(port: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let relay = Relay { port: listener.local_addr().expect("bound").port(), is_cut: Arc::default() };
        let is_cut = relay.is_cut.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(engine) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                for (from, to) in [(&client, &engine), (&engine, &client)] {
                    let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else { continue };
                    let is_cut = is_cut.clone();
                    thread::spawn(move || carry(from, to, &is_cut));
                }
            }
        });
        relay
    }

    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
    }

    pub(super) fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(count) = from.read(&mut bytes) {
        while is_cut.load(Ordering::SeqCst) {
            thread::park_timeout(Duration::from_millis(1));
        }
        if count == 0 || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    _ = to.shutdown(std::net::Shutdown::Both);
}
