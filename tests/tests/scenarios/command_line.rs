//! nginx's letters: versions, the check, the dump, and signals by name.

use millstream_tests::origin::Origin;
use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;
use millstream_tests::server::{Server, binary, command, is_nginx};
use millstream_tests::{process, wait};
use rustix::process::Signal;
use std::process::Command;

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http { access_log @DIR@/access.log; server { listen 127.0.0.1:@PORT@; location / { proxy_pass http://@ORIGIN@; } } }";

fn say(server: &Server, arguments: &[&str]) -> (bool, String) {
    let file = server.prefix().join("nginx.conf");
    let output = command(server.prefix().path(), &file).args(arguments).output().expect("the binary runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_daemon_is_reloaded_reopened_and_stopped_by_name() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = Server::start_daemon(SITE, &[("ORIGIN", &origin.address())]);
    let id = server.current_id();
    for stream in ["0", "1", "2"] {
        let open = std::fs::read_link(format!("/proc/{id}/fd/{stream}")).unwrap_or_default();
        assert!(
            !open.ends_with("output"),
            "a daemon lets go of what it was started with, or `ssh host program` hangs"
        );
    }
    assert_eq!(server.get("/").status, 200);
    server.rewrite(
        &SITE.replace("location /", "add_header X-New yes; location /"),
        &[("ORIGIN", &origin.address())],
    );
    assert!(say(&server, &["-s", "reload"]).0);
    wait::until("the new configuration answers", || server.get("/").field("x-new") == Some("yes"));
    std::fs::remove_file(server.prefix().join("access.log")).expect("the log was written");
    assert!(say(&server, &["-s", "reopen"]).0);
    wait::until("the log is there again", || server.prefix().join("access.log").exists());
    assert!(say(&server, &["-s", "quit"]).0);
    wait::until("the process ends", || !process::is_alive(id));
    assert!(!server.prefix().join("nginx.pid").exists());
    let (sent, text) = say(&server, &["-s", "stop"]);
    assert!(!sent && text.contains("nginx.pid"), "nobody is there any more: {text}");
}

#[test]
fn the_dump_shows_every_file_that_was_read() {
    let prefix = Prefix::new();
    prefix.write("more.conf", "# the included file\n");
    let file = prefix.write("nginx.conf", "error_log stderr; events {} http { include more.conf; }\n");
    let output = command(prefix.path(), &file).arg("-T").output().expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success()
            && text.contains("# configuration file")
            && text.contains("# the included file"),
        "{text}"
    );
}

#[test]
fn the_version_is_one_line() {
    let prefix = Prefix::new();
    let output = command(prefix.path(), &prefix.join("none")).arg("-v").output().expect("the binary runs");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success() && text.lines().count() == 1 && text.contains("version"), "{text}");
}

#[test]
fn a_signal_goes_to_no_other_program_that_the_pid_file_names() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    let file = prefix.write("nginx.conf", format!("pid {}; events {{}}", prefix.join("nginx.pid").display()));
    let mut other = Running::start(Command::new("sleep").arg("600")).expect("it runs");
    wait::until("it is another program", || {
        std::fs::read_link(format!("/proc/{}/exe", other.id())).is_ok_and(|link| link.ends_with("sleep"))
    });
    prefix.write("nginx.pid", format!("{}\n", other.id()));
    for name in ["quit", "stop", "reload", "reopen"] {
        let output = command(prefix.path(), &file).args(["-s", name]).output().expect("the binary runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains("sleep") && text.contains("nginx.pid"), "{text}");
    }
    assert!(other.ended().is_none(), "it was left alone");
    other.signal(Signal::KILL);
    assert!(other.wait(std::time::Duration::from_secs(20)).is_some());
    let output = command(prefix.path(), &file).args(["-s", "quit"]).output().expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("is not running"), "{text}");
}

#[test]
fn a_line_without_arguments_and_without_a_configuration_gets_help() {
    if is_nginx() || std::path::Path::new("/etc/millstream/conf/nginx.conf").exists() {
        return;
    }
    let output = Command::new(binary()).output().expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "nothing was started");
    for words in [
        "millstream serve http://127.0.0.1:8000",
        "Usage",
        "/etc/millstream/conf/nginx.conf, which does not exist",
    ] {
        assert!(text.contains(words), "{text}");
    }
}
