//! One request, and what came of it in words: asked before a load, so that a mistake costs a sentence and not a run.
//!
//! Blocking, bounded in time and in the bytes of the body. Next: `drive`, which sends the others.

mod failure;
mod streams;
#[cfg(test)]
mod tests;

pub use failure::ProbeError;

use crate::exchange::HEAD;
use crate::plan::{Target, Way};
use crate::stop::{self, Stop, Woken};
use crate::stream::{Stream, client_configuration};
use millstream_net::clock;
use millstream_wire::Method;
use millstream_wire::h1::content::Content;
use millstream_wire::h1::framing::{self, Framing};
use millstream_wire::h1::head::{Progress, ResponseHead};
use rustix::event::PollFlags;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, InvalidMessage};
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Bytes read at a time.
const BUFFER: usize = 64 * 1024;

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Who gave it: of the target's addresses the first that took the connection.
    pub address: SocketAddr,
    /// Its status.
    pub status: u16,
    /// Its fields in order, bytes that are no UTF-8 replaced.
    pub fields: Vec<(String, String)>,
    /// Its body, transfer coding taken off.
    pub body: Vec<u8>,
    /// How long connecting took, TLS included.
    pub connect: Duration,
    /// From when the request was sent to the first byte.
    pub first_byte: Duration,
    /// From when the request was sent to the last byte.
    pub total: Duration,
}

impl Reply {
    /// The first field with this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// What a question may take.
#[derive(Clone, Copy)]
struct Allowance<'a> {
    timeout: Duration,
    /// Bytes of a body.
    most: usize,
    stop: Option<&'a Stop>,
}

/// Asks once: each of the target's addresses until one takes the connection. Connecting and answering have `timeout`
/// each; a body longer than `most` bytes is an error.
///
/// # Errors
/// Why there is no answer; of several addresses, the last one's reason.
pub fn once(target: &Target, timeout: Duration, most: usize) -> Result<Reply, ProbeError> {
    first(target, Allowance { timeout, most, stop: None })
}

/// The same, unless the user wants to stop: then it ends at once.
///
/// # Errors
/// [`ProbeError::Stopped`], or why there is no answer.
pub fn once_unless(
    stop: &Stop,
    target: &Target,
    timeout: Duration,
    most: usize,
) -> Result<Reply, ProbeError> {
    let told = first(target, Allowance { timeout, most, stop: Some(stop) });
    // A wait that was cut short looks like any other failure from within.
    told.map_err(|error| if stop.is_asked() { ProbeError::Stopped } else { error })
}

fn first(target: &Target, bounds: Allowance<'_>) -> Result<Reply, ProbeError> {
    let mut last = None;
    for address in &target.addresses {
        match ask(target, *address, bounds) {
            // Some TLS servers say so in plain, some hang up on what they do not understand.
            Ok(answer) if target.tls.is_none() && says_tls(&answer) => {
                return Err(ProbeError::TlsServer(*address));
            }
            Err(ProbeError::Closed(_)) if target.tls.is_none() && speaks_tls(target, *address, bounds) => {
                return Err(ProbeError::TlsServer(*address));
            }
            // A server that waits for the end of a head says nothing at all to a handshake.
            Err(ProbeError::Tls(..)) if answers_plainly(target, *address, bounds) => {
                return Err(ProbeError::PlainServer(*address));
            }
            Err(
                error @ (ProbeError::Refused(_)
                | ProbeError::Unreachable(..)
                | ProbeError::ConnectTimeout(..)),
            ) => {
                last = Some(error);
            }
            told => return told,
        }
    }
    let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
    Err(last.unwrap_or_else(|| ProbeError::Unreachable(nowhere, "it has no address".to_owned())))
}

/// Whether this is what nginx and its likes, or Apache, answer to plain HTTP where TLS is spoken.
fn says_tls(answer: &Reply) -> bool {
    let says = |words: &[u8]| answer.body.windows(words.len()).any(|part| part == words);
    answer.status == 400
        && (says(b"plain HTTP request was sent to HTTPS port")
            || says(b"plain HTTP to an SSL-enabled server port"))
}

/// Whether a handshake comes to an end here.
fn speaks_tls(target: &Target, address: SocketAddr, bounds: Allowance<'_>) -> bool {
    let way = Way { insecure: true, ..target.way.clone() };
    let target = Target { tls: Some(address.ip().to_string()), way, http2: None, ..target.clone() };
    Peer::connect(&target, address, bounds).is_ok()
}

/// Whether plain HTTP is answered here. The question has nothing of the user's request, which was to be secret.
fn answers_plainly(target: &Target, address: SocketAddr, bounds: Allowance<'_>) -> bool {
    let request = format!("HEAD / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").into_bytes();
    let plain = Target { tls: None, request: request.into(), http2: None, is_head: true, ..target.clone() };
    ask(&plain, address, Allowance { most: 0, ..bounds }).is_ok()
}

/// A connection with a moment by which all must be done.
struct Peer<'a> {
    address: SocketAddr,
    stream: Stream,
    deadline: Instant,
    limit: Duration,
    stop: Option<&'a Stop>,
}

fn ask(target: &Target, address: SocketAddr, bounds: Allowance<'_>) -> Result<Reply, ProbeError> {
    let begun = clock::now();
    let mut peer = Peer::connect(target, address, bounds)?;
    let sent = clock::now();
    peer.deadline = sent + bounds.timeout;
    if let Some(request) = &target.http2 {
        return streams::ask(&mut peer, target, request, bounds.most, sent - begun);
    }
    // A server may answer and close before it has read all: the answer says more than the failed write.
    _ = peer.send(&target.request);
    let mut reading = Reading { body: Vec::new(), most: bounds.most, address };
    let (head, mut bytes, first_byte) = reading.head(&mut peer)?;
    let fields = head.view(&bytes);
    let method = if target.is_head { Method::Head } else { Method::Get };
    let framing = framing::response(method, head.version, head.status, fields)
        .map_err(|error| ProbeError::NotHttp(address, error.what().to_owned()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = fields.iter().map(|(_, name, value)| (text(name), text(value))).collect();
    reading.content(&mut peer, framing, bytes.split_off(head.length))?;
    Ok(Reply {
        address,
        status: head.status,
        fields,
        body: reading.body,
        connect: sent - begun,
        first_byte: first_byte - sent,
        total: clock::now() - sent,
    })
}

impl<'a> Peer<'a> {
    fn connect(target: &Target, address: SocketAddr, bounds: Allowance<'a>) -> Result<Self, ProbeError> {
        let limit = bounds.timeout;
        let deadline = clock::now() + limit;
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::ConnectionRefused => ProbeError::Refused(address),
            ErrorKind::TimedOut | ErrorKind::WouldBlock => ProbeError::ConnectTimeout(address, limit),
            _ => ProbeError::Unreachable(address, words(&error)),
        };
        let stream = Stream::connect(&address, &target.way).map_err(failed)?;
        let mut peer = Peer { address, stream, deadline, limit, stop: bounds.stop };
        peer.wait(PollFlags::OUT).and_then(|()| peer.stream.connected()).map_err(failed)?;
        if let Some(name) = &target.tls {
            peer.begin_tls(name, target.http2.is_some(), !target.way.insecure)?;
        }
        Ok(peer)
    }

    fn begin_tls(&mut self, name: &str, http2: bool, verify: bool) -> Result<(), ProbeError> {
        let address = self.address;
        let failed = |error: &dyn fmt::Display| ProbeError::Tls(address, error.to_string());
        let name = ServerName::try_from(name.to_owned()).map_err(|error| failed(&error))?;
        let configuration = client_configuration(verify, http2)
            .map_err(|error| ProbeError::Untrusted(address, error.to_string()))?;
        self.stream.begin_tls(&configuration, &name).map_err(|error| failed(&error))?;
        // What a handshake sends is small and fits, so that it waits for the server alone.
        while !self.stream.shake_hands().map_err(|error| self.no_tls(&error, http2))? {
            self.wait(PollFlags::IN).map_err(|error| self.no_tls(&error, http2))?;
        }
        if http2 && !self.stream.is_http2() {
            return Err(ProbeError::NoHttp2(address, "it agrees to no protocol (ALPN)".to_owned()));
        }
        Ok(())
    }

    /// Why a handshake came to nothing.
    fn no_tls(&self, error: &io::Error, http2: bool) -> ProbeError {
        match error.get_ref().and_then(|inside| inside.downcast_ref::<rustls::Error>()) {
            // What a server that speaks plain HTTP says to a ClientHello is no TLS record.
            Some(rustls::Error::InvalidMessage(
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
            )) => ProbeError::PlainServer(self.address),
            Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)) if http2 => {
                ProbeError::NoHttp2(self.address, "it does not offer h2 (ALPN)".to_owned())
            }
            Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => {
                ProbeError::Tls(self.address, "the server does not offer HTTP/1.1".to_owned())
            }
            Some(rustls::Error::InvalidCertificate(why)) => {
                ProbeError::Untrusted(self.address, untrusted(why))
            }
            Some(error) => ProbeError::Tls(self.address, error.to_string()),
            None if is_late(error) => {
                ProbeError::Tls(self.address, format!("nothing came within {:?}", self.limit))
            }
            None if is_end(error) => {
                ProbeError::Tls(self.address, "the server closed the connection".to_owned())
            }
            None => ProbeError::Tls(self.address, words(error)),
        }
    }

    /// Waits until the socket is ready, for as long as is left.
    fn wait(&self, ready: PollFlags) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(clock::now());
        match stop::wait(&self.stream, ready, self.stop.map(Stop::asked), left)? {
            Woken::Ready => Ok(()),
            // Whoever asked for it looks whether it was the user, whatever the error says.
            Woken::Late | Woken::Stopped => Err(ErrorKind::TimedOut.into()),
        }
    }

    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream.send(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(PollFlags::OUT)?,
                Err(error) => return Err(error),
            }
        }
        while !self.stream.flush()? {
            self.wait(PollFlags::OUT)?;
        }
        Ok(())
    }

    /// Reads what comes; 0 is the end.
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.receive(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(PollFlags::IN)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_end(&error) => return Ok(0),
                read => return read,
            }
        }
    }
}

/// Why a certificate is not trusted, in words.
fn untrusted(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => "nobody that this system trusts issued it".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another name".to_owned()
        }
        // webpki's word for a certificate of an authority, which most self-signed ones are, in a server's place.
        CertificateError::Other(why) if why.to_string().contains("CaUsedAsEndEntity") => {
            "it is self-signed".to_owned()
        }
        other => other.to_string(),
    }
}

/// An answer while it is read.
struct Reading {
    body: Vec<u8>,
    most: usize,
    address: SocketAddr,
}

impl Reading {
    /// The head, the bytes that it and what follows stand in, and when the first of them came. Interim answers are passed
    /// over (RFC 9110 §15.2).
    fn head(&self, peer: &mut Peer<'_>) -> Result<(ResponseHead, Vec<u8>, Instant), ProbeError> {
        let mut head = ResponseHead::default();
        let (mut bytes, mut buffer) = (Vec::new(), vec![0; BUFFER]);
        let mut first_byte = None;
        loop {
            match peer.receive(&mut buffer) {
                Ok(0) => return Err(ProbeError::Closed(self.address)),
                Ok(length) => bytes.extend_from_slice(&buffer[..length]),
                Err(error) if is_late(&error) => return Err(ProbeError::Silent(self.address, peer.limit)),
                Err(_) => return Err(ProbeError::Closed(self.address)),
            }
            let now = clock::now();
            // A TLS record's type and major version: an alert is what a TLS server says to plain text.
            if matches!(bytes.as_slice(), [0x15 | 0x16, 3, ..]) {
                return Err(ProbeError::TlsServer(self.address));
            }
            while head.parse(&bytes, &HEAD).map_err(|error| self.not_http(&error, &bytes))?
                == Progress::Complete
            {
                if !head.is_interim() {
                    return Ok((head, bytes, first_byte.unwrap_or(now)));
                }
                bytes.drain(..head.length);
                head.clear();
                first_byte = None;
            }
            if !bytes.is_empty() {
                first_byte.get_or_insert(now);
            }
        }
    }

    fn not_http(&self, error: &impl fmt::Debug, bytes: &[u8]) -> ProbeError {
        let beginning: String =
            bytes.iter().take(24).flat_map(|byte| byte.escape_ascii()).map(char::from).collect();
        ProbeError::NotHttp(self.address, format!("{error:?}, it begins with \"{beginning}\""))
    }

    /// The body, of which `bytes` have come with the head.
    fn content(
        &mut self,
        peer: &mut Peer<'_>,
        framing: Framing,
        mut bytes: Vec<u8>,
    ) -> Result<(), ProbeError> {
        let address = self.address;
        let Some(mut content) = Content::of(framing) else { return Ok(()) };
        if let Framing::Length(length) = framing
            && length > self.most as u64
        {
            return Err(ProbeError::Large(address, length));
        }
        loop {
            let mut at = 0;
            while at < bytes.len() {
                let read = content.read(&bytes[at..]);
                let (length, data, is_whole) =
                    read.map_err(|error| ProbeError::NotHttp(address, error.what().to_owned()))?;
                self.body.extend_from_slice(data);
                at += length;
                if self.body.len() > self.most {
                    return Err(ProbeError::Endless(address, self.most));
                }
                if is_whole {
                    return Ok(());
                }
            }
            let came = self.body.len() as u64;
            bytes.resize(BUFFER, 0);
            match peer.receive(&mut bytes) {
                Ok(0) if matches!(content, Content::Close) => return Ok(()),
                Ok(length @ 1..) => bytes.truncate(length),
                Err(error) if is_late(&error) => {
                    return Err(ProbeError::Unfinished(address, peer.limit, came));
                }
                _ => return Err(ProbeError::ShortBody(address, came)),
            }
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// The system's words without its number.
fn words(error: &io::Error) -> String {
    let said = error.to_string();
    said.split(" (os error").next().unwrap_or(&said).to_lowercase()
}
