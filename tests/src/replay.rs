//! A dashboard whose days take as long as its page needs for them: the files of a real one, and frames that are made up.
//!
//! Frames come as fast as they are taken, up to the second that the test has let come. Its threads end with their connections.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::client::{self, find};
use crate::ports;

/// Data of events: the history for 0, the frame of a second for any other number.
type Frames = dyn Fn(u64) -> String + Send + Sync;

pub struct Replay {
    port: u16,
    allowed: Arc<(Mutex<u64>, Condvar)>,
}

impl Replay {
    pub fn start(dashboard: u16, frames: impl Fn(u64) -> String + Send + Sync + 'static) -> Replay {
        let (listener, port) = ports::listener();
        let allowed: Arc<(Mutex<u64>, Condvar)> = Arc::default();
        let (shared, frames): (_, Arc<Frames>) = (Arc::clone(&allowed), Arc::new(frames));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (allowed, frames) = (Arc::clone(&shared), Arc::clone(&frames));
                // Who closes while something is sent has seen enough.
                std::thread::spawn(move || _ = answer(stream, dashboard, &allowed, &*frames));
            }
        });
        Replay { port, allowed }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn until(&self, second: u64) {
        *self.allowed.0.lock().unwrap_or_else(PoisonError::into_inner) = second;
        self.allowed.1.notify_all();
    }
}

fn answer(
    mut stream: TcpStream,
    dashboard: u16,
    allowed: &(Mutex<u64>, Condvar),
    frames: &Frames,
) -> std::io::Result<()> {
    let (mut head, mut chunk) = (Vec::new(), [0; 4096]);
    while find(&head, b"\r\n\r\n").is_none() {
        match stream.read(&mut chunk)? {
            0 => return Ok(()),
            length => head.extend_from_slice(&chunk[..length]),
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or("/");
    if path != "/live" {
        let real = client::get(dashboard, path);
        let field = |name: &str| real.field(name).unwrap_or_default();
        let head = format!(
            "HTTP/1.1 {} OK\r\nContent-Type: {}\r\nContent-Security-Policy: {}\r\nConnection: close\r\n\r\n",
            real.status,
            field("content-type"),
            field("content-security-policy")
        );
        stream.write_all(head.as_bytes())?;
        return stream.write_all(&real.body);
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")?;
    stream.write_all(format!("event: history\ndata: {}\n\n", frames(0)).as_bytes())?;
    for second in 1.. {
        let now = allowed.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(allowed.1.wait_while(now, |now| *now < second));
        stream.write_all(format!("event: second\ndata: {}\n\n", frames(second)).as_bytes())?;
    }
    Ok(())
}
