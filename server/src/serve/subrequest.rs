//! Subrequests: a request of our own, by which another one asks, through all phases of its own location and whatever answers there.
//!
//! It is served as any other, and so it is cached, limited, retried and logged as any other; only its client is inside, and takes
//! what it is answered into memory. When the client of the request that asks leaves, the one inside has left as well: what is
//! being fetched goes on where others wait for it, and ends else. Next: `access/auth_request`, which reads the answer.

use super::finish;
use crate::access_log;
use crate::client::{Client, ClientFailure, Inside};
use crate::phase;
use crate::request::Request;
use crate::rewrite::From;
use millstream_cache::Now;
use millstream_net::{buffers, clock};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;

/// A subrequest that has been answered.
pub(super) struct Answered {
    /// The request, with what it was answered.
    pub(super) request: Box<Request>,
    /// The head of the answer as it would have been sent; nothing where there is none.
    pub(super) head: Vec<u8>,
}

/// Asks for a path of the request's server.
///
/// # Errors
/// The client of the request that asks has left meanwhile.
pub(super) async fn ask(
    request: &mut Request,
    client: &mut Client,
    path: &[u8],
) -> Result<Answered, ClientFailure> {
    let mut sub = request.subrequest(path);
    let left = Rc::new(Cell::new(false));
    let mut inside = Client::inside(Inside { left: left.clone(), answer: buffers::take() });
    {
        let mut serving = serve(&mut sub, &mut inside);
        // Whether the client is there is asked first: the subrequest then ends by itself, as one with a client of its own does.
        poll_fn(|context| {
            if !left.get() && client.poll_gone(context).is_ready() {
                left.set(true);
            }
            serving.as_mut().poll(context)
        })
        .await;
    }
    sub.exchange(request);
    if left.get() {
        return Err(ClientFailure::Gone);
    }
    Ok(Answered { request: sub, head: inside.into_answer() })
}

/// Serves it, to the end of its answer. In a box of its own, for what serves a request may ask by another.
fn serve<'a>(sub: &'a mut Request, inside: &'a mut Client) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
    Box::pin(async move {
        let mut out = buffers::take();
        let step = phase::decide(sub, From::Server, Now::read(), &mut out);
        finish(sub, inside, step, out).await;
        inside.settle();
        if sub.location().settings.logs.subrequests {
            // Whoever waits for the line of a request waits for those before it.
            _ = access_log::write(sub, clock::now());
        }
    })
}
