//! A client that waits without a thread: hundreds of them live on one. Bodies come piece by piece, so it can leave in the middle.
//!
//! As strict as `client`, whose `Answer` it gives. What it has read of a body stays with the caller when the rest fails.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::client::{Answer, find, parse_head};

const LONGEST_HEAD: usize = 64 * 1024;
/// Receive buffer of a narrow client, in bytes.
const NARROW: u32 = 16 * 1024;

pub struct Visitor {
    stream: TcpStream,
    rest: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Length(u64),
    /// Before a chunk; whether it is the first.
    Chunk(bool),
    InChunk(u64),
    Close,
    Over,
}

impl Framing {
    pub fn of(method: &str, answer: &Answer) -> io::Result<Framing> {
        if method == "HEAD" || answer.status < 200 || answer.status == 204 || answer.status == 304 {
            return Ok(Framing::Over);
        }
        if answer.field("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            return Ok(Framing::Chunk(true));
        }
        match answer.field("content-length") {
            Some(length) => {
                length.parse().map(Framing::Length).map_err(|_| invalid("a Content-Length that is no number"))
            }
            None => Ok(Framing::Close),
        }
    }
}

impl Visitor {
    pub async fn connect(port: u16) -> io::Result<Visitor> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        stream.set_nodelay(true)?;
        Ok(Visitor { stream, rest: Vec::new() })
    }

    pub async fn connect_from(address: Ipv4Addr, port: u16) -> io::Result<Visitor> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((address, 0)))?;
        let stream = socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        stream.set_nodelay(true)?;
        Ok(Visitor { stream, rest: Vec::new() })
    }

    pub async fn connect_narrow(port: u16) -> io::Result<Visitor> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(NARROW)?;
        let stream = socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        Ok(Visitor { stream, rest: Vec::new() })
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref()).await
    }

    /// Skips interim responses (1xx) but 101.
    pub async fn head(&mut self) -> io::Result<Answer> {
        loop {
            while let Some(end) = find(&self.rest, b"\r\n\r\n") {
                let head: Vec<u8> = self.rest.drain(..end + 4).take(end).collect();
                let answer = parse_head(&head).ok_or_else(|| invalid("not an HTTP answer"))?;
                if answer.status >= 200 || answer.status == 101 {
                    return Ok(answer);
                }
            }
            if self.rest.len() > LONGEST_HEAD {
                return Err(invalid("a head without an end"));
            }
            self.more().await?;
        }
    }

    /// Unchunked; `None` at its end.
    pub async fn piece(&mut self, framing: &mut Framing) -> io::Result<Option<Vec<u8>>> {
        loop {
            match *framing {
                Framing::Over => return Ok(None),
                Framing::Length(0) => *framing = Framing::Over,
                Framing::InChunk(0) => *framing = Framing::Chunk(false),
                Framing::Length(left) => {
                    let piece = self.at_most(left).await?;
                    *framing = Framing::Length(left - piece.len() as u64);
                    return Ok(Some(piece));
                }
                Framing::InChunk(left) => {
                    let piece = self.at_most(left).await?;
                    *framing = Framing::InChunk(left - piece.len() as u64);
                    return Ok(Some(piece));
                }
                Framing::Chunk(is_first) => *framing = self.chunk(is_first).await?,
                Framing::Close => {
                    return match self.at_most(u64::MAX).await {
                        Ok(piece) => Ok(Some(piece)),
                        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                            *framing = Framing::Over;
                            Ok(None)
                        }
                        Err(error) => Err(error),
                    };
                }
            }
        }
    }

    pub async fn body(&mut self, mut framing: Framing, body: &mut Vec<u8>) -> io::Result<()> {
        while let Some(piece) = self.piece(&mut framing).await? {
            body.extend_from_slice(&piece);
        }
        Ok(())
    }

    async fn chunk(&mut self, is_first: bool) -> io::Result<Framing> {
        if !is_first && !self.line().await?.is_empty() {
            return Err(invalid("a chunk that does not end where it said"));
        }
        let line = self.line().await?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        match u64::from_str_radix(digits, 16).map_err(|_| invalid("a chunk size that is no number"))? {
            0 => {
                while !self.line().await?.is_empty() {}
                Ok(Framing::Over)
            }
            size => Ok(Framing::InChunk(size)),
        }
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = find(&self.rest, b"\r\n") {
                let line: Vec<u8> = self.rest.drain(..end + 2).take(end).collect();
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            self.more().await?;
        }
    }

    async fn at_most(&mut self, most: u64) -> io::Result<Vec<u8>> {
        if self.rest.is_empty() {
            self.more().await?;
        }
        let count = usize::try_from(most).unwrap_or(usize::MAX).min(self.rest.len());
        Ok(self.rest.drain(..count).collect())
    }

    async fn more(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 * 1024];
        match self.stream.read(&mut chunk).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => {
                self.rest.extend_from_slice(&chunk[..count]);
                Ok(())
            }
        }
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}
