//! A server and a client of gRPC that others wrote: Python's library, which is C's.
//!
//! Next: `gunicorn`, whose environment they run in.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::gunicorn::programs;
use crate::process::Running;
use crate::workspace;

fn program(name: &str) -> Command {
    let mut command = Command::new(programs().join("python"));
    command.arg(workspace().join("tests/grpc-python").join(name)).stdout(Stdio::piped());
    command
}

fn started(command: &mut Command) -> (Child, BufReader<ChildStdout>) {
    let mut child = command.spawn().expect("python starts");
    let said = BufReader::new(child.stdout.take().expect("a pipe"));
    (child, said)
}

fn line(said: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    said.read_line(&mut line).expect("a pipe");
    line.trim().to_owned()
}

/// A server, which ends with the value.
pub struct GrpcServer {
    port: u16,
    _process: Running,
}

impl GrpcServer {
    /// Starts it with options of its library, as in `grpc.max_concurrent_streams=5`.
    pub fn start(options: &[&str]) -> GrpcServer {
        let (child, mut said) = started(program("server.py").args(options).stdin(Stdio::null()));
        let process = Running::of(child);
        let port = line(&mut said);
        let port = port.parse().unwrap_or_else(|_| panic!("no port but \"{port}\""));
        GrpcServer { port, _process: process }
    }

    /// Where it listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// What a client that asks a port for something says came of it.
pub fn asked(port: u16, what: &[&str]) -> Value {
    let (child, mut said) =
        started(program("client.py").arg(format!("127.0.0.1:{port}")).args(what).stdin(Stdio::null()));
    let _process = Running::of(child);
    json(&line(&mut said))
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// A client that makes calls until it is told to end.
pub struct GrpcCaller {
    process: Child,
    said: BufReader<ChildStdout>,
}

impl GrpcCaller {
    /// Starts it; it is calling when this returns.
    pub fn start(port: u16) -> GrpcCaller {
        let mut command = program("client.py");
        command.arg(format!("127.0.0.1:{port}")).arg("until-told").stdin(Stdio::piped());
        let (process, mut said) = started(&mut command);
        assert_eq!(line(&mut said), "begun");
        GrpcCaller { process, said }
    }

    /// Ends it: how many calls it made, and what became of those that were lost.
    pub fn end(mut self) -> (u64, Value) {
        let stdin = self.process.stdin.as_mut().expect("a pipe");
        stdin.write_all(b"\n").expect("it listens");
        let told = json(&line(&mut self.said));
        _ = self.process.wait();
        (told["made"].as_u64().unwrap_or_default(), told["lost"].clone())
    }
}
