//! An application in FastCGI, uwsgi or SCGI whose every record the test decides: a thread per connection, requests recorded.
//!
//! It reads and writes by hand, so that it can also write what no good application would. Dropped, it stops
//! listening.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub params: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub keep: bool,
    /// Counted from 0.
    pub connection: usize,
}

impl Asked {
    /// Empty if it is missing.
    pub fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    FastCgi,
    Uwsgi,
    Scgi,
}

type Script = dyn Fn(&Asked) -> Vec<u8> + Send + Sync;

struct ApplicationState {
    speaks: Speaks,
    script: Box<Script>,
    asked: Mutex<Vec<Asked>>,
    connections: AtomicUsize,
    over: AtomicBool,
}

pub struct Application {
    port: u16,
    state: Arc<ApplicationState>,
}

impl Application {
    pub fn start(script: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Application::speaking(Speaks::FastCgi, script)
    }

    /// The script returns the bytes of the response.
    pub fn speaking(speaks: Speaks, script: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let (listener, port) = crate::ports::listener();
        let state = Arc::new(ApplicationState {
            speaks,
            script: Box::new(script),
            asked: Mutex::default(),
            connections: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        });
        let shared = state.clone();
        std::thread::spawn(move || listen(&listener, &shared));
        Application { port, state }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

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

pub fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).expect("a record's content").to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
}

pub fn answer(text: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = text.as_bytes().chunks(60_000).flat_map(|piece| record(6, piece)).collect();
    bytes.extend(record(3, &[0; 8]));
    bytes
}

fn listen(listener: &TcpListener, state: &Arc<ApplicationState>) {
    for stream in listener.incoming().map_while(Result::ok) {
        if state.over.load(Ordering::SeqCst) {
            return;
        }
        let (shared, connection) = (state.clone(), state.connections.fetch_add(1, Ordering::SeqCst));
        std::thread::spawn(move || serve(stream, &shared, connection));
    }
}

fn serve(mut stream: TcpStream, state: &ApplicationState, connection: usize) {
    let read = match state.speaks {
        Speaks::FastCgi => read_records,
        Speaks::Uwsgi => read_packet,
        Speaks::Scgi => read_netstring,
    };
    while let Some(mut asked) = read(&mut stream) {
        asked.connection = connection;
        state.asked.lock().expect("nobody panics with it").push(asked.clone());
        if stream.write_all(&(state.script)(&asked)).is_err() || !asked.keep {
            return;
        }
    }
}

/// Its modifiers become a parameter.
fn read_packet(stream: &mut TcpStream) -> Option<Asked> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).ok()?;
    let mut packet = vec![0; usize::from(u16::from_le_bytes([header[1], header[2]]))];
    stream.read_exact(&mut packet).ok()?;
    let mut asked = Asked::default();
    asked.params.push(("modifiers".to_owned(), format!("{} {}", header[0], header[3])));
    let mut rest = &packet[..];
    let mut take = || {
        let (length, behind) = rest.split_first_chunk()?;
        let (text, behind) = behind.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        rest = behind;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    while let (Some(name), Some(value)) = (take(), take()) {
        asked.params.push((name, value));
    }
    read_body(stream, asked)
}

fn read_netstring(stream: &mut TcpStream) -> Option<Asked> {
    let (mut length, mut byte) = (0, [0]);
    loop {
        stream.read_exact(&mut byte).ok()?;
        match byte[0] {
            digit @ b'0'..=b'9' => length = 10 * length + usize::from(digit - b'0'),
            b':' => break,
            _ => return None,
        }
    }
    let mut head = vec![0; length + 1];
    stream.read_exact(&mut head).ok()?;
    let head = head.strip_suffix(b"\0,")?;
    let texts: Vec<_> =
        head.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned()).collect();
    let params = texts.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    read_body(stream, Asked { params, ..Asked::default() })
}

fn read_body(stream: &mut TcpStream, mut asked: Asked) -> Option<Asked> {
    asked.body = vec![0; asked.param("CONTENT_LENGTH").parse().unwrap_or(0)];
    stream.read_exact(&mut asked.body).ok()?;
    Some(asked)
}

fn read_records(stream: &mut TcpStream) -> Option<Asked> {
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
