//! A connection to a server over which calls are made: which there are, and whether another may be.
//!
//! It is done with once it has served for as long as one may, when its server says so, when nobody wants it idle, or when it closes; its
//! calls end first wherever that can be. Before: `ongoing`; next: `call`; `driver`, its task; `links`, which finds one with room.

use super::lost::Lost;
use super::ongoing::Ongoing;
use crate::held::Held;
use millstream_conf::model::UpstreamKeepalive;
use millstream_net::clock;
use millstream_net::streams::{Beginning, Carrier, Http2Stream};
use millstream_wire::h2::priority::Priority;
use millstream_wire::h2::settings::{DEFAULT_WINDOW, PeerSettings};
use millstream_wire::h2::window::LARGEST;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Calls at a time before the server has announced its limit: some punish more.
const FIRST_CALLS: u32 = 1;
/// Calls at a time over one connection, whatever the server accepts.
const MOST_CALLS: u32 = 1000;

#[derive(Debug, Clone)]
pub(super) struct Keeping {
    pub(super) keepalive: UpstreamKeepalive,
    pub(super) most_idle: usize,
    pub(super) idle: Rc<Cell<usize>>,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) carrier: Rc<Carrier>,
    keeping: Keeping,
    opened: Instant,
    state: RefCell<LinkState>,
}

#[derive(Debug)]
struct LinkState {
    /// In the order of their numbers.
    calls: Vec<Rc<Ongoing>>,
    /// Calls with a slot and no number yet, and the octets reserved for them.
    reserved: (usize, u64),
    next: u32,
    begun: u64,
    /// Whether the server's SETTINGS have come, and who waits for them.
    is_known: bool,
    waiting: Vec<Waker>,
    is_leaving: bool,
    /// Whether the server rejects all calls without a number.
    is_sent_away: bool,
    closed: Option<Lost>,
    /// How often the server has sent anything.
    heard: u64,
    idle_since: Option<Instant>,
    held: Option<Box<dyn Held>>,
    driver: Option<Waker>,
}

impl Link {
    pub(super) fn new(keeping: Keeping) -> Rc<Link> {
        let state = LinkState {
            calls: Vec::new(),
            reserved: (0, 0),
            next: 1,
            begun: 0,
            is_known: false,
            waiting: Vec::new(),
            is_leaving: false,
            is_sent_away: false,
            closed: None,
            heard: 0,
            idle_since: None,
            held: None,
            driver: None,
        };
        let carrier = Rc::new(Carrier::to_server(PeerSettings::default()));
        let link = Link { carrier, keeping, opened: clock::now(), state: RefCell::new(state) };
        link.become_idle();
        Rc::new(link)
    }

    /// Reserves a slot for a call with a body of so many octets, which must be begun or released with the
    /// returned value; [`None`] if there is none. `is_apart`: only if no body on the link can block another.
    pub(super) fn reserve(&self, body: u64, is_apart: bool, now: Instant) -> Option<u64> {
        let state = &mut *self.state.borrow_mut();
        let keepalive = &self.keeping.keepalive;
        let is_worn =
            state.begun >= keepalive.requests || now.saturating_duration_since(self.opened) >= keepalive.time;
        state.is_leaving |= is_worn || state.next > LARGEST;
        let theirs = if state.is_known { self.carrier.peer().max_concurrent_streams } else { FIRST_CALLS };
        let most = theirs.min(MOST_CALLS) as usize;
        if state.is_leaving || state.calls.len() + state.reserved.0 >= most {
            return None;
        }
        let octets = self.octets_for(state, body, is_apart)?;
        if state.idle_since.take().is_some() {
            self.keeping.idle.set(self.keeping.idle.get().saturating_sub(1));
        }
        state.reserved = (state.reserved.0 + 1, state.reserved.1 + octets);
        Some(octets)
    }

    /// How much of such a body a call may send before the server reads any; [`None`] if the connection's
    /// window has no room for that and for all that current calls may send. So no body that its server does
    /// not read blocks another: a server may open the connection's window only for what it has read (RFC 9113
    /// §6.9).
    fn octets_for(&self, state: &LinkState, body: u64, is_apart: bool) -> Option<u64> {
        let octets = body.min(self.carrier.peer().initial_window_size.into());
        if octets == 0 {
            return Some(0);
        }
        let room = u64::from(self.carrier.available());
        // One that calls alone waits for nobody's body, unless the server still has some of those before.
        let is_alone = state.calls.is_empty() && state.reserved.0 == 0;
        if is_alone || !is_apart {
            return (room > 0).then_some(octets);
        }
        let others: u64 = state.calls.iter().map(|call| u64::from(call.stream.unsaid())).sum();
        (octets + others + state.reserved.1 <= room).then_some(octets)
    }

    /// Numbers a call that has reserved these octets.
    pub(super) fn begin(&self, octets: u64, has_body: bool) -> Result<Rc<Ongoing>, Lost> {
        let state = &mut *self.state.borrow_mut();
        if let Some(lost) = state.closed {
            // Nothing of it was sent.
            return Err(if let Lost::Broken(_) = lost { lost } else { Lost::Refused });
        }
        if state.is_sent_away || state.next > LARGEST {
            return Err(Lost::Refused);
        }
        let preread = DEFAULT_WINDOW;
        let beginning =
            Beginning { preread, announced: None, has_ended: false, priority: Priority::default() };
        let stream = Http2Stream::new(state.next, self.carrier.clone(), beginning);
        let ongoing = Ongoing::new(stream, has_body, state.heard);
        state.next += 2;
        state.begun += 1;
        state.reserved = (state.reserved.0 - 1, state.reserved.1 - octets);
        state.calls.push(ongoing.clone());
        Ok(ongoing)
    }

    pub(super) fn release(&self, octets: u64) {
        let (calls, all) = self.state.borrow().reserved;
        self.state.borrow_mut().reserved = (calls - 1, all - octets);
        self.become_idle();
    }

    pub(super) fn calls(&self) -> usize {
        let state = self.state.borrow();
        state.calls.len() + state.reserved.0
    }

    pub(super) fn end(&self, call: &Ongoing) {
        call.stream.close();
        {
            let state = &mut *self.state.borrow_mut();
            if let Ok(at) = position(&state.calls, call.stream.id()) {
                state.calls.remove(at);
            }
        }
        self.become_idle();
    }

    /// The server shows activity: a frame came that is no part of an endless header block, nor what every
    /// connection begins with.
    pub(super) fn hear(&self) {
        self.state.borrow_mut().heard += 1;
    }

    /// A call timed out. If nothing has come since it was made, the server may be gone or hang: new calls use
    /// other links, as HTTP/1 closes its connection then. Those that wait continue.
    pub(super) fn doubt(&self, call: &Ongoing) {
        if self.state.borrow().heard == call.heard {
            self.leave();
        }
    }

    /// Notes that there are no calls, if so. A surplus idle link closes.
    fn become_idle(&self) {
        let state = &mut *self.state.borrow_mut();
        let is_idle = state.calls.is_empty() && state.reserved.0 == 0;
        if !is_idle || state.idle_since.is_some() || state.closed.is_some() {
            return;
        }
        let (idle, most) = (&self.keeping.idle, self.keeping.most_idle);
        let is_unwanted = state.held.as_ref().is_some_and(|held| !held.may_idle());
        // A new one has had no chance yet.
        state.is_leaving |= state.begun > 0 && (is_unwanted || idle.get() >= most);
        idle.set(idle.get() + 1);
        state.idle_since = Some(clock::now());
        state.wake();
    }

    /// No more calls are made over it; current ones continue.
    pub(super) fn leave(&self) {
        let state = &mut *self.state.borrow_mut();
        state.is_leaving = true;
        state.wake();
    }

    pub(super) fn close(&self, lost: Lost) {
        let calls = {
            let state = &mut *self.state.borrow_mut();
            state.is_leaving = true;
            state.closed.get_or_insert(lost);
            if state.idle_since.take().is_some() {
                self.keeping.idle.set(self.keeping.idle.get().saturating_sub(1));
            }
            state.held = None;
            state.waiting.drain(..).for_each(Waker::wake);
            state.calls.clone()
        };
        calls.iter().for_each(|call| call.lose(lost));
    }

    /// The server accepts no calls after this one (RFC 9113 §6.8); it has done nothing for later ones.
    pub(super) fn goes_away(&self, last: u32) {
        let refused: Vec<Rc<Ongoing>> = {
            let state = &mut *self.state.borrow_mut();
            (state.is_leaving, state.is_sent_away) = (true, true);
            let from = state.calls.partition_point(|call| call.stream.id() <= last);
            state.calls[from..].to_vec()
        };
        refused.iter().for_each(|call| call.lose(Lost::Refused));
    }

    pub(super) fn known(&self) {
        let state = &mut *self.state.borrow_mut();
        state.is_known = true;
        state.waiting.drain(..).for_each(Waker::wake);
    }

    pub(super) fn is_unknown(&self) -> bool {
        let state = self.state.borrow();
        !state.is_known && state.closed.is_none()
    }

    /// Whether no call was ever made over it, and none can be now.
    pub(super) fn turns_away(&self) -> bool {
        let state = self.state.borrow();
        let takes_none = state.is_known && self.carrier.peer().max_concurrent_streams == 0;
        state.begun == 0 && (state.is_sent_away || state.closed.is_some() || takes_none)
    }

    pub(super) fn poll_known(&self, context: &Context<'_>) -> Poll<()> {
        let state = &mut *self.state.borrow_mut();
        if state.is_known || state.closed.is_some() {
            return Poll::Ready(());
        }
        if !state.waiting.iter().any(|known| known.will_wake(context.waker())) {
            state.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    pub(super) fn ongoing(&self, stream: u32) -> Option<Rc<Ongoing>> {
        let state = self.state.borrow();
        position(&state.calls, stream).ok().map(|at| state.calls[at].clone())
    }

    pub(super) fn all(&self) -> Vec<Rc<Ongoing>> {
        self.state.borrow().calls.clone()
    }

    pub(super) fn is_idle_stream(&self, stream: u32) -> bool {
        stream >= self.state.borrow().next || stream.is_multiple_of(2)
    }

    /// When it is closed if idle; [`None`] while there are calls.
    pub(super) fn idle_until(&self) -> Option<Instant> {
        let state = self.state.borrow();
        let since = state.idle_since?;
        Some(if state.is_leaving { since } else { since + self.keeping.keepalive.timeout })
    }

    pub(super) fn watch(&self, context: &Context<'_>) {
        let state = &mut *self.state.borrow_mut();
        if !state.driver.as_ref().is_some_and(|driver| driver.will_wake(context.waker())) {
            state.driver = Some(context.waker().clone());
        }
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.state.borrow().is_leaving
    }

    /// Dropped if it holds a value already.
    pub(super) fn hold(&self, value: Box<dyn Held>) {
        self.state.borrow_mut().held.get_or_insert(value);
    }

    pub(super) fn age(&self) -> (Instant, u64) {
        (self.opened, self.state.borrow().begun)
    }
}

impl LinkState {
    fn wake(&self) {
        if let Some(driver) = &self.driver {
            driver.wake_by_ref();
        }
    }
}

fn position(calls: &[Rc<Ongoing>], stream: u32) -> Result<usize, usize> {
    calls.binary_search_by_key(&stream, |call| call.stream.id())
}
