//! One request of our own to one server, whose answer no client gets: what a check of its health asks.
//!
//! It goes out as the location's requests do (fields, parameters, TLS, `proxy_bind`), and has no part in the pool, the cache or what is
//! counted of requests.

mod grpc;

pub(crate) use grpc::probe_grpc;

use super::asked::write_head;
use super::request_head::{RequestFraming, RequestPlan};
use super::{destination, pass_of, report};
use crate::request::Request;
use crate::tries::Try;
use millstream_conf::model::Pass;
use millstream_net::grpc::GrpcError;
use millstream_net::{buffers, clock};
use millstream_upstream::{Connection, ExchangeError, Peer};
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::{Headers, Method};
use std::fmt;
use std::rc::Rc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProbeExtent {
    Head,
    Body(usize),
}

pub(crate) struct Probed {
    pub(crate) status: u16,
    pub(crate) fields: Rc<Headers>,
    pub(crate) body: Vec<u8>,
}

#[derive(Debug)]
pub(crate) enum ProbeError {
    Exchange(ExchangeError, &'static str, String),
    Grpc(GrpcError),
    Unspeakable,
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exchange(error, doing, hint) => write!(f, "{error} {doing}{hint}"),
            Self::Grpc(error) => write!(f, "{error} while calling upstream"),
            Self::Unspeakable => f.write_str("the request could not be created"),
        }
    }
}

const CONNECTING: &str = "while connecting to upstream";
const SENDING: &str = "while sending request to upstream";
const READING_HEAD: &str = "while reading response header from upstream";
const READING_BODY: &str = "while reading response from upstream";

/// Uses the kept connection, if any, and keeps it after a whole response. Sets the request's variables.
pub(crate) async fn probe(
    request: &mut Request,
    peer: &Peer,
    extent: ProbeExtent,
    kept: &mut Option<Box<Connection>>,
) -> Result<Probed, ProbeError> {
    let generation = request.generation.clone();
    let pass = pass_of(request, &generation).ok_or(ProbeError::Unspeakable)?;
    if let Some(mut connection) = kept.take() {
        match converse(request, pass, peer, &mut connection, extent).await {
            // The server closed it while it idled, which says nothing about its health.
            Err(ProbeError::Exchange(error, ..)) if error.is_stale() => {}
            answered => {
                *kept = connection.reusable().then_some(connection);
                return answered;
            }
        }
    }
    let known = destination::known(request, &generation, pass).ok_or(ProbeError::Unspeakable)?;
    let opening = known.pool.connect(peer, &known.dial, 0, pass.exchange.connect_timeout);
    let mut connection = opening.await.map_err(|error| failed(pass, error, CONNECTING))?;
    let answered = converse(request, pass, peer, &mut connection, extent).await;
    *kept = connection.reusable().then_some(connection);
    answered
}

fn failed(pass: &Pass, error: ExchangeError, doing: &'static str) -> ProbeError {
    let hint = report::hint(pass, &error);
    ProbeError::Exchange(error, doing, hint)
}

async fn converse(
    request: &mut Request,
    pass: &Pass,
    peer: &Peer,
    connection: &mut Connection,
    extent: ProbeExtent,
) -> Result<Probed, ProbeError> {
    let began = clock::now();
    let exchange = &pass.exchange;
    let failed = |doing| move |error| failed(pass, error, doing);
    let mut out = buffers::take();
    let plan = RequestPlan {
        request,
        proxy: pass,
        method: Method::Get,
        uri: Some(request.received.head.target.of(&request.received.bytes)),
        caching: false,
        confirm: None,
        rest: None,
        framed: RequestFraming::None,
        codings: None,
    };
    let said = write_head(&mut out, &plan, &peer.name);
    let (speaker, written) = said.map_err(|_| ProbeError::Unspeakable)?;
    connection.begin(speaker, Method::Get, written.keep);
    let sent = connection.send(&out, &[], true, exchange.send_timeout).await;
    buffers::give(out);
    sent.map_err(failed(SENDING))?;
    connection.sent_whole();
    let mut head = ResponseHead::default();
    loop {
        let reading = connection.read_head(&mut head, exchange.buffer_size, exchange.read_timeout);
        reading.await.map_err(failed(READING_HEAD))?;
        if head.status == 101 {
            return Err(failed(READING_HEAD)(ExchangeError::UnexpectedUpgrade));
        }
        if !head.is_interim() {
            break;
        }
    }
    let fields = Rc::new(Headers::from(head.view(connection.head_bytes())));
    request.tries.clear();
    request.tries.headers = Some(fields.clone());
    request.tries.list.push(Try {
        status: head.status,
        header_time: Some(clock::now().saturating_duration_since(began)),
        ..Try::of(connection.peer_name().clone(), None, began)
    });
    request.sent.status = head.status;
    let mut body = Vec::new();
    if let ProbeExtent::Body(most) = extent {
        while body.len() < most {
            let part = connection.read_body(exchange.read_timeout).await.map_err(failed(READING_BODY))?;
            let Some(part) = part else { break };
            body.extend_from_slice(&part[..part.len().min(most - body.len())]);
        }
    }
    Ok(Probed { status: head.status, fields, body })
}
