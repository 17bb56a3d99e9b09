//! A name server on the loopback address (UDP, and TCP for whoever wants that) that says what the scenario tells it to, and counts what it is asked.
//!
//! Names it was told nothing about do not exist. Dropped, it answers no more.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::ports;

const SERVFAIL: u16 = 2;
const NXDOMAIN: u16 = 3;
const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const SRV: u16 = 33;
/// Bytes of a UDP response (RFC 1035 §4.2.1); a longer one requires TCP.
const LONGEST_PACKET: usize = 512;
const TRUNCATED: u8 = 2;

#[derive(Debug, Clone)]
enum Record {
    Addresses(Vec<IpAddr>, u32),
    /// Priority, weight, port and target (RFC 2782).
    Services(Vec<(u16, u16, u16, String)>, u32),
    Alias(String),
    Encoded(u16, Vec<u8>),
    Failure,
    Silence,
}

#[derive(Default)]
struct NameServerState {
    records: Mutex<HashMap<String, Record>>,
    questions: Mutex<Vec<String>>,
    over: AtomicBool,
}

pub struct NameServer {
    port: u16,
    state: Arc<NameServerState>,
}

impl NameServer {
    pub fn start() -> NameServer {
        let (socket, listener, port) = sockets();
        let state = Arc::new(NameServerState::default());
        let (of_packets, of_streams) = (state.clone(), state.clone());
        std::thread::spawn(move || serve(&socket, &of_packets));
        std::thread::spawn(move || serve_streams(&listener, &of_streams));
        NameServer { port, state }
    }

    /// `address:port`, as `resolver` has it.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `ttl` in seconds.
    pub fn say(&self, name: &str, addresses: &[&str], ttl: u32) {
        let addresses = addresses.iter().map(|text| text.parse().expect("an address")).collect();
        self.records().insert(name.to_owned(), Record::Addresses(addresses, ttl));
    }

    /// Each place with priority, weight, port and target; `ttl` in seconds.
    pub fn say_service(&self, name: &str, places: &[(u16, u16, u16, &str)], ttl: u32) {
        let places = places
            .iter()
            .map(|(priority, weight, port, target)| (*priority, *weight, *port, (*target).to_owned()));
        self.records().insert(name.to_owned(), Record::Services(places.collect(), ttl));
    }

    /// The target's addresses are not in the response.
    pub fn say_alias(&self, name: &str, other: &str) {
        self.records().insert(name.to_owned(), Record::Alias(other.to_owned()));
    }

    /// Responses contain these bytes as `count` records.
    pub fn say_bytes(&self, name: &str, count: u16, bytes: &[u8]) {
        self.records().insert(name.to_owned(), Record::Encoded(count, bytes.to_vec()));
    }

    pub fn fail(&self, name: &str) {
        self.records().insert(name.to_owned(), Record::Failure);
    }

    pub fn hush(&self, name: &str) {
        self.records().insert(name.to_owned(), Record::Silence);
    }

    /// Per type of address.
    pub fn count(&self, name: &str) -> usize {
        let questions = self.state.questions.lock().expect("nobody panics");
        questions.iter().filter(|asked| *asked == name).count()
    }

    fn records(&self) -> std::sync::MutexGuard<'_, HashMap<String, Record>> {
        self.state.records.lock().expect("nobody panics")
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::SeqCst);
        // Wakes the thread, which then drops its socket.
        if let Ok(socket) = UdpSocket::bind("127.0.0.1:0") {
            let _ = socket.send_to(b"", ("127.0.0.1", self.port));
        }
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn sockets() -> (UdpSocket, TcpListener, u16) {
    loop {
        let (listener, port) = ports::listener();
        if let Ok(socket) = UdpSocket::bind(("127.0.0.1", port)) {
            return (socket, listener, port);
        }
    }
}

fn serve(socket: &UdpSocket, state: &NameServerState) {
    let mut packet = [0; 512];
    while let Ok((length, asker)) = socket.recv_from(&mut packet) {
        if state.over.load(Ordering::SeqCst) {
            return;
        }
        if let Some(mut answer) = answer(&packet[..length], state) {
            if answer.len() > LONGEST_PACKET {
                // The head and the question, and no record.
                answer.truncate(length);
                answer[2] |= TRUNCATED;
                answer[6..8].fill(0);
            }
            let _ = socket.send_to(&answer, asker);
        }
    }
}

/// Each message is preceded by its length (RFC 1035 §4.2.2).
fn serve_streams(listener: &TcpListener, state: &Arc<NameServerState>) {
    for stream in listener.incoming().flatten() {
        if state.over.load(Ordering::SeqCst) {
            return;
        }
        let state = state.clone();
        std::thread::spawn(move || answer_stream(stream, &state));
    }
}

fn answer_stream(mut stream: TcpStream, state: &NameServerState) -> Option<()> {
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length).ok()?;
        let mut packet = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut packet).ok()?;
        let answer = answer(&packet, state)?;
        let mut framed = (answer.len() as u16).to_be_bytes().to_vec();
        framed.extend_from_slice(&answer);
        stream.write_all(&framed).ok()?;
    }
}

fn answer(packet: &[u8], state: &NameServerState) -> Option<Vec<u8>> {
    let mut labels: Vec<String> = Vec::new();
    let mut at = 12;
    while let length @ 1.. = usize::from(*packet.get(at)?) {
        labels.push(String::from_utf8_lossy(packet.get(at + 1..=at + length)?).to_lowercase());
        at += length + 1;
    }
    let kind = u16::from_be_bytes([*packet.get(at + 1)?, *packet.get(at + 2)?]);
    let question = packet.get(12..at + 5)?;
    let name = labels.join(".");
    state.questions.lock().expect("nobody panics").push(name.clone());
    let record = state.records.lock().expect("nobody panics").get(&name).cloned();
    let (code, (count, records)) = match record {
        Some(Record::Addresses(addresses, ttl)) => (0, encoded(kind, ttl, &addresses, address)),
        Some(Record::Services(places, ttl)) => (0, encoded(kind, ttl, &places, place)),
        Some(Record::Alias(other)) => (0, encoded(CNAME, 60, &[other], |other| (CNAME, encoded_name(other)))),
        Some(Record::Encoded(count, bytes)) => (0, (count, bytes)),
        Some(Record::Failure) => (SERVFAIL, (0, Vec::new())),
        Some(Record::Silence) => return None,
        None => (NXDOMAIN, (0, Vec::new())),
    };
    let mut out = packet.get(..2)?.to_vec();
    for word in [0x8180 | code, 1, count, 0, 0] {
        out.extend_from_slice(&u16::to_be_bytes(word));
    }
    out.extend_from_slice(question);
    out.extend_from_slice(&records);
    Some(out)
}

fn encoded<T>(kind: u16, ttl: u32, all: &[T], data: impl Fn(&T) -> (u16, Vec<u8>)) -> (u16, Vec<u8>) {
    let (mut count, mut out) = (0, Vec::new());
    for bytes in all.iter().map(data).filter(|(of, _)| *of == kind).map(|(_, bytes)| bytes) {
        out.extend_from_slice(&[0xc0, 12]);
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&[0, 1]);
        out.extend_from_slice(&ttl.to_be_bytes());
        out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        out.extend_from_slice(&bytes);
        count += 1;
    }
    (count, out)
}

fn address(address: &IpAddr) -> (u16, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (A, address.octets().to_vec()),
        IpAddr::V6(address) => (AAAA, address.octets().to_vec()),
    }
}

fn place((priority, weight, port, target): &(u16, u16, u16, String)) -> (u16, Vec<u8>) {
    let numbers = [*priority, *weight, *port].map(u16::to_be_bytes).concat();
    (SRV, [numbers, encoded_name(target)].concat())
}

pub fn encoded_name(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    labels.chain([0]).collect()
}
