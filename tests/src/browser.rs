//! Pages in a real browser: Chromium without a window, asked what it made of them.
//!
//! Pages stand in frames as wide as a window would be, beside a script of ours that looks at what was laid out: text that is
//! cut off, runs into other text or is too small to read, a page wider than its window. Nothing here knows what a page is about.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::process::Running;

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Long: a busy machine is no failure.
const LIMIT: Duration = Duration::from_secs(90);

const INSPECTION: &str = include_str!("browser/inspection.js");

const FINDINGS: &str = "<pre id=\"findings\">";

/// In CSS pixels; everything below is laid out too.
const HEIGHT: u32 = 1000;

pub struct Browser {
    program: PathBuf,
}

#[derive(Debug)]
pub struct Inspection {
    /// Layout problems, one per line.
    pub findings: Vec<String>,
    /// Errors of scripts and of policies, and failed fetches.
    pub complaints: Vec<String>,
}

impl Browser {
    pub fn find() -> Option<Browser> {
        let folders = std::env::var_os("PATH")?;
        let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
        let mut programs = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        programs.find(|program| program.is_file()).map(|program| Browser { program })
    }

    pub fn picture(&self, page: &Path, width: u32) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder for the picture");
        let picture = folder.path().join("page.png");
        let mut argument = OsString::from("--screenshot=");
        argument.push(&picture);
        self.run(page, width, &argument, folder.path());
        fs::read(&picture).expect("the browser wrote a picture")
    }

    /// `pages` are names, for the findings, with their HTML.
    pub fn inspect(&self, pages: &[(&str, String)], widths: &[u32]) -> Inspection {
        let folder = tempfile::tempdir().expect("a folder for the pages");
        let mut frames = String::from("<!DOCTYPE html><meta charset=\"utf-8\">");
        for (name, page) in pages {
            let page = page.replace('&', "&amp;").replace('"', "&quot;");
            for width in widths {
                frames.push_str(&format!(
                    "<iframe title=\"{name}, {width} pixels wide\" width=\"{width}\" height=\"{HEIGHT}\" style=\"border:0\" \
                     srcdoc=\"{page}\"></iframe>"
                ));
            }
        }
        let file = folder.path().join("frames.html");
        fs::write(&file, format!("{frames}<script>{INSPECTION}</script>")).expect("the folder is writable");
        let widest = widths.iter().copied().max().unwrap_or(HEIGHT);
        let (dom, said) = self.run(&file, widest, OsStr::new("--dump-dom"), folder.path());
        let findings = match dom.split_once(FINDINGS).and_then(|(_, rest)| rest.split_once("</pre>")) {
            Some((findings, _)) => findings.lines().map(str::to_owned).collect(),
            None => vec!["the pages were not laid out".to_owned()],
        };
        let complaints = said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
        Inspection { findings, complaints }
    }

    fn run(&self, page: &Path, width: u32, what: &OsStr, folder: &Path) -> (String, String) {
        let (out, error) = (folder.join("out"), folder.join("error"));
        let file = |path: &Path| File::create(path).expect("the folder is writable");
        let mut command = Command::new(&self.program);
        command
            // Tests may run as root and without a GPU.
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"])
            .args(["--disable-dev-shm-usage", "--disable-background-networking", "--enable-logging=stderr"])
            .arg(format!("--window-size={width},{HEIGHT}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_layout_are_found() {
        let Some(browser) = Browser::find() else {
            eprintln!("SKIPPED: no Chromium here; apt-get install chromium");
            return;
        };
        let page = |inside: &str| {
            format!(
                "<!DOCTYPE html><style>body {{ margin: 0; font: 16px sans-serif }}</style><figure><svg viewBox=\"0 0 300 100\" \
                     width=\"300\" height=\"100\"><title>a</title><desc>b</desc>{inside}</svg></figure>"
            )
        };
        let text =
            |x: u32, size: u32| format!("<text x=\"{x}\" y=\"50\" font-size=\"{size}\">some words</text>");
        let label = |left: u32| format!("<span style=\"position:absolute;left:{left}px\">some words</span>");
        let labels = |two: u32| {
            let (one, two) = (label(10), label(two));
            format!(
                "<figure><div role=\"img\" aria-label=\"a\" style=\"position:relative;height:30px\">{one}{two}</div></figure>"
            )
        };
        let pages = [
            ("labels", labels(200)),
            ("labels over each other", labels(40)),
            ("sound", page(&text(10, 12))),
            ("over each other", page(&format!("{}{}", text(10, 12), text(30, 12)))),
            ("small", page(&text(10, 6))),
            ("outside", page(&text(280, 12))),
            ("wide", "<p style=\"width: 2000px\">x</p>".to_owned()),
            ("script", "<script>undefinedFunction()</script>".to_owned()),
        ];
        let Inspection { findings, complaints } = browser.inspect(&pages, &[400]);
        let expected = ["labels over each other", "over each other", "small", "outside", "wide"];
        assert_eq!(findings.len(), expected.len(), "{findings:#?}");
        for (finding, name) in findings.iter().zip(expected) {
            assert!(finding.starts_with(&format!("{name}, 400 pixels wide: ")), "{finding}");
        }
        assert_eq!(complaints.len(), 1, "{complaints:#?}");
    }
}
