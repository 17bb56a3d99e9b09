//! The server under test: built when need be, started as a user starts it, ready once it accepts, ended with the value.
//!
//! A scenario writes a configuration with `@DIR@`, `@PORT@` and its own markers; further ports and origins are the
//! scenario's to name. Every configuration has `pid @DIR@/nginx.pid;`, which is how readiness is known.
//! `Server::try_start` is for those that should not start.

use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::Signal;

use crate::client::{self, Answer, Client};
use crate::prefix::{Prefix, fill};
use crate::process::{self, Running};
use crate::{ports, profile_directory, wait, workspace};

/// The binary under test. Built in the running test's own profile, unless `MILLSTREAM_BINARY` names another program with
/// nginx's command line. Features are those of the whole workspace, so that no dependency is compiled a second time.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("MILLSTREAM_BINARY") {
            return path.into();
        }
        let profile = profile_directory();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--workspace", "--bin", "millstream"]).current_dir(workspace());
        if profile.ends_with("release") {
            build.arg("--release");
        }
        if let Some(target) = profile.parent() {
            build.env("CARGO_TARGET_DIR", target);
        }
        assert!(
            build.status().is_ok_and(|status| status.success()),
            "cargo build --workspace --bin millstream failed"
        );
        profile.join("millstream")
    })
}

/// Whether the binary under test is nginx itself, which has fewer directives and other defaults.
pub fn is_nginx() -> bool {
    binary().file_name().is_some_and(|name| name == "nginx")
}

/// A configuration made fit for the binary under test: nginx without Plus does not know `status_zone`.
pub fn fit(configuration: &str) -> String {
    if is_nginx() { configuration.replace("status_zone wordpress;", "") } else { configuration.to_owned() }
}

/// A command that runs the binary on a configuration inside a prefix, as `-c FILE -p PREFIX`.
pub fn command(prefix: &Path, configuration: &Path) -> Command {
    let mut command = Command::new(binary());
    command.arg("-c").arg(configuration).arg("-p").arg(prefix).stdin(Stdio::null());
    command
}

/// A running server with a directory and a port of its own.
pub struct Server {
    port: u16,
    process: Option<Running>,
    prefix: Prefix,
}

/// How a start that failed ended.
#[derive(Debug)]
pub struct Refused {
    /// The exit status, `None` if it was still running, but nobody answered on the port.
    pub status: Option<ExitStatus>,
    /// What it wrote to standard error and standard output.
    pub output: String,
}

impl Server {
    /// Starts the binary on a template: `@DIR@` and `@PORT@` are filled in here, the rest by `values`.
    pub fn start(template: &str, values: &[(&str, &str)]) -> Self {
        Self::start_in(Prefix::new(), template, values)
    }

    /// As `start`, in a directory that the scenario has prepared.
    pub fn start_in(prefix: Prefix, template: &str, values: &[(&str, &str)]) -> Self {
        Self::try_start(prefix, template, values)
            .unwrap_or_else(|refused| panic!("the server did not start: {refused:?}"))
    }

    /// Starts the binary and waits until it accepts on its port or ends.
    pub fn try_start(prefix: Prefix, template: &str, values: &[(&str, &str)]) -> Result<Self, Refused> {
        let mut server = Server { port: ports::free(), process: None, prefix };
        server.rewrite(template, values);
        server.run()?;
        Ok(server)
    }

    /// Starts the process on the configuration in the directory; used again after `stop` for a second life.
    pub fn run(&mut self) -> Result<(), Refused> {
        let output = File::create(self.prefix.join("output")).expect("own directory is writable");
        let mut process = Running::start(
            command(self.prefix.path(), &self.prefix.join("nginx.conf"))
                .args(["-g", "daemon off;"])
                .stdout(output.try_clone().expect("an open file"))
                .stderr(output),
        )
        .unwrap_or_else(|error| panic!("{}: {error}", binary().display()));
        let mut ended = None;
        let ready = wait::within(Duration::from_secs(20), || {
            ended = process.ended();
            // A connection alone is not enough: during a failed start one port may be open and another refused, or
            // somebody else may hold it. The pid file comes when all listeners are open.
            let ready =
                self.current_id() == process.id() && TcpStream::connect(("127.0.0.1", self.port)).is_ok();
            (ended.is_some() || ready).then_some(())
        });
        if ready.is_none() || ended.is_some() {
            return Err(Refused { status: ended, output: self.prefix.read("output") });
        }
        self.process = Some(process);
        Ok(())
    }

    /// Starts it as nginx starts by default: the command ends at once and a daemon goes on, named by the pid file.
    pub fn start_daemon(template: &str, values: &[(&str, &str)]) -> Self {
        let server = Server { port: ports::free(), process: None, prefix: Prefix::new() };
        server.rewrite(template, values);
        // A file and not a pipe: a daemon that kept its standard error would keep a reader waiting for ever.
        let output = File::create(server.prefix.join("output")).expect("own directory is writable");
        let mut starter = Running::start(
            command(server.prefix.path(), &server.prefix.join("nginx.conf"))
                .stdout(output.try_clone().expect("an open file"))
                .stderr(output),
        )
        .unwrap_or_else(|error| panic!("{}: {error}", binary().display()));
        let status = starter.wait(Duration::from_secs(20));
        assert!(
            status.is_some_and(|status| status.success()),
            "{status:?}: {}",
            server.prefix.read("output")
        );
        wait::until("the daemon accepts connections", || {
            server.current_id() != 0 && TcpStream::connect(("127.0.0.1", server.port)).is_ok()
        });
        server
    }

    /// The port that `@PORT@` became.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its directory.
    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// The id of the process that was started (which a `USR2` may have replaced: see `current_id`).
    pub fn id(&self) -> u32 {
        self.process.as_ref().map_or(0, Running::id)
    }

    /// The id of the process that serves for it.
    pub fn serving_id(&self) -> u32 {
        process::serving(self.id())
    }

    /// The id in the pid file `nginx.pid`, 0 while there is none.
    pub fn current_id(&self) -> u32 {
        self.prefix.read("nginx.pid").trim().parse().unwrap_or(0)
    }

    /// A connection to it.
    pub fn client(&self) -> Client {
        Client::connect(self.port).unwrap_or_else(|error| panic!("connect to {}: {error}", self.port))
    }

    /// One GET on a connection of its own.
    pub fn get(&self, path: &str) -> Answer {
        client::get(self.port, path)
    }

    /// One GET with further fields on a connection of its own.
    pub fn get_with(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        client::get_with(self.port, path, fields)
    }

    /// Sends a signal to the process in the pid file, or to the started one if there is no such file.
    pub fn signal(&self, signal: Signal) {
        match self.current_id() {
            0 => process::send(self.id(), signal),
            id => process::send(id, signal),
        }
    }

    /// Sends a signal to the started process and waits for its end.
    pub fn stop(&mut self, signal: Signal) -> Option<ExitStatus> {
        let process = self.process.as_mut()?;
        process.signal(signal);
        let status = process.wait(Duration::from_secs(15));
        if status.is_some() {
            self.process = None;
        }
        status
    }

    /// The error log `error.log`, and what came on standard error.
    pub fn log(&self) -> String {
        self.prefix.read("error.log") + &self.prefix.read("output")
    }

    /// Waits until [`Self::log`] says it: lines are written by a thread of their own, soon after an answer and not before it.
    pub fn says(&self, told: &str) {
        wait::until(&format!("the error log says {told:?}"), || self.log().contains(told));
    }

    /// Writes the configuration anew (markers filled as at the start) without telling the server.
    pub fn rewrite(&self, template: &str, values: &[(&str, &str)]) {
        let port = self.port.to_string();
        let mut all = vec![("DIR", self.prefix.path().to_str().unwrap_or_default()), ("PORT", port.as_str())];
        all.extend_from_slice(values);
        self.prefix.write("nginx.conf", &fit(&fill(template, &all)));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A daemon, or a successor after USR2, is not our child; the pid file in our own directory says it is ours.
        let successor = self.current_id();
        if successor != 0 && successor != self.id() {
            process::send(successor, Signal::TERM);
            wait::within(Duration::from_secs(5), || (!process::is_alive(successor)).then_some(()));
        }
        if std::thread::panicking() {
            eprintln!("--- the server said:\n{}", self.log());
        }
    }
}
