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

/// Reads the configuration again.
pub type LoadAgain = Box<dyn Fn() -> Loaded>;

/// What came of opening the sockets of a configuration.
pub struct Listened {
    /// One for each address; what can be done without may be missing.
    pub listenings: Vec<Arc<Listening>>,
    /// What can be done without and could not be opened.
    pub missing: Vec<OpenError>,
    /// Whether an address of the configuration before is no more.
    pub has_left: bool,
}

/// It, of a process that serves or of its opener.
pub struct Office {
    again: LoadAgain,
    listenings: Vec<Arc<Listening>>,
    pid_file: Option<PidFile>,
    program: Program,
}

impl Office {
    /// That of a process which listens already and has no pid file yet.
    pub fn new(again: LoadAgain, listenings: Vec<Arc<Listening>>) -> Office {
        Office { again, listenings, pid_file: None, program: Program::of_this_process() }
    }

    /// Reads the configuration anew.
    pub fn load(&self) -> Loaded {
        (self.again)()
    }

    /// The sockets that are open.
    pub fn listenings(&self) -> &[Arc<Listening>] {
        &self.listenings
    }

    /// What is split off goes on with the sockets and reads the configuration for itself; their files stay with this one.
    pub fn split(self) -> (LoadAgain, Vec<Arc<Listening>>) {
        self.listenings.iter().for_each(|listening| listening.leave_file());
        _ = self.pid_file.map(PidFile::leave);
        (self.again, self.listenings)
    }

    /// Opens the sockets of another configuration, and lets go of those that it has not.
    ///
    /// # Errors
    /// Those of each address; all is then as before.
    pub fn listen(&mut self, configuration: &Configuration) -> Result<Listened, Vec<OpenError>> {
        let workers = accepting::workers(&configuration.main);
        let opened =
            listener::open(&configuration.http.listeners, workers, Inherited::none(), &self.listenings)?;
        let before = std::mem::replace(&mut self.listenings, opened.listenings.clone());
        let stays = |old: &Listening| self.listenings.iter().any(|new| new.address() == old.address());
        let has_left = before.iter().filter(|old| !stays(old)).inspect(|old| old.remove_file()).count() > 0;
        Ok(Listened { listenings: opened.listenings, missing: opened.missing, has_left })
    }

    /// Writes the pid file, or brings it to where it is named now.
    ///
    /// # Errors
    /// Those of writing it.
    pub fn enter(&mut self, pid: &Path) -> io::Result<()> {
        match &mut self.pid_file {
            Some(file) => file.move_to(pid),
            none => {
                *none = Some(PidFile::write(pid)?);
                Ok(())
            }
        }
    }

    /// Starts the next process, which gets the sockets; its id.
    ///
    /// # Errors
    /// It cannot be started; all is then as before.
    pub fn upgrade(&mut self) -> io::Result<u32> {
        let Some(pid_file) = &mut self.pid_file else { return Err(io::ErrorKind::NotFound.into()) };
        self.program.start_next(&self.listenings, pid_file)
    }

    /// Looks whether the next process has ended, and says so; then this one is the only one again.
    pub fn reap(&mut self) -> Option<String> {
        self.program.reap(&self.listenings, self.pid_file.as_mut()?)
    }

    /// Whether a next process runs.
    pub fn has_next(&self) -> bool {
        self.program.has_next()
    }

    /// Lets go of all sockets: from then on the kernel refuses, unless the next process has them as well.
    pub fn leave(&mut self) {
        self.listenings.drain(..).for_each(|listening| listening.remove_file());
    }
}

/// Whether what is logged is also seen at the terminal, where the findings were printed already.
pub fn tells_stderr(main: &Main) -> bool {
    main.error_logs.iter().any(|log| log.target == LogTarget::Stderr)
}

/// In the background the error log stands for standard error: whoever started us may wait for the end of it, and what a library prints is not
/// lost. `open` opens the log.
///
/// # Errors
/// Those of opening it.
pub fn take_stderr(main: &Main, open: impl FnOnce(&Path) -> io::Result<File>) -> io::Result<()> {
    let file = main.error_logs.iter().find_map(|log| log.target.file());
    let Some(path) = file.filter(|_| !tells_stderr(main)) else { return Ok(()) };
    let file = open(path)?;
    // What a library prints waits for no reader of a pipe, so such a log does not stand for it.
    if file.metadata()?.is_file() { daemon::redirect_stderr(file) } else { Ok(()) }
}
