//! The links of one worker to one upstream group: one with room for another call, or a new one, which all wait for who want it.
//!
//! Before: `driver`; next: `pool`, which has them.

use super::call::Call;
use super::driver::Driver;
use super::link::{Keeping, Link};
use crate::dial::Dial;
use crate::error::ExchangeError;
use crate::peer::Peer;
use millstream_conf::model::{KeepaliveSize, UpstreamKeepalive};
use millstream_net::timer::{Deadline, with_deadline};
use millstream_net::{address::Address, clock};
use std::cell::{OnceCell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// Links that may turn a call away before another is not opened for it: a server that is being restarted does so once.
const MOST_IN_VAIN: u32 = 2;
/// Links to one server over which bodies go apart, so that none stops another. Where more are under way, they share these: a server
/// that is talked to in thousands of streams is not to hold thousands of connections.
const MOST_APART: usize = 100;

/// The links of a pool.
#[derive(Debug)]
pub(crate) struct Links {
    keeping: Keeping,
    known: Rc<RefCell<LinkList>>,
}

#[derive(Debug, Default)]
struct LinkList {
    links: Vec<(Route, Rc<Link>)>,
    openings: Vec<Rc<Opening>>,
    /// Whether the pool is no more.
    is_over: bool,
}

/// To whom a link leads, and how it was made.
#[derive(Debug, Clone, PartialEq)]
struct Route {
    peer: u64,
    dial: Dial,
}

/// A link that is being opened.
#[derive(Debug)]
struct Opening {
    route: Route,
    /// Who waits for it.
    waiting: RefCell<Vec<Waker>>,
    /// What came of it.
    outcome: OnceCell<Result<Rc<Link>, ExchangeError>>,
}

impl Links {
    pub(crate) fn new(keepalive: &UpstreamKeepalive, most_auto: usize) -> Links {
        let most_idle = match keepalive.size {
            KeepaliveSize::Fixed(size) => size,
            KeepaliveSize::Auto => most_auto,
        };
        let keeping = Keeping { keepalive: *keepalive, most_idle, idle: Rc::default() };
        Links { keeping, known: Rc::default() }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.borrow().links.is_empty()
    }

    /// A place for a call with a body of so many octets on a link that is there.
    pub(crate) fn take(&self, peer: &Peer, dial: &Dial, body: u64, now: Instant) -> Option<Call> {
        let known = &mut *self.known.borrow_mut();
        known.links.retain(|(_, link)| !link.is_leaving());
        // The newest first, so that the others run out of time where fewer are needed.
        let all = known.links.iter().rev();
        let fitting = || all.clone().filter(|(route, _)| route.peer == peer.id && route.dial == *dial);
        let place =
            |link: &Rc<Link>, is_apart| Some(Call::new(link.clone(), link.reserve(body, is_apart, now)?));
        let apart = fitting().find_map(|(_, link)| place(link, true));
        if apart.is_some() || fitting().count() < MOST_APART {
            return apart;
        }
        fitting().min_by_key(|(_, link)| link.calls()).and_then(|(_, link)| place(link, false))
    }

    /// A place for a call on a new link. Who wants one to the same server while it is being opened waits for that.
    ///
    /// # Errors
    /// As [`Dial::reach`]; [`ExchangeError::Refused`] where the server takes no call over the links that it has accepted.
    pub(crate) async fn join(
        &self,
        peer: &Peer,
        dial: &Dial,
        body: u64,
        timeout: Duration,
    ) -> Result<Call, ExchangeError> {
        let mut deadline = Deadline::new();
        deadline.set(clock::now() + timeout);
        let mut in_vain = 0;
        loop {
            let link = match self.unknown(peer, dial) {
                Some(link) => {
                    let known = poll_fn(|context| link.poll_known(context));
                    with_deadline(&mut deadline, known).await.map_err(|_| ExchangeError::ConnectTimeout)?;
                    link
                }
                None => {
                    // Who began it may wait for longer.
                    let opening = self.opening(peer, dial, timeout);
                    let opened = with_deadline(&mut deadline, opening.opened()).await;
                    opened.map_err(|_| ExchangeError::ConnectTimeout)??
                }
            };
            if let Some(call) = self.take(peer, dial, body, clock::now()) {
                return Ok(call);
            }
            if link.turns_away() {
                link.leave();
                in_vain += 1;
            }
            if in_vain == MOST_IN_VAIN {
                return Err(ExchangeError::Refused);
            }
        }
    }

    /// A link of which it will be known soon how many calls it takes.
    fn unknown(&self, peer: &Peer, dial: &Dial) -> Option<Rc<Link>> {
        let known = self.known.borrow();
        let fits = |(route, link): &&(Route, Rc<Link>)| {
            route.peer == peer.id && route.dial == *dial && link.is_unknown() && !link.is_leaving()
        };
        known.links.iter().find(fits).map(|(_, link)| link.clone())
    }

    /// One that is being opened, or a new one.
    fn opening(&self, peer: &Peer, dial: &Dial, timeout: Duration) -> Rc<Opening> {
        let route = Route { peer: peer.id, dial: dial.clone() };
        let known = &mut *self.known.borrow_mut();
        if let Some(opening) = known.openings.iter().find(|opening| opening.route == route) {
            return opening.clone();
        }
        let opening = Rc::new(Opening { route, waiting: RefCell::default(), outcome: OnceCell::new() });
        known.openings.push(opening.clone());
        let task =
            open(opening.clone(), peer.address.clone(), timeout, self.keeping.clone(), self.known.clone());
        tokio::task::spawn_local(task);
        opening
    }

    /// No more calls are made over those to peers that are not to be kept.
    pub(crate) fn keep_only(&self, keeps: impl Fn(u64) -> bool) {
        self.known.borrow_mut().links.retain(|(route, link)| {
            let is_kept = keeps(route.peer);
            if !is_kept {
                link.leave();
            }
            is_kept
        });
    }
}

impl Opening {
    /// Waits until it is open.
    async fn opened(&self) -> Result<Rc<Link>, ExchangeError> {
        poll_fn(|context| match self.outcome.get() {
            Some(Ok(link)) => Poll::Ready(Ok(link.clone())),
            Some(Err(error)) => Poll::Ready(Err(error.again())),
            None => {
                let mut waiting = self.waiting.borrow_mut();
                if !waiting.iter().any(|known| known.will_wake(context.waker())) {
                    waiting.push(context.waker().clone());
                }
                Poll::Pending
            }
        })
        .await
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.known.borrow_mut().is_over = true;
        self.keep_only(|_| false);
    }
}

/// Opens a link and serves it to its end.
async fn open(
    opening: Rc<Opening>,
    address: Address,
    timeout: Duration,
    keeping: Keeping,
    known: Rc<RefCell<LinkList>>,
) {
    let mut deadline = Deadline::new();
    let reached = opening.route.dial.reach(&address, timeout, &mut deadline).await;
    known.borrow_mut().openings.retain(|other| !Rc::ptr_eq(other, &opening));
    let (driver, outcome) = match reached {
        Ok(socket) => {
            let link = Link::new(keeping);
            let driver = Driver::new(socket, link.clone());
            driver.greet();
            let known = &mut *known.borrow_mut();
            if known.is_over {
                link.leave();
            }
            known.links.push((opening.route.clone(), link.clone()));
            (Some(driver), Ok(link))
        }
        Err(error) => (None, Err(error)),
    };
    _ = opening.outcome.set(outcome);
    opening.waiting.take().into_iter().for_each(Waker::wake);
    drop(opening);
    if let Some(driver) = driver {
        driver.run().await;
    }
}
