//! The service manager that started us, systemd or another that speaks its protocol: it hears when we serve, reload, stop
//! and live, and may have opened our sockets.
//!
//! See sd_notify(3), sd_listen_fds(3) and sd_watchdog_enabled(3). Where nobody asked to be told, nothing here does anything; a manager
//! that cannot be reached is no reason to serve less, so errors are dropped.

use sd_notify::NotifyState;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// Serving as the main process: also after a reload, and in the next process after an upgrade.
    Ready,
    /// A reload begins; [`Word::Ready`] ends it, whatever the result.
    Reloading,
    /// Stopping without a successor.
    Stopping,
    /// Due at least once per [`watchdog`] interval.
    Alive,
}

/// Sends for another process.
pub type Speaker = Box<dyn Fn(Word) + Send + Sync>;

static SPEAKER: OnceLock<Speaker> = OnceLock::new();

/// From now on another process sends: the manager listens to its main process. Only the first call counts.
pub fn speak_through(speaker: Speaker) {
    _ = SPEAKER.set(speaker);
}

pub fn say(word: Word) {
    if let Some(speaker) = SPEAKER.get() {
        return speaker(word);
    }
    match word {
        Word::Ready => tell(&[NotifyState::MainPid(std::process::id()), NotifyState::Ready]),
        Word::Reloading => {
            // The manager tells by the time whether the next word is about this reload.
            if let Ok(now) = NotifyState::monotonic_usec_now() {
                tell(&[NotifyState::Reloading, now]);
            }
        }
        Word::Stopping => tell(&[NotifyState::Stopping]),
        Word::Alive => tell(&[NotifyState::Watchdog]),
    }
}

/// Timeout for [`Word::Alive`]; `None` if the manager has none. The first call's value also applies to forked
/// processes.
pub fn watchdog() -> Option<Duration> {
    static TIME: OnceLock<Option<Duration>> = OnceLock::new();
    *TIME.get_or_init(sd_notify::watchdog_enabled)
}

/// Sockets that the manager opened for this process.
pub(crate) fn descriptors() -> Vec<RawFd> {
    sd_notify::listen_fds().map(Iterator::collect).unwrap_or_default()
}

fn tell(state: &[NotifyState<'_>]) {
    _ = sd_notify::notify(state);
}
