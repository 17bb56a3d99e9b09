//! Who takes part in a measurement: processes started for it, processes found by what they listen on, and what each costs.
//!
//! A [`Process`] is a child in a directory of its own (`place`) that outlives neither its value nor this process. `account`
//! says what CPU a process used and wanted, `throttle` whether a limit held it back, `sockets` who answers at an address
//! and what connections leave behind, `meter` all of it over one run. Linux's /proc is read, by the crate of
//! that name but for the timers of sockets, which it leaves out; nothing here decides what the figures mean. Next: `verdict`.

mod place;
mod process_table;
mod throttle;
mod sockets;
mod account;
mod meter;
#[cfg(test)]
mod tests;

pub use account::{Spent, Whose};
pub use meter::{API, GENERATOR, Meter, Metered, MeteredRun, PROXY, SHORTEST, TOO_SHORT, watched};
pub use place::{Place, SHARED_MEMORY, clear_away};
pub use sockets::{Listener, is_taken, listener, time_wait_of_late};

pub use crate::machine::link_speed;

use crate::stop::{self, Stop, Stopped, Woken};
use crate::unmeasured::Unmeasured;
use millstream_net::{child, clock};
use rustix::event::PollFlags;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use std::fs::File;
use std::io;
use std::mem;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long a process that was asked to end may take before it is made to.
const END: Duration = Duration::from_secs(3);
/// The longest pause between two attempts to connect.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
const ATTEMPT: Duration = Duration::from_millis(250);
/// Of what a process said, so much of the end is kept for the user.
const SAID: u64 = 4 << 10;
/// The lowest port that [`free_address`] gives out.
const LOWEST_PORT: u16 = 12_000;

/// A running child with a process group of its own; dropped, it and what it left in that group are ended. It gets TERM where
/// the thread that started it ends first, however that comes about.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    /// Readable once the process has ended.
    end: OwnedFd,
    output: File,
    /// Whether its number may be somebody else's by now.
    is_waited_for: bool,
    stop: Option<Stop>,
    // Behind the child, which works in it.
    place: Place,
}

impl Process {
    /// Starts a command in a directory; what it prints goes to a file there. Errors: it cannot be started.
    pub fn start(name: &str, mut command: Command, place: Place) -> Result<Process, Unmeasured> {
        let mut start = || -> io::Result<_> {
            let output =
                File::options().create(true).append(true).read(true).open(place.path().join("output"))?;
            child::ends_with_parent(&mut command);
            // Its own group: Ctrl-C in the terminal reaches this program alone, which then ends its parties in order.
            let mut child = command
                .current_dir(place.path())
                .stdin(Stdio::null())
                .stdout(output.try_clone()?)
                .stderr(output.try_clone()?)
                .process_group(0)
                .spawn()?;
            match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
                Ok(end) => Ok((child, end, output)),
                Err(error) => {
                    // Without it nobody would notice its end, so it does not run.
                    child.kill()?;
                    child.wait()?;
                    Err(error.into())
                }
            }
        };
        let (child, end, output) = start().map_err(|error| format!("{name} cannot be started: {error}"))?;
        Ok(Process { name: name.to_owned(), child, end, output, is_waited_for: false, stop: None, place })
    }

    /// The same, no longer waited for once the user wants to stop, and ended without patience once he insists.
    pub fn heeding(mut self, stop: &Stop) -> Process {
        self.stop = Some(stop.clone());
        self
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    pub fn ended(&mut self) -> Option<ExitStatus> {
        if !self.is_waited_for && self.wait_for_end(Duration::ZERO, None) != Woken::Ready {
            return None;
        }
        self.reap()
    }

    /// Ends what is left of its group, and takes its status.
    fn reap(&mut self) -> Option<ExitStatus> {
        if !mem::replace(&mut self.is_waited_for, true) {
            // The group's number stays taken until its first process has been waited for.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        self.child.wait().ok()
    }

    /// Returns once it accepts connections on an address.
    ///
    /// Its end is an event; that it listens is none that anybody could await, so connecting is tried again after a pause
    /// that doubles from 1 ms to 50 ms. Errors: it ended, nobody listens within `within`, somebody else does, or the user
    /// wanted to stop.
    pub fn wait_for(&mut self, address: SocketAddr, within: Duration) -> Result<(), Unmeasured> {
        let began = clock::now();
        let mut pause = Duration::from_millis(1);
        while TcpStream::connect_timeout(&address, ATTEMPT).is_err() {
            match self.wait_for_end(pause, self.stop.as_ref().map(Stop::asked)) {
                Woken::Ready => return Err(self.told_of_its_end().into()),
                Woken::Stopped => return Err(Stopped.into()),
                Woken::Late => {}
            }
            if clock::now().duration_since(began) >= within {
                let (name, seconds) = (&self.name, within.as_secs());
                return Err(format!("{name} did not respond on {address} within {seconds} s").into());
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        // Where the system does not tell whose the listener is, it is believed.
        let Some(found) = listener(address) else { return Ok(()) };
        let own = process_table::tree(self.id());
        if found.processes.iter().any(|id| own.contains(id)) {
            return Ok(());
        }
        Err(format!("{} should listen on {address}, but {found} listens there", self.name).into())
    }

    fn told_of_its_end(&mut self) -> String {
        let mut told = format!("{} exited before it responded", self.name);
        told.extend(self.reap().map(|status| format!(" ({status})")));
        let said = Some(self.said()).filter(|said| !said.is_empty());
        told.extend(said.map(|said| format!("; its output: {said}")));
        told
    }

    fn wait_for_end(&self, within: Duration, or: Option<BorrowedFd<'_>>) -> Woken {
        // A system that refuses to wait leaves trying again.
        stop::wait(&self.end, PollFlags::IN, or, within).unwrap_or(Woken::Late)
    }

    pub fn said(&self) -> String {
        let from = self.output.metadata().map_or(0, |about| about.len().saturating_sub(SAID));
        let mut bytes = [0; SAID as usize];
        let length = self.output.read_at(&mut bytes, from).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..length]);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Ends it: TERM first, KILL after three seconds or where the user insists, then KILL for what it left in its group.
    /// Further calls do nothing.
    pub fn end(&mut self) {
        if self.ended().is_none() {
            // Not yet waited for, so its number is still its own.
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            self.wait_for_end(END, self.stop.as_ref().map(Stop::pressed));
            self.reap();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// An address of this machine that nobody listened on a moment ago, never the same twice in one process.
///
/// Its port is below those that the kernel gives to outgoing connections: a load opens thousands of these, and one of them
/// could sit on the port before the server does. Errors: no port is free.
pub fn free_address() -> io::Result<SocketAddr> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let outgoing = range.split_whitespace().next().and_then(|low| low.parse::<u16>().ok()).unwrap_or(32_768);
    let span = u32::from(outgoing.saturating_sub(LOWEST_PORT).max(1));
    // Spread by process, so that two measurements at once rarely look at the same ports.
    let start = std::process::id().wrapping_mul(6_997);
    let free = (0..span).find_map(|_| {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = LOWEST_PORT + (start.wrapping_add(step) % span) as u16;
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()
    });
    // Where all ports are for outgoing connections, any will do.
    free.map_or_else(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)), Ok)?.local_addr()
}
