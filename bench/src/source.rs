//! An API on a thread of its own that does what an attack or a soak needs, told by the target. It counts its connections.
//!
//! `/body/BYTES`, `/chunked/BYTES` (no length), `/events` (an endless stream, each event with its moment), `/interim` (103s
//! without an end), `/dripping` (a head that comes byte by byte), `/socket` (a WebSocket's handshake, then an echo). `?age=`
//! and `?delay=` (milliseconds) go with the first two. Bodies of requests are read and answered with their length.

use std::io;
use std::net::TcpListener as Listener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use millstream_tests::ports;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Period of every body; no multiple of a buffer's size, so that a misplaced piece shows.
const PERIOD: usize = 65_521;
const PIECE: usize = 64 * 1024;
/// Between two bytes of a dripping head, and between two events.
const DRIP: Duration = Duration::from_millis(500);
const EVENT: Duration = Duration::from_millis(100);

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    requests: AtomicUsize,
    fails: AtomicBool,
}

pub(crate) struct Source {
    pub(crate) port: u16,
    seen: Arc<Seen>,
}

impl Source {
    pub(crate) fn start() -> Source {
        let (listener, port) = ports::listener();
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || serve(listener, shared));
        Source { port, seen }
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> usize {
        self.seen.requests.load(Ordering::SeqCst)
    }

    /// Whether to respond 500 to everything from now on.
    pub(crate) fn fail(&self, fails: bool) {
        self.seen.fails.store(fails, Ordering::SeqCst);
    }
}

/// Microseconds since the first call in this process: the clock of events and their readers.
pub(crate) fn moment() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_micros() as u64
}

/// Whether these are the bytes of a body from `at` on.
pub(crate) fn is_body(mut at: u64, bytes: &[u8]) -> bool {
    let pattern = pattern();
    let mut left = bytes;
    while !left.is_empty() {
        let start = (at % PERIOD as u64) as usize;
        let count = left.len().min(PERIOD - start);
        if left[..count] != pattern[start..start + count] {
            return false;
        }
        at += count as u64;
        left = &left[count..];
    }
    true
}

/// Two periods, so that a piece can start anywhere in the first.
fn pattern() -> &'static [u8] {
    static PATTERN: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    PATTERN.get_or_init(|| {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut period = Vec::with_capacity(2 * PERIOD);
        for _ in 0..PERIOD {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            period.push((state >> 32) as u8);
        }
        period.extend_from_within(..);
        period
    })
}

fn serve(listener: Listener, seen: Arc<Seen>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            let counted = Counted::new(&seen);
            tokio::spawn(async move {
                // Connections that break off are what this is for.
                let _ = converse(stream, &counted.0).await;
            });
        }
    })
}

struct Counted(Arc<Seen>);

impl Counted {
    fn new(seen: &Arc<Seen>) -> Counted {
        seen.connections.fetch_add(1, Ordering::SeqCst);
        Counted(Arc::clone(seen))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn converse(mut stream: TcpStream, seen: &Seen) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::new();
    while let Some(head) = read_head(&mut stream, &mut bytes).await? {
        if let Some(length) = field(&head, "content-length").and_then(|text| text.parse::<u64>().ok()) {
            skip(&mut stream, &mut bytes, length).await?;
            let said = length.to_string();
            let answer = format!("HTTP/1.1 200 Read\r\nContent-Length: {}\r\n\r\n{said}", said.len());
            stream.write_all(answer.as_bytes()).await?;
            continue;
        }
        seen.requests.fetch_add(1, Ordering::SeqCst);
        if seen.fails.load(Ordering::SeqCst) {
            stream.write_all(b"HTTP/1.1 500 Failing\r\nContent-Length: 0\r\n\r\n").await?;
        } else {
            tokio::select! {
                answered = answer(&stream, &head) => if !answered? { return Ok(()) },
                () = gone(&stream) => return Ok(()),
            }
        }
    }
    Ok(())
}

/// Returns whether the connection stays open.
async fn answer(stream: &TcpStream, head: &str) -> io::Result<bool> {
    let target = head.split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut words = path.split('/').skip(1);
    let (kind, number) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let length: u64 = number.parse().unwrap_or(0);
    if let Some(delay) = parameter(query, "delay") {
        tokio::time::sleep(Duration::from_millis(delay.min(10_000))).await;
    }
    let age =
        parameter(query, "age").map(|age| format!("Cache-Control: max-age={age}\r\n")).unwrap_or_default();
    let is_head = head.starts_with("HEAD");
    match kind {
        "body" => {
            // A strong tag, so that parts of it can be put together.
            let head =
                format!("HTTP/1.1 200 Good\r\n{age}ETag: \"{length}\"\r\nContent-Length: {length}\r\n\r\n");
            write(stream, head.as_bytes()).await?;
            let mut at = if is_head { length } else { 0 };
            while at < length {
                let piece = piece(at, length);
                write(stream, piece).await?;
                at += piece.len() as u64;
            }
            Ok(true)
        }
        "chunked" => {
            let head = format!("HTTP/1.1 200 Good\r\n{age}Transfer-Encoding: chunked\r\n\r\n");
            write(stream, head.as_bytes()).await?;
            let mut at = if is_head { length } else { 0 };
            while at < length {
                let piece = piece(at, length);
                write(stream, &[format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat())
                    .await?;
                at += piece.len() as u64;
            }
            write(stream, if is_head { b"" } else { b"0\r\n\r\n" }).await?;
            Ok(true)
        }
        "events" => events(stream, parameter(query, "every").map_or(EVENT, Duration::from_millis)).await,
        "interim" => loop {
            let link = "x".repeat(4_000);
            write(stream, format!("HTTP/1.1 103 Early Hints\r\nLink: <{link}>\r\n\r\n").as_bytes()).await?;
        },
        "dripping" => {
            for byte in b"HTTP/1.1 200 Good\r\nX-Long: ".iter().chain(std::iter::repeat_n(&b'x', 200)) {
                write(stream, &[*byte]).await?;
                tokio::time::sleep(DRIP).await;
            }
            Ok(false)
        }
        "socket" => {
            write(stream, b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
                .await?;
            echo(stream).await
        }
        _ => {
            write(stream, b"HTTP/1.1 404 Nothing\r\nContent-Length: 0\r\n\r\n").await?;
            Ok(true)
        }
    }
}

/// Sends events, each with the time at which it was written.
async fn events(stream: &TcpStream, every: Duration) -> io::Result<bool> {
    let head = "HTTP/1.1 200 Good\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    write(stream, head.as_bytes()).await?;
    loop {
        let event = format!("data: {}\n\n", moment());
        write(stream, format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await?;
        tokio::time::sleep(every).await;
    }
}

async fn echo(stream: &TcpStream) -> io::Result<bool> {
    let mut chunk = [0; 4096];
    loop {
        stream.readable().await?;
        match stream.try_read(&mut chunk) {
            Ok(0) => return Ok(false),
            Ok(count) => write(stream, &chunk[..count]).await?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

fn piece(at: u64, length: u64) -> &'static [u8] {
    let start = (at % PERIOD as u64) as usize;
    let count = (length - at).min(PIECE as u64).min(PERIOD as u64) as usize;
    &pattern()[start..start + count]
}

async fn write(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits for the peer to close during a response.
async fn gone(stream: &TcpStream) {
    match stream.peek(&mut [0]).await {
        Ok(0) | Err(_) => {}
        Ok(_) => std::future::pending().await,
    }
}

async fn read_head(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<Option<String>> {
    let mut chunk = [0; 16 * 1024];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            bytes.drain(..end + 4);
            return Ok(Some(head));
        }
        match stream.read(&mut chunk).await? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

async fn skip(stream: &mut TcpStream, bytes: &mut Vec<u8>, length: u64) -> io::Result<()> {
    let here = length.min(bytes.len() as u64) as usize;
    bytes.drain(..here);
    let (mut left, mut chunk) = (length - here as u64, vec![0; PIECE]);
    while left > 0 {
        let most = left.min(PIECE as u64) as usize;
        match stream.read(&mut chunk[..most]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => left -= count as u64,
        }
    }
    Ok(())
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.split("\r\n").skip(1).find_map(|line| {
        let (field, value) = line.split_once(':')?;
        field.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn parameter(query: &str, name: &str) -> Option<u64> {
    query.split('&').find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name)?.1.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_in_the_wrong_place_is_noticed() {
        let whole: Vec<u8> = [piece(0, 100_000), piece(PERIOD as u64, 100_000)].concat();
        assert!(is_body(0, &whole));
        assert!(is_body(30_000, &whole[30_000..]));
        assert!(!is_body(30_001, &whole[30_000..]));
    }
}
