//! One file of the suite against the server: apart from everything else on the machine, bounded in time.
//!
//! Files of the suite take fixed ports, so each is given a network of its own where this process may make one (as root
//! on Linux), and a list of processes of its own, which ends with it. Elsewhere one file runs at a time, in a process
//! group that is ended with it, and the parts that the suite calls unsafe are left out.

use super::super::told_of;
use super::tap::Tap;
use millstream_tests::wait;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// nginx's slowest file takes 47 s.
const LIMIT: Duration = Duration::from_secs(75);

/// Raises the loopback of a new network and runs the rest of the arguments: 0x8914 sets an interface's flags,
/// 1 is "up".
const LOOPBACK_UP: &str = "use Socket; socket(my $s, AF_INET, SOCK_DGRAM, 0) or die; \
     my $up = pack('Z16sx14', 'lo', 1); ioctl($s, 0x8914, $up) or die; exec @ARGV or die";

pub(super) struct Stage {
    suite: PathBuf,
    binary: PathBuf,
    /// Holds a folder for each file; its path is short, for the paths of sockets.
    work: tempfile::TempDir,
    logs: PathBuf,
    /// The command that gives a process its own network and process list; empty if that is not possible.
    apart: Vec<String>,
}

pub(super) struct Played {
    pub(super) held: usize,
    pub(super) passes: bool,
    /// The file's own reason if it does not pass: skipped, stopped by a message, or the first broken
    /// assertion.
    pub(super) why: String,
    pub(super) errors: String,
}

impl Stage {
    pub(super) fn new(suite: &Path, binary: &Path, logs: &Path) -> Result<Stage, String> {
        let suite = suite.canonicalize().map_err(|error| told_of(suite, &error))?;
        if !suite.join("lib/Test/Nginx.pm").exists() {
            return Err(format!(
                "{} has no lib/Test/Nginx.pm: is it a clone of nginx/nginx-tests?",
                suite.display()
            ));
        }
        fs::create_dir_all(logs).map_err(|error| told_of(logs, &error))?;
        let work = tempfile::Builder::new()
            .prefix("ms")
            .tempdir_in("/tmp")
            .map_err(|error| format!("/tmp: {error}"))?;
        let unshare = "unshare --net --pid --fork --mount --mount-proc --kill-child=KILL -- perl -e";
        let mut apart: Vec<String> = unshare.split(' ').map(str::to_owned).collect();
        apart.push(LOOPBACK_UP.to_owned());
        let mut tried = Command::new(&apart[0]);
        tried.args(&apart[1..]).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if !tried.status().is_ok_and(|status| status.success()) {
            apart.clear();
        }
        Ok(Stage { suite, binary: binary.to_owned(), work, logs: logs.to_owned(), apart })
    }

    /// Whether files can run at the same time.
    pub(super) fn is_apart(&self) -> bool {
        !self.apart.is_empty()
    }

    pub(super) fn play(&self, file: &str) -> Result<Played, String> {
        let folder = tempfile::Builder::new().prefix("f").tempdir_in(self.work.path());
        let folder = folder.map_err(|error| told_of(self.work.path(), &error))?;
        let (printed, told) = (self.logs.join(format!("{file}.tap")), self.logs.join(format!("{file}.err")));
        let create = |path: &Path| File::create(path).map_err(|error| told_of(path, &error));
        let mut command = self.command(file, folder.path());
        command.stdin(Stdio::null()).stdout(create(&printed)?).stderr(create(&told)?).process_group(0);
        let mut child = command.spawn().map_err(|error| format!("perl: {error}"))?;
        let ended = wait::within(LIMIT, || child.try_wait().ok().flatten());
        // Whatever it left behind is in its group, and where it had a list of processes, in that.
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.wait();
        let text = |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let tap = Tap::read(&text(&printed).unwrap_or_default());
        let errors = text(&told).unwrap_or_default();
        let why = match (&tap.skipped, &tap.broken, ended) {
            (Some(reason), ..) => format!("skipped: {reason}"),
            (_, _, None) => format!("took longer than {} s", LIMIT.as_secs()),
            (_, Some(broken), _) => broken.clone(),
            (_, None, Some(status)) => format!("ended early: {status}"),
        };
        let passes = tap.is_whole() && ended.is_some_and(|status| status.success());
        Ok(Played { held: tap.held, passes, why, errors })
    }

    fn command(&self, file: &str, folder: &Path) -> Command {
        let mut command = match self.apart.split_first() {
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments).arg("perl").env("TEST_NGINX_UNSAFE", "1");
                command
            }
            None => Command::new("perl"),
        };
        command.arg("-I").arg(self.suite.join("lib")).arg(file).current_dir(&self.suite);
        command.env("TMPDIR", folder).env("TEST_NGINX_BINARY", &self.binary);
        if rustix::process::geteuid().is_root() {
            // The folder of a file is closed to others, and workers would run as somebody else.
            command.env("TEST_NGINX_GLOBALS", "user root;");
        }
        command
    }
}
