//! One request, and what came of it in words: asked before a load, so that a mistake costs a sentence and not a run.
//!
//! Blocking, bounded in time and in the bytes of the body. Next: `drive`, which sends the others.

mod failure;
#[cfg(test)]
mod tests;

pub use failure::ProbeError;

use crate::exchange::{Broken, Collected, Event, Exchange, Fault};
use crate::multiplex::Multiplex;
use crate::pipeline::Pipeline;
use crate::plan::{Target, Way};
use crate::stop::{self, Stop, Woken};
use crate::stream::{Stream, client_configuration};
use crate::target::NO_ADDRESS;
use millstream_net::clock;
use millstream_wire::h2::error_code::ErrorCode;
use rustix::event::PollFlags;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, InvalidMessage as NoMessage};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Bytes read at a time.
const BUFFER: usize = 64 * 1024;
/// Bytes of what is no answer that are told.
const BEGINNING: usize = 24;

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

/// What is asked, and what it may take.
#[derive(Clone, Copy)]
struct Question<'a> {
    target: &'a Target,
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
    Question { target, timeout, most, stop: None }.asked()
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
    let told = Question { target, timeout, most, stop: Some(stop) }.asked();
    // A wait that was cut short looks like any other failure from within.
    told.map_err(|error| if stop.is_asked() { ProbeError::Stopped } else { error })
}

impl<'a> Question<'a> {
    fn asked(self) -> Result<Reply, ProbeError> {
        let is_plain = self.target.tls.is_none();
        let mut last = ProbeError::Unreachable(NO_ADDRESS, "it has no address".to_owned());
        for &address in &self.target.addresses {
            match self.ask(address) {
                // Some TLS servers say so in plain, some hang up on what they do not understand.
                Ok(answer) if is_plain && says_tls(&answer) => return Err(ProbeError::TlsServer(address)),
                Err(ProbeError::Closed(_)) if is_plain && self.is_answered_in_tls(address) => {
                    return Err(ProbeError::TlsServer(address));
                }
                // A server that waits for the end of a head says nothing at all to a handshake.
                Err(ProbeError::Tls(..)) if self.is_answered_plainly(address) => {
                    return Err(ProbeError::PlainServer(address));
                }
                Err(
                    error @ (ProbeError::Refused(_)
                    | ProbeError::Unreachable(..)
                    | ProbeError::ConnectTimeout(..)),
                ) => last = error,
                told => return told,
            }
        }
        Err(last)
    }

    /// Whether a handshake comes to an end here.
    fn is_answered_in_tls(self, address: SocketAddr) -> bool {
        let way = Way { insecure: true, ..self.target.way.clone() };
        let tls = Some(address.ip().to_string());
        let target = &Target { tls, way, http2: None, ..self.target.clone() };
        Peer::connect(Question { target, ..self }, address).is_ok()
    }

    /// Whether plain HTTP is answered here. The question has nothing of the user's request, which was to be secret.
    fn is_answered_plainly(self, address: SocketAddr) -> bool {
        let request = format!("HEAD / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let request = request.into_bytes().into();
        let target = &Target { tls: None, request, http2: None, is_head: true, ..self.target.clone() };
        Question { target, most: 0, ..self }.ask(address).is_ok()
    }

    fn ask(self, address: SocketAddr) -> Result<Reply, ProbeError> {
        match self.target.http2 {
            None => self.ask_over::<Pipeline>(address),
            Some(_) => self.ask_over::<Multiplex>(address),
        }
    }

    fn ask_over<Protocol: Exchange>(self, address: SocketAddr) -> Result<Reply, ProbeError> {
        let (target, asked) = (self.target, |_| self.target);
        let begun = clock::now();
        let mut peer = Peer::connect(self, address)?;
        // Over HTTP/2 it is sent once the server has said its settings.
        let (mut sent, mut is_sent) = (clock::now(), false);
        let connect = sent - begun;
        peer.deadline = sent + self.timeout;
        let (mut exchange, mut room) = (Protocol::default(), Protocol::Room::default());
        *exchange.kept() = Some(Box::new(Collected { most: self.most, ..Collected::default() }));
        let (mut buffer, mut beginning) = (vec![0; BUFFER], Vec::new());
        let answer = 'answer: loop {
            if !is_sent && exchange.has_room(1) {
                exchange.open(0, target);
                (sent, is_sent) = (clock::now(), true);
            }
            // A server may answer and close before it has read all: the answer says more than the failed write.
            _ = peer.stream.send_all(&mut exchange, &asked, &mut room);
            let length = match peer.receive(&mut buffer, exchange.is_held_up()) {
                Ok(None) => continue,
                Ok(Some(length)) => length,
                Err(error) => return Err(self.missing(address, &mut exchange, is_late(&error))),
            };
            if length == 0 {
                break exchange.end().ok_or_else(|| self.missing(address, &mut exchange, false))?;
            }
            let now = (clock::now() - sent).as_nanos().max(1) as u64;
            beginning.extend(buffer[..length].iter().take(BEGINNING - beginning.len()));
            // A TLS record's type and major version: an alert is what a TLS server says to plain text.
            if target.tls.is_none() && matches!(beginning.as_slice(), [0x15 | 0x16, 3, ..]) {
                return Err(ProbeError::TlsServer(address));
            }
            let mut at = 0;
            while at < length {
                let came = exchange.read(&buffer[at..length], &asked, &mut room, now);
                let (read, event) = came.map_err(|broken| self.broken(address, broken, &beginning))?;
                at += read;
                self.check_length(address, exchange.kept().as_deref())?;
                match event {
                    Some(Event::Answered(_, answer)) => break 'answer answer,
                    Some(Event::Greeted) if exchange.has_room(1) => {}
                    event => failed(address, event)?,
                }
            }
        };
        let Collected { fields, body, .. } = *exchange.kept().take().unwrap_or_default();
        let (first_byte, total) = (Duration::from_nanos(answer.first_byte), clock::now() - sent);
        Ok(Reply { address, status: answer.status, fields, body, connect, first_byte, total })
    }

    /// Nothing more comes, and there is no whole answer.
    fn missing(self, address: SocketAddr, exchange: &mut impl Exchange, is_late: bool) -> ProbeError {
        let bytes = exchange.kept().as_ref().map_or(0, |kept| kept.body.len() as u64);
        match (is_late, exchange.has_begun(0)) {
            (true, true) => ProbeError::Unfinished(address, self.timeout, bytes),
            (true, false) => ProbeError::Silent(address, self.timeout),
            (false, true) => ProbeError::ShortBody(address, bytes),
            (false, false) => ProbeError::Closed(address),
        }
    }

    fn unconnected(self, address: SocketAddr, error: &io::Error) -> ProbeError {
        match error.kind() {
            ErrorKind::ConnectionRefused => ProbeError::Refused(address),
            ErrorKind::TimedOut | ErrorKind::WouldBlock => ProbeError::ConnectTimeout(address, self.timeout),
            _ => ProbeError::Unreachable(address, words(error)),
        }
    }

    fn check_length(self, address: SocketAddr, kept: Option<&Collected>) -> Result<(), ProbeError> {
        match kept {
            Some(Collected { announced: Some(length), .. }) if *length > self.most as u64 => {
                Err(ProbeError::Large(address, *length))
            }
            Some(kept) if kept.body.len() > self.most => Err(ProbeError::Endless(address, self.most)),
            _ => Ok(()),
        }
    }

    fn broken(self, address: SocketAddr, Broken(code, what): Broken, beginning: &[u8]) -> ProbeError {
        match (code, &self.target.http2) {
            (ErrorCode::Http11Required, _) => ProbeError::NoHttp2(address, format!("it sent {what}")),
            (_, Some(_)) => ProbeError::BadAnswer(address, 2, format!("it sent {what}")),
            (_, None) => {
                let beginning = beginning.escape_ascii();
                ProbeError::BadAnswer(
                    address,
                    1,
                    format!("it sent {what}; the answer begins with \"{beginning}\""),
                )
            }
        }
    }
}

/// Whether this is what nginx and its likes, or Apache, answer to plain HTTP where TLS is spoken.
fn says_tls(answer: &Reply) -> bool {
    let says = |words: &[u8]| answer.body.windows(words.len()).any(|part| part == words);
    answer.status == 400
        && (says(b"plain HTTP request was sent to HTTPS port")
            || says(b"plain HTTP to an SSL-enabled server port"))
}

/// Why there will be no answer, if that is what the event says.
fn failed(address: SocketAddr, event: Option<Event>) -> Result<(), ProbeError> {
    let why = match event {
        Some(Event::Greeted) => "it allows no streams".to_owned(),
        Some(Event::Failed(_, Fault::Reset(code))) => format!("it reset the stream ({})", code.name()),
        Some(Event::Failed(_, Fault::Malformed(what))) => format!("it sent {what}"),
        Some(Event::Failed(_, Fault::ShortBody)) => "its body is shorter than announced".to_owned(),
        Some(Event::GoneAway { unanswered: 1.., .. }) => return Err(ProbeError::Closed(address)),
        _ => return Ok(()),
    };
    Err(ProbeError::BadAnswer(address, 2, why))
}

/// A connection with a moment by which all must be done.
struct Peer<'a> {
    question: Question<'a>,
    address: SocketAddr,
    stream: Stream,
    deadline: Instant,
}

impl<'a> Peer<'a> {
    fn connect(question: Question<'a>, address: SocketAddr) -> Result<Peer<'a>, ProbeError> {
        let Question { target, timeout, .. } = question;
        let http2 = target.http2.is_some();
        let secure = match &target.tls {
            None => None,
            Some(name) => {
                let with = client_configuration(!target.way.insecure, http2)
                    .map_err(|error| ProbeError::Untrusted(address, error.to_string()))?;
                let name = ServerName::try_from(name.clone())
                    .map_err(|error| ProbeError::Tls(address, error.to_string()))?;
                Some((with, name))
            }
        };
        let secure = secure.as_ref().map(|(with, name)| (with, name));
        let stream = Stream::connect(&address, &target.way, secure)
            .map_err(|error| question.unconnected(address, &error))?;
        let mut peer = Peer { question, address, stream, deadline: clock::now() + timeout };
        while !peer.stream.is_open() {
            // What a handshake sends is small and fits, so that it waits for the server alone.
            let ready = if peer.stream.is_connected() { PollFlags::IN } else { PollFlags::OUT };
            let told = peer.wait(ready).and_then(|()| peer.stream.advance());
            told.map_err(|error| peer.unopened(&error))?;
        }
        if http2 && !peer.stream.is_http2() {
            return Err(ProbeError::NoHttp2(address, "it agrees to no protocol (ALPN)".to_owned()));
        }
        Ok(peer)
    }

    /// Why there is no connection, or why the handshake came to nothing.
    fn unopened(&self, error: &io::Error) -> ProbeError {
        use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage};
        let address = self.address;
        if !self.stream.is_connected() {
            return self.question.unconnected(address, error);
        }
        let why = match error.get_ref().and_then(|inside| inside.downcast_ref::<rustls::Error>()) {
            // What a server that speaks plain HTTP says to a ClientHello is no TLS record.
            Some(InvalidMessage(NoMessage::InvalidContentType | NoMessage::UnknownProtocolVersion)) => {
                return ProbeError::PlainServer(address);
            }
            Some(AlertReceived(AlertDescription::NoApplicationProtocol)) => {
                if self.question.target.http2.is_some() {
                    return ProbeError::NoHttp2(address, "it does not offer h2 (ALPN)".to_owned());
                }
                "the server does not offer HTTP/1.1".to_owned()
            }
            Some(InvalidCertificate(why)) => return ProbeError::Untrusted(address, untrusted(why)),
            Some(error) => error.to_string(),
            None if is_late(error) => format!("nothing came within {:?}", self.question.timeout),
            None if is_end(error) => "the server closed the connection".to_owned(),
            None => words(error),
        };
        ProbeError::Tls(address, why)
    }

    /// Waits until the socket is ready, for as long as is left.
    fn wait(&self, ready: PollFlags) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(clock::now());
        match stop::wait(&self.stream, ready, self.question.stop.map(Stop::asked), left)? {
            Woken::Ready => Ok(()),
            // Whoever asked for it looks whether it was the user, whatever the error says.
            Woken::Late | Woken::Stopped => Err(ErrorKind::TimedOut.into()),
        }
    }

    /// Reads what comes, 0 being the end; `None` where there may be room to send first.
    fn receive(&mut self, into: &mut [u8], is_held_up: bool) -> io::Result<Option<usize>> {
        match self.stream.receive(into) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let is_held_up = is_held_up || self.stream.is_held_up();
                self.wait(if is_held_up { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN })?;
                Ok(None)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(error) if is_end(&error) => Ok(Some(0)),
            read => read.map(Some),
        }
    }
}

/// Why a certificate is not trusted, in words.
fn untrusted(why: &CertificateError) -> String {
    use CertificateError as E;
    match why {
        E::UnknownIssuer => "nobody that this system trusts issued it".to_owned(),
        E::Expired | E::ExpiredContext { .. } => "it has expired".to_owned(),
        E::NotValidForName | E::NotValidForNameContext { .. } => "it is for another name".to_owned(),
        // webpki's word for a certificate of an authority, which most self-signed ones are, in a server's place.
        E::Other(why) if why.to_string().contains("CaUsedAsEndEntity") => "it is self-signed".to_owned(),
        other => other.to_string(),
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
