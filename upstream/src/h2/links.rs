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

/// Links that may reject a call before no other is opened for it: a restarting server does so once.
const MOST_IN_VAIN: u32 = 2;
/// Links to one server over which bodies are sent separately, so that none blocks another. Further ones share
/// these: a server used with thousands of streams must not hold thousands of connections.
const MOST_APART: usize = 100;

#[derive(Debug)]
pub(crate) struct Links {
    keeping: Keeping,
    known: Rc<RefCell<LinkList>>,
}

#[derive(Debug, Default)]
struct LinkList {
    links: Vec<(Route, Rc<Link>)>,
    openings: Vec<Rc<Opening>>,
    is_over: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Route {
    peer: u64,
    dial: Dial,
}

#[derive(Debug)]
struct Opening {
    route: Route,
    waiting: RefCell<Vec<Waker>>,
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

    pub(crate) fn is_empty(&self) -> bool {
        self.known.borrow().links.is_empty()
    }

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

    /// On a new link; calls to the same server share one that is being opened. Errors: as [`Dial::reach`];
    /// [`ExchangeError::Refused`] if the server accepts no call over its links.
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

    /// A link whose call limit will be known soon.
    fn unknown(&self, peer: &Peer, dial: &Dial) -> Option<Rc<Link>> {
        let known = self.known.borrow();
        let fits = |(route, link): &&(Route, Rc<Link>)| {
            route.peer == peer.id && route.dial == *dial && link.is_unknown() && !link.is_leaving()
        };
        known.links.iter().find(fits).map(|(_, link)| link.clone())
    }

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
