//! `daemon on`: from a process of a terminal to one in the background.
//!
//! Called after the configuration is checked and the listeners are open, so that the terminal saw every
//! error, and before any thread starts. Standard error stays, as in nginx, until the error log takes its
//! place.

use crate::kernel;
use rustix::process::Pid;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsFd;

#[cfg(test)]
mod tests;

/// Which of the two processes this is after [`detach`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detached {
    /// The one the terminal waits for: it must exit now with status 0, and touch nothing.
    Foreground,
    /// The one that continues, in its own session.
    Background,
}

/// Standard input and output become /dev/null. Fails if threads run already; after an error this process is
/// as before, but an error after the fork reaches only the background process.
pub fn detach() -> io::Result<Detached> {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    if kernel::fork()?.is_some() {
        return Ok(Detached::Foreground);
    }
    rustix::process::setsid()?;
    kernel::replace_standard(null.as_fd(), libc::STDIN_FILENO)?;
    kernel::replace_standard(null.as_fd(), libc::STDOUT_FILENO)?;
    Ok(Detached::Background)
}

/// Returns the child's id, and `None` in the child. Fails if threads run already.
pub fn split_off() -> io::Result<Option<Pid>> {
    Ok(kernel::fork()?.and_then(|child| Pid::from_raw(child.cast_signed())))
}

/// So that output of a library or a panic is not lost.
pub fn redirect_stderr(log: impl AsFd) -> io::Result<()> {
    kernel::replace_standard(log.as_fd(), libc::STDERR_FILENO)
}
