//! What packages make of the binary: manual pages that `man` takes as they are, and completions that shells read. And the lines of the
//! manual for a certificate, which are taken as they stand.

use std::path::Path;
use std::process::{Command, Stdio};

use millstream_tests::prefix::Prefix;
use millstream_tests::server::{Server, binary};
use millstream_tests::{ports, workspace};

const PAGES: &[&str] = &[
    "",
    "serve",
    "shadow",
    "import",
    "purge",
    "explain",
    "top",
    "bench",
    "bench compare",
    "ladder",
    "demo",
    "capacity",
];

fn printed(line: &str) -> String {
    let output = Command::new(binary()).args(line.split_whitespace()).output().expect("the binary runs");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Exit status and standard error. `None` if it is not installed.
fn complaints(program: &str, arguments: &[&str], file: &Path) -> Option<(bool, String)> {
    let mut command = Command::new(program);
    command.args(arguments).arg(file).env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    let Ok(output) = command.output() else {
        eprintln!("skipped: {program} is not installed");
        return None;
    };
    Some((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

#[test]
fn every_manual_page_is_one_that_man_takes_without_a_warning() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    for name in PAGES {
        let page = printed(&format!("man {name}"));
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH OPTIONS"), "{name}: {page}");
        let file = prefix.write("page.8", &page);
        let arguments = ["--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l"];
        if let Some(said) = complaints("man", &arguments, &file) {
            assert_eq!(said, (true, String::new()), "{name}");
        }
    }
    let program = printed("man");
    for words in ["millstream <COMMAND>", "millstream\\-serve(8)", ".SH SIGNALS", "USR2", "\\-\\-lenient"] {
        assert!(program.contains(words), "{words}: {program}");
    }
    // Each page that is referred to is there.
    let referred: Vec<&str> = program.lines().filter_map(|line| line.strip_prefix("millstream\\-")).collect();
    let there = |name: &&str| PAGES.iter().any(|page| name.trim_end_matches("(8)") == *page);
    assert!(referred.len() == 10 && referred.iter().all(there), "{referred:?}");
}

#[test]
fn a_page_of_a_command_that_is_not_there_is_an_error() {
    skip_on_nginx!();
    for words in [&["man", "bake"][..], &["man", "man"], &["completions", "dos"]] {
        let output = Command::new(binary()).args(words).output().expect("the binary runs");
        assert!(!output.status.success() && output.stdout.is_empty(), "{words:?}");
    }
}

#[test]
fn every_shell_accepts_its_completions() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    for (shell, check) in
        [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute"), ("elvish", ""), ("powershell", "")]
    {
        let script = printed(&format!("completions {shell}"));
        for words in ["serve", "purge", "lenient", "microcache"] {
            assert!(script.contains(words), "{shell}: no {words}");
        }
        let file = prefix.write("script", &script);
        if check.is_empty() {
            continue;
        }
        if let Some(said) = complaints(shell, &[check], &file) {
            assert_eq!(said, (true, String::new()), "{shell}");
        }
    }
}

#[test]
fn bash_completes_commands_and_their_options() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    prefix.write("script", printed("completions bash"));
    let completed = |words: &str, last: usize| {
        let asked = format!(
            "source ./script; COMP_WORDS=({words}); COMP_CWORD={last}; \
            _millstream millstream \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", &asked]).current_dir(prefix.path()).stdin(Stdio::null());
        let output = bash.output().expect("bash is on every machine that builds this");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_eq!(completed("millstream expl", 1), "explain");
    assert_eq!(completed("millstream serve --micro", 2), "--microcache");
    assert_eq!(completed("millstream -s re", 2), "reopen reload");
}

#[test]
fn the_lines_for_a_certificate_of_your_own_are_a_server() {
    let page = std::fs::read_to_string(workspace().join("docs/certificates.md")).expect("the page");
    let (_, rest) = page.split_once("```nginx\n").expect("it begins with an example");
    let (lines, _) = rest.split_once("```").expect("the example ends");
    let prefix = Prefix::with_certificate("api.example.com");
    for (made, named) in [("server.pem", "api.example.com.pem"), ("server.key", "api.example.com.key")] {
        std::fs::rename(prefix.join(made), prefix.join(named)).expect("own directory");
    }
    let moved = lines.replace("listen 443 ssl;", "listen 127.0.0.1:@TLS@ ssl;");
    assert_ne!(moved, lines, "{lines}");
    let text = format!(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {{}}
        http {{ access_log off; server {{ listen 127.0.0.1:@PORT@; }} {moved} }}"
    );
    let tls = ports::free().to_string();
    let server = Server::start_in(prefix, &text, &[("TLS", &tls)]);
    let asked = Command::new("openssl")
        .args(["s_client", "-alpn", "h2", "-servername", "api.example.com", "-connect"])
        .arg(format!("127.0.0.1:{tls}"))
        .stdin(Stdio::null())
        .output()
        .expect("openssl runs");
    let told = String::from_utf8_lossy(&asked.stdout);
    assert!(told.contains("api.example.com") && told.contains("ALPN protocol: h2"), "{told}");
    drop(server);
}
