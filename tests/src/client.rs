//! A small HTTP/1 client that hides nothing: raw bytes out, one response read by its own framing, keep-alive.
//!
//! It judges a server, so it is strict about what it reads and never mends or retries anything.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream, ToSocketAddrs};
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

const PATIENCE: Duration = Duration::from_secs(20);

pub struct Client {
    stream: TcpStream,
    rest: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    /// As it came, with the status line, without the blank line.
    pub head: String,
    /// Names as they came and trimmed values, in order.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Ignores case.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// What `add_header X-Cache-Status $upstream_cache_status` says; "none" without one.
    pub fn cache_status(&self) -> &str {
        self.field("x-cache-status").unwrap_or("none")
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub fn connect(port: u16) -> io::Result<Self> {
        Self::connect_to(("127.0.0.1", port))
    }

    pub fn connect_to(address: impl ToSocketAddrs) -> io::Result<Self> {
        Self::of(TcpStream::connect(address)?, PATIENCE)
    }

    /// `patience` is the timeout of one read.
    pub fn connect_with_patience(port: u16, patience: Duration) -> io::Result<Self> {
        Self::of(TcpStream::connect(("127.0.0.1", port))?, patience)
    }

    pub fn connect_from(address: Ipv4Addr, port: u16) -> io::Result<Self> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &SocketAddrV4::new(address, 0))?;
        connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
        Self::of(TcpStream::from(socket), PATIENCE)
    }

    /// As [`Client::connect`], with a small receive buffer.
    pub fn connect_narrow(port: u16) -> io::Result<Self> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        set_socket_recv_buffer_size(&socket, 16 * 1024)?;
        connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
        Self::of(TcpStream::from(socket), PATIENCE)
    }

    fn of(stream: TcpStream, patience: Duration) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Client { stream, rest: Vec::new() })
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    pub fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.get_with(path, &[])
    }

    pub fn get_with(&mut self, path: &str, fields: &[(&str, &str)]) -> io::Result<Answer> {
        self.request("GET", path, fields)
    }

    /// Without a body; adds `Host: localhost` unless given.
    pub fn request(&mut self, method: &str, path: &str, fields: &[(&str, &str)]) -> io::Result<Answer> {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str("Host: localhost\r\n");
        }
        for (name, value) in fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.send(head)?;
        self.answer_to(method)
    }

    /// Sends a request as it is written, and reads what it is answered with.
    #[track_caller]
    pub fn ask(&mut self, request: impl AsRef<[u8]>) -> Answer {
        self.send(request).expect("sent");
        self.answer().expect("an answer")
    }

    pub fn answer(&mut self) -> io::Result<Answer> {
        self.answer_to("GET")
    }

    /// Skips interim responses (1xx).
    pub fn answer_to(&mut self, method: &str) -> io::Result<Answer> {
        loop {
            let mut answer = self.head()?;
            if (100..200).contains(&answer.status) && answer.status != 101 {
                continue;
            }
            answer.body = self.body(method, &answer)?;
            return Ok(answer);
        }
    }

    /// Also interim ones; the body stays unread.
    pub fn head(&mut self) -> io::Result<Answer> {
        loop {
            if let Some(end) = find(&self.rest, b"\r\n\r\n") {
                let head: Vec<u8> = self.rest.drain(..end + 4).take(end).collect();
                return parse_head(&head)
                    .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "not an HTTP answer"));
            }
            self.more()?;
        }
    }

    pub fn body(&mut self, method: &str, answer: &Answer) -> io::Result<Vec<u8>> {
        if method == "HEAD" || answer.status < 200 || answer.status == 204 || answer.status == 304 {
            return Ok(Vec::new());
        }
        if answer.field("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            return self.chunked();
        }
        match answer.field("content-length") {
            Some(length) => {
                let length = length.parse().map_err(|_| {
                    io::Error::new(ErrorKind::InvalidData, "a Content-Length that is no number")
                })?;
                self.exactly(length)
            }
            None => self.rest_of_connection(),
        }
    }

    pub fn chunked(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(digits, 16)
                .map_err(|_| io::Error::new(ErrorKind::InvalidData, "a chunk size that is no number"))?;
            if size == 0 {
                while !self.line()?.is_empty() {}
                return Ok(body);
            }
            body.extend(self.exactly(size)?);
            if !self.line()?.is_empty() {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    "a chunk that does not end where it said",
                ));
            }
        }
    }

    pub fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = find(&self.rest, b"\r\n") {
                let line: Vec<u8> = self.rest.drain(..end + 2).take(end).collect();
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            self.more()?;
        }
    }

    pub fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.rest.len() < length {
            self.more()?;
        }
        Ok(self.rest.drain(..length).collect())
    }

    /// A reset is an error.
    pub fn rest_of_connection(&mut self) -> io::Result<Vec<u8>> {
        loop {
            match self.more() {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Ok(std::mem::take(&mut self.rest));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Within the client's patience, with nothing more sent.
    pub fn is_closed_by_server(&mut self) -> bool {
        self.rest.is_empty() && matches!(self.more(), Err(error) if error.kind() != ErrorKind::WouldBlock)
    }

    pub fn finish_writing(&mut self) -> io::Result<()> {
        self.stream.shutdown(std::net::Shutdown::Write)
    }

    fn more(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 * 1024];
        match self.stream.read(&mut chunk)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => {
                self.rest.extend_from_slice(&chunk[..count]);
                Ok(())
            }
        }
    }
}

pub fn get(port: u16, path: &str) -> Answer {
    get_with(port, path, &[])
}

pub fn get_with(port: u16, path: &str, fields: &[(&str, &str)]) -> Answer {
    let mut client = Client::connect(port).unwrap_or_else(|error| panic!("connect to {port}: {error}"));
    client.get_with(path, fields).unwrap_or_else(|error| panic!("GET {path} from {port}: {error}"))
}

pub(crate) fn parse_head(head: &[u8]) -> Option<Answer> {
    let head = String::from_utf8_lossy(head).into_owned();
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.splitn(3, ' ');
    if !words.next()?.starts_with("HTTP/1.") {
        return None;
    }
    let status = words.next()?.parse().ok()?;
    let mut fields = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        fields.push((name.to_owned(), value.trim().to_owned()));
    }
    Some(Answer { status, fields, body: Vec::new(), head })
}

pub(crate) fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}
