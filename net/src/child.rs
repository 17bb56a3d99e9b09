//! Children that end with this process, however it ends: the kernel tells them, so that nothing has to be alive for it.
//!
//! `PR_SET_PDEATHSIG` is a matter of the thread that starts the child: where that one ends, the child is told too. It is
//! lost where the child changes its user, so a server of ours that does so renews it (`Tie`).

use crate::kernel;
use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process, parent_process_death_signal, set_parent_process_death_signal,
};
use std::process::Command;

/// From its first instruction on, what the command starts gets TERM when the thread that started it ends. Where this
/// process has ended before that could be agreed on, it is not started.
pub fn ends_with_parent(command: &mut Command) {
    kernel::before_exec(command, kernel::TieToParent::here());
}

/// The tie of this process to whoever started it, to be renewed after a change of its user.
#[derive(Debug)]
pub(crate) struct Tie {
    signal: Option<Signal>,
    parent: Option<Pid>,
}

impl Tie {
    /// What it is now.
    pub(crate) fn present() -> Tie {
        Tie { signal: parent_process_death_signal().ok().flatten(), parent: getppid() }
    }

    /// Makes it what it was.
    pub(crate) fn renew(&self) {
        if self.signal.is_none() || set_parent_process_death_signal(self.signal).is_err() {
            return;
        }
        // Whoever ended in between has told nobody.
        if let Some(signal) = self.signal
            && getppid() != self.parent
        {
            _ = kill_process(getpid(), signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;
    use std::thread;

    #[test]
    fn a_child_is_told_when_the_thread_that_started_it_ends() {
        let starter = thread::spawn(|| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", "trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 1; done"]);
            ends_with_parent(&mut command);
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            let mut said = BufReader::new(child.stdout.take().unwrap());
            let mut line = String::new();
            said.read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n");
            (child, said)
        });
        let (mut child, mut said) = starter.join().unwrap();
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "told\n");
        assert!(child.wait().unwrap().success());
    }
}
