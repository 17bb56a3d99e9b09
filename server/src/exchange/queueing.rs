//! `queue`: a request waits until a server has room for it.
//!
//! It looks again when a turn has ended, when a server is back in health, and when the time is over for which failures kept one
//! out; whoever gets a turn calls the next in the queue. A client that leaves is not waited for.

use super::Passing;
use super::destination::Destination;
use super::watching::watch;
use crate::client::ClientFailure;
use millstream_net::clock;
use millstream_net::timer::Deadline;
use millstream_upstream::{Ask, Queue, Tried, Turn};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Waits for a server before the first try; `None` without a queue, a place in it, or a turn in time.
pub(super) async fn wait_for_turn(
    passing: &mut Passing<'_>,
    tried: &mut Tried,
) -> Result<Option<Turn>, ClientFailure> {
    let destination = passing.destination;
    let Some(queue) = destination.peers.queue().filter(|_| tried.is_empty() && tried.left() > 0) else {
        return Ok(None);
    };
    // What is rare is boxed: each future that is awaited in place is moved into its caller's.
    let waiting = Box::pin(wait(destination, queue, tried));
    watch(passing.client.as_deref_mut().filter(|_| passing.terms.watching), waiting).await
}

async fn wait(destination: &Destination, queue: &Arc<Queue>, tried: &mut Tried) -> Option<Turn> {
    let (peers, key, session) = (&destination.peers, &*destination.key, destination.session.server());
    let place = queue.enter()?;
    let end = clock::now() + queue.timeout();
    let mut wake = Deadline::new();
    loop {
        let mut called = pin!(place.called());
        // From here on a call is not missed.
        called.as_mut().enable();
        let now = clock::now();
        if let Ok(turn) = peers.choose_waiting(Ask { key, session, tried, now }) {
            // Whoever is called here by that, this one included, hands the call on when it is done with.
            place.pass_on();
            return Some(turn);
        }
        if now >= end {
            return None;
        }
        // One that failures keep out is asked again once their time is over, and not at that very moment.
        let back = peers.next_return().map(|at| at + Duration::from_millis(1));
        wake.set(back.filter(|at| *at > now).map_or(end, |at| at.min(end)));
        poll_fn(|context| match called.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => wake.poll(context),
        })
        .await;
        wake.clear();
    }
}
