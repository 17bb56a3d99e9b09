//! The static program, in a root where nothing is but itself and a configuration.
//!
//! `MILLSTREAM_STATIC=FILE` names it; `cargo xtask package --static --profile soon` builds one that is soon built.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use millstream_tests::origin::Origin;
use millstream_tests::pod::Pod;
use millstream_tests::prefix::{Prefix, fill};
use millstream_tests::process::{Running, serving};
use millstream_tests::{client, ports, wait, workspace};
use rustix::process::Signal;

/// Its user and the API's name are known only to the files of the root.
const CONFIGURATION: &str =
    "user shopkeeper shop; daemon off; worker_processes 2; pid /tmp/nginx.pid; error_log stderr;
    events { }
    http {
        access_log off;
        server {
            listen 127.0.0.1:@PORT@;
            location /api { proxy_pass http://api.internal:@API@; }
            location /regex { if ($uri ~ ^/regex/([0-9]+)$) { return 200 $1; } }
            location / { return 200 here; }
        }
    }";

fn program() -> Option<PathBuf> {
    let named = std::env::var_os("MILLSTREAM_STATIC");
    if named.is_none() {
        eprintln!("skipped: MILLSTREAM_STATIC names no static program: cargo xtask package --static");
    }
    // Tests run in their crate's folder; a path on the command line is one of the workspace.
    Some(workspace().join(named?))
}

#[test]
fn it_needs_no_library_and_no_file_of_the_system_but_those_that_name_users_and_hosts() {
    let Some(program) = program() else { return };
    let ldd = Command::new("ldd").arg(&program).stdin(Stdio::null()).output().expect("ldd runs");
    let said = String::from_utf8_lossy(&[ldd.stdout, ldd.stderr].concat()).into_owned();
    assert!(said.contains("statically linked") || said.contains("not a dynamic executable"), "{said}");

    let (prefix, port, origin) = (Prefix::new(), ports::free(), Origin::fixed(200, &[], b"api"));
    prefix.write("etc/passwd", "root:x:0:0::/:\nshopkeeper:x:4711:4712::/:\n");
    prefix.write("etc/group", "root:x:0:\nshop:x:4713:\n");
    prefix.write("etc/hosts", "127.0.0.1 localhost api.internal\n");
    let api = origin.port().to_string();
    prefix.write("etc/nginx.conf", fill(CONFIGURATION, &[("PORT", &port.to_string()), ("API", &api)]));
    let pod = Pod::bare(&prefix, &program).with(&prefix.join("etc"), "/etc").with_room("/tmp");
    let Some(mut check) = pod.command() else { return };
    let output = check.args(["-c", "/etc/nginx.conf", "-t"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("test is successful"), "{said}");

    let mut command = pod.command().expect("there are namespaces");
    let written = fs::File::create(prefix.join("output")).expect("own directory");
    let mut process =
        Running::start(command.args(["-c", "/etc/nginx.conf"]).stderr(written)).expect("it runs");
    wait::until("it serves", || {
        assert!(process.ended().is_none(), "{}", prefix.read("output"));
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    assert_eq!(client::get(port, "/").text(), "here");
    assert_eq!(client::get(port, "/regex/42").text(), "42");
    assert_eq!(client::get(port, "/api").status, 200, "{}", prefix.read("output"));
    let status = fs::read_to_string(format!("/proc/{}/status", serving(process.id()))).expect("it runs");
    let ids =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
    assert!(ids("Uid:").trim().starts_with("4711\t4711"), "{}", ids("Uid:"));
    assert!(ids("Gid:").trim().starts_with("4713\t4713"), "{}", ids("Gid:"));
    process.signal(Signal::QUIT);
    assert!(process.wait(Duration::from_secs(20)).is_some_and(|status| status.success()));
}
