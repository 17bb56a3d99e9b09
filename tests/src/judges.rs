//! A server and a client of gRPC by its own libraries, for Go (`tests/grpc/`) and for Python (`tests/grpc/python/`), and ghz.
//!
//! Both servers offer what `tests/grpc/judge/judge.go` says. The clients judge what they get themselves: what they print is `"ok": true` with
//! figures, or what was wrong. Where there is no Go a scenario says that it is skipped.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::process::Running;
use crate::{go, gunicorn, workspace};

const GHZ: &str = "github.com/bojand/ghz/cmd/ghz";

/// `grpc-server` and `grpc-client`; `None`, with a message, if unavailable.
pub fn programs() -> Option<&'static Path> {
    static PROGRAMS: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    built(&PROGRAMS, &["./grpc-server", "./grpc-client"])
}

/// Results for unary calls with messages of `octets` (up to two more); `None` if unavailable. The first build
/// takes minutes.
pub fn asked_by_ghz(octets: usize, arguments: &[&str]) -> Option<Value> {
    static PROGRAMS: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let program = built(&PROGRAMS, &[GHZ])?.join("ghz");
    let proto = workspace().join("tests/grpc/judge.proto").display().to_string();
    // Three octets are four letters of base64.
    let data = format!("{{\"value\":\"{}\"}}", "AAAA".repeat(octets.div_ceil(3)));
    let fixed = [
        "--insecure",
        "--proto",
        &proto,
        "--call",
        "millstream.judge.Judge/Unary",
        "-d",
        &data,
        "-O",
        "json",
    ];
    Some(told(Command::new(program).args(fixed).args(arguments)))
}

fn built(cell: &'static OnceLock<Result<PathBuf, String>>, packages: &[&str]) -> Option<&'static Path> {
    match cell.get_or_init(|| go::build("grpc", packages)) {
        Ok(folder) => Some(folder),
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            None
        }
    }
}

pub struct JudgeServer {
    port: u16,
    said: BufReader<ChildStdout>,
    process: Running,
}

impl JudgeServer {
    pub fn go(flags: &[&str]) -> Option<Self> {
        Some(Self::start(Command::new(programs()?.join("grpc-server")).args(flags)))
    }

    /// In clear, or over TLS with a certificate and its key.
    pub fn python(pair: &[&Path]) -> Self {
        Self::start(python("server.py").args(pair))
    }

    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it runs");
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        let process = Running::of(child);
        let mut line = String::new();
        said.read_line(&mut line).expect("a pipe");
        let port = line.trim().parse().unwrap_or_else(|_| panic!("{command:?} names no port but {line:?}"));
        JudgeServer { port, said, process }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Its counts: `connections`, `calls` and the `most` at a time.
    pub fn end(mut self) -> Value {
        self.process.signal(Signal::TERM);
        let ended = self.process.wait(Duration::from_secs(20)).expect("it ends once its calls are over");
        let mut text = String::new();
        self.said.read_to_string(&mut text).expect("a pipe");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{ended}, {error}: {text}"))
    }
}

fn python(program: &str) -> Command {
    let mut command = Command::new(gunicorn::programs().join("python"));
    command.arg("-B").arg(workspace().join("tests/grpc/python").join(program));
    command
}

pub fn judged(arguments: &[&str]) -> Value {
    told(Command::new(programs().expect("a server of Go runs").join("grpc-client")).args(arguments))
}

pub fn judged_by_python(arguments: &[&str]) -> Value {
    told(python("client.py").args(arguments))
}

fn told(command: &mut Command) -> Value {
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{command:?}: {}: {text}{errors}", output.status))
}

/// Panics with the findings unless there are none.
pub fn approve(about: &str, judgement: &Value) {
    assert!(judgement["ok"] == true, "{about}: {judgement}");
}

pub struct JudgeLoad {
    child: Child,
    _errors: BufReader<ChildStderr>,
}

impl JudgeLoad {
    /// Starts `load` or `bidi`; each caller has tried once when this returns.
    pub fn start(arguments: &[&str], address: &str) -> Self {
        let mut command = Command::new(programs().expect("a server of Go runs").join("grpc-client"));
        command.args(arguments).args(["-until-eof", address]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("a pipe");
        assert_eq!(line, "begun\n", "{command:?}");
        JudgeLoad { child, _errors: errors }
    }

    pub fn end(mut self) -> Value {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("a pipe");
        let ended = self.child.wait().expect("a child");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{ended}, {error}: {text}"))
    }
}

impl Drop for JudgeLoad {
    fn drop(&mut self) {
        // It hears the end of its input, and has ended already where `end` was called.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
