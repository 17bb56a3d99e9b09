//! Clients of HTTP/2 that others wrote: h2spec, which judges servers, net/http of Go, curl, nghttp and h2load, httpx.
//!
//! `tests/http2-clients/` pins the first two, `tests/requirements.txt` the last; Debian has the others. Where one cannot be had a scenario
//! says that it is skipped.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::prefix::Prefix;
use crate::{go, gunicorn};

const H2SPEC: &str = "github.com/summerwind/h2spec/cmd/h2spec";

/// `None`, with a message, if unavailable.
fn programs() -> Option<&'static Path> {
    static PROGRAMS: OnceLock<Result<std::path::PathBuf, String>> = OnceLock::new();
    match PROGRAMS.get_or_init(|| go::build("http2-clients", &[".", H2SPEC])) {
        Ok(folder) => Some(folder),
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            None
        }
    }
}

pub struct Verdict {
    pub tried: usize,
    /// As `section: case`.
    pub failed: Vec<String>,
    pub said: String,
}

pub fn h2spec(port: u16, over_tls: bool) -> Option<Verdict> {
    let folder = Prefix::new();
    let report = folder.join("report.xml");
    let mut command = Command::new(programs()?.join("h2spec"));
    command.args(["--host", "127.0.0.1", "--timeout", "3", "--port"]).arg(port.to_string());
    command.arg("--junit-report").arg(&report);
    if over_tls {
        command.args(["--tls", "--insecure"]);
    }
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = folder.read("report.xml");
    let attribute = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!(" {name}=\""))?;
        Some(rest.split_once('"')?.0.replace("&#34;", "\""))
    };
    let (mut tried, mut failed, mut case) = (0, Vec::new(), String::new());
    for line in report.lines() {
        if line.contains("<testcase ") {
            tried += 1;
            let package = attribute(line, "package").unwrap_or_default();
            case = format!("{package}: {}", attribute(line, "classname").unwrap_or_default());
        }
        if line.contains("<failure") || line.contains("<error") {
            failed.push(case.clone());
        }
    }
    Some(Verdict { tried, failed, said })
}

/// The results of `count` simultaneous GETs and a POST of `size` octets; `None` if unavailable.
pub fn net_http(url: &str, count: usize, size: usize) -> Option<Value> {
    let mut command = Command::new(programs()?.join("http2-clients"));
    command.arg(url).arg(count.to_string()).arg(size.to_string());
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    let told = serde_json::from_slice(&output.stdout);
    Some(told.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))))
}

/// The standard output of a Debian program; `None`, with a message, if it is not installed.
pub fn installed(program: &str, package: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).stdin(Stdio::null()).output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            eprintln!("SKIPPED: {program}: {error}; apt-get install {package}");
            None
        }
    }
}

pub fn httpx(script: &str, arguments: &[&str]) -> String {
    let mut python = Command::new(gunicorn::programs().join("python"));
    let output = python.args(["-c", script]).args(arguments).stdin(Stdio::null()).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
