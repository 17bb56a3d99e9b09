//! What of a running server may need rights: reading its configuration, its listening sockets, its pid file, the next binary.
//!
//! A process that gives up no right does it itself; else it is done in the opener. Before: `upgrade`, `pid_file`; next: `opener`, and `keeper`, by
//! which the serving process reaches it wherever it is.

use crate::accepting;
use crate::pid_file::PidFile;
use crate::upgrade::Program;
use millstream_conf::load::Loaded;
use millstream_conf::model::{Configuration, LogTarget, Main};
use millstream_net::daemon;
use millstream_net::listener::{self, Inherited, Listening, OpenError};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub type LoadAgain = Box<dyn Fn() -> Loaded>;

pub struct Listened {
    pub listenings: Vec<Arc<Listening>>,
    pub missing: Vec<OpenError>,
    /// Whether an address of the previous configuration is gone.
    pub has_left: bool,
}

pub struct Office {
    again: LoadAgain,
    listenings: Vec<Arc<Listening>>,
    pid_file: Option<PidFile>,
    program: Program,
}

impl Office {
    /// The process listens already and has no pid file yet.
    pub fn new(again: LoadAgain, listenings: Vec<Arc<Listening>>) -> Office {
        Office { again, listenings, pid_file: None, program: Program::of_this_process() }
    }

    pub fn load(&self) -> Loaded {
        (self.again)()
    }

    pub fn listenings(&self) -> &[Arc<Listening>] {
        &self.listenings
    }

    /// For a split-off process: it keeps the sockets and reads the configuration itself; their files stay
    /// here.
    pub fn split(self) -> (LoadAgain, Vec<Arc<Listening>>) {
        self.listenings.iter().for_each(|listening| listening.leave_file());
        _ = self.pid_file.map(PidFile::leave);
        (self.again, self.listenings)
    }

    /// Opens the sockets of another configuration and closes those it lacks. On error nothing changes.
    pub fn listen(&mut self, configuration: &Configuration) -> Result<Listened, Vec<OpenError>> {
        let workers = accepting::workers(&configuration.main);
        let opened =
            listener::open(&configuration.http.listeners, workers, Inherited::none(), &self.listenings)?;
        let before = std::mem::replace(&mut self.listenings, opened.listenings.clone());
        let stays = |old: &Listening| self.listenings.iter().any(|new| new.address() == old.address());
        let has_left = before.iter().filter(|old| !stays(old)).inspect(|old| old.remove_file()).count() > 0;
        Ok(Listened { listenings: opened.listenings, missing: opened.missing, has_left })
    }

    pub fn enter(&mut self, pid: &Path) -> io::Result<()> {
        match &mut self.pid_file {
            Some(file) => file.move_to(pid),
            none => {
                *none = Some(PidFile::write(pid)?);
                Ok(())
            }
        }
    }

    /// Starts the next process with the sockets; returns its id. On error nothing changes.
    pub fn upgrade(&mut self) -> io::Result<u32> {
        let Some(pid_file) = &mut self.pid_file else { return Err(io::ErrorKind::NotFound.into()) };
        self.program.start_next(&self.listenings, pid_file)
    }

    /// Whether the next process has ended, as a line for the log; then this one is alone again.
    pub fn reap(&mut self) -> Option<String> {
        self.program.reap(&self.listenings, self.pid_file.as_mut()?)
    }

    pub fn has_next(&self) -> bool {
        self.program.has_next()
    }

    /// Closes all sockets: the kernel refuses connections, unless the next process has the sockets too.
    pub fn leave(&mut self) {
        self.listenings.drain(..).for_each(|listening| listening.remove_file());
    }
}

/// Whether the log also goes to the terminal, where findings were printed already.
pub fn tells_stderr(main: &Main) -> bool {
    main.error_logs.iter().any(|log| log.target == LogTarget::Stderr)
}

/// Replaces standard error by the error log in the background: the starter may wait for its end, and output
/// of libraries is kept.
pub fn take_stderr(main: &Main, open: impl FnOnce(&Path) -> io::Result<File>) -> io::Result<()> {
    let file = main.error_logs.iter().find_map(|log| log.target.file());
    let Some(path) = file.filter(|_| !tells_stderr(main)) else { return Ok(()) };
    let file = open(path)?;
    // What a library prints waits for no reader of a pipe, so such a log does not stand for it.
    if file.metadata()?.is_file() { daemon::redirect_stderr(file) } else { Ok(()) }
}
