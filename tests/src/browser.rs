//! A page in a real browser: Chromium without a window, asked what it made of a file.
//!
//! The page under test is a copy with a script of ours behind it, which looks at what was laid out and writes what is wrong
//! into the page: text that is cut off, runs into other text or is too small to read, a page wider than its window. Nothing
//! here knows what the page is about.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::process::Running;

/// The names that Chromium goes by.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// How long a page may take: a busy machine is no failure.
const LIMIT: Duration = Duration::from_secs(90);

/// Looks at the page once it is laid out.
const INSPECTION: &str = include_str!("browser/inspection.js");

/// Where its findings stand.
const FINDINGS: &str = "<pre id=\"findings\">";

/// A browser that is installed here.
pub struct Browser {
    program: PathBuf,
}

/// A window to open a page in.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// CSS pixels.
    pub width: u32,
    /// Whether the user prefers dark pages.
    pub is_dark: bool,
}

/// What the browser made of a page.
#[derive(Debug)]
pub struct Rendered {
    /// The page as it stood at the end.
    pub dom: String,
    /// What is wrong with its layout, a line each.
    pub findings: Vec<String>,
    /// What the browser complained of: errors of scripts and of policies, things it could not fetch.
    pub complaints: Vec<String>,
}

impl Browser {
    /// The browser of this machine, if it has one.
    pub fn find() -> Option<Browser> {
        let folders = std::env::var_os("PATH")?;
        let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
        let mut programs = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        programs.find(|program| program.is_file()).map(|program| Browser { program })
    }

    /// Opens the page in a file as it is, and gives its picture (PNG). `height` in CSS pixels.
    pub fn picture(&self, page: &Path, window: Window, height: u32) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder for the picture");
        let picture = folder.path().join("page.png");
        let mut argument = std::ffi::OsString::from("--screenshot=");
        argument.push(&picture);
        self.run(page, window, height, &argument, folder.path());
        fs::read(&picture).expect("the browser wrote a picture")
    }

    /// Opens the page in a file and looks at its layout.
    pub fn inspect(&self, page: &Path, window: Window) -> Rendered {
        let folder = tempfile::tempdir().expect("a folder for the page");
        let text = fs::read_to_string(page).expect("the page is text");
        // First the page as it is, for its complaints; a policy that forbids our script is no fault of the page.
        let (_, complaints) = self.run(page, window, 1000, OsStr::new("--dump-dom"), folder.path());
        let copy = folder.path().join("page.html");
        let open = text.replace("http-equiv=\"Content-Security-Policy\"", "name=\"no-policy\"");
        fs::write(&copy, format!("{open}<script>{INSPECTION}</script>")).expect("the folder is writable");
        let (dom, _) = self.run(&copy, window, 1000, OsStr::new("--dump-dom"), folder.path());
        let findings = match dom.split_once(FINDINGS).and_then(|(_, rest)| rest.split_once("</pre>")) {
            Some((findings, _)) => findings.lines().map(str::to_owned).collect(),
            None => vec!["the page was not laid out".to_owned()],
        };
        let complaints =
            complaints.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
        Rendered { dom, findings, complaints }
    }

    /// Standard output and standard error of one call.
    fn run(&self, page: &Path, window: Window, height: u32, what: &OsStr, folder: &Path) -> (String, String) {
        let (out, error) = (folder.join("out"), folder.join("error"));
        let file = |path: &Path| File::create(path).expect("the folder is writable");
        let mut command = Command::new(&self.program);
        command
            // Tests may run as root and without a GPU.
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"])
            .args(["--disable-dev-shm-usage", "--disable-background-networking", "--enable-logging=stderr"])
            .arg(format!("--blink-settings=preferredColorScheme={}", if window.is_dark { 0 } else { 1 }))
            .arg(format!("--window-size={},{height}", window.width))
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .arg(what)
            .arg(page)
            .stdin(Stdio::null())
            .stdout(file(&out))
            .stderr(file(&error));
        let mut running = Running::start(&mut command).expect("the browser starts");
        let ended = running.wait(LIMIT);
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let (out, error) = (read(&out), read(&error));
        assert!(ended.is_some_and(|status| status.success()), "the browser ended with {ended:?}: {error}");
        (out, error)
    }
}
