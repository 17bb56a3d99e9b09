//! A run of the tests: their origin, our server in front of it, their client; and what they say came of it.
//!
//! Runs are independent of each other (ports and folders of their own), so several go at the same time: the tests
//! mostly wait for answers to become stale.

use super::{folder, text_of, told_of};
use millstream_tests::process::Running;
use millstream_tests::{ports, target_directory, wait};
use serde_json::Value;
use std::fmt;
use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// One run takes about a minute.
const LIMIT: Duration = Duration::from_secs(400);

pub(super) struct Test {
    pub(super) suite: String,
    pub(super) id: String,
    /// `required`, `optimal` or `check`.
    pub(super) kind: String,
    /// One word for each run.
    runs: Vec<String>,
    /// The failure of the first run that failed.
    why: String,
}

impl Test {
    pub(super) fn passed(&self) -> bool {
        self.runs.iter().all(|run| run == "pass")
    }

    /// A `check` only describes a cache's behaviour; it cannot fail.
    pub(super) fn counts(&self) -> bool {
        self.kind != "check"
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Test { suite, id, kind, runs, why } = self;
        write!(f, "{kind:<8} {id} ({suite}): {}", runs.join(" "))?;
        if why.is_empty() { Ok(()) } else { write!(f, ", {why}") }
    }
}

pub(super) fn all(tests: &Path, runs: usize) -> Result<Vec<PathBuf>, String> {
    let home = target_directory().join("conformance/runs");
    if home.exists() {
        fs::remove_dir_all(&home).map_err(|error| told_of(&home, &error))?;
    }
    thread::scope(|scope| {
        let started: Vec<_> = (0..runs)
            .map(|number| {
                let home = home.join(number.to_string());
                scope.spawn(move || once(tests, &home))
            })
            .collect();
        started.into_iter().map(|run| run.join().map_err(|_| "a run panicked".to_owned())?).collect()
    })
}

fn once(tests: &Path, home: &Path) -> Result<PathBuf, String> {
    fs::create_dir_all(home).map_err(|error| told_of(home, &error))?;
    let (origin_port, port) = (ports::free(), ports::free());
    let is_clone = tests.join("test-engine").exists();
    let script = |clone: &str, package: &str| tests.join(if is_clone { clone } else { package });
    let mut origin = node(tests, &script("test-engine/server/server.mjs", "server/server.mjs"));
    origin.env("npm_config_protocol", "http").env("npm_config_port", origin_port.to_string());
    origin.env("npm_config_pidfile", home.join("origin.pid"));
    let _origin = start(&mut origin, &home.join("origin.log"))?;
    let _server = start(&mut server(home, origin_port, port)?, &home.join("server.log"))?;
    for (what, port) in [("the tests' origin", origin_port), ("the server", port)] {
        wait::within(Duration::from_secs(20), || TcpStream::connect(("127.0.0.1", port)).ok())
            .ok_or_else(|| format!("{what} does not listen; see {}", home.display()))?;
    }
    let mut client = node(tests, &script("test-engine/cli.mjs", "cli.mjs"));
    client.env("npm_config_base", format!("http://127.0.0.1:{port}"));
    // Set and empty: all tests.
    client.env("npm_config_id", "").env("npm_package_config_id", "");
    let told = home.join("client.log");
    let mut client = start(&mut client, &told)?;
    let ended =
        client.wait(LIMIT).ok_or_else(|| format!("the tests took longer than {} s", LIMIT.as_secs()))?;
    if !ended.success() {
        return Err(format!("the tests' client: {ended}; see {}", told.display()));
    }
    keep_results(&told, &home.join("results.json"))
}

/// The client prints the results as JSON after its other output.
fn keep_results(told: &Path, results: &Path) -> Result<PathBuf, String> {
    let text = fs::read_to_string(told).map_err(|error| told_of(told, &error))?;
    let json = text.find("\n{").map(|at| &text[at + 1..]).or_else(|| text.starts_with('{').then_some(&*text));
    let json = json.and_then(|text| text.rfind('}').map(|end| &text[..=end]));
    let json = json.ok_or_else(|| format!("no results in {}", told.display()))?;
    fs::write(results, json).map_err(|error| told_of(results, &error))?;
    Ok(results.to_path_buf())
}

fn node(tests: &Path, script: &Path) -> Command {
    let mut command = Command::new("node");
    command.arg("--no-warnings").arg(script).current_dir(tests);
    command
}

fn server(home: &Path, origin_port: u16, port: u16) -> Result<Command, String> {
    let text = text_of("fair.conf")?
        .replace("127.0.0.1:8000", &format!("127.0.0.1:{origin_port}"))
        .replace("127.0.0.1:8080", &format!("127.0.0.1:{port}"));
    let path = home.join("fair.conf");
    fs::write(&path, text).map_err(|error| told_of(&path, &error))?;
    let mut command = Command::new(millstream_tests::server::binary());
    command.arg("-p").arg(home).arg("-c").arg(&path);
    Ok(command)
}

fn start(command: &mut Command, log: &Path) -> Result<Running, String> {
    let file = File::create(log).map_err(|error| told_of(log, &error))?;
    let same = file.try_clone().map_err(|error| told_of(log, &error))?;
    command.stdin(Stdio::null()).stdout(file).stderr(same);
    Running::start(command).map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))
}

pub(super) fn told(tests: &Path, results: &[PathBuf]) -> Result<Vec<Test>, String> {
    let output = node(tests, &folder().join("tell.mjs"))
        .arg(tests)
        .args(results)
        .output()
        .map_err(|error| format!("node: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    String::from_utf8_lossy(&output.stdout).lines().map(read).collect()
}

fn read(line: &str) -> Result<Test, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let runs = value["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let runs = runs.iter().map(|run| run.as_str().unwrap_or_default().to_owned()).collect();
    Ok(Test { suite: text("suite"), id: text("id"), kind: text("kind"), runs, why: text("why") })
}
