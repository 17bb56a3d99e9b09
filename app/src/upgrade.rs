//! `USR2`: the next binary is started with our listening sockets; both serve until we are told to quit.
//!
//! The new process is this one's child. If it ends before we do, the pid file gets its name back.

use crate::pid_file::PidFile;
use millstream_net::listener::{self, ENVIRONMENT, Listening};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// Path and arguments at the start, so that a replaced file is what starts next.
pub struct Program {
    path: PathBuf,
    arguments: Vec<std::ffi::OsString>,
    child: Option<Child>,
}

impl Program {
    pub fn of_this_process() -> Self {
        let mut arguments = std::env::args_os();
        let first = arguments.next().map(PathBuf::from).unwrap_or_default();
        let path = if first.components().count() > 1 {
            std::path::absolute(&first).unwrap_or(first)
        } else {
            std::env::current_exe().unwrap_or(first)
        };
        Program { path, arguments: arguments.collect(), child: None }
    }

    /// Fails during an upgrade. On error nothing changes.
    pub fn start_next(&mut self, listenings: &[Arc<Listening>], pid_file: &mut PidFile) -> io::Result<u32> {
        if self.child.is_some() {
            return Err(io::Error::other("an upgrade is already in progress"));
        }
        let handed_over = listener::hand_over(listenings)?;
        if let Err(error) = pid_file.step_aside() {
            self.take_back(listenings, pid_file);
            return Err(io::Error::new(error.kind(), format!("the pid file cannot be renamed: {error}")));
        }
        let started = Command::new(&self.path)
            .args(&self.arguments)
            .env(ENVIRONMENT, handed_over)
            // The service manager waits for whoever is the main process.
            .env_remove("WATCHDOG_PID")
            .stdin(Stdio::null())
            .spawn();
        match started {
            Ok(child) => {
                let id = child.id();
                self.child = Some(child);
                Ok(id)
            }
            Err(error) => {
                self.take_back(listenings, pid_file);
                Err(error)
            }
        }
    }

    pub fn has_next(&self) -> bool {
        self.child.is_some()
    }

    /// Whether the next process has ended (`CHLD`), as a line for the log; then this one is alone again.
    pub fn reap(&mut self, listenings: &[Arc<Listening>], pid_file: &mut PidFile) -> Option<String> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        self.child = None;
        self.take_back(listenings, pid_file);
        Some(format!(
            "the new process exited with {status}; this process continues. Run -t with the same configuration to see \
             the error"
        ))
    }

    fn take_back(&self, listenings: &[Arc<Listening>], pid_file: &mut PidFile) {
        for listening in listenings {
            // A socket that stays inheritable does no harm to us.
            _ = listening.take_back();
        }
        // Where that fails, scripts find us under the other name.
        _ = pid_file.step_back();
    }
}
