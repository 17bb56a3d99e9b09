//! A crowd of clients that ask for one thing at the same moment, and an origin that dribbles it.
//!
//! The crowd lives on one thread: a task per client, one buffer for all, so two thousand of them cost no more than their
//! sockets. Every body is summed as it arrives and none is kept. Moments are of one clock, the origin's too, so that what
//! a client waited can be told from what the origin took. Scenarios and `bench` ask the same crowd.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::task::{JoinSet, LocalSet};

use crate::client::find;
use crate::origin::{Origin, Step};
use crate::wait;

/// Connections opened at a time, so that no listener's queue overflows.
const OPENING: usize = 128;
const BUFFER: usize = 64 * 1024;
const LONGEST_HEAD: usize = 16 * 1024;

pub struct Dribble {
    pub origin: Origin,
    pub length: u64,
    pub checksum: u32,
    moments: Arc<Mutex<Vec<Instant>>>,
}

impl Dribble {
    /// Waits `thinking`, then sends a body in equal pieces, the first at once and the last `over` later. May
    /// be stored for an hour.
    pub fn start(length: usize, pieces: usize, thinking: Duration, over: Duration) -> Dribble {
        let body = noise(length);
        let moments = Arc::default();
        let steps = steps(&body, pieces, thinking, over, &moments);
        let origin = Origin::start(move |_| steps.clone());
        Dribble { origin, length: length as u64, checksum: crc32fast::hash(&body), moments }
    }

    /// When its first response began and when its last piece had been written, which it waits for: a client
    /// may have the last byte before the origin has recorded it. `None` if none was written for ten seconds.
    pub fn moments(&self) -> Option<(Instant, Instant)> {
        wait::within(Duration::from_secs(10), || {
            let moments = self.moments.lock().expect("nobody panics with it");
            Some((*moments.first()?, *moments.get(1)?))
        })
    }
}

fn steps(
    body: &[u8],
    pieces: usize,
    thinking: Duration,
    over: Duration,
    moments: &Arc<Mutex<Vec<Instant>>>,
) -> Vec<Step> {
    let mut head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", body.len()).into_bytes();
    head.extend_from_slice(b"Cache-Control: max-age=3600\r\nContent-Type: application/octet-stream\r\n\r\n");
    let pause = over / u32::try_from(pieces.max(2) - 1).unwrap_or(u32::MAX);
    let mut steps = vec![Step::Pause(thinking), Step::Note(Arc::clone(moments))];
    for (at, piece) in body.chunks(body.len().div_ceil(pieces.max(1)).max(1)).enumerate() {
        if at > 0 {
            steps.push(Step::Pause(pause));
        }
        // Head and first piece in one write, so that they are one moment.
        let mut bytes = std::mem::take(&mut head);
        bytes.extend_from_slice(piece);
        steps.push(Step::Send(bytes));
    }
    steps.push(Step::Note(Arc::clone(moments)));
    steps
}

/// Without a pattern, the same in every run, so that a misplaced piece changes the sum.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}

#[derive(Debug, Clone)]
pub struct Visit {
    pub asked: Instant,
    pub first: Instant,
    pub last: Instant,
    pub status: u16,
    pub length: u64,
    pub checksum: u32,
}

/// All at once, each on a connection opened before. Returns what each saw, or why it saw no complete response
/// within `limit`. Blocks.
pub fn ask(port: u16, path: &str, clients: usize, limit: Duration) -> io::Result<Vec<Result<Visit, String>>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, crowd(port, path, clients, limit))
}

async fn crowd(
    port: u16,
    path: &str,
    clients: usize,
    limit: Duration,
) -> io::Result<Vec<Result<Visit, String>>> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let streams = open(address, clients).await?;
    let request: Rc<[u8]> =
        format!("GET {path} HTTP/1.1\r\nHost: stampede.example\r\n\r\n").into_bytes().into();
    let (buffer, start) = (Rc::new(RefCell::new(vec![0; BUFFER])), Rc::new(Barrier::new(clients)));
    let mut visits = JoinSet::new();
    for stream in streams {
        let (request, buffer, start) = (request.clone(), buffer.clone(), start.clone());
        visits.spawn_local(async move {
            start.wait().await;
            match tokio::time::timeout(limit, visit(stream, &request, &buffer)).await {
                Ok(visit) => visit.map_err(|error| error.to_string()),
                Err(_) => Err(format!("no whole answer within {limit:?}")),
            }
        });
    }
    let mut seen = Vec::with_capacity(clients);
    while let Some(visit) = visits.join_next().await {
        seen.push(visit.unwrap_or_else(|error| Err(error.to_string())));
    }
    Ok(seen)
}

async fn open(address: SocketAddr, clients: usize) -> io::Result<Vec<TcpStream>> {
    let (mut streams, mut opening) = (Vec::with_capacity(clients), JoinSet::new());
    for at in 0..clients {
        if at >= OPENING {
            streams.extend(opening.join_next().await.transpose().map_err(io::Error::other)?.transpose()?);
        }
        opening.spawn_local(TcpStream::connect(address));
    }
    while let Some(stream) = opening.join_next().await {
        streams.push(stream.map_err(io::Error::other)??);
    }
    Ok(streams)
}

async fn visit(mut stream: TcpStream, request: &[u8], buffer: &RefCell<Vec<u8>>) -> io::Result<Visit> {
    stream.write_all(request).await?;
    let asked = Instant::now();
    let (mut head, mut answer) = (Vec::new(), None);
    let mut sum = crc32fast::Hasher::new();
    let (mut length, mut first) = (0, asked);
    loop {
        stream.readable().await?;
        let mut buffer = buffer.borrow_mut();
        let count = match stream.try_read(&mut buffer) {
            Ok(0) => {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, format!("closed after {length} bytes")));
            }
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        let mut bytes = &buffer[..count];
        if answer.is_none() {
            let known = head.len();
            head.extend_from_slice(bytes);
            let Some(end) = find(&head, b"\r\n\r\n") else {
                let bounded = head.len() <= LONGEST_HEAD;
                if bounded { continue } else { return Err(invalid("a head without an end")) }
            };
            answer = Some(read_head(&head[..end]).ok_or_else(|| invalid("no status or no Content-Length"))?);
            bytes = &bytes[end + 4 - known..];
        }
        let Some((status, whole)) = answer else { continue };
        if length == 0 && !bytes.is_empty() {
            first = Instant::now();
        }
        sum.update(bytes);
        length += bytes.len() as u64;
        if length >= whole {
            return Ok(Visit {
                asked,
                first,
                last: Instant::now(),
                status,
                length,
                checksum: sum.finalize(),
            });
        }
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

fn read_head(head: &[u8]) -> Option<(u16, u64)> {
    let head = std::str::from_utf8(head).ok()?;
    let (line, fields) = head.split_once("\r\n")?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let length = fields.split("\r\n").find_map(|field| {
        let (name, value) = field.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim())
    });
    Some((status, length?.parse().ok()?))
}
