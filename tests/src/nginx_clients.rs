//! Programs that were written for nginx and NGINX Plus: the public nginx-prometheus-exporter, and nginx-plus-go-client behind a
//! command line of ours.
//!
//! `tests/nginx-clients/` pins both, and `go` builds them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::client::{self, Client};
use crate::prefix::Prefix;
use crate::process::Running;
use crate::{go, ports, wait};

const EXPORTER: &str = "github.com/nginx/nginx-prometheus-exporter";

/// `None`, with a message, if unavailable.
pub fn programs() -> Option<&'static Path> {
    static PROGRAMS: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match PROGRAMS.get_or_init(|| go::build("nginx-clients", &[".", EXPORTER])) {
        Ok(folder) => Some(folder),
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            None
        }
    }
}

/// nginx-prometheus-exporter, which queries the server at each scrape.
pub struct Exporter {
    port: u16,
    folder: Prefix,
    _process: Running,
}

impl Exporter {
    pub fn start(url: &str, of_plus: bool) -> Option<Exporter> {
        let (port, folder) = (ports::free(), Prefix::new());
        let log = File::create(folder.join("log")).expect("own directory is writable");
        let mut command = Command::new(programs()?.join("nginx-prometheus-exporter"));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        command.arg(format!("--nginx.scrape-uri={url}"));
        if of_plus {
            command.arg("--nginx.plus");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = Running::start(&mut command).expect("it runs");
        wait::until("the exporter listens", || Client::connect(port).is_ok());
        Some(Exporter { port, folder, _process: process })
    }

    pub fn samples(&self) -> BTreeMap<String, f64> {
        let answer = client::get(self.port, "/metrics");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = answer.text();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let parsed = lines.map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            (name.to_owned(), value.parse().expect("a number"))
        });
        parsed.collect()
    }

    pub fn complaints(&self) -> Vec<String> {
        let log = self.folder.read("log");
        log.lines().filter(|line| !line.contains("level=INFO")).map(str::to_owned).collect()
    }
}

/// `asked` are the verb and its arguments, as in `tests/nginx-clients/main.go`.
pub fn plus(port: u16, token: &str, asked: &[&str]) -> Option<Result<Value, Value>> {
    let mut command = Command::new(programs()?.join("nginx-clients"));
    command.arg(format!("http://127.0.0.1:{port}/api")).args(asked).env("TOKEN", token);
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    let told = serde_json::from_slice(&output.stdout);
    let mut told: Value = told.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    Some(if output.status.success() { Ok(told) } else { Err(told["error"].take()) })
}
