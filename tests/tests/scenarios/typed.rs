//! Pages of the manual, typed: every command of a `console` block runs in a shell, in the page's order, and prints what the page says.
//!
//! A block whose first line is a comment with the name of a file is that file. In what is printed, `…` stands for anything, and lines that the
//! page leaves out may stand between. The ports that pages name (8000, 8080, 8081) are moved to free ones, so that pages run beside each other.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{ChildStdin, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use millstream_tests::client::Client;
use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::process::{self, Running};
use millstream_tests::server::binary;
use millstream_tests::{wait, workspace};

#[derive(Debug)]
enum Step {
    Save { name: String, text: String },
    Type { command: String, prints: Vec<String> },
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for (number, block) in page.split("\n```").enumerate().filter(|(number, _)| number % 2 == 1) {
        let (language, text) = block.split_once('\n').unwrap_or_else(|| panic!("block {number} is empty"));
        match (language, text.lines().next().and_then(|line| line.strip_prefix("# "))) {
            ("console", _) => type_all(text, &mut steps),
            (_, Some(name)) => steps.push(Step::Save { name: name.to_owned(), text: format!("{text}\n") }),
            _ => {}
        }
    }
    steps
}

fn type_all(block: &str, steps: &mut Vec<Step>) {
    for line in block.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step::Type { command: command.to_owned(), prints: Vec::new() }),
            (None, Some(Step::Type { prints, .. })) => prints.push(line.to_owned()),
            (None, _) => panic!("a console block begins with a command: {line}"),
        }
    }
}

/// In `line`, `…` stands for anything. Columns may be wider or narrower.
fn fits(line: &str, said: &str) -> bool {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut parts = said.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// In their order; other lines may stand between.
fn shows(printed: &str, page: &[String]) -> bool {
    let mut lines = printed.lines();
    page.iter().all(|said| lines.any(|line| fits(line, said)))
}

/// Output goes into the file `printed`.
struct Shell {
    /// Ended first, with its background jobs: a shell whose input ends leaves those behind.
    _process: Running,
    typing: ChildStdin,
    typed: usize,
    api: u16,
    prefix: Prefix,
}

impl Shell {
    /// `millstream serve` listens on these ports instead of its own.
    fn start(api: u16, front: u16, dashboard: u16) -> Self {
        let prefix = Prefix::new();
        let program = binary().display();
        let wrapper = format!(
            "#!/bin/sh\n[ \"$1\" = serve ] && set -- \"$@\" --listen {front} --dashboard {dashboard}\nexec {program} \"$@\"\n"
        );
        let file = prefix.write("bin/millstream", &wrapper);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("own file");
        let output = File::create(prefix.join("printed")).expect("own folder");
        let path = format!("{}:{}", prefix.join("bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("bash");
        command
            .arg("-s")
            .current_dir(prefix.path())
            .env("PATH", path)
            .env("NO_PROXY", "*")
            .stdin(Stdio::piped());
        command.stdout(output.try_clone().expect("a handle")).stderr(output);
        let mut child = command.spawn().expect("bash is there");
        let typing = child.stdin.take().expect("its standard input");
        Shell { _process: Running::of(child), typing, typed: 0, api, prefix }
    }

    /// Waits until it has ended, or, in the background, until it prints what the page shows.
    fn run(&mut self, command: &str, page: &[String]) {
        let before = self.prefix.read("printed").len();
        self.typed += 1;
        let mark = format!("<typed {}:", self.typed);
        writeln!(self.typing, "{command}\necho \"{mark} $?>\"").expect("the shell reads");
        let since = || self.prefix.read("printed").get(before..).unwrap_or_default().to_owned();
        let ended = wait::within(Duration::from_secs(60), || since().contains(&mark).then_some(()));
        assert!(ended.is_some(), "{command} does not end:\n{}", since());
        if command.ends_with('&') {
            let shown = wait::within(Duration::from_secs(30), || shows(&since(), page).then_some(()));
            assert!(shown.is_some(), "{command} prints\n{}\nand not\n{}", since(), page.join("\n"));
            wait::until("the API is there", || Client::connect(self.api).is_ok());
        } else {
            assert!(shows(&since(), page), "{command} prints\n{}\nand not\n{}", since(), page.join("\n"));
            let well = !page.is_empty() || since().contains(&format!("{mark} 0>"));
            assert!(well, "{command} fails:\n{}", since());
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // What went into the background by itself is no child of the shell any more.
        if let Ok(id) = self.prefix.read("nginx.pid").trim().parse() {
            process::send(id, Signal::TERM);
        }
    }
}

fn type_page(name: &str) {
    skip_on_nginx!();
    let (api, front, dashboard) = (ports::free(), ports::free(), ports::free());
    let page = fs::read_to_string(workspace().join("docs").join(name)).expect("the page");
    let page = page
        .replace("8000", &api.to_string())
        .replace("8080", &front.to_string())
        .replace("8081", &dashboard.to_string());
    let mut shell = Shell::start(api, front, dashboard);
    let steps = steps(&page);
    assert!(steps.iter().filter(|step| matches!(step, Step::Type { .. })).count() >= 5, "{name}: {steps:?}");
    for step in &steps {
        match step {
            Step::Save { name, text } => {
                shell.prefix.write(name, text);
            }
            Step::Type { command, prints } => shell.run(command, prints),
        }
    }
}

#[test]
fn getting_started_does_what_it_says() {
    type_page("getting-started.md");
}

#[test]
fn coming_from_nginx_does_what_it_says() {
    type_page("coming-from-nginx.md");
}

#[test]
fn caching_safely_does_what_it_says() {
    type_page("caching-safely.md");
}

#[test]
fn measuring_does_what_it_says() {
    type_page("measuring.md");
}

#[test]
fn purging_does_what_it_says() {
    type_page("purging.md");
}

#[test]
fn operating_does_what_it_says() {
    type_page("operating.md");
}

#[test]
fn a_line_fits_where_dots_stand_for_anything_and_nothing_else_does() {
    for (line, said, right) in [
        ("Errors: none", "Errors: none", true),
        ("Errors: none at all", "Errors: none", false),
        ("made at 17.5", "made at …", true),
        ("was made at 17.5", "made at …", false),
        ("was made at 17.5", "… made … 17.5", true),
        ("was made at 17.6", "… made … 17.5", false),
        ("anything", "…", true),
        ("one   column", "one column", true),
    ] {
        assert_eq!(fits(line, said), right, "{line} / {said}");
    }
    let page = ["one".to_owned(), "three".to_owned()];
    assert!(shows("one\ntwo\nthree", &page) && !shows("three\none", &page));
}
