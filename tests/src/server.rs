//! The server under test: built when need be, started as a user starts it, ready once it accepts, ended with the value.
//!
//! A scenario writes a configuration, or what is its own of one (`site!`), with `@DIR@`, `@PORT@` and its own markers; further ports and origins are the
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

/// Built in the running test's own profile, unless `MILLSTREAM_BINARY` names another program with nginx's
/// command line. Features are those of the whole workspace, so that no dependency is compiled twice.
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

/// If so, it has fewer directives and other defaults.
pub fn is_nginx() -> bool {
    binary().file_name().is_some_and(|name| name == "nginx")
}

/// Ends the scenario, out loud, if the server under test is nginx, which does not have what follows. The text says
/// what nginx does instead.
#[macro_export]
macro_rules! skip_on_nginx {
    ($($instead:literal)?) => {
        if $crate::server::is_nginx() {
            eprintln!(concat!("SKIPPED: this is not what nginx does", $("; ", $instead)?));
            return;
        }
    };
}

/// The text of a configuration of the usual shape: what a scenario says stands in `http` and in its one server, which
/// listens on `@PORT@`; `main` is what stands before `events`, and `log` the level of the error log.
#[macro_export]
macro_rules! site {
    ($(main $main:literal)? $(events $events:literal)? $(log $level:literal)? $(http $http:literal)? server $server:literal) => {
        concat!(
            $($main, " ",)? "pid @DIR@/nginx.pid; error_log @DIR@/error.log" $(, " ", $level)?, ";\n",
            "events {" $(, $events)?, "}\nhttp { access_log off;\n" $(, $http)?,
            "\nserver { listen 127.0.0.1:@PORT@; ", $server, "\n} }"
        )
    };
}

/// Removes what nginx without Plus does not know: `status_zone`.
pub fn fit(configuration: &str) -> String {
    if is_nginx() { configuration.replace("status_zone wordpress;", "") } else { configuration.to_owned() }
}

pub fn command(prefix: &Path, configuration: &Path) -> Command {
    let mut command = Command::new(binary());
    command.arg("-c").arg(configuration).arg("-p").arg(prefix).stdin(Stdio::null());
    command
}

pub struct Server {
    port: u16,
    process: Option<Running>,
    prefix: Prefix,
    environment: Vec<(String, String)>,
}

#[derive(Debug)]
pub struct Refused {
    /// `None` if it was still running but no one accepted on the port.
    pub status: Option<ExitStatus>,
    pub output: String,
}

impl Server {
    /// `@DIR@` and `@PORT@` are filled in here, the rest by `values`.
    pub fn start(template: &str, values: &[(&str, &str)]) -> Self {
        Self::start_in(Prefix::new(), template, values)
    }

    /// In a directory prepared by the scenario.
    pub fn start_in(prefix: Prefix, template: &str, values: &[(&str, &str)]) -> Self {
        Self::try_start(prefix, template, values)
            .unwrap_or_else(|refused| panic!("the server did not start: {refused:?}"))
    }

    pub fn try_start(prefix: Prefix, template: &str, values: &[(&str, &str)]) -> Result<Self, Refused> {
        let mut server = Server::new(prefix, template, values);
        server.run()?;
        Ok(server)
    }

    /// One that is to be started by `run`.
    pub fn new(prefix: Prefix, template: &str, values: &[(&str, &str)]) -> Server {
        let server = Server { port: ports::free(), process: None, prefix, environment: Vec::new() };
        server.rewrite(template, values);
        server
    }

    /// Its clock is so many seconds fast, from its next start on.
    pub fn is_fast_by(&mut self, seconds: i64) {
        let set = |name: &str, value: String| (name.to_owned(), value);
        self.environment = vec![
            set("LD_PRELOAD", "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1".to_owned()),
            set("FAKETIME", format!("{seconds:+}")),
            set("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ];
    }

    /// Used again after `stop` for a second life.
    pub fn run(&mut self) -> Result<(), Refused> {
        let output = File::create(self.prefix.join("output")).expect("own directory is writable");
        let mut process = Running::start(
            command(self.prefix.path(), &self.prefix.join("nginx.conf"))
                .args(["-g", "daemon off;"])
                .envs(self.environment.iter().map(|(name, value)| (name, value)))
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

    /// As nginx starts by default: the command ends at once and a daemon continues, named by the pid file.
    pub fn start_daemon(template: &str, values: &[(&str, &str)]) -> Self {
        let server = Server::new(Prefix::new(), template, values);
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

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// Of the started process, which a `USR2` may have replaced: see `current_id`.
    pub fn id(&self) -> u32 {
        self.process.as_ref().map_or(0, Running::id)
    }

    pub fn serving_id(&self) -> u32 {
        process::serving(self.id())
    }

    /// From `nginx.pid`; 0 while there is none.
    pub fn current_id(&self) -> u32 {
        self.prefix.read("nginx.pid").trim().parse().unwrap_or(0)
    }

    pub fn client(&self) -> Client {
        Client::connect(self.port).unwrap_or_else(|error| panic!("connect to {}: {error}", self.port))
    }

    pub fn get(&self, path: &str) -> Answer {
        client::get(self.port, path)
    }

    pub fn get_with(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        client::get_with(self.port, path, fields)
    }

    /// Without a body.
    #[track_caller]
    pub fn request(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.client().request(method, path, fields).expect("an answer")
    }

    /// As [`Client::ask`], on a connection of its own.
    #[track_caller]
    pub fn ask(&self, request: impl AsRef<[u8]>) -> Answer {
        self.client().ask(request)
    }

    /// To the process of the pid file, or else the started one.
    pub fn signal(&self, signal: Signal) {
        match self.current_id() {
            0 => process::send(self.id(), signal),
            id => process::send(id, signal),
        }
    }

    /// Until the error log, which has to be of the level `info` or `notice`, names the next configuration.
    pub fn reload(&self) {
        let count = || self.log().matches("is in force").count();
        let before = count();
        self.signal(Signal::HUP);
        wait::until("the next configuration is in force", || count() > before);
    }

    pub fn stop(&mut self, signal: Signal) -> Option<ExitStatus> {
        let process = self.process.as_mut()?;
        process.signal(signal);
        let status = process.wait(Duration::from_secs(15));
        if status.is_some() {
            self.process = None;
        }
        status
    }

    /// `error.log`, and standard error.
    pub fn log(&self) -> String {
        self.prefix.read("error.log") + &self.prefix.read("output")
    }

    /// Waits for [`Self::log`] to contain it: lines are written by their own thread, soon after a response
    /// and not before it.
    pub fn says(&self, told: &str) {
        wait::until(&format!("the error log says {told:?}"), || self.log().contains(told));
    }

    pub fn rewrite(&self, template: &str, values: &[(&str, &str)]) {
        let port = self.port.to_string();
        let mut all = vec![("DIR", self.prefix.path().to_str().unwrap_or_default()), ("PORT", port.as_str())];
        all.extend_from_slice(values);
        self.prefix.write("nginx.conf", fit(&fill(template, &all)));
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
