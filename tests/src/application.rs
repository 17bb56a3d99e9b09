//! A FastCGI application whose every record the test decides: a thread per connection, requests recorded.
//!
//! It reads records and writes them by hand, so that it can also write what no good application would. Dropped, it stops
//! listening.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// One request as it came.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Its parameters in order.
    pub params: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
    /// Whether the connection is to be left open.
    pub keep: bool,
    /// Which connection brought it, counted from 0.
    pub connection: usize,
}

impl Asked {
    /// A parameter's value; empty where there is none.
    pub fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

type Script = dyn Fn(&Asked) -> Vec<u8> + Send + Sync;

struct State {
    script: Box<Script>,
    asked: Mutex<Vec<Asked>>,
    connections: AtomicUsize,
    over: AtomicBool,
}

/// A listening application.
pub struct Application {
    port: u16,
    state: Arc<State>,
}

impl Application {
    /// Listens on a free port of the loopback address; the script gives the bytes that answer a request.
    pub fn start(script: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let (listener, port) = crate::ports::listener();
        let state = Arc::new(State {
            script: Box::new(script),
            asked: Mutex::default(),
            connections: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        });
        let shared = state.clone();
        std::thread::spawn(move || listen(&listener, &shared));
        Application { port, state }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().expect("nobody panics with it").clone()
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::SeqCst);
        // Wakes the thread that listens.
        _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// A record of the one request.
pub fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).expect("a record's content").to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
}

/// A whole answer: its text in records of STDOUT, and the end.
pub fn answer(text: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = text.as_bytes().chunks(60_000).flat_map(|piece| record(6, piece)).collect();
    bytes.extend(record(3, &[0; 8]));
    bytes
}

fn listen(listener: &TcpListener, state: &Arc<State>) {
    for stream in listener.incoming().map_while(Result::ok) {
        if state.over.load(Ordering::SeqCst) {
            return;
        }
        let (shared, connection) = (state.clone(), state.connections.fetch_add(1, Ordering::SeqCst));
        std::thread::spawn(move || serve(stream, &shared, connection));
    }
}

/// Serves requests until the peer closes, or one does not ask for more.
fn serve(mut stream: TcpStream, state: &State, connection: usize) {
    while let Some(mut asked) = read(&mut stream) {
        asked.connection = connection;
        state.asked.lock().expect("nobody panics with it").push(asked.clone());
        if stream.write_all(&(state.script)(&asked)).is_err() || !asked.keep {
            return;
        }
    }
}

fn read(stream: &mut TcpStream) -> Option<Asked> {
    let (mut asked, mut params) = (Asked::default(), Vec::new());
    loop {
        let mut header = [0; 8];
        stream.read_exact(&mut header).ok()?;
        let mut content = vec![0; usize::from(u16::from_be_bytes([header[4], header[5]]))];
        stream.read_exact(&mut content).ok()?;
        stream.read_exact(&mut vec![0; usize::from(header[6])]).ok()?;
        match (header[1], content.is_empty()) {
            (1, _) => asked.keep = content.get(2) == Some(&1),
            (4, true) => asked.params = pairs(&params),
            (4, false) => params.extend(content),
            (5, true) => return Some(asked),
            (5, false) => asked.body.extend(content),
            _ => return None,
        }
    }
}

fn pairs(mut bytes: &[u8]) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    while !bytes.is_empty() {
        let (name, value) = (length(&mut bytes), length(&mut bytes));
        let (name, rest) = bytes.split_at(name);
        let (value, rest) = rest.split_at(value);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        pairs.push((text(name), text(value)));
        bytes = rest;
    }
    pairs
}

fn length(bytes: &mut &[u8]) -> usize {
    let short = bytes[0] < 128;
    let (own, rest) = bytes.split_at(if short { 1 } else { 4 });
    *bytes = rest;
    own.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)) & 0x7fff_ffff
}
