//! The wish to end, for loops as a flag and for waits as an event.
//!
//! Whoever hears a signal calls [`Stop::ask`], and [`Stop::press`] where the user asks again; everybody else looks at the
//! flag between two steps of work and waits with [`wait`], which either event ends. Nothing here ends anything itself.
//! Next: `probe` and `party`, which wait.

use millstream_net::clock;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stopped")]
pub struct Stopped;

#[derive(Debug, Clone)]
pub struct Stop(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    is_asked: AtomicBool,
    /// Readable once asked.
    asked: OwnedFd,
    /// Readable once pressed.
    pressed: OwnedFd,
}

impl Stop {
    /// A wish that nobody has uttered yet. Errors: the system gives no event.
    pub fn new() -> io::Result<Stop> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Stop(Arc::new(Shared { is_asked: AtomicBool::new(false), asked: event()?, pressed: event()? })))
    }

    pub fn ask(&self) {
        self.0.is_asked.store(true, Ordering::Relaxed);
        raise(&self.0.asked);
    }

    /// Asks for an end without patience: what was to end by itself is made to.
    pub fn press(&self) {
        self.ask();
        raise(&self.0.pressed);
    }

    pub fn is_asked(&self) -> bool {
        self.0.is_asked.load(Ordering::Relaxed)
    }

    /// Whether to go on: an error once an end was asked for. Errors: [`Stopped`].
    pub fn go_on(&self) -> Result<(), Stopped> {
        if self.is_asked() { Err(Stopped) } else { Ok(()) }
    }

    /// The same as a flag, for loops that have no wait of their own.
    pub fn flag(&self) -> &AtomicBool {
        &self.0.is_asked
    }

    /// Readable once an end was asked for; nobody reads it.
    pub fn asked(&self) -> BorrowedFd<'_> {
        self.0.asked.as_fd()
    }

    /// Readable once an end was asked for without patience; nobody reads it.
    pub fn pressed(&self) -> BorrowedFd<'_> {
        self.0.pressed.as_fd()
    }
}

/// A counter that is raised and never read fits more wishes than anybody has, so this cannot fail.
fn raise(event: &OwnedFd) {
    _ = rustix::io::write(event, &1u64.to_ne_bytes());
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct CutShort {
    pub measured: u32,
    pub of: u32,
}

impl CutShort {
    pub fn words(self) -> String {
        format!(
            "Stopped after {} of {} measurements: all results below are based only on these.",
            self.measured, self.of
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    Ready,
    /// The event that was to end it.
    Stopped,
    Late,
}

/// Waits until a file is ready for something, `or` is readable, or the time is up; where both are, it was `or`. Errors: the
/// system refuses to wait.
pub fn wait(
    file: impl AsFd,
    ready: PollFlags,
    or: Option<BorrowedFd<'_>>,
    within: Duration,
) -> io::Result<Woken> {
    let end = clock::now() + within;
    let file = file.as_fd();
    let mut events = vec![PollFd::from_borrowed_fd(file, ready)];
    events.extend(or.map(|event| PollFd::from_borrowed_fd(event, PollFlags::IN)));
    loop {
        let left = Timespec::try_from(end.saturating_duration_since(clock::now())).ok();
        match poll(&mut events, left.as_ref()) {
            Ok(0) => return Ok(Woken::Late),
            Ok(_) if events.get(1).is_some_and(|event| !event.revents().is_empty()) => {
                return Ok(Woken::Stopped);
            }
            Ok(_) => return Ok(Woken::Ready),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_wait_ends_with_what_it_waits_for_with_the_wish_or_with_the_time() {
        let stop = Stop::new().unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        let woken = |limit| wait(&one, PollFlags::IN, Some(stop.asked()), limit).unwrap();
        assert_eq!(woken(Duration::from_millis(1)), Woken::Late);
        drop(other);
        let long = Duration::from_secs(60);
        assert_eq!(woken(long), Woken::Ready);
        stop.ask();
        stop.ask();
        assert_eq!((woken(long), stop.is_asked()), (Woken::Stopped, true));
        let pressed = |limit| wait(&one, PollFlags::PRI, Some(stop.pressed()), limit).unwrap();
        stop.clone().press();
        assert_eq!(pressed(long), Woken::Stopped);
    }
}
