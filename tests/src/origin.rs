//! An API whose every byte the test decides: a thread per connection, raw requests recorded, answers scripted.
//!
//! It is for behaviour, not for speed; `bench` has a fast one. Dropped, it stops listening and ends its connections.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::client::find;
use crate::gate::Gate;

#[derive(Debug, Clone)]
pub struct Request {
    /// With the request line, without the blank line.
    pub head: String,
    /// As it was framed (with chunk lines).
    pub body: Vec<u8>,
    /// Counted from 0.
    pub connection: usize,
}

impl Request {
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.split("\r\n").skip(1).find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

#[derive(Debug, Clone)]
pub enum Step {
    Send(Vec<u8>),
    Pause(Duration),
    Pass(Arc<Gate>),
    Note(Arc<Mutex<Vec<Instant>>>),
    Close,
}

impl Step {
    /// Only for steps that take time.
    pub fn wait(&self) {
        match self {
            Step::Pause(pause) => std::thread::sleep(*pause),
            Step::Pass(gate) => gate.pass(),
            Step::Send(_) | Step::Note(_) | Step::Close => {}
        }
    }
}

type Script = dyn Fn(&Request) -> Vec<Step> + Send + Sync;

pub struct Origin {
    port: u16,
    state: Arc<State>,
}

struct State {
    script: Box<Script>,
    requests: Mutex<Vec<Request>>,
    connections: AtomicUsize,
    open: Mutex<Vec<TcpStream>>,
    over: AtomicBool,
}

impl Origin {
    pub fn start(script: impl Fn(&Request) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let (listener, port) = crate::ports::listener();
        let state = Arc::new(State {
            script: Box::new(script),
            requests: Mutex::default(),
            connections: AtomicUsize::new(0),
            open: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || accept(&listener, &shared));
        Origin { port, state }
    }

    /// The script is told how many requests have come before.
    pub fn numbered(script: impl Fn(&Request, usize) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let count = AtomicUsize::new(0);
        Self::start(move |request| script(request, count.fetch_add(1, Ordering::SeqCst)))
    }

    pub fn fixed(status: u16, fields: &[(&str, &str)], body: &[u8]) -> Self {
        let steps = answer(status, fields, body);
        Self::start(move |_| steps.clone())
    }

    /// Sends `second` when the gate is opened.
    pub fn in_two(first: &[u8], gate: &Arc<Gate>, second: &[u8]) -> Self {
        let (first, gate, second) = (first.to_vec(), Arc::clone(gate), second.to_vec());
        Self::start(move |_| {
            vec![Step::Send(first.clone()), Step::Pass(Arc::clone(&gate)), Step::Send(second.clone())]
        })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// `host:port`, as a configuration names it.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().expect("no script panics").clone()
    }

    pub fn count(&self) -> usize {
        self.state.requests.lock().expect("no script panics").len()
    }

    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then drops its socket.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        for stream in self.state.open.lock().expect("no script panics").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

pub fn answer(status: u16, fields: &[(&str, &str)], body: &[u8]) -> Vec<Step> {
    let mut bytes = format!("HTTP/1.1 {status} Scripted\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in fields {
        bytes.push_str(&format!("{name}: {value}\r\n"));
    }
    bytes.push_str("\r\n");
    let mut bytes = bytes.into_bytes();
    bytes.extend_from_slice(body);
    vec![Step::Send(bytes)]
}

fn accept(listener: &TcpListener, state: &Arc<State>) {
    for stream in listener.incoming().flatten() {
        if state.over.load(Ordering::SeqCst) {
            return;
        }
        let number = state.connections.fetch_add(1, Ordering::SeqCst);
        if let Ok(copy) = stream.try_clone() {
            state.open.lock().expect("no script panics").push(copy);
        }
        let state = Arc::clone(state);
        std::thread::spawn(move || {
            let _ = converse(stream, number, &state);
        });
    }
}

fn converse(mut stream: TcpStream, connection: usize, state: &State) -> std::io::Result<()> {
    let _ = stream.set_nodelay(true);
    let mut bytes = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut bytes, connection)? {
        state.requests.lock().expect("no script panics").push(request.clone());
        for step in (state.script)(&request) {
            match step {
                Step::Send(bytes) => stream.write_all(&bytes)?,
                Step::Pause(_) | Step::Pass(_) => step.wait(),
                Step::Note(moments) => moments.lock().expect("no script panics").push(Instant::now()),
                Step::Close => return stream.shutdown(Shutdown::Both),
            }
        }
        if request.head.starts_with("GET")
            && request.field("connection").is_some_and(|value| value == "close")
        {
            return stream.shutdown(Shutdown::Both);
        }
    }
    // The copy that `open` has would keep it open.
    stream.shutdown(Shutdown::Both)
}

fn read_request(
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
    connection: usize,
) -> std::io::Result<Option<Request>> {
    if bytes.is_empty() && read_more(stream, bytes)? == 0 {
        return Ok(None);
    }
    // Whoever speaks TLS or FastCGI to it would wait for ever.
    if !bytes[0].is_ascii_alphabetic() {
        return Ok(None);
    }
    let Some(end) = read_until(stream, bytes, b"\r\n\r\n")? else { return Ok(None) };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    bytes.drain(..end + 4);
    let mut request = Request { head, body: Vec::new(), connection };
    if request.field("transfer-encoding").is_some() {
        // The scenarios' chunked bodies carry no trailers, so this ends each.
        let Some(end) = read_until(stream, bytes, b"0\r\n\r\n")? else { return Ok(None) };
        request.body = bytes.drain(..end + 5).collect();
    } else if let Some(length) = request.field("content-length").and_then(|value| value.parse::<usize>().ok())
    {
        while bytes.len() < length {
            if read_more(stream, bytes)? == 0 {
                return Ok(None);
            }
        }
        request.body = bytes.drain(..length).collect();
    }
    Ok(Some(request))
}

fn read_until(stream: &mut TcpStream, bytes: &mut Vec<u8>, mark: &[u8]) -> std::io::Result<Option<usize>> {
    let mut seen = 0;
    loop {
        if let Some(end) = find(&bytes[seen..], mark) {
            return Ok(Some(seen + end));
        }
        seen = bytes.len().saturating_sub(mark.len() - 1);
        if read_more(stream, bytes)? == 0 {
            return Ok(None);
        }
    }
}

fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> std::io::Result<usize> {
    let mut chunk = [0; 16 * 1024];
    let count = stream.read(&mut chunk)?;
    bytes.extend_from_slice(&chunk[..count]);
    Ok(count)
}
