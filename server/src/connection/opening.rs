//! How a connection begins: what a proxy says of it, the TLS handshake, and the facts that hold for all its requests.

use super::accepted::Accepted;
use super::naming::Naming;
use super::proxied;
use crate::generation::Generation;
use crate::judged::ClientCertificate;
use crate::request::ConnectionFacts;
use crate::worker::{Awaits, ConnectionSlot, Worker};
use millstream_conf::model::{Level, ListenAddress};
use millstream_net::stream::Stream;
use millstream_net::timer::{Deadline, with_deadline};
use millstream_net::tls::HandshakeError;
use millstream_net::{Address, clock};
use millstream_telemetry::about::About;
use millstream_telemetry::metrics::Counter;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

static SERIAL: AtomicU64 = AtomicU64::new(1);

pub(super) struct Opened {
    pub(super) accepted: Accepted,
    pub(super) socket: Stream,
    pub(super) place: ConnectionSlot,
}

/// Performs the TLS handshake if the listener wants one. `None` if it failed.
pub(super) async fn open(
    worker: Rc<Worker>,
    generation: Rc<Generation>,
    place: ConnectionSlot,
    stream: Stream,
    remote: Address,
    address: Rc<ListenAddress>,
) -> Option<Opened> {
    let listener = generation.listener_of(&address)?;
    let opened = clock::now();
    let mut stream = stream;
    let proxied = match generation.http().listeners[listener].proxy_protocol {
        true => proxied::read(&mut stream, &generation, listener, &place, &remote).await?,
        false => None,
    };
    let (stream, is_plain_on_tls) =
        shake_hands(&worker, &generation, (&place, listener), stream, &remote, opened).await?;
    let own = generation.http().server(generation.http().listeners[listener].default_server).own;
    if generation.http().location(own).settings.send.tcp_nodelay {
        // A unix socket has no such option; nothing is lost where it cannot be set.
        _ = stream.set_nodelay(true);
    }
    let facts = Rc::new(ConnectionFacts {
        serial: SERIAL.fetch_add(1, Ordering::Relaxed),
        remote_text: remote.host_text(),
        remote,
        local: stream.local().unwrap_or(Address::Unix(None)),
        listener: Cell::new(listener),
        is_plain_on_tls,
        proxied,
        tls: stream.tls().cloned().map(Box::new),
        certificate: ClientCertificate::of(stream.tls()),
        opened,
        requests: Cell::new(0),
        copies: Cell::new(0),
    });
    if let Some(tls) = &facts.tls {
        let kind = if tls.resumed { Counter::TlsHandshakesReused } else { Counter::TlsHandshakes };
        worker.metrics.add(kind, 1);
    }
    worker.metrics.add(Counter::ConnectionsAccepted, 1);
    Some(Opened { accepted: Accepted::new(worker, facts, address, generation), socket: stream, place })
}

impl Opened {
    pub(super) fn has_chosen_http2(&self) -> bool {
        self.socket.tls().is_some_and(|tls| tls.alpn == "h2")
    }
}

/// Also returns whether the client spoke plain HTTP; `None` if it failed.
async fn shake_hands(
    worker: &Rc<Worker>,
    generation: &Rc<Generation>,
    (place, listener): (&ConnectionSlot, usize),
    stream: Stream,
    remote: &Address,
    opened: Instant,
) -> Option<(Stream, bool)> {
    let Some(acceptor) = &generation.shared.handshakes.acceptors[listener] else {
        return Some((stream, false));
    };
    let id = generation.http().listeners[listener].default_server;
    let naming = Naming { worker, generation, listener, remote };
    let mut deadline = Deadline::new();
    deadline.set(opened + generation.http().server(id).settings.client_header.timeout);
    let handshake = place.unless_shed(
        Awaits::Head(opened),
        Box::pin(acceptor.accept_as(stream, |text, name| naming.say(text, name))),
    );
    let error = match with_deadline(&mut deadline, handshake).await {
        Ok(Some(Ok(encrypted))) => return Some((encrypted, false)),
        Ok(Some(Err(HandshakeError::PlainHttp(stream)))) => return Some((stream, true)),
        Ok(Some(Err(HandshakeError::Challenged))) => return None,
        Ok(Some(Err(error))) => Some(error),
        Ok(None) | Err(_) => None,
    };
    worker.metrics.add(Counter::TlsHandshakesFailed, 1);
    if let Some(error) = error {
        let log = &generation.shared.logs.main;
        let level =
            if matches!(error, HandshakeError::NoCertificate(_)) { Level::Error } else { Level::Info };
        log.tell(level, format_args!("{error}"), || About::client(remote));
    }
    None
}
