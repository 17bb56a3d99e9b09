//! An API whose answers begin and never end, which knows how many connections to it are still open.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An origin whose threads end with their connections.
pub struct Endless {
    port: u16,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    asked: AtomicUsize,
    open: AtomicUsize,
}

impl Endless {
    /// Responds with these bytes and then sends nothing more.
    pub fn start(begin: &[u8]) -> Self {
        let (listener, port) = crate::ports::listener();
        let counts: Arc<Counts> = Arc::default();
        let (shared, begin) = (Arc::clone(&counts), begin.to_vec());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (counts, begin) = (Arc::clone(&shared), begin.clone());
                std::thread::spawn(move || {
                    counts.open.fetch_add(1, Ordering::SeqCst);
                    _ = converse(stream, &begin, &counts);
                    counts.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Endless { port, counts }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn asked(&self) -> usize {
        self.counts.asked.load(Ordering::SeqCst)
    }

    pub fn open(&self) -> usize {
        self.counts.open.load(Ordering::SeqCst)
    }
}

fn converse(mut stream: TcpStream, begin: &[u8], counts: &Counts) -> std::io::Result<()> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&chunk[..count]);
        if crate::client::find(&bytes, b"\r\n\r\n").is_some() {
            bytes.clear();
            counts.asked.fetch_add(1, Ordering::SeqCst);
            stream.write_all(begin)?;
        }
    }
}
