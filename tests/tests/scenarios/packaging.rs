//! What a package carries, used as an administrator does: the unit, the configuration, the rotation of logs, and the Debian package
//! from its installation to its purge, in a root of its own.
//!
//! No service manager runs here: `systemctl` is a script of the test that passes signals on. Building the package wants cargo-deb.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use millstream_tests::prefix::Prefix;
use millstream_tests::process::{self, Running};
use millstream_tests::server::{binary, command, is_nginx};
use millstream_tests::{client, load, ports, target_directory, wait, workspace};

fn is_installed(program: &str, argument: &str) -> bool {
    let is_there = Command::new(program).arg(argument).stdin(Stdio::null()).output().is_ok();
    if !is_there {
        eprintln!("skipped: {program} is not installed");
    }
    is_there
}

fn packaged(name: &str) -> String {
    fs::read_to_string(workspace().join("packaging").join(name)).expect("the file is there")
}

struct Root {
    prefix: Prefix,
    port: u16,
    dashboard: u16,
}

impl Root {
    fn new() -> Root {
        let prefix = Prefix::new();
        for folder in
            ["etc/millstream/conf.d", "run/millstream", "var/log/millstream", "var/cache/millstream"]
        {
            fs::create_dir_all(prefix.join(folder)).expect("own directory is writable");
        }
        Root { prefix, port: ports::free(), dashboard: ports::free() }
    }

    /// A root in which the package's configuration runs without being root: every path and port is its own.
    fn own(&self, text: &str) -> String {
        let folder = self.prefix.path().display();
        text.replace("/run/millstream", &format!("{folder}/run/millstream"))
            .replace("/var/", &format!("{folder}/var/"))
            .replace("127.0.0.1:8081", &format!("127.0.0.1:{}", self.dashboard))
            .replace("listen 80;", &format!("listen 127.0.0.1:{};", self.port))
    }

    fn command(&self) -> Command {
        let folder = self.prefix.join("etc/millstream");
        command(&folder, &folder.join("nginx.conf"))
    }

    fn start(&self) -> Running {
        let process = Running::start(self.command().args(["-g", "daemon off;"])).expect("the binary runs");
        // The pid file comes when all listeners are open.
        wait::until("the dashboard answers", || {
            self.prefix.read("run/millstream/nginx.pid").trim() == process.id().to_string()
                && std::net::TcpStream::connect(("127.0.0.1", self.dashboard)).is_ok()
        });
        process
    }
}

fn success(output: &Output) -> String {
    let text = [&*output.stdout, &*output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{}: {text}", output.status);
    text
}

#[test]
fn the_configuration_of_the_package_passes_the_check_and_takes_sites() {
    skip_on_nginx!();
    let root = Root::new();
    root.prefix.write("etc/millstream/nginx.conf", root.own(&packaged("nginx.conf")));
    let check = || success(&root.command().arg("-t").output().expect("the binary runs"));
    assert!(!check().contains("[warn]"), "{}", check());
    root.prefix.write("etc/millstream/conf.d/site.conf", root.own(&packaged("site.conf")));
    assert!(!check().contains("[warn]"), "{}", check());
    for folder in ["var/log/millstream", "var/cache/millstream"] {
        let left = fs::read_dir(root.prefix.join(folder)).expect("it is there").count();
        assert_eq!(left, 0, "root's check leaves nothing in {folder} that the service could not write");
    }
    let _process = root.start();
    assert_eq!(client::get(root.dashboard, "/healthz").status, 200);
    assert_eq!(client::get(root.port, "/").status, 502, "there is no API");
    assert!(client::get(root.dashboard, "/metrics").text().contains("millstream_requests_total"));
}

#[test]
fn the_configuration_of_the_container_stays_in_the_foreground_and_logs_to_whoever_runs_it() {
    skip_on_nginx!();
    let root = Root::new();
    root.prefix.write("etc/millstream/nginx.conf", root.own(&packaged("container.conf")));
    root.prefix.write("etc/millstream/mime.types", packaged("mime.types"));
    let site = format!("server {{ listen 127.0.0.1:{}; location / {{ return 200 ok; }} }}", root.port);
    root.prefix.write("etc/millstream/conf.d/site.conf", &site);
    let output = fs::File::create(root.prefix.join("output")).expect("own directory is writable");
    let mut process =
        Running::start(root.command().args(["-g", "daemon off;"]).stdout(output)).expect("the binary runs");
    wait::until("it serves", || std::net::TcpStream::connect(("127.0.0.1", root.port)).is_ok());
    assert_eq!(client::get(root.port, "/asked").status, 200);
    wait::until("the line is there", || root.prefix.read("output").contains("GET /asked"));
    assert!(process.ended().is_none());
    // What `docker stop` sends, as the Dockerfile says.
    assert!(packaged("Dockerfile").contains("STOPSIGNAL SIGQUIT"));
    process.signal(rustix::process::Signal::QUIT);
    assert!(process.wait(Duration::from_secs(20)).is_some_and(|status| status.success()));
}

/// In tenths: what systemd calls OK.
const MOST_EXPOSED: &str = "20";

#[test]
fn the_unit_is_one_that_systemd_accepts_and_finds_safe() {
    if is_nginx() || !is_installed("systemd-analyze", "--version") {
        return;
    }
    let prefix = Prefix::new();
    let unit =
        packaged("millstream.service").replace("/usr/sbin/millstream", &binary().display().to_string());
    let file = prefix.write("millstream.service", &unit);
    let mut verify = Command::new("systemd-analyze");
    let output = verify.args(["verify", "--man=no"]).arg(&file).stdin(Stdio::null()).output();
    assert_eq!(success(&output.expect("it runs")), "");
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", "--no-pager", "--threshold", MOST_EXPOSED]);
    let said = success(&security.arg(file).stdin(Stdio::null()).output().expect("it runs"));
    assert!(said.contains("Overall exposure level"), "{said}");
}

/// A `systemctl` that records calls, passes signals on to the process of the pid file, and reports its id.
fn service_manager(root: &Root) -> PathBuf {
    let (folder, asked) = (root.prefix.join("bin"), root.prefix.join("asked"));
    fs::create_dir_all(&folder).expect("own directory is writable");
    let pid = root.prefix.join("run/millstream/nginx.pid");
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> {asked}\ncase \"$*\" in\n\
        show*) cat {pid} ;;\n*=USR1*) kill -USR1 \"$(cat {pid})\" ;;\n*=USR2*) kill -USR2 \"$(cat {pid})\" ;;\nesac\n",
        asked = asked.display(),
        pid = pid.display(),
    );
    let file = root.prefix.write("bin/systemctl", &script);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(file, mode).expect("own file");
    folder
}

#[test]
fn rotated_logs_are_opened_anew_and_no_line_is_lost() {
    if is_nginx() || !is_installed("/usr/sbin/logrotate", "--version") {
        return;
    }
    let root = Root::new();
    root.prefix.write("etc/millstream/nginx.conf", root.own(&packaged("nginx.conf")));
    let site = format!("server {{ listen 127.0.0.1:{}; location / {{ return 200 ok; }} }}", root.port);
    root.prefix.write("etc/millstream/conf.d/site.conf", &site);
    let _process = root.start();
    let manager = service_manager(&root);
    let rules = root.prefix.write("rules", root.own(&packaged("millstream.logrotate")));
    let rotate = |letter: &str| {
        let mut logrotate = Command::new("/usr/sbin/logrotate");
        logrotate.arg(letter).arg("-s").arg(root.prefix.join("state")).arg(&rules).stdin(Stdio::null());
        let path = std::env::var("PATH").unwrap_or_default();
        logrotate.env("PATH", format!("{}:{path}", manager.display()));
        success(&logrotate.output().expect("it runs"))
    };
    let said = rotate("-d");
    assert!(!said.contains("error:"), "{said}");
    let lines = |name: &str| root.prefix.read(&format!("var/log/millstream/{name}")).lines().count();
    assert_eq!(client::get(root.port, "/before").status, 200);
    wait::until("the line is written", || lines("access.log") == 1);
    rotate("-f");
    assert_eq!(root.prefix.read("asked"), "kill --signal=USR1 --kill-whom=main millstream.service\n");
    wait::until("the new file is there", || root.prefix.join("var/log/millstream/access.log").exists());
    assert_eq!(client::get(root.port, "/after").status, 200);
    wait::until("the next line is in the new file", || lines("access.log") == 1);
    assert_eq!(lines("access.log.1"), 1);
    rotate("-f");
    assert!(root.prefix.join("var/log/millstream/access.log.2.gz").exists(), "compressed a turn later");
}

fn after_upgrade(root: &Root) -> Output {
    let script = packaged("debian/postinst").replace("#DEBHELPER#", "");
    let script = script.replace("/run/systemd/system", &root.prefix.path().display().to_string());
    let file = root.prefix.write("postinst", &script);
    let mut shell = Command::new("sh");
    let path = format!("{}:{}", service_manager(root).display(), std::env::var("PATH").unwrap_or_default());
    shell.arg(file).args(["configure", "0.0.1-1"]).env("PATH", path).stdin(Stdio::null());
    shell.output().expect("a shell")
}

#[test]
fn an_upgrade_refuses_nobody_and_one_that_fails_leaves_the_old_process() {
    skip_on_nginx!();
    let root = Root::new();
    root.prefix.write("etc/millstream/nginx.conf", root.own(&packaged("nginx.conf")));
    let site = format!("server {{ listen 127.0.0.1:{}; location / {{ return 200 ok; }} }}", root.port);
    root.prefix.write("etc/millstream/conf.d/site.conf", &site);
    let mut old = root.start();
    let load = load::Load::start(root.port, "/", 4);
    success(&after_upgrade(&root));
    assert!(old.wait(Duration::from_secs(20)).is_some_and(|status| status.success()), "the old one ended");
    let before = load.answered();
    wait::until("the new one answers", || load.answered() > before + 100);
    let report = load.finish();
    assert!(report.failures.is_empty(), "{:?}", report.failures.first());

    let main = || root.prefix.read("run/millstream/nginx.pid").trim().parse::<u32>().unwrap_or(0);
    let next = main();
    root.prefix.write("etc/millstream/conf.d/site.conf", "nonsense;");
    let said = success(&after_upgrade(&root));
    assert!(said.contains("the old one goes on"), "{said}");
    assert_eq!(main(), next);
    assert_eq!(client::get(root.port, "/").status, 200);
    process::send(next, rustix::process::Signal::TERM);
    wait::until("it ends", || !process::is_alive(next));
}

/// Its scripts run outside of the root and know it (`DPKG_ROOT`).
fn dpkg(root: &Path, arguments: &[&str]) -> String {
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", root.display()));
    dpkg.args(["--force-not-root", "--force-script-chrootless", "--force-depends", "--force-confold"]);
    let path = std::env::var("PATH").unwrap_or_default();
    dpkg.env("PATH", format!("{}:{path}:/usr/sbin:/sbin", root.join("bin").display())).env("LC_ALL", "C");
    success(&dpkg.args(arguments).stdin(Stdio::null()).output().expect("dpkg runs"))
}

/// `None` without cargo-deb.
fn built(into: &Path) -> Option<PathBuf> {
    let tools = target_directory().join("tools/bin");
    let path = format!("{}:{}", std::env::var("PATH").unwrap_or_default(), tools.display());
    let mut version = Command::new("cargo");
    let is_there = version.args(["deb", "--version"]).env("PATH", &path).output();
    if !is_there.is_ok_and(|output| output.status.success()) || !is_installed("dpkg-deb", "--version") {
        eprintln!("skipped: there is no cargo-deb: cargo install --locked cargo-deb");
        return None;
    }
    let mut package = Command::new("cargo");
    package.args(["xtask", "package", "--profile", "dev", "--fast", "--output"]);
    package.arg(into).env("PATH", path).current_dir(workspace()).stdin(Stdio::null());
    let said = success(&package.output().expect("cargo runs"));
    let made = said.lines().find(|line| line.ends_with(".deb")).map(PathBuf::from);
    Some(made.unwrap_or_else(|| panic!("no package: {said}")))
}

fn next_version(package: &Path, prefix: &Prefix) -> PathBuf {
    let (folder, next) = (prefix.join("next"), prefix.join("next.deb"));
    let run = |arguments: &[&std::ffi::OsStr]| {
        success(&Command::new("dpkg-deb").args(arguments).stdin(Stdio::null()).output().expect("it runs"))
    };
    run(&["-R".as_ref(), package.as_ref(), folder.as_ref()]);
    let control = prefix.read("next/DEBIAN/control");
    let version = control.lines().find(|line| line.starts_with("Version: ")).expect("it has a version");
    prefix.write("next/DEBIAN/control", control.replace(version, "Version: 99.0-1"));
    let conf = prefix.read("next/etc/millstream/nginx.conf") + "# later\n";
    prefix.write("next/etc/millstream/nginx.conf", &conf);
    run(&["-Znone".as_ref(), "-b".as_ref(), folder.as_ref(), next.as_ref()]);
    next
}

#[test]
fn the_package_is_installed_upgraded_removed_and_purged() {
    if is_nginx() || Path::new("/run/systemd/system").exists() {
        return; // Its scripts would reach the service manager of this machine.
    }
    let prefix = Prefix::new();
    let Some(package) = built(prefix.path()) else { return };
    let root = prefix.join("root");
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "etc/systemd/system"]
    {
        fs::create_dir_all(root.join(folder)).expect("own directory is writable");
    }
    fs::write(root.join("var/lib/dpkg/status"), "").expect("written");
    let is_there = |name: &str| root.join(name).symlink_metadata().is_ok();
    let enabled = "etc/systemd/system/multi-user.target.wants/millstream.service";

    dpkg(&root, &["-i", &package.to_string_lossy()]);
    for name in [
        "etc/logrotate.d/millstream",
        "usr/lib/systemd/system/millstream.service",
        "usr/share/man/man8/millstream.8.gz",
        "usr/share/bash-completion/completions/millstream",
        "usr/share/doc/millstream/examples/monitoring/prometheus.yml",
        enabled,
    ] {
        assert!(is_there(name), "{name}");
    }
    let version = Command::new(root.join("usr/sbin/millstream")).arg("-v").output().expect("it runs");
    assert!(success(&version).contains("millstream/"));

    let conf = root.join("etc/millstream/nginx.conf");
    let ours = fs::read_to_string(&conf).expect("installed") + "# ours\n";
    fs::write(&conf, &ours).expect("written");
    dpkg(&root, &["-i", &next_version(&package, &prefix).to_string_lossy()]);
    assert!(dpkg(&root, &["-s", "millstream"]).contains("Version: 99.0-1"));
    assert_eq!(fs::read_to_string(&conf).expect("it is there"), ours, "what was written there stays");

    fs::create_dir_all(root.join("var/log/millstream")).expect("made");
    fs::write(root.join("var/log/millstream/access.log"), "a line\n").expect("written");
    dpkg(&root, &["-r", "millstream"]);
    assert!(!is_there("usr/sbin/millstream") && conf.exists() && is_there("var/log/millstream/access.log"));
    dpkg(&root, &["-P", "millstream"]);
    for name in ["etc/millstream", "etc/logrotate.d/millstream", "var/log/millstream", enabled] {
        assert!(!is_there(name), "{name} is left");
    }
}
