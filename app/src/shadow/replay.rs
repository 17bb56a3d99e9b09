//! `shadow --log`: the requests of an access log, sent through shadow by `bench --log` as a process of its own.
//!
//! Each line's client is told by X-Forwarded-For, which shadow takes from this machine then. The log is opened before rights are
//! given up.

use crate::cli::Front;
use crate::measure::end::{self, End};
use crate::serve_url;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::SIGQUIT;
use signal_hook::low_level::raise;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, io};

pub(super) struct Log {
    input: Stdio,
    url: String,
}

/// Ends the replay when dropped.
pub(super) struct LogReplay {
    id: Pid,
    has_ended: Arc<AtomicBool>,
}

impl Log {
    /// Fails for a file that cannot be read, and where shadow does not listen on a port.
    pub(super) fn open(file: &Path, front: &Front) -> Result<Log, End> {
        let address = serve_url::address_of(front);
        let port = address.rsplit_once(':').filter(|_| !address.starts_with("unix:"));
        let Some((_, port)) = port else {
            return Err("--log needs a port to send the requests to: write --listen 8080".to_owned().into());
        };
        let input = match file == "-" {
            true => Stdio::inherit(),
            false => {
                let opened = File::open(file);
                opened.map_err(|error| format!("{} cannot be read: {error}", file.display()))?.into()
            }
        };
        Ok(Log { input, url: format!("http://127.0.0.1:{port}") })
    }

    /// `None`, with an error printed, if it cannot be started. The end of the log is that of shadow.
    pub(super) fn replay(self) -> Option<LogReplay> {
        self.start().inspect_err(|error| end::tell(&format!("--log cannot be replayed: {error}"))).ok()
    }

    fn start(self) -> io::Result<LogReplay> {
        let mut bench = Command::new(env::current_exe()?);
        bench.args(["bench", "--log", "-", "--log-clients", "--warm-up", "0s", &self.url]);
        // Its figures are those of a proxy that observes, which nobody asks for.
        let mut child = bench.stdin(self.input).stdout(Stdio::null()).spawn()?;
        let id = Pid::from_child(&child);
        let has_ended = Arc::new(AtomicBool::new(false));
        let tells = has_ended.clone();
        std::thread::Builder::new().name("replay".into()).spawn(move || {
            let ended = child.wait();
            tells.store(true, Ordering::SeqCst);
            if !ended.is_ok_and(|status| status.success()) {
                end::tell("--log: the replay stopped before the end of the log");
            }
            _ = raise(SIGQUIT);
        })?;
        Ok(LogReplay { id, has_ended })
    }
}

impl Drop for LogReplay {
    fn drop(&mut self) {
        if !self.has_ended.load(Ordering::SeqCst) {
            // It may have ended in this moment.
            _ = kill_process(self.id, Signal::TERM);
        }
    }
}

/// The same front, which believes this machine what it says of clients.
pub(super) fn trusting(front: &Front) -> Front {
    let mut front = front.clone();
    front.trust_proxy.push("127.0.0.1".to_owned());
    front
}
