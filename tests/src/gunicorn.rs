//! Real Python programs: a virtual environment made once under the target folder, and Gunicorn in front of the example API.
//!
//! Needs `python3` with `venv`, and the package index the first time. A scenario that needs it fails when it cannot be
//! made: a skipped test would look like a passed one.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::process::Running;
use crate::{made, target_directory, wait, workspace};

pub fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| make(&target_directory().join("python")))
}

const REQUIREMENTS: [&str; 2] = ["examples/flask/requirements.txt", "tests/requirements.txt"];

/// Reinstalls when a requirements file changes.
fn make(folder: &Path) -> PathBuf {
    let _alone = made::alone(folder);
    let requirements = REQUIREMENTS.map(|file| workspace().join(file));
    let wanted: String = requirements
        .iter()
        .map(|file| fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())))
        .collect();
    let stamp = folder.join("requirements.txt");
    if fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return folder.join("bin");
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(folder));
    let pip = folder.join("bin/pip");
    let named = requirements.iter().flat_map(|file| [OsStr::new("-r"), file.as_os_str()]);
    run(Command::new(pip).args(["install", "--quiet", "--disable-pip-version-check"]).args(named));
    fs::write(&stamp, wanted).expect("the target folder is writable");
    folder.join("bin")
}

fn run(command: &mut Command) {
    let status = command.stdin(Stdio::null()).status();
    assert!(status.as_ref().is_ok_and(|status| status.success()), "{command:?} failed: {status:?}");
}

pub struct Gunicorn {
    socket: PathBuf,
    _process: Running,
}

impl Gunicorn {
    /// Two workers of two threads, with the socket inside `folder`; waits until it accepts.
    pub fn start(folder: &Path) -> Self {
        let socket = folder.join("api.sock");
        let log = File::create(folder.join("gunicorn.log")).expect("own directory is writable");
        let process = Running::start(
            Command::new(programs().join("gunicorn"))
                .args(["--worker-class", "gthread", "--workers", "2", "--threads", "2", "--bind"])
                .arg(format!("unix:{}", socket.display()))
                .arg("app:app")
                .current_dir(workspace().join("examples/flask"))
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .stdin(Stdio::null())
                .stdout(log.try_clone().expect("an open file"))
                .stderr(log),
        )
        .expect("gunicorn starts");
        wait::until("gunicorn accepts connections", || {
            std::os::unix::net::UnixStream::connect(&socket).is_ok()
        });
        Gunicorn { socket, _process: process }
    }

    /// `unix:/path`, as a configuration names it.
    pub fn address(&self) -> String {
        format!("unix:{}", self.socket.display())
    }
}
