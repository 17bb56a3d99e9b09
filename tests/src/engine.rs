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
}

impl Engine {
    pub fn start() -> Engine {
        let (port, directory) = (ports::free(), tempfile::tempdir().expect("a directory"));
        let running = launch(port, &directory);
        let engine = Engine { port, directory, running };
        engine.is_up();
        engine
    }

    fn is_up(&self) {
        wait::until("the engine responds", || self.call(&["PING"]).is_ok_and(|text| text.contains("PONG")));
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
        self.running = launch(self.port, &self.directory);
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
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut command = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| command.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        stream.write_all(command.as_bytes())?;
        let mut reader = BufReader::new(stream);
        let mut text = String::new();
        reader.read_line(&mut text)?;
        let number =
            |kind: char| text.strip_prefix(kind).and_then(|number| number.trim().parse::<usize>().ok());
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

    /// Names of keys that end so.
    pub fn keys(&self, end: &str) -> Vec<String> {
        let all = self.call(&["KEYS", &format!("*{end}")]).expect("it responds");
        all.lines().map(str::trim).filter(|line| line.starts_with("ms:")).map(str::to_owned).collect()
    }
}

fn launch(port: u16, directory: &TempDir) -> Running {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]);
    command.arg(directory.path()).stdout(Stdio::null()).stderr(Stdio::null());
    Running::start(&mut command).expect("redis-server is installed")
}
