//! A client's GET once more, without what says who asks: `millstream shadow --probe`.
//!
//! It is sent beside the client's own, to the same URL, and its response is only compared: what a credential lets through is known
//! once others get the same without it. How often it is done is `millstream-shadow`'s to say.

use super::OpenedFill;
use super::unserved::unserved;
use crate::no_one;
use crate::request::Request;
use crate::shows::Shows;
use crate::watched::{self, Watched};
use millstream_net::timer::within;
use millstream_shadow::is_of_the_client;
use std::time::Duration;

/// A probe that takes longer is given up.
const LONGEST: Duration = Duration::from_secs(30);
/// Bytes of a body past which it is.
const MOST: usize = 4 << 20;

/// A client's request is about to be passed on. `None`: it is not observed.
pub(super) fn observed(request: &Request) -> Option<Box<Watched>> {
    let mut watched = watched::watch(request)?;
    if let Some(probe) = watched.take_probe() {
        send(request, Box::new(probe));
    }
    Some(watched)
}

fn send(request: &Request, watched: Box<Watched>) {
    let shows = Shows::CLIENT | Shows::FIELD;
    if request.route.slots.have_shown(shows) || request.route.captures.borrow().have_shown.has(shows) {
        // Even the URL may be the client's own.
        return;
    }
    let mut probe = request.for_refresh();
    probe.route.made.clear();
    probe.forget_visitor();
    no_one::asks(&mut probe);
    let bytes = std::mem::take(&mut probe.received.bytes);
    probe.received.head.fields.retain(|field| !is_of_the_client(field.name(&bytes)));
    probe.received.bytes = bytes;
    tokio::task::spawn_local(async move {
        let reading = unserved(probe, Some(watched), async |opened| ((), read(opened).await));
        _ = within(LONGEST, Box::pin(reading)).await;
    });
}

/// Whether all of it has come.
async fn read(opened: OpenedFill) -> bool {
    let OpenedFill::Stream(mut follower, ..) = opened else { return true };
    let mut length = 0;
    while let Some(piece) = follower.next().await {
        length += piece.map_or(MOST, |piece| piece.len());
        if length >= MOST {
            return false;
        }
    }
    true
}
