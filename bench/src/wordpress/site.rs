//! A WordPress of Debian's packages with twenty posts: its database, its files and PHP-FPM, all in a folder of their own.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use millstream_tests::prefix::{Prefix, fill};
use millstream_tests::process::Running;
use millstream_tests::{wait, workspace};

use crate::product::find;

const PACKAGE: &str = "/usr/share/wordpress";
/// The advice if something is missing.
const INSTALL: &str =
    "apt-get install wordpress wordpress-theme-twentytwentythree mariadb-server php-fpm php-mysql";
const PATIENCE: Duration = Duration::from_secs(60);

/// All of it ends on drop.
pub(super) struct Site {
    _php: Running,
    _database: Running,
    prefix: Prefix,
}

impl Site {
    pub(super) fn start() -> Result<Site, String> {
        let prefix = Prefix::new();
        let database = database(&prefix)?;
        files(&prefix)?;
        let php = php(&prefix)?;
        Ok(Site { _php: php, _database: database, prefix })
    }

    /// Its folder: `www` with the files, and `php.sock`.
    pub(super) fn folder(&self) -> &Path {
        self.prefix.path()
    }
}

fn database(prefix: &Prefix) -> Result<Running, String> {
    let data = format!("--datadir={}", prefix.join("db").display());
    let mut install = Command::new("mariadb-install-db");
    install.args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal", &data]);
    succeed(install.arg("--user=root"))?;
    let socket = prefix.join("db.sock");
    let mut command = Command::new(program("mariadbd")?);
    command.args(["--no-defaults", "--user=root", "--skip-networking", &data]);
    command.arg(format!("--socket={}", socket.display()));
    command.arg(format!("--pid-file={}", prefix.join("db.pid").display()));
    let running = start(command, &socket)?;
    let mut create = Command::new("mariadb");
    create.args(["--no-defaults", "--user=root", "-e", "create database blog"]);
    succeed(create.arg(format!("--socket={}", socket.display())))?;
    Ok(running)
}

fn files(prefix: &Prefix) -> Result<(), String> {
    if !Path::new(PACKAGE).join("wp-content/themes/twentytwentythree").exists() {
        return Err(format!("WordPress or its theme is not installed: {INSTALL}"));
    }
    let (www, root) = (prefix.join("www"), workspace().join("bench/wordpress"));
    succeed(Command::new("cp").arg("-r").arg(PACKAGE).arg(&www))?;
    // The package's own reads a file of the machine.
    std::fs::remove_file(www.join("wp-config.php")).map_err(|error| error.to_string())?;
    written(prefix, "wp-config.php", "www/wp-config.php")?;
    succeed(Command::new("php").arg(root.join("install.php")).arg(www))
}

fn php(prefix: &Prefix) -> Result<Running, String> {
    let file = written(prefix, "php-fpm.conf", "php-fpm.conf")?;
    let mut command = Command::new(program("php-fpm")?);
    // `-R`: as root, where root runs this.
    command.args(["-F", "-R", "-y"]).arg(file);
    start(command, &prefix.join("php.sock"))
}

/// Fills in a file of `bench/wordpress`.
fn written(prefix: &Prefix, from: &str, to: &str) -> Result<PathBuf, String> {
    let path = workspace().join("bench/wordpress").join(from);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(prefix.write(to, fill(&text, &[("SITE", prefix.path().to_str().unwrap_or_default())])))
}

/// Also finds Debian's PHP, whose name ends in a version.
fn program(name: &str) -> Result<PathBuf, String> {
    let versions = ["", "8.2", "8.3", "8.4", "8.5"];
    let found = versions.iter().find_map(|version| find(&format!("{name}{version}")));
    found.ok_or_else(|| format!("{name} is not installed: {INSTALL}"))
}

fn start(mut command: Command, socket: &Path) -> Result<Running, String> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running::start(&mut command).map_err(|error| format!("{command:?}: {error}"))?;
    match wait::within(PATIENCE, || UnixStream::connect(socket).ok()) {
        Some(_) => Ok(running),
        None => Err(format!("{command:?}: nothing listens on {}", socket.display())),
    }
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}\n{INSTALL}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
