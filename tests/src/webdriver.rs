//! A page in a real browser that is driven: Chromium by its own driver, in the words of WebDriver (W3C).
//!
//! What a person would do is done by scripts in the page, clicks and typing apart. The driver and its browser end with the value. Pictures
//! are kept where `MILLSTREAM_PICTURES` names a folder, for people to look at.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::ports;
use crate::process::Running;
use crate::wait;

const PATIENCE: Duration = Duration::from_secs(60);

/// A foreign name that the browser resolves to this machine.
pub const REBOUND: &str = "rebound.example";

const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

pub struct Window {
    port: u16,
    session: String,
    _driver: Running,
    _profile: tempfile::TempDir,
}

impl Window {
    pub fn open(width: u32, height: u32) -> Option<Window> {
        let folders = std::env::var_os("PATH")?;
        let program = std::env::split_paths(&folders)
            .map(|folder| folder.join("chromedriver"))
            .find(|it| it.is_file())?;
        let (port, profile) = (ports::free(), tempfile::tempdir().expect("a folder for the profile"));
        let driver = Running::start(
            Command::new(program)
                .arg(format!("--port={port}"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        )
        .expect("the driver starts");
        wait::until("the driver listens", || Client::connect(port).is_ok());
        let mut window = Window { port, session: String::new(), _driver: driver, _profile: profile };
        let arguments = [
            // Tests may run as root and without a GPU.
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-background-networking".to_owned(),
            format!("--host-resolver-rules=MAP {REBOUND} 127.0.0.1"),
            format!("--window-size={width},{height}"),
            format!("--user-data-dir={}", window._profile.path().display()),
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            // A test's certificate is trusted by nobody.
            "acceptInsecureCerts": true,
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let begun = window.call("POST", "/session", &wanted);
        window.session = begun["sessionId"].as_str().expect("a session").to_owned();
        Some(window)
    }

    pub fn go(&self, url: &str) {
        self.command("url", &json!({ "url": url }));
    }

    pub fn run(&self, script: &str) -> Value {
        self.command("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// The script passes its result to the function that is its last argument.
    pub fn run_async(&self, script: &str) -> Value {
        self.command("execute/async", &json!({ "script": script, "args": [] }))
    }

    pub fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector({})?.innerText ?? '';", json!(selector));
        self.run(&script).as_str().unwrap_or_default().to_owned()
    }

    pub fn click(&self, selector: &str) {
        let id = self.find(selector);
        self.command(&format!("element/{id}/click"), &json!({}));
    }

    /// Replaces the text, as a person does.
    pub fn write(&self, selector: &str, text: &str) {
        let id = self.find(selector);
        self.command(&format!("element/{id}/clear"), &json!({}));
        self.command(&format!("element/{id}/value"), &json!({ "text": text }));
    }

    /// Errors of scripts and of policies since the last call.
    pub fn complaints(&self) -> Vec<String> {
        let told = self.command("se/log", &json!({ "type": "browser" }));
        let severe = told.as_array().into_iter().flatten().filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("MILLSTREAM_PICTURES") else { return };
        let wanted = json!({ "cmd": "Page.captureScreenshot", "params": { "captureBeyondViewport": true } });
        let taken = self.command("goog/cdp/execute", &wanted);
        let text = taken["data"].as_str().expect("a picture");
        let file = Path::new(&folder).join(format!("{name}.png.base64"));
        std::fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }

    /// Serious problems found by `axe`, the script of npm's axe-core.
    pub fn barriers(&self, axe: &str) -> Vec<String> {
        self.run(axe);
        let found = self.run_async(
            "const done = arguments[arguments.length - 1]; \
             axe.run().then((told) => done(told.violations.filter((one) => ['serious', 'critical'].includes(one.impact)) \
             .map((one) => one.id + ': ' + one.nodes[0].html)), (error) => done(['axe: ' + error]));",
        );
        let found = found.as_array().into_iter().flatten();
        found.map(|one| one.as_str().unwrap_or_default().to_owned()).collect()
    }

    /// After garbage collection: bytes of script memory, and elements and texts of the document, hidden ones
    /// included.
    pub fn weight(&self) -> (u64, u64) {
        let ask = |command: &str| {
            let wanted = json!({ "cmd": command, "params": {} });
            self.command("goog/cdp/execute", &wanted)
        };
        // What is freed only when something else was is freed the second time.
        ask("HeapProfiler.collectGarbage");
        ask("HeapProfiler.collectGarbage");
        let (heap, counts) = (ask("Runtime.getHeapUsage"), ask("Memory.getDOMCounters"));
        // The driver tells whole numbers with a fraction.
        let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{heap} {counts}")) as u64;
        (number(&heap["usedSize"]), number(&counts["nodes"]))
    }

    pub fn prefer(&self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        let wanted = json!({ "cmd": "Emulation.setEmulatedMedia", "params": { "features": features } });
        self.command("goog/cdp/execute", &wanted);
    }

    fn find(&self, selector: &str) -> String {
        let found = self.command("element", &json!({ "using": "css selector", "value": selector }));
        found[ELEMENT].as_str().unwrap_or_else(|| panic!("{selector}: {found}")).to_owned()
    }

    fn command(&self, what: &str, arguments: &Value) -> Value {
        self.call("POST", &format!("/session/{}/{what}", self.session), arguments)
    }

    fn call(&self, method: &str, path: &str, arguments: &Value) -> Value {
        let body = arguments.to_string();
        let mut client = Client::connect_with_patience(self.port, PATIENCE).expect("the driver listens");
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close", self.port);
        let length = body.len();
        client
            .send(format!(
                "{head}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            ))
            .expect("sent");
        let answer = client.answer().expect("the driver answers");
        let told: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!(answer.status, 200, "{path}: {told}");
        told["value"].clone()
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // The browser is the driver's child, which ends it when it is told to.
        if let Ok(mut client) = Client::connect(self.port) {
            let path = format!("/session/{}", self.session);
            let head = format!("DELETE {path} HTTP/1.1\r\nHost: localhost:{}\r\n", self.port);
            _ = client.send(format!("{head}Connection: close\r\n\r\n"));
            _ = client.answer();
        }
    }
}
