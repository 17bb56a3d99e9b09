//! What is stapled to certificates: responders are asked in the background, and what they say is in use while it holds.
//!
//! One task does it for each certificate, whichever servers have it; a handshake never waits for it. It is asked for anew ahead of its end, and what has ended
//! is sent no more. Before: `ocsp`, which judges; next: `pace`, which decides when, and `millstream`'s `app/src/stapling.rs`, the thread.

use crate::chance::chance;
use crate::failure::AcmeFailure;
use crate::ocsp::{OcspFailure, OcspQuestion, responder};
use crate::transport::{self, Question};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use millstream_conf::model::{Level, Stapling, WebUrl};
use millstream_net::clock;
use millstream_net::resolver::Resolver;
use millstream_net::timer::pause;
use millstream_net::tls::{CertificateDer, CertificateIssuer, Leaf, ServerTls};
use millstream_telemetry::error_log::ErrorLogs;
use millstream_wire::Method;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

mod pace;

use pace::Pace;

/// Bytes of a response, which goes with every handshake.
const MOST_RESPONSE: usize = 16 * 1024;

#[derive(Debug)]
pub struct Asked {
    leaf: CertificateDer<'static>,
    issuer: CertificateIssuer,
    responder: WebUrl,
    question: OcspQuestion,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAsked {
    /// No file holds the authority's certificate.
    NoIssuer,
    NoResponder,
    /// The responder's URL is not plain HTTP.
    BadResponder(String),
    Malformed,
}

impl NotAsked {
    /// The message, in nginx's words; `name` is the certificate's.
    pub fn about(&self, name: &str) -> String {
        let why = match self {
            NotAsked::NoIssuer => format!("issuer certificate not found for certificate \"{name}\""),
            NotAsked::NoResponder => format!("no OCSP responder URL in the certificate \"{name}\""),
            NotAsked::BadResponder(url) => {
                format!("invalid URL prefix in OCSP responder \"{url}\" in the certificate \"{name}\"")
            }
            NotAsked::Malformed => format!("the certificate \"{name}\" cannot be read"),
        };
        format!("\"ssl_stapling\" ignored, {why}")
    }
}

impl Asked {
    pub fn about(leaf: &Leaf, stapling: &Stapling) -> Result<Asked, NotAsked> {
        let issuer = CertificateIssuer::of(&leaf.certificate, &leaf.above).ok_or(NotAsked::NoIssuer)?;
        let named = || {
            let url = responder(&leaf.certificate).ok_or(NotAsked::NoResponder)?;
            WebUrl::parse_plain(&url).ok_or(NotAsked::BadResponder(url))
        };
        let responder = stapling.responder.clone().map_or_else(named, Ok)?;
        let question = OcspQuestion::about(&leaf.certificate, &issuer).ok_or(NotAsked::Malformed)?;
        let name = leaf.name.display().to_string();
        Ok(Asked { leaf: leaf.certificate.clone(), issuer, responder, question, name })
    }

    /// Whether both ask the same of the same responder.
    pub fn is_as(&self, other: &Asked) -> bool {
        self.leaf == other.leaf && self.responder == other.responder
    }
}

pub struct Stapled {
    pub log: ErrorLogs,
    pub resolver: Option<Arc<Resolver>>,
    pub resolver_timeout: Duration,
    pub servers: Vec<Arc<ServerTls>>,
    /// The OCSP response and the second until which it is valid, since 1970.
    pub said: Option<(Vec<u8>, i64)>,
}

impl Stapled {
    /// Hands the response to every server while it is valid.
    pub fn publish(&self, asked: &Asked) {
        let said = self.said.as_ref().map(|(response, _)| &response[..]);
        self.servers.iter().for_each(|server| server.staple(&asked.leaf, said));
    }
}

pub async fn run(asked: Rc<Asked>, stapled: Rc<RefCell<Stapled>>) {
    let mut pace = Pace::default();
    loop {
        let answer = ask(&asked, &stapled).await;
        let now = clock::wall().seconds;
        let next = match answer {
            Ok((response, until)) => {
                // Without an end it holds until the next one is there (RFC 6960 §2.4).
                stapled.borrow_mut().said = Some((response, until.unwrap_or(i64::MAX)));
                stapled.borrow().publish(&asked);
                pace.answered(until.map(|until| until - now))
            }
            Err(failure) => {
                // What was said before holds on, unless this is the better word.
                if failure.is_the_answer() && stapled.borrow_mut().said.take().is_some() {
                    stapled.borrow().publish(&asked);
                }
                pace.failed(&failure.to_string(), failure.is_lasting(), chance())
            }
        };
        if let Some((level, what)) = next.told {
            tell(&asked, &stapled, level, &what);
        }
        wait(&asked, &stapled, now + next.rest).await;
    }
}

/// Waits until `next`; a response that expires meanwhile is no longer sent.
async fn wait(asked: &Asked, stapled: &RefCell<Stapled>, next: i64) {
    loop {
        let now = clock::wall().seconds;
        let end = stapled.borrow().said.as_ref().map_or(i64::MAX, |(_, until)| *until);
        if end <= now {
            stapled.borrow_mut().said = None;
            stapled.borrow().publish(asked);
            continue;
        }
        if next <= now {
            return;
        }
        pause(Duration::from_secs(u64::try_from(next.min(end) - now).unwrap_or(0))).await;
    }
}

fn tell(asked: &Asked, stapled: &RefCell<Stapled>, level: Level, what: &str) {
    let (name, responder) = (&asked.name, &asked.responder.text);
    let log = stapled.borrow().log.clone();
    log.write(level, format_args!("ssl_stapling: {what}, responder {responder}, certificate \"{name}\""));
}

enum StaplingFailure {
    Unheard(AcmeFailure),
    Status(u16),
    TooLong,
    Judged(OcspFailure),
}

impl StaplingFailure {
    /// Whether the authority itself says that the certificate is not good.
    fn is_the_answer(&self) -> bool {
        matches!(self, StaplingFailure::Judged(OcspFailure::Revoked | OcspFailure::Unknown))
    }

    /// Whether a retry within minutes is pointless. A certificate just issued may be unknown for a while.
    fn is_lasting(&self) -> bool {
        matches!(self, StaplingFailure::Judged(OcspFailure::Revoked))
    }
}

impl fmt::Display for StaplingFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StaplingFailure::Unheard(failure) => failure.fmt(f),
            StaplingFailure::Status(status) => write!(f, "the OCSP responder responded with {status}"),
            StaplingFailure::TooLong => write!(f, "the response is longer than {MOST_RESPONSE} bytes"),
            StaplingFailure::Judged(failure) => failure.fmt(f),
        }
    }
}

async fn ask(asked: &Asked, stapled: &RefCell<Stapled>) -> Result<(Vec<u8>, Option<i64>), StaplingFailure> {
    let (resolver, timeout) = {
        let around = stapled.borrow();
        (around.resolver.clone(), around.resolver_timeout)
    };
    let mut url = asked.responder.clone();
    url.target = target(&url.target, &asked.question.request);
    let question =
        Question { method: Method::Get, url: &url.text, body: None, accept: "application/ocsp-response" };
    let reply = transport::ask_plainly(&url, &question, resolver.as_ref(), timeout).await;
    let reply = reply.map_err(StaplingFailure::Unheard)?;
    if reply.status != 200 {
        return Err(StaplingFailure::Status(reply.status));
    }
    if reply.body.len() > MOST_RESPONSE {
        return Err(StaplingFailure::TooLong);
    }
    let judged = asked.question.judge(&reply.body, &asked.issuer, clock::wall().seconds);
    let until = judged.map_err(StaplingFailure::Judged)?;
    Ok((reply.body, until))
}

/// The request in base64 as the last part of the path (RFC 6960 §A.1), which caches can store.
fn target(path: &str, request: &[u8]) -> String {
    let mut target = path.trim_end_matches('/').to_owned();
    target.push('/');
    for letter in STANDARD.encode(request).chars() {
        match letter {
            '+' => target.push_str("%2B"),
            '/' => target.push_str("%2F"),
            '=' => target.push_str("%3D"),
            plain => target.push(plain),
        }
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_stands_in_the_path_as_text() {
        for (path, expected) in
            [("/", "/%2B%2F8%3D"), ("/ocsp", "/ocsp/%2B%2F8%3D"), ("/a/", "/a/%2B%2F8%3D")]
        {
            assert_eq!(target(path, &[0xfb, 0xff]), expected);
        }
    }
}
