//! The service manager that started us, systemd or another that speaks its protocol: it hears when we serve, reload, stop
//! and live, and may have opened our sockets.
//!
//! See sd_notify(3), sd_listen_fds(3) and sd_watchdog_enabled(3). Where nobody asked to be told, nothing here does anything; a manager
//! that cannot be reached is no reason to serve less, so errors are dropped.

use sd_notify::NotifyState;
use std::os::fd::RawFd;
use std::time::Duration;

/// We serve, and are the main process: also after a reload, and the next process after an upgrade.
pub fn ready() {
    tell(&[NotifyState::MainPid(std::process::id()), NotifyState::Ready]);
}

/// A reload begins; [`ready`] ends it, however it went.
pub fn reloading() {
    // The manager tells by the time whether the next word is about this reload.
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// We stop, and nobody goes on in our place.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// We live. Due at least once in the time of [`watchdog`].
pub fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// How long the manager waits for [`alive`] before it ends us; nothing where it does not wait for it.
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

/// Descriptors of the sockets that the manager opened for this process.
pub(crate) fn descriptors() -> Vec<RawFd> {
    sd_notify::listen_fds().map(Iterator::collect).unwrap_or_default()
}

fn tell(state: &[NotifyState<'_>]) {
    _ = sd_notify::notify(state);
}
