//! A client served from a fill while it arrives: the one that asked for it, and everybody who waited.
//!
//! Conditions and a range are answered from the stream: what the client does not want is passed over, and it is done
//! with once it has its part, however long the fill goes on. A fill that breaks off cuts the answer.

use super::chosen::{self, Extent, Offer, Unmet};
use super::hit;
use crate::client::{Client, ClientFailure};
use crate::request::Request;
use millstream_cache::Follower;
use millstream_wire::Headers;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, ready};

/// Bytes framed before they are written, even if more is ready.
const QUEUE: usize = 32 * 1024;

#[derive(Debug)]
pub enum Followed {
    Done,
    /// Nothing was sent: the response does not satisfy the request.
    Unmet(Unmet),
    Client(ClientFailure),
}

/// Asked once the body has ended: trailers are not stored, and only for the client whose request it was.
type TrailersOf<'a> = &'a dyn Fn(&mut Request) -> Option<Headers>;

pub async fn serve(
    request: &mut Request,
    client: &mut Client,
    follower: Follower,
    age: Option<u64>,
    trailers: TrailersOf<'_>,
) -> Followed {
    let stored = follower.head().clone();
    let offer = Offer::stored(stored.view(), stored.content_length, true);
    let chosen = chosen::choose(request, &offer);
    // Fields that are not stored are for the client that asked all the same.
    let headers = match request.reply.own_head.take() {
        Some(own) => *own,
        None => hit::passed_on(request, stored.view()),
    };
    let shape = match chosen.shape(request, headers, stored.status, stored.content_length) {
        Ok(shape) => shape,
        Err(unmet) => return Followed::Unmet(unmet),
    };
    shape.begin(request, client, age);
    let first = match shape.extent {
        Extent::Nothing => None,
        Extent::Part(part) => Some((part.start, true)),
        Extent::Whole | Extent::Parts(_) => Some((0, false)),
    };
    let outcome = match first {
        Some((first, is_part)) => {
            client.skip(first);
            pass(request, client, follower, (is_part, trailers)).await
        }
        None => client.finish(request, None).await,
    };
    outcome.map_or_else(Followed::Client, |()| Followed::Done)
}

async fn pass(
    request: &mut Request,
    client: &mut Client,
    mut follower: Follower,
    (is_part, trailers): (bool, TrailersOf<'_>),
) -> Result<(), ClientFailure> {
    // Who wants the whole is told that it was whole: it waits for the fill's own end.
    while !(is_part && client.has_all()) {
        let piece = {
            let mut next = pin!(follower.next());
            poll_fn(|context| match next.as_mut().poll(context) {
                Poll::Ready(piece) => Poll::Ready(Ok(piece)),
                Poll::Pending => {
                    client.pause();
                    ready!(client.poll_flush(context, request))?;
                    // Who has left does not count as a reader.
                    client.poll_gone(context).map(|()| Err(ClientFailure::Gone))
                }
            })
            .await?
        };
        match piece {
            Some(Ok(piece)) => client.push(request, &piece),
            Some(Err(_)) => return client.cut(request).await,
            None => break,
        }
        if client.queued() >= QUEUE {
            client.flush(request).await?;
        }
    }
    drop(follower);
    // Those of the whole, such as a digest, are not a part's (RFC 9110 §6.5).
    let trailers = trailers(request).filter(|_| !is_part);
    client.finish(request, trailers.as_ref().map(Headers::view)).await
}
