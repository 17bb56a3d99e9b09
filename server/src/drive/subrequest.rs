//! Subrequests: a request of our own, by which another one asks, through all phases of its own location and whatever answers there.
//!
//! It is served as any other, and so it is cached, limited, retried and logged as any other; only its client is inside
//! (`client/end`), and reads from a pipe what it is answered. When the client of the request that asks leaves, the one inside leaves as
//! well: what is being fetched goes on where others wait for it, and ends else. Next: `access/auth_request`, which reads a head;
//! `client/assembly`, which puts bodies into its own.

use super::{begin, end};
use crate::access_log;
use crate::client::{AnswerHead, Client, ClientFailure, Inside};
use crate::page::Stub;
use crate::phase;
use crate::request::{Request, SubrequestPart};
use crate::restart::Restart;
use crate::rewrite::From;
use crate::shows::Shows;
use crate::tracing;
use crate::worker::ConnectionSlot;
use millstream_cache::Now;
use millstream_conf::model::Phases;
use millstream_net::pipe::{End, Pipe};
use millstream_net::{buffers, clock};
use millstream_wire::Headers;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use tokio::task::JoinHandle;

/// Bytes of a stub sent at a time: it may be long, and used often.
const STUB_AT_ONCE: usize = 16 * 1024;

pub(super) struct SubrequestAnswer {
    pub(super) request: Box<Request>,
    pub(super) head: Vec<u8>,
}

/// Requests the head of a path on the same server. Fails if the client leaves.
pub(super) async fn ask(
    request: &mut Request,
    client: &mut Client,
    path: &[u8],
) -> Result<SubrequestAnswer, ClientFailure> {
    let mut sub = request.subrequest(path, SubrequestPart::Head);
    // A head has its bound where it is read.
    let inside = Rc::new(Inside { pipe: Pipe::new(usize::MAX), wants_head: true, status: Cell::new(0) });
    // What it counts as under way, the request that asks goes on with.
    std::mem::swap(&mut sub.limited, &mut request.limited);
    let mut has_left = false;
    {
        let mut serving = serve(&mut sub, &inside, None);
        // Whether the client is there is asked first: the subrequest then ends by itself, as one with a client of its own does.
        poll_fn(|context| {
            if !has_left && client.poll_gone(context).is_ready() {
                has_left = true;
                inside.pipe.leave();
            }
            serving.as_mut().poll(context)
        })
        .await;
    }
    std::mem::swap(&mut sub.limited, &mut request.limited);
    if has_left {
        return Err(ClientFailure::Gone);
    }
    Ok(SubrequestAnswer { request: sub, head: inside.pipe.take() })
}

/// In its own task, so that nested subrequests do not share a stack.
pub fn answer(mut sub: Box<Request>, inside: Rc<Inside>) {
    tokio::task::spawn_local(async move {
        let ends = Ends(inside);
        serve(&mut sub, &ends.0, None).await;
    });
}

/// In its own task, which outlives its waiters; the response is dropped. `held` is dropped with the task.
pub(super) fn apart(
    mut sub: Box<Request>,
    restart: Option<Restart>,
    place: Option<ConnectionSlot>,
    held: impl Sized + 'static,
) -> JoinHandle<()> {
    let inside = Rc::new(Inside { pipe: Pipe::new(usize::MAX), wants_head: false, status: Cell::new(0) });
    let ends_by = place.as_ref().and_then(ConnectionSlot::ends_by);
    let task = tokio::task::spawn_local(async move {
        let _held = (place, held);
        serve(&mut sub, &inside, restart).await;
    });
    if let Some(ends_by) = ends_by {
        ends_by(task.abort_handle());
    }
    task
}

/// `post_action`.
pub fn is_followed(request: &Request) -> bool {
    request.location().settings.phases.has(Phases::POST_ACTION)
}

pub async fn follow(request: &mut Request) {
    let uri = request.location().settings.post_action.uri.as_bytes();
    let restart = match uri {
        [b'/', ..] => Restart::Uri { path: uri.to_vec(), query: Some(Vec::new()), shows: Shows::NOTHING },
        name => Restart::Named { name: name.to_vec(), shows: Shows::NOTHING },
    };
    _ = apart(request.follow_up(), Some(restart), request.worker.try_admit(), ()).await;
}

/// Replaces an empty or failed response by its stub, before anything is sent; false without a stub.
pub(super) async fn answer_stub(sub: &mut Request, client: &mut Client) -> bool {
    let stub = sub.reply.sheet.get().and_then(|sheet| sheet.stub.take());
    let Some(Stub { text, media }) = stub else { return false };
    let mut headers = Headers::default();
    headers.push(b"Content-Type", &media);
    client.begin(
        sub,
        AnswerHead { status: 200, fields: headers.view(), length: Some(text.len() as u64), age: None },
    );
    for part in text.chunks(STUB_AT_ONCE) {
        client.push(sub, part);
        // Whoever left hears nothing of it.
        if client.flush(sub).await.is_err() {
            return true;
        }
    }
    _ = client.finish(sub, None).await;
    true
}

/// Tells the reader about the end, by a panic too.
struct Ends(Rc<Inside>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.pipe.end(End::Cut);
    }
}

/// From `restart` or its path to the end of its response. Boxed, as serving may recurse.
fn serve<'a>(
    sub: &'a mut Request,
    inside: &'a Rc<Inside>,
    restart: Option<Restart>,
) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
    Box::pin(async move {
        let (mut client, mut restart) = (Client::inside(inside.clone(), answer), restart);
        let left = poll_fn(|context| {
            let mut out = buffers::take();
            let step = match restart.take() {
                None => phase::decide(sub, From::Server, Now::read(), &mut out),
                Some(restart) => phase::again(sub, restart, Now::read(), &mut out),
            };
            Poll::Ready(begin(context, sub, &mut client, step, out))
        })
        .await;
        end(sub, &mut client, left).await;
        let mut is_whole = client.settle().is_whole();
        if is_whole && sub.sent.body_bytes == 0 && answer_stub(sub, &mut client).await {
            is_whole = client.settle().is_whole();
        }
        inside.status.set(sub.sent.status);
        inside.pipe.end(if is_whole { End::Whole } else { End::Cut });
        tracing::end_subrequest(sub);
        if sub.location().settings.logs.subrequests {
            // Whoever waits for the line of a request waits for those before it.
            _ = access_log::write(sub, clock::now());
        }
    })
}
