//! How a request is answered: at once, where that can be, else by a future of the connection's task.

use super::heads::{Come, Place};
use super::patience::Work;
use super::{Fate, Http2Connection};
use crate::admission;
use crate::client::Client;
use crate::connection::accepted::Processing;
use crate::counting;
use crate::drive::{self, Left, subrequest};
use crate::failure;
use crate::limits::limit_rate::Pace;
use crate::loop_lag;
use crate::phase::{self, Step};
use crate::request::Request;
use crate::rewrite::From;
use millstream_cache::Now;
use millstream_conf::model::{Level, LingeringClose};
use millstream_net::streams::Http2Stream;
use millstream_net::timer::within;
use millstream_net::{buffers, clock};
use millstream_wire::h1::framing::Framing;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::priority::Priority;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

pub(super) type Serving = Pin<Box<dyn Future<Output = Served>>>;

pub(super) struct Served {
    request: Box<Request>,
    stream: Rc<Http2Stream>,
    is_whole: bool,
    refusal: Option<Declined>,
}

#[derive(Debug, Clone, Copy)]
struct Declined {
    flaw: Option<ErrorCode>,
}

impl Http2Connection {
    pub(super) fn answer(&mut self, come: Come) {
        let Come { stream: id, mut request, has_ended, priority } = come;
        request.keep_alive = true;
        let admitted = admission::admit_client(&mut request)
            .and_then(|()| if self.speaks_with(&request) { Ok(()) } else { Err(failure::MISDIRECTED) });
        let place = Place { stream: id, has_ended, flaw: None };
        if let Err(status) = admitted {
            return self.refuse(place, request, status, "a request that was refused", None);
        }
        request.received.framing = match (request.received.framing, has_ended) {
            (Framing::Length(0) | Framing::None, true) => Framing::None,
            // It is not as long as it says (RFC 9113 §8.1.1).
            (_, true) => {
                let flaw = Some(ErrorCode::ProtocolError);
                return self.refuse(place, request, 400, "a body shorter than its \"Content-Length\"", flaw);
            }
            // What follows is no body of it.
            (Framing::None | Framing::Length(0), false) if request.is_extended_connect() => Framing::None,
            (Framing::None, false) => Framing::Close,
            (framing, false) => framing,
        };
        let now =
            Now { unix_milliseconds: clock::wall().unix_milliseconds(), instant: request.received.started };
        let mut out = buffers::take();
        let step = phase::decide(&mut request, From::Server, now, &mut out);
        if let Step::Ready(ready) = &step
            && has_ended
            && !subrequest::is_followed(&request)
            && self.unheard.is_none_or(|urgency| urgency >= priority.urgency)
            && self.answer_whole(id, &mut request, &out, ready.whole().bytes)
        {
            buffers::give(out);
            self.streams.close(id);
            self.patience.earn();
            let now = request.received.started;
            return self.accepted.record(request, now);
        }
        let stream = self.open(id, &request, has_ended, priority);
        self.unheard = Some(self.unheard.map_or(priority.urgency, |urgency| urgency.min(priority.urgency)));
        request.tighten();
        self.serving.push(Box::pin(answered(request, stream, step, out, None)));
    }

    fn speaks_with(&self, request: &Request) -> bool {
        let listener = &request.generation.http().listeners[self.accepted.facts.listener.get()];
        listener.http2 || request.server().settings.http2.enabled
    }

    /// False unless the client's windows take all of it at once.
    fn answer_whole(&mut self, id: u32, request: &mut Request, block: &[u8], body: &[u8]) -> bool {
        let chunk = request.location().settings.send.http2_chunk;
        if Pace::of(request).is_some() || !self.framed.whole(id, block, body, chunk) {
            return false;
        }
        request.sent.bytes += (block.len() + body.len()) as u64;
        request.sent.body_bytes += body.len() as u64;
        request.sent.complete = true;
        true
    }

    /// `flaw`: also resets the stream with this error.
    pub(super) fn refuse(
        &mut self,
        place: Place,
        mut request: Box<Request>,
        status: u16,
        what: &str,
        flaw: Option<ErrorCode>,
    ) {
        request.keep_alive = true;
        failure::log(&request, Level::Info, format_args!("client sent {what}: {status}"));
        let stream = self.open(place.stream, &request, place.has_ended, Priority::default());
        let (step, refusal) = (Step::Status(status), Some(Declined { flaw }));
        self.serving.push(Box::pin(answered(request, stream, step, buffers::take(), refusal)));
    }

    fn open(&mut self, id: u32, request: &Request, has_ended: bool, priority: Priority) -> Rc<Http2Stream> {
        let announced = match request.received.framing {
            Framing::Length(length) => Some(length),
            Framing::None | Framing::Chunked | Framing::Close => None,
        };
        if self.streams.is_empty() {
            // A request has come, which is served whatever was asked of the connection before.
            self.place.set_busy();
        }
        self.turn.open();
        self.due.clear();
        self.streams.open(id, self.framed.carrier.clone(), announced, has_ended, priority)
    }

    /// Fails if the client cancelled too many upstream requests, or sent malformed bodies for them.
    pub(super) fn settle(&mut self, served: Served) -> Result<(), Fate> {
        let Served { request, stream, is_whole, refusal } = served;
        let has_asked = request.has_asked.get();
        // A body that its client made wrong ends what an upstream was asked for as a reset does.
        let is_flawed = stream.is_spoiled() || request.received.body.is_refused();
        // Being told that a request is none is nothing to be thanked for.
        if is_whole && refusal.is_none() && !is_flawed {
            self.patience.earn();
            if has_asked {
                self.patience.earn_upstream();
            }
        }
        let is_abandoned = has_asked && (stream.is_left() || is_flawed);
        let charged = if is_abandoned { self.charge(Work::Abandoned) } else { Ok(()) };
        match refusal.and_then(|refusal| refusal.flaw) {
            Some(code) => stream.reset(code),
            None if stream.is_spoiled() => stream.reset(ErrorCode::ProtocolError),
            // The rest of its body is not needed (RFC 9113 §8.1).
            None if !stream.has_all() => stream.reset(ErrorCode::NoError),
            None => {}
        }
        stream.close();
        if self.streams.remove(&stream) {
            self.due.clear();
        }
        let now = clock::now();
        loop_lag::tell(&self.accepted.worker.metrics, now);
        self.accepted.record(request, now);
        charged
    }
}

async fn answered(
    mut request: Box<Request>,
    stream: Rc<Http2Stream>,
    step: Step,
    out: Vec<u8>,
    refusal: Option<Declined>,
) -> Served {
    let _processing = Processing::of(request.worker.metrics.clone(), counting::zones(&request));
    let mut client = Client::on_stream(stream.clone(), subrequest::answer);
    if stream.is_left() && !passes_regardless(&request) {
        // Its client gave it up in the same breath: nothing is asked for it.
        drive::gone(&mut request, &mut client);
        return served(request, stream, &mut client, refusal).await;
    }
    let mut decided = Some((step, out));
    let left = poll_fn(|cx| {
        let begin = |(step, out)| drive::begin(cx, &mut request, &mut client, step, out);
        Poll::Ready(decided.take().map_or(Left::Nothing, begin))
    })
    .await;
    drive::end(&mut request, &mut client, left).await;
    served(request, stream, &mut client, refusal).await
}

/// `proxy_ignore_client_abort`.
fn passes_regardless(request: &Request) -> bool {
    request.location().settings.pass().is_some_and(|proxy| proxy.exchange.ignore_client_abort)
}

/// Gives a client that is still sending time to read the response before its stream is reset: some discard
/// what they have otherwise.
async fn served(
    mut request: Box<Request>,
    stream: Rc<Http2Stream>,
    client: &mut Client,
    refusal: Option<Declined>,
) -> Served {
    let is_whole = client.settle().is_whole();
    if refusal.is_none() && subrequest::is_followed(&request) {
        Box::pin(subrequest::follow(&mut request)).await;
    }
    let lingering = &request.location().settings.lingering;
    let is_sound = refusal.is_none_or(|refusal| refusal.flaw.is_none());
    if is_whole && is_sound && !stream.has_all() && lingering.close != LingeringClose::Off {
        _ = within(lingering.timeout.min(lingering.time), poll_fn(|cx| stream.poll_all(cx))).await;
    }
    Served { request, stream, is_whole, refusal }
}
