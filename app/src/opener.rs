//! The opener: where a server is started with rights, by root or with some capabilities, what needs them is done by a process of its own.
//!
//! It is the process that was started, and the one in the pid file. It reads the configuration, splits off the one that serves, without any right, and never
//! sees a byte of a request. What it opens is what a configuration that it read itself names, so whoever takes over the serving process can ask for nothing
//! else; a reload, an upgrade and an end are done when a signal came to it. Signals go on to the serving process, and one that ends unasked is replaced.
//! It has one thread, as splitting off needs. Before: `office`; next: `opener/answering`, then `keeper`, the other end.

pub mod asked;
pub mod line;
mod folders;
mod answering;
#[cfg(test)]
mod tests;

use crate::office::{LoadAgain, Office};
use line::OpenerLine;
use millstream_conf::files::{self, Named};
use millstream_conf::model::Configuration;
use millstream_net::channel::Channel;
use millstream_net::file_watch::Watched;
use millstream_net::guarded_path::Owner;
use millstream_net::listener::Listening;
use millstream_net::privileges::{self, Account};
use millstream_net::{daemon, systemd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, waitpid};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use std::collections::HashSet;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const SIGNALS: [i32; 7] = [SIGHUP, SIGQUIT, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGCHLD];
/// Before a serving process that died is replaced.
const PAUSE: Duration = Duration::from_secs(1);

pub enum Outcome {
    Serving(Box<SplitOff>),
    /// The opener has ended with its server.
    Ended(ExitCode),
}

/// What a split-off serving process starts with.
pub struct SplitOff {
    pub configuration: Configuration,
    pub listenings: Vec<Arc<Listening>>,
    pub line: OpenerLine,
    pub again: LoadAgain,
    /// Numbers of signals sent to the opener.
    pub signals: PipeReader,
    /// Notified when the first one is ready.
    pub waiting: Option<PipeWriter>,
    pub note: Option<String>,
}

pub struct Opener {
    office: Office,
    account: Account,
    configuration: Configuration,
    named: Named,
    /// The last configuration read, if not in force: `None` if it has errors; and the files it names.
    read: Option<(Option<Configuration>, Named)>,
    signals: SignalDelivery<UnixStream, SignalOnly>,
    due: Due,
    watched: Option<(Watched, PipeWriter)>,
    /// Files to watch, of a list not complete yet.
    to_follow: HashSet<PathBuf>,
    /// What did not fit into the last message.
    unsent: Vec<u8>,
    waiting: Option<PipeWriter>,
    /// In the background the error log replaces standard error.
    is_daemon: bool,
    has_begun: bool,
    is_stopping: bool,
    /// Whether a serving process that ended in order is not replaced.
    may_end: bool,
    note: Option<String>,
}

#[derive(Debug, Default)]
struct Due {
    reload: bool,
    upgrade: bool,
    end: Option<String>,
}

/// The serving process as the opener sees it.
struct Served {
    id: Pid,
    channel: Channel,
    /// Takes signal numbers, as a container may not let root signal another user's process.
    signals: PipeWriter,
}

/// Starts recording what the configuration names, if this process will have an opener.
pub fn prepare() {
    if privileges::has_rights_to_give_up() {
        files::note_names();
    }
}

/// The user to serve as, if the starter has rights to give up: then there is an opener.
pub fn account(configuration: &Configuration) -> Result<Option<Account>, privileges::PrivilegeError> {
    if !privileges::may_change_user() {
        return Ok(privileges::has_rights_to_give_up().then(Account::own));
    }
    let account = configuration.main.user.as_ref().map(privileges::find).transpose()?;
    Ok(account.filter(|account| account.uid != 0))
}

impl Opener {
    /// The server listens already. See [`Opener::run`], which replaces the caller.
    pub fn new(
        office: Office,
        mut configuration: Configuration,
        account: Account,
        waiting: Option<PipeWriter>,
    ) -> io::Result<Opener> {
        let (read, write) = UnixStream::pair()?;
        let signals = SignalDelivery::with_pipe(read, write, SignalOnly, SIGNALS)?;
        folders::prepare(&mut configuration, (account.uid, account.gid));
        // What the manager asks of this process is done by the one that serves.
        _ = systemd::watchdog();
        Ok(Opener {
            office,
            account,
            configuration,
            named: files::named(),
            read: None,
            signals,
            due: Due::default(),
            watched: None,
            to_follow: HashSet::new(),
            unsent: Vec::new(),
            is_daemon: waiting.is_some(),
            waiting,
            has_begun: false,
            is_stopping: false,
            may_end: false,
            note: None,
        })
    }

    /// `may_end`: whether the serving process decides when all is done.
    #[must_use]
    pub fn that_may_end(self, may_end: bool) -> Opener {
        Opener { may_end, ..self }
    }

    /// Splits off a serving process and works for it until it ends for good. Returns in both processes.
    pub fn run(mut self) -> io::Result<Outcome> {
        loop {
            let (own, others) = Channel::pair()?;
            let (reader, writer) = io::pipe()?;
            let itself = getpid();
            match daemon::split_off() {
                Ok(None) => {
                    drop((own, writer));
                    return self.serving(others, reader, itself);
                }
                Ok(Some(id)) => {
                    drop((others, reader));
                    self.waiting = None;
                    if let Some(code) = self.attend(&Served { id, channel: own, signals: writer })? {
                        self.office.leave();
                        return Ok(Outcome::Ended(code));
                    }
                }
                Err(error) if !self.has_begun => return Err(error),
                // Until there is room for a process again.
                Err(error) => self.note = Some(format!("cannot fork the serving process: {error}")),
            }
            if self.pauses()? {
                self.office.leave();
                return Ok(Outcome::Ended(ExitCode::SUCCESS));
            }
        }
    }

    /// In the serving process: drops all of the opener's state but what is handed over.
    fn serving(self, channel: Channel, signals: PipeReader, opener: Pid) -> io::Result<Outcome> {
        let Opener { office, account, configuration, waiting, note, signals: own, .. } = self;
        drop(own);
        privileges::become_powerless(&account, opener)
            .map_err(|error| io::Error::other(format!("user {}: {error}", account.name)))?;
        let line = OpenerLine::open(channel);
        files::open_through(Box::new(line.clone()));
        systemd::speak_through(Box::new({
            let line = line.clone();
            move |word| line.say(word)
        }));
        let (again, listenings) = office.split();
        let split = SplitOff { configuration, listenings, line, again, signals, waiting, note };
        Ok(Outcome::Serving(Box::new(split)))
    }

    /// Serves requests of a serving process until it ends; returns an exit status if none follows it.
    fn attend(&mut self, served: &Served) -> io::Result<Option<ExitCode>> {
        self.due = Due::default();
        self.to_follow.clear();
        self.unsent.clear();
        let mut listens = true;
        loop {
            let (signalled, asked, changed) = self.wait(served, listens)?;
            if signalled {
                self.forward(served);
            }
            if asked && !self.answer_one(served) {
                // It has ended, or speaks no more as one of ours does.
                listens = false;
                _ = kill_process(served.id, Signal::KILL);
            }
            if changed {
                self.tell_of_change();
            }
            if let Some(status) = ended(served.id) {
                self.watched = None;
                return Ok(self.succeed(served.id, status));
            }
        }
    }

    fn wait(&self, served: &Served, listens: bool) -> io::Result<(bool, bool, bool)> {
        let signals = self.signals.get_read();
        let mut polled = vec![PollFd::new(signals, PollFlags::IN)];
        let watched = self.watched.as_ref().map(|(watched, _)| watched);
        polled.extend(listens.then(|| PollFd::new(&served.channel, PollFlags::IN)));
        polled.extend(watched.map(|watched| PollFd::new(watched, PollFlags::IN)));
        match poll(&mut polled, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = polled.iter().map(|one| !one.revents().is_empty());
        let signalled = ready.next().unwrap_or(false);
        let asked = listens && ready.next().unwrap_or(false);
        Ok((signalled, asked, ready.next().unwrap_or(false)))
    }

    /// Sends signals on, and remembers what they allow.
    fn forward(&mut self, served: &Served) {
        let pending: Vec<i32> = self.signals.pending().collect();
        for signal in pending {
            match signal {
                SIGHUP => self.due.reload = true,
                SIGUSR2 => self.due.upgrade = true,
                SIGCHLD => match self.office.reap() {
                    Some(text) => self.due.end = Some(text),
                    None => continue,
                },
                SIGQUIT | SIGTERM | SIGINT => self.is_stopping = true,
                _ => {}
            }
            // A pipe takes thousands; one that has ended is waited for anyway.
            _ = u8::try_from(signal).map(|signal| (&served.signals).write(&[signal]));
        }
    }

    fn tell_of_change(&mut self) {
        let Some((watched, pipe)) = &mut self.watched else { return };
        match watched.has_changed() {
            // A pipe that is full tells it already.
            Ok(true) => _ = pipe.write(b"\0"),
            Ok(false) => {}
            // The other end hears that nothing more comes.
            Err(_) => self.watched = None,
        }
    }

    /// After a serving process has ended: the exit status, or a note for the next one.
    fn succeed(&mut self, id: Pid, status: WaitStatus) -> Option<ExitCode> {
        let code = status.exit_status().and_then(|status| u8::try_from(status).ok());
        if self.is_stopping || !self.has_begun || self.may_end && code == Some(0) {
            return Some(code.map_or(ExitCode::FAILURE, ExitCode::from));
        }
        let how = match (status.terminating_signal(), code) {
            (Some(signal), _) => format!("on signal {signal}"),
            (None, code) => format!("with status {}", code.unwrap_or_default()),
        };
        let id = id.as_raw_nonzero();
        self.note = Some(format!("serving process {id} exited {how}; it was restarted"));
        None
    }

    /// Waits before the next one; returns whether to end instead.
    fn pauses(&mut self) -> io::Result<bool> {
        let pause = Timespec::try_from(PAUSE).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        loop {
            let count = {
                let mut polled = [PollFd::new(self.signals.get_read(), PollFlags::IN)];
                match poll(&mut polled, Some(&pause)) {
                    Err(rustix::io::Errno::INTR) => continue,
                    count => count?,
                }
            };
            if self.signals.pending().any(|signal| [SIGQUIT, SIGTERM, SIGINT].contains(&signal)) {
                return Ok(true);
            }
            if count == 0 {
                return Ok(false);
            }
        }
    }

    fn owner(&self) -> Owner {
        (self.account.uid, self.account.gid)
    }
}

/// Raises signals sent to the opener in this process, once it handles them.
pub fn take_signals(mut from: PipeReader) -> io::Result<()> {
    let takes = move || {
        let mut signal = [0];
        while from.read(&mut signal).is_ok_and(|count| count == 1) {
            // Only those that were registered are sent.
            _ = signal_hook::low_level::raise(i32::from(signal[0]));
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(takes).map(drop)
}

fn ended(id: Pid) -> Option<WaitStatus> {
    waitpid(Some(id), WaitOptions::NOHANG).ok().flatten().map(|(_, status)| status)
}

/// Nonblocking at both ends.
fn pipe() -> io::Result<(OwnedFd, PipeWriter)> {
    let (reader, writer) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK)?;
    Ok((reader.as_fd().try_clone_to_owned()?, writer.into()))
}
