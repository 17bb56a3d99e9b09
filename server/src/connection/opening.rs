//! How a connection begins: what a proxy says of it, the TLS handshake, and the facts that hold for all its requests.

use super::accepted::Accepted;
use crate::generation::Generation;
use crate::judged::ClientCertificate;
use crate::request::{ConnectionFacts, Request};
use crate::variables;
use crate::worker::{Awaits, ConnectionSlot, Worker};
use millstream_conf::model::{Level, ListenAddress, Template};
use millstream_net::proxy_protocol::{self, HeaderError, Proxied};
use millstream_net::stream::{Stream, TlsInfo};
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
        true => read_proxied(&mut stream, &generation, listener, &place, &remote).await?,
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

/// `None`: close the connection; `Some(None)`: the header names no client.
async fn read_proxied(
    stream: &mut Stream,
    generation: &Generation,
    listener: usize,
    place: &ConnectionSlot,
    remote: &Address,
) -> Option<Option<Box<Proxied>>> {
    let now = clock::now();
    let id = generation.http().listeners[listener].default_server;
    let mut deadline = Deadline::new();
    deadline.set(now + generation.http().server(id).settings.client_header.timeout);
    let header = Box::pin(proxy_protocol::read(stream, &mut deadline));
    match place.unless_shed(Awaits::Head(now), header).await? {
        Ok(said) => Some(said.map(Box::new)),
        Err(error) => {
            let level = if matches!(error, HeaderError::Broken(_)) { Level::Error } else { Level::Info };
            let what = format_args!("{error} while reading PROXY protocol");
            generation.shared.logs.main.tell(level, what, || About::client(remote));
            None
        }
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
    let named =
        |text: &Template, name: Option<&str>| of_name(worker, generation, (remote, listener), text, name);
    let mut deadline = Deadline::new();
    deadline.set(opened + generation.http().server(id).settings.client_header.timeout);
    let handshake = place.unless_shed(Awaits::Head(opened), Box::pin(acceptor.accept_as(stream, named)));
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

/// What the name of a certificate comes to where variables are in it. As in nginx an empty request stands in for one: it knows its connection,
/// the name that the client asks for, and what is made of these.
fn of_name(
    worker: &Rc<Worker>,
    generation: &Rc<Generation>,
    (remote, listener): (&Address, usize),
    text: &Template,
    name: Option<&str>,
) -> Vec<u8> {
    let facts = ConnectionFacts {
        tls: Some(Box::new(TlsInfo::imagined(name.map(Into::into)))),
        requests: Cell::new(0),
        ..ConnectionFacts::plain(remote.clone(), Address::Unix(None), listener)
    };
    let mut request = Request::new(worker.clone(), generation.clone(), Rc::new(facts), clock::now());
    let found = generation.shared.hosts[listener].find(name.unwrap_or_default().as_bytes());
    let default = generation.http().listeners[listener].default_server;
    request.route.server = found.map_or(default, |(server, _)| server);
    request.route.location = generation.http().server(request.route.server).own;
    variables::value(text, &request)
}
