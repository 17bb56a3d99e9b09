//! One request, and what came of it in words: asked before a load, so that a mistake costs a sentence and not a run.
//!
//! Blocking, bounded in time and in the bytes of the body. Next: `drive`, which sends the others.

#[cfg(test)]
mod tests;

use crate::exchange::{Broken, Collected, Event, Exchange, Fault};
use crate::multiplex::Multiplex;
use crate::pipeline::Pipeline;
use crate::plan::{Target, Way};
use crate::stop::{self, Stop, Stopped, Woken};
use crate::stream::{Stream, client_configuration};
use crate::target::NO_ADDRESS;
use millstream_net::clock;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::other_protocol;
use rustix::event::PollFlags;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, InvalidMessage as NoMessage};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The longest body that is kept to be compared; one that is longer is taken for endless.
pub const LARGEST: usize = 64 << 20;
const BUFFER: usize = 64 * 1024;
/// Bytes of what is no answer that are told.
const BEGINNING: usize = 24;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Who gave it: of the target's addresses the first that took the connection.
    pub address: SocketAddr,
    pub status: u16,
    /// Its fields in order, bytes that are no UTF-8 replaced.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// How long connecting took, TLS included.
    pub connect: Duration,
    /// From when the request was sent to the first byte.
    pub first_byte: Duration,
    /// From when the request was sent to the last byte.
    pub total: Duration,
}

impl Reply {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

pub type Probed = Result<Reply, ProbeError>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The body is announced to be longer than the bound, by whoever is at this address.
    #[error("{1}")]
    Large(SocketAddr, String),
    #[error("{0}")]
    Because(String),
}

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("{0}")]
    Unconnected(String),
    #[error("does not use TLS: write http:// instead of https://")]
    PlainServer,
    #[error("uses TLS: write https:// instead of http://")]
    TlsServer,
    #[error("failed the TLS handshake: {0}")]
    Tls(String),
    #[error("sends a certificate that is not trusted: {0}, or use --insecure (-k)")]
    Untrusted(String),
    #[error("does not support HTTP/2: {0}; omit --http2")]
    NoHttp2(String),
    #[error("does not respond in HTTP/{0}: {1}")]
    BadAnswer(u8, String),
    #[error("closed the connection without a response")]
    Closed,
    #[error("sends a body that is {0} bytes long")]
    Large(u64),
    #[error("{0}")]
    Incomplete(String),
}

#[derive(Clone, Copy)]
struct Question<'a> {
    target: &'a Target,
    address: SocketAddr,
    timeout: Duration,
    /// Bytes of a body.
    most: usize,
    stop: Option<&'a Stop>,
}

/// Asks once: each of the target's addresses until one takes the connection. Connecting and answering have `timeout` each; a
/// body longer than `most` bytes is an error. Errors: why there is no answer; of several addresses, the last one's reason.
pub fn once(target: &Target, timeout: Duration, most: usize) -> Probed {
    Question { target, address: NO_ADDRESS, timeout, most, stop: None }.asked()
}

/// The same with a body of [`LARGEST`] bytes at the most, unless the user wants to stop: then it ends at once. Within: why
/// there is no answer. Errors: [`Stopped`].
pub fn once_unless(stop: &Stop, target: &Target, timeout: Duration) -> Result<Probed, Stopped> {
    let question = Question { target, address: NO_ADDRESS, timeout, most: LARGEST, stop: Some(stop) };
    let told = question.asked();
    // A wait that was cut short looks like any other failure from within.
    stop.go_on().map(|()| told)
}

/// Connects and asks for nothing, unless the user wants to stop. Within: who takes connections, or why nobody does. Errors:
/// [`Stopped`].
pub fn reach(
    stop: &Stop,
    target: &Target,
    timeout: Duration,
) -> Result<Result<SocketAddr, ProbeError>, Stopped> {
    let question = Question { target, address: NO_ADDRESS, timeout, most: 0, stop: Some(stop) };
    let told = question.at_an_address(|question| Peer::connect(question).map(|_| question.address));
    stop.go_on().map(|()| told)
}

impl<'a> Question<'a> {
    fn asked(self) -> Probed {
        let is_plain = self.target.tls.is_none();
        self.at_an_address(|question| match question.ask() {
            // Some TLS servers say so in plain, some hang up on what they do not understand.
            Ok(answer) if is_plain && other_protocol::asks_for_tls(answer.status, &answer.body) => {
                Err(Failed::TlsServer)
            }
            told => told,
        })
    }

    /// What comes of it at the first of the target's addresses that takes the connection.
    fn at_an_address<T>(self, ask: impl Fn(Question<'a>) -> Result<T, Failed>) -> Result<T, ProbeError> {
        let is_plain = self.target.tls.is_none();
        let mut last = ProbeError::Because("it has no address".to_owned());
        for &address in &self.target.addresses {
            let question = Question { address, ..self };
            let failed = match ask(question) {
                Ok(told) => return Ok(told),
                Err(Failed::Closed) if is_plain && question.is_answered_in_tls() => Failed::TlsServer,
                // A server that waits for the end of a head says nothing at all to a handshake.
                Err(Failed::Tls(_)) if question.is_answered_plainly() => Failed::PlainServer,
                Err(failed) => failed,
            };
            let said = match &self.target.way.unix_socket {
                Some(path) => format!("unix:{} {failed}", path.display()),
                None => format!("{address} {failed}"),
            };
            match failed {
                Failed::Unconnected(_) => last = ProbeError::Because(said),
                Failed::Large(_) => return Err(ProbeError::Large(address, said)),
                _ => return Err(ProbeError::Because(said)),
            }
        }
        Err(last)
    }

    fn is_answered_in_tls(self) -> bool {
        let way = Way { insecure: true, ..self.target.way.clone() };
        let tls = Some(self.address.ip().to_string());
        let target = &Target { tls, way, http2: None, ..self.target.clone() };
        Peer::connect(Question { target, ..self }).is_ok()
    }

    /// Whether plain HTTP is answered here. The question has nothing of the user's request, which was to be secret.
    fn is_answered_plainly(self) -> bool {
        let request = format!("HEAD / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        let request = request.into_bytes().into();
        let target = &Target { tls: None, request, http2: None, is_head: true, ..self.target.clone() };
        Question { target, most: 0, ..self }.ask().is_ok()
    }

    fn ask(self) -> Result<Reply, Failed> {
        match self.target.http2 {
            None => self.ask_over::<Pipeline>(),
            Some(_) => self.ask_over::<Multiplex>(),
        }
    }

    fn ask_over<Protocol: Exchange>(self) -> Result<Reply, Failed> {
        let (target, asked) = (self.target, |_| self.target);
        let begun = clock::now();
        let mut peer = Peer::connect(self)?;
        // Over HTTP/2 it is sent once the server has said its settings.
        let (mut sent, mut is_sent) = (clock::now(), false);
        let connect = sent - begun;
        peer.deadline = sent + self.timeout;
        let (mut exchange, mut room) = (Protocol::default(), Protocol::Room::default());
        exchange.greet();
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
                Err(error) => return Err(self.missing(&mut exchange, is_late(&error))),
            };
            if length == 0 {
                break exchange.end().ok_or_else(|| self.missing(&mut exchange, false))?;
            }
            let now = (clock::now() - sent).as_nanos().max(1) as u64;
            beginning.extend(buffer[..length].iter().take(BEGINNING - beginning.len()));
            // An alert is what a TLS server says to plain text.
            if target.tls.is_none() && other_protocol::is_tls(&beginning) {
                return Err(Failed::TlsServer);
            }
            let mut at = 0;
            while at < length {
                let came = exchange.read(&buffer[at..length], &asked, &mut room, now);
                let (read, event) = came.map_err(|broken| self.broken(broken, &beginning))?;
                at += read;
                self.check_length(exchange.kept().as_deref())?;
                match event {
                    Some(Event::Answered(_, answer)) => break 'answer answer,
                    Some(event) => check(&event, &exchange)?,
                    None => {}
                }
            }
        };
        let Collected { fields, body, .. } = *exchange.kept().take().unwrap_or_default();
        let (first_byte, total) = (Duration::from_nanos(answer.first_byte), clock::now() - sent);
        Ok(Reply { address: self.address, status: answer.status, fields, body, connect, first_byte, total })
    }

    fn missing(self, exchange: &mut impl Exchange, is_late: bool) -> Failed {
        let (limit, has_begun) = (self.timeout, exchange.has_begun(0));
        let bytes = exchange.kept().as_ref().map_or(0, |kept| kept.body.len());
        Failed::Incomplete(match (is_late, has_begun) {
            (true, true) => {
                format!("did not complete its response within {limit:?}; {bytes} bytes of the body arrived")
            }
            (true, false) => format!("did not respond within {limit:?}"),
            (false, true) => format!("closed the connection after {bytes} bytes of the body"),
            (false, false) => return Failed::Closed,
        })
    }

    fn unconnected(self, error: &io::Error) -> Failed {
        Failed::Unconnected(match error.kind() {
            ErrorKind::ConnectionRefused => "refuses connections: no process is listening there".to_owned(),
            ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                format!("did not accept the connection within {:?}", self.timeout)
            }
            _ => format!("cannot be reached: {}", words(error)),
        })
    }

    fn check_length(self, kept: Option<&Collected>) -> Result<(), Failed> {
        let most = self.most;
        match kept {
            Some(Collected { announced: Some(length), .. }) if *length > most as u64 => {
                Err(Failed::Large(*length))
            }
            Some(kept) if kept.body.len() > most => {
                Err(Failed::Incomplete(format!("sends an endless body: more than {most} bytes arrived")))
            }
            _ => Ok(()),
        }
    }

    fn broken(self, Broken(code, what): Broken, beginning: &[u8]) -> Failed {
        let (what, beginning) = (format!("it sent {what}"), beginning.escape_ascii());
        match (code, &self.target.http2) {
            (ErrorCode::Http11Required, _) => Failed::NoHttp2(what),
            (_, Some(_)) => Failed::BadAnswer(2, what),
            (_, None) => Failed::BadAnswer(1, format!("{what}; the response begins with \"{beginning}\"")),
        }
    }
}

fn check(event: &Event, exchange: &impl Exchange) -> Result<(), Failed> {
    let why = match event {
        Event::Greeted(_) if !exchange.has_room(1) => "it allows no streams".to_owned(),
        Event::Failed(_, Fault::Reset(code)) => format!("it reset the stream ({})", code.name()),
        Event::Failed(_, Fault::Malformed(what)) => format!("it sent {what}"),
        Event::Failed(_, Fault::ShortBody) => "its body is shorter than announced".to_owned(),
        Event::GoneAway { unanswered: 1.., .. } => return Err(Failed::Closed),
        _ => return Ok(()),
    };
    Err(Failed::BadAnswer(2, why))
}

struct Peer<'a> {
    question: Question<'a>,
    stream: Stream,
    deadline: Instant,
}

impl<'a> Peer<'a> {
    fn connect(question: Question<'a>) -> Result<Peer<'a>, Failed> {
        let Question { target, address, timeout, .. } = question;
        let http2 = target.http2.is_some();
        let secure = |name: &String| {
            let with = client_configuration(!target.way.insecure, http2);
            let name = ServerName::try_from(name.clone()).map_err(|error| Failed::Tls(error.to_string()))?;
            Ok((with.map_err(|error| Failed::Unconnected(format!("cannot be verified: {error}")))?, name))
        };
        let secure = target.tls.as_ref().map(secure).transpose()?;
        let secure = secure.as_ref().map(|(with, name)| (with, name));
        let stream = Stream::connect(&address, &target.way, secure);
        let stream = stream.map_err(|error| question.unconnected(&error))?;
        let mut peer = Peer { question, stream, deadline: clock::now() + timeout };
        while !peer.stream.is_open() {
            // What a handshake sends is small and fits, so that it waits for the server alone.
            let ready = if peer.stream.is_connected() { PollFlags::IN } else { PollFlags::OUT };
            let told = peer.wait(ready).and_then(|()| peer.stream.advance());
            told.map_err(|error| peer.unopened(&error))?;
        }
        if http2 && !peer.stream.is_http2() {
            return Err(Failed::NoHttp2("it selected no protocol (ALPN)".to_owned()));
        }
        Ok(peer)
    }

    fn unopened(&self, error: &io::Error) -> Failed {
        use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage};
        let question = self.question;
        if !self.stream.is_connected() {
            return question.unconnected(error);
        }
        Failed::Tls(match error.get_ref().and_then(|inside| inside.downcast_ref::<rustls::Error>()) {
            // What a server that speaks plain HTTP says to a ClientHello is no TLS record.
            Some(InvalidMessage(NoMessage::InvalidContentType | NoMessage::UnknownProtocolVersion)) => {
                return Failed::PlainServer;
            }
            Some(AlertReceived(AlertDescription::NoApplicationProtocol)) => match question.target.http2 {
                Some(_) => return Failed::NoHttp2("it does not offer h2 (ALPN)".to_owned()),
                None => "the server does not offer HTTP/1.1".to_owned(),
            },
            Some(InvalidCertificate(why)) => return Failed::Untrusted(untrusted(why)),
            Some(error) => error.to_string(),
            None if is_late(error) => format!("no data arrived within {:?}", question.timeout),
            None if is_end(error) => "the server closed the connection".to_owned(),
            None => words(error),
        })
    }

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

fn untrusted(why: &CertificateError) -> String {
    use CertificateError as E;
    match why {
        E::UnknownIssuer => {
            "its issuer is not trusted by this system; set SSL_CERT_FILE to a file with the issuer's certificate"
                .to_owned()
        }
        E::Expired | E::ExpiredContext { .. } => "it has expired; renew it".to_owned(),
        E::NotValidYet | E::NotValidYetContext { .. } => "it is not valid yet; check the clocks".to_owned(),
        E::NotValidForName | E::NotValidForNameContext { .. } => {
            "it is for another name; use that name in the URL, and --connect-to for this address".to_owned()
        }
        // webpki's word for a certificate of an authority, which most self-signed ones are, in a server's place.
        E::Other(why) if why.to_string().contains("CaUsedAsEndEntity") => {
            "it is self-signed; use one from a certificate authority".to_owned()
        }
        other => format!("it is not valid ({other}); replace it"),
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

fn words(error: &io::Error) -> String {
    let said = error.to_string();
    said.split(" (os error").next().unwrap_or(&said).to_lowercase()
}
