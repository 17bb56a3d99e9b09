//! A `redis-server` as Debian has it, with a directory and a port of its own; it ends with the value.

use crate::process::Running;
use crate::{ports, wait};
use rustix::process::Signal;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

pub struct Engine {
    port: u16,
    directory: TempDir,
    running: Running,
    options: Vec<String>,
}

impl Engine {
    pub fn start() -> Engine {
        Engine::with(&[])
    }

    /// With further options of its command line.
    pub fn with(options: &[&str]) -> Engine {
        let (port, directory) = (ports::free(), tempfile::tempdir().expect("a directory"));
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let running = launch(port, &directory, &options);
        let engine = Engine { port, directory, running, options };
        engine.is_up();
        engine
    }

    fn is_up(&self) {
        let is_up = |text: String| text.contains("PONG") || text.contains("NOAUTH");
        wait::until("the engine responds", || self.call(&["PING"]).is_ok_and(is_up));
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn kill(&mut self) {
        self.running.signal(Signal::KILL);
        self.running.wait(Duration::from_secs(5)).expect("it ends");
    }

    /// With nothing in it.
    pub fn restart(&mut self) {
        self.running = launch(self.port, &self.directory, &self.options);
        self.is_up();
    }

    /// It neither responds nor closes a connection.
    pub fn stop(&self) {
        self.running.signal(Signal::STOP);
    }

    pub fn resume(&self) {
        self.running.signal(Signal::CONT);
    }

    /// Returns the response as it came.
    pub fn call(&self, words: &[&str]) -> io::Result<String> {
        call(self.port, words)
    }

    /// Names of keys that end so.
    pub fn keys(&self, end: &str) -> Vec<String> {
        let all = self.call(&["KEYS", &format!("*{end}")]).expect("it responds");
        all.lines().map(str::trim).filter(|line| line.starts_with("ms:")).map(str::to_owned).collect()
    }
}

/// Watches a primary and lets a replica take its place.
pub struct Sentinel {
    port: u16,
    _directory: TempDir,
    _running: Running,
}

impl Sentinel {
    /// Returns when it knows the primary's replica.
    pub fn of(primary: &Engine) -> Sentinel {
        let (port, directory) = (ports::free(), tempfile::tempdir().expect("a directory"));
        let file = directory.path().join("sentinel.conf");
        let lines = format!(
            "port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {} 1\n\
             sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 2000\n",
            primary.port
        );
        std::fs::write(&file, lines).expect("written");
        let mut command = Command::new("redis-server");
        command.arg(&file).arg("--sentinel").stdout(Stdio::null()).stderr(Stdio::null());
        let running = Running::start(&mut command).expect("redis-server is installed");
        wait::until("the sentinel knows the replica", || {
            call(port, &["INFO", "sentinel"]).is_ok_and(|text| text.contains("slaves=1"))
        });
        Sentinel { port, _directory: directory, _running: running }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

fn call(port: u16, words: &[&str]) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut command = format!("*{}\r\n", words.len());
    words.iter().for_each(|word| command.push_str(&format!("${}\r\n{word}\r\n", word.len())));
    stream.write_all(command.as_bytes())?;
    let mut reader = BufReader::new(stream);
    let mut text = String::new();
    reader.read_line(&mut text)?;
    let number = |kind: char| text.strip_prefix(kind).and_then(|number| number.trim().parse::<usize>().ok());
    if let Some(length) = number('$') {
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        return Ok(String::from_utf8_lossy(&body).into_owned());
    }
    for _ in 0..2 * number('*').unwrap_or(0) {
        reader.read_line(&mut text)?;
    }
    Ok(text)
}

fn launch(port: u16, directory: &TempDir, options: &[String]) -> Running {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]);
    command.arg(directory.path()).args(options).stdout(Stdio::null()).stderr(Stdio::null());
    Running::start(&mut command).expect("redis-server is installed")
}
