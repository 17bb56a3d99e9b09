//! A `redis-server` of a test, with a directory and a port of its own; it ends with the test.

use super::until;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;
use tempfile::TempDir;

pub(super) struct Engine {
    pub(super) port: u16,
    directory: TempDir,
    child: Child,
    options: Vec<String>,
}

impl Engine {
    pub(super) fn start() -> Engine {
        Engine::with(&[])
    }

    pub(super) fn with(options: &[&str]) -> Engine {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port")
            .port();
        let directory = tempfile::tempdir().expect("a directory");
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let child = launch(port, &directory, &options);
        let engine = Engine { port, directory, child, options };
        engine.is_up();
        engine
    }

    fn is_up(&self) {
        until("the engine responds", || {
            self.try_call(&["PING"]).is_some_and(|text| text.contains("PONG") || text.contains("NOAUTH"))
        });
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("killed");
    }

    /// With what it has on its disk: nothing, unless the options say otherwise.
    pub(super) fn restart(&mut self) {
        self.child = launch(self.port, &self.directory, &self.options);
        self.is_up();
    }

    pub(super) fn stop(&self) {
        self.signal(Signal::STOP);
    }

    pub(super) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("sent");
    }

    /// The response as it came.
    pub(super) fn call(&self, words: &[&str]) -> String {
        self.try_call(words).expect("a response")
    }

    fn try_call(&self, words: &[&str]) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        let mut command = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| command.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        stream.write_all(command.as_bytes()).ok()?;
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(length) = line.strip_prefix('$').and_then(|length| length.trim().parse::<usize>().ok()) {
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            return Some(String::from_utf8_lossy(&body).into_owned());
        }
        if let Some(count) = line.strip_prefix('*').and_then(|count| count.trim().parse::<usize>().ok()) {
            for _ in 0..2 * count {
                let mut part = String::new();
                reader.read_line(&mut part).ok()?;
                line.push_str(&part);
            }
        }
        Some(line)
    }

    /// Names of keys that contain a word.
    pub(super) fn keys(&self, word: &str) -> Vec<String> {
        let all = self.call(&["KEYS", &format!("*{word}*")]);
        all.lines().map(str::trim).filter(|line| line.starts_with("ms:")).map(str::to_owned).collect()
    }
}

/// A process that is about to become an engine holds this one's locks of files for a moment. Whoever looks at such a lock reads this.
pub(crate) static FORKING: RwLock<()> = RwLock::new(());

fn launch(port: u16, directory: &TempDir, options: &[String]) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]);
    command.arg(directory.path()).args(options).stdout(Stdio::null()).stderr(Stdio::null());
    let _alone = FORKING.write().unwrap_or_else(PoisonError::into_inner);
    command.spawn().expect("redis-server is installed")
}

impl Drop for Engine {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
