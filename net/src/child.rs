//! Children that end with this process, however it ends: the kernel tells them, so that nothing has to be alive for it.
//!
//! `PR_SET_PDEATHSIG` is a matter of the thread that starts the child: where that one ends, the child is told too. It is
//! lost where the child changes its user, so it is agreed on afterwards.

use crate::kernel;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::io;
use std::process::Command;

/// The command's process gets TERM when the thread that started it ends. It is not started if this process
/// ends before that is set up.
pub fn ends_with_parent(command: &mut Command) {
    kernel::before_exec(command, kernel::TieToParent::here());
}

/// Has this process end with its parent, which forked it. Fails if the parent has ended already.
pub(crate) fn end_with(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::other("the parent process has exited")) }
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
