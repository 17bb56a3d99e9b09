//! `-s`: finds the running process by its pid file and signals it, and nobody else who may have that id.

use crate::check;
use crate::cli::SignalName;
use crate::pid_file::{self, Holder};
use millstream_conf::diagnostics::Severity;
use millstream_conf::load::{Options, load};
use rustix::process::{Pid, Signal, kill_process};
use std::process::ExitCode;

pub fn send(options: &Options, name: SignalName) -> ExitCode {
    let loaded = load(options);
    let Some(configuration) = &loaded.configuration else {
        check::report(&loaded, Severity::Error);
        return ExitCode::FAILURE;
    };
    let signal = match name {
        SignalName::Stop => Signal::TERM,
        SignalName::Quit => Signal::QUIT,
        SignalName::Reopen => Signal::USR1,
        SignalName::Reload => Signal::HUP,
    };
    let path = &configuration.main.pid;
    let pid = match pid_file::read(path) {
        Ok(pid) => pid,
        Err(error) => return complain(&format!("{} cannot be read: {error}", path.display())),
    };
    let Some(pid) = Pid::from_raw(pid) else {
        return complain(&format!("{} contains no process id", path.display()));
    };
    let id = pid.as_raw_nonzero();
    match pid_file::holder(path, id.get()) {
        Holder::Ours => {}
        Holder::Gone => {
            return complain(&format!("{} contains process id {id}, which is not running", path.display()));
        }
        Holder::Other(program) => {
            return complain(&format!(
                "{} contains process id {id}, which is {program} and not millstream: no signal was sent. Give this \
                 configuration its own pid file, or use the command of the other program",
                path.display()
            ));
        }
    }
    match kill_process(pid, signal) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&format!("cannot signal process {}: {error}", pid.as_raw_nonzero())),
    }
}

fn complain(message: &str) -> ExitCode {
    eprintln!("millstream: [error] {message}");
    ExitCode::FAILURE
}
