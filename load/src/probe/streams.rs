//! The same question in HTTP/2: one connection with one stream.

use super::{BUFFER, Peer, ProbeError, Reply, is_late};
use crate::exchange::Awaited;
use crate::http2_request::Http2Request;
use crate::multiplex::{AskedAlike, Broken, Event, Multiplex};
use crate::plan::Target;
use millstream_net::clock;
use millstream_wire::h2::error_code::ErrorCode;
use rustix::event::PollFlags;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

/// Asks on a connection that is there; connecting took `connect`.
pub(super) fn ask(
    peer: &mut Peer<'_>,
    target: &Target,
    request: &Arc<Http2Request>,
    most: usize,
    connect: Duration,
) -> Result<Reply, ProbeError> {
    let address = peer.address;
    let awaited = Awaited { is_head: target.is_head, body: None };
    let only = AskedAlike { request: Arc::clone(request), awaited };
    let mut streams = Multiplex::collecting(most);
    let (mut buffer, mut sent, mut first_byte) = (vec![0; BUFFER], clock::now(), None);
    loop {
        // A server may answer and close before it has read all: the answer says more than the failed write.
        _ = send(peer, &mut streams, &only);
        let length = match receive(peer, &mut streams, &only, &mut buffer) {
            Ok(0) => return Err(ProbeError::Closed(address)),
            Ok(length) => length,
            Err(error) if is_late(&error) => return Err(ProbeError::Silent(address, peer.limit)),
            Err(_) => return Err(ProbeError::Closed(address)),
        };
        let now = clock::now();
        // A TLS record's type and major version: an alert is what a TLS server says to plain text.
        if target.tls.is_none() && !streams.is_greeted() && matches!(&buffer[..length], [0x15 | 0x16, 3, ..])
        {
            return Err(ProbeError::TlsServer(address));
        }
        let mut at = 0;
        while at < length {
            let (read, event) =
                streams.read(&buffer[at..length], &only, 0).map_err(|broken| told(address, broken))?;
            at += read;
            match event {
                Some(Event::Greeted) if streams.has_room(1) => {
                    sent = now;
                    streams.open(0, request);
                }
                Some(Event::Answered { answer, .. }) => {
                    if streams.is_overfull() {
                        return Err(ProbeError::Endless(address, most));
                    }
                    let (fields, body) = streams.collected();
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    return Ok(Reply {
                        address,
                        status: answer.status,
                        fields: fields
                            .view()
                            .iter()
                            .map(|(_, name, value)| (text(name), text(value)))
                            .collect(),
                        body,
                        connect,
                        first_byte: first_byte.unwrap_or(now) - sent,
                        total: now - sent,
                    });
                }
                event => failed(address, event)?,
            }
        }
        if streams.has_begun(0) {
            first_byte.get_or_insert(now);
        }
        if streams.is_overfull() {
            return Err(ProbeError::Endless(address, most));
        }
    }
}

/// Why there will be no answer, if that is what the event says.
fn failed(address: std::net::SocketAddr, event: Option<Event>) -> Result<(), ProbeError> {
    let not = |why: String| Err(ProbeError::BrokenHttp2(address, why));
    match event {
        None | Some(Event::Answered { .. } | Event::GoneAway { unanswered: 0, .. }) => Ok(()),
        Some(Event::Greeted) => not("it allows no streams".to_owned()),
        Some(Event::Reset { code, .. }) => not(format!("it reset the stream ({})", code.name())),
        Some(Event::Malformed { what, .. }) => not(format!("it sent {what}")),
        Some(Event::ShortBody { .. }) => not("its body is shorter than announced".to_owned()),
        Some(Event::GoneAway { .. }) => Err(ProbeError::Closed(address)),
    }
}

fn told(address: std::net::SocketAddr, Broken(code, what): Broken) -> ProbeError {
    match code {
        ErrorCode::Http11Required => ProbeError::NoHttp2(address, format!("it sent {what}")),
        _ => ProbeError::BrokenHttp2(address, format!("it sent {what}")),
    }
}

/// Sends what fits, without waiting.
fn send(peer: &mut Peer<'_>, streams: &mut Multiplex, only: &AskedAlike<'_>) -> io::Result<()> {
    loop {
        let bytes = streams.unsent(only);
        if bytes.is_empty() {
            peer.stream.flush()?;
            return Ok(());
        }
        match peer.stream.send(bytes) {
            Ok(count) => streams.sent(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Reads what comes; 0 is the end. Meanwhile the rest of the request goes out.
fn receive(
    peer: &mut Peer<'_>,
    streams: &mut Multiplex,
    only: &AskedAlike<'_>,
    into: &mut [u8],
) -> io::Result<usize> {
    loop {
        match peer.stream.receive(into) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let is_held_up = streams.is_held_up();
                peer.wait(if is_held_up { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN })?;
                _ = send(peer, streams, only);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if super::is_end(&error) => return Ok(0),
            read => return read,
        }
    }
}
