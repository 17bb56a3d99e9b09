//! A client served from a fill while it arrives: the one that asked for it, and everybody who waited.
//!
//! Conditions and a range are answered from the stream: what the client does not want is passed over, and it is done
//! with once it has its part, however long the fill goes on. A fill that breaks off cuts the answer.
//! Next: `gateway/filling`, the other side.

use super::ranges::{self, Offer, Selection};
use super::{conditions, hit};
use crate::client::{AnswerHead, Client, ClientFailure};
use crate::filter::head;
use crate::request::Request;
use millstream_cache::{Follower, StoredHead};
use millstream_wire::Headers;
use millstream_wire::conditional::{Outcome, Validators};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, ready};

/// Bytes framed for the client before they are written even though more is there.
const QUEUE: usize = 32 * 1024;

/// How following went.
#[derive(Debug, PartialEq, Eq)]
pub enum Followed {
    /// The client has its answer, or as much of it as there was.
    Done,
    /// Nothing was sent: nothing of the range exists in an answer of this length.
    Unsatisfiable(u64),
    /// The client failed.
    Client(ClientFailure),
}

/// What goes out under which head.
struct Chosen {
    status: u16,
    headers: Headers,
    length: Option<u64>,
    /// Bytes of the body that are passed over; `None`: no body.
    skipped: Option<u64>,
}

/// Answers from a fill as it arrives. `age` is what the answer says of its age.
pub async fn serve(
    request: &mut Request,
    client: &mut Client,
    follower: Follower,
    age: Option<u64>,
) -> Followed {
    let stored = follower.head().clone();
    let Chosen { status, headers, length, skipped } = match choose(request, &stored) {
        Ok(chosen) => chosen,
        Err(length) => return Followed::Unsatisfiable(length),
    };
    client.begin(request, AnswerHead { status, fields: headers.view(), length, compressible: true, age });
    let outcome = match skipped.filter(|_| request.wants_body()) {
        Some(skipped) => {
            client.skip(skipped);
            pass(request, client, follower, status == 206).await
        }
        None => {
            client.end(request, None);
            client.flush(request).await
        }
    };
    outcome.map_or_else(Followed::Client, |()| Followed::Done)
}

fn choose(request: &mut Request, stored: &StoredHead) -> Result<Chosen, u64> {
    // Fields that are not stored are for the client that asked all the same.
    let mut headers = match request.own_head.take() {
        Some(own) => *own,
        None => hit::passed_on(request, stored.view()),
    };
    let (status, length) = (stored.status, stored.content_length);
    if status != 200 {
        let length = length.filter(|_| status != 204);
        return Ok(Chosen { status, headers, length, skipped: Some(0) });
    }
    let validators = Validators { etag: stored.etag(), last_modified: stored.last_modified };
    match conditions::evaluate(request, validators) {
        Outcome::Proceed => {}
        Outcome::NotModified => {
            head::vary_as_whole(request, &mut headers, length);
            hit::describe_no_body(&mut headers);
            return Ok(Chosen { status: 304, headers, length, skipped: None });
        }
        Outcome::PreconditionFailed => {
            hit::describe_no_body(&mut headers);
            return Ok(Chosen { status: 412, headers, length: Some(0), skipped: None });
        }
    }
    let offer = Offer { status, fields: stored.fields(), validators, length, is_stream: true };
    match ranges::select(request, &offer) {
        Selection::Part(part) => {
            head::vary_as_whole(request, &mut headers, length);
            ranges::describe_part(&mut headers, &part, length);
            Ok(Chosen {
                status: 206,
                headers,
                length: Some(part.end - part.start),
                skipped: Some(part.start),
            })
        }
        Selection::Unsatisfiable(length) => Err(length),
        Selection::Whole | Selection::Parts(_) => {
            ranges::announce(request, status, &mut headers);
            Ok(Chosen { status, headers, length, skipped: Some(0) })
        }
    }
}

/// Cache to client.
async fn pass(
    request: &mut Request,
    client: &mut Client,
    mut follower: Follower,
    is_part: bool,
) -> Result<(), ClientFailure> {
    // Who wants the whole is told that it was whole: it waits for the fill's own end.
    while !(is_part && client.has_all()) {
        let piece = {
            let mut next = pin!(follower.next());
            poll_fn(|context| match next.as_mut().poll(context) {
                Poll::Ready(piece) => Poll::Ready(Ok(piece)),
                Poll::Pending => {
                    client.pause(request);
                    ready!(client.poll_flush(context, request))?;
                    // Who has left does not count as a reader.
                    client.poll_gone(context).map(|()| Err(ClientFailure::Gone))
                }
            })
            .await?
        };
        match piece {
            Some(Ok(piece)) => client.push(request, &piece),
            Some(Err(_)) => {
                client.abandon();
                request.keep_alive = false;
                return client.flush(request).await;
            }
            None => break,
        }
        if client.queued() >= QUEUE {
            client.flush(request).await?;
        }
    }
    drop(follower);
    client.end(request, None);
    client.flush(request).await
}
