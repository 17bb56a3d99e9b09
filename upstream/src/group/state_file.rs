//! The `state` of a group: its servers in a file, as `server` directives, for the next start.
//!
//! Written whole, beside the old one, and put in its place when it is on the disk: a crash leaves the one or the other. Nothing
//! is read here; `millstream-conf` reads it as part of the block. Before: `editing`, which says when.

use super::Server;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct StateFile(PathBuf);

impl StateFile {
    pub(super) fn new(path: &Path) -> StateFile {
        StateFile(path.to_path_buf())
    }

    /// The old content stays on failure. Blocks.
    pub(super) fn write(&self, servers: &[Server]) -> io::Result<()> {
        let StateFile(path) = self;
        // With the process in it: the next one, at an upgrade, has a name of its own.
        let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        name.push(format!(".{}", std::process::id()));
        let temporary = path.with_file_name(name);
        let written = replace(path, &temporary, &text(servers));
        if written.is_err() {
            // What is not there need not go.
            _ = fs::remove_file(&temporary);
        }
        written
    }
}

fn replace(path: &Path, temporary: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(temporary, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The name has to be on the disk before anybody relies on it.
    File::open(folder)?.sync_all()
}

/// A line for each server, with its non-default parameters.
fn text(servers: &[Server]) -> String {
    let mut text = String::new();
    for server in servers {
        let Server { name, parameters, route, backup, service, kept, .. } = server;
        // Writing to a String cannot fail.
        let _ = write!(text, "server {name}");
        let mut put = |differs: bool, parameter: String| {
            if differs {
                text.push(' ');
                text.push_str(&parameter);
            }
        };
        put(parameters.weight != 1, format!("weight={}", parameters.weight));
        put(parameters.max_conns != 0, format!("max_conns={}", parameters.max_conns));
        put(parameters.max_fails != 1, format!("max_fails={}", parameters.max_fails));
        let usual = Duration::from_secs(10);
        put(parameters.fail_timeout != usual, format!("fail_timeout={}", time(parameters.fail_timeout)));
        put(!parameters.slow_start.is_zero(), format!("slow_start={}", time(parameters.slow_start)));
        put(route.is_some(), format!("route={}", route.as_deref().unwrap_or_default()));
        put(!*kept, "resolve".to_owned());
        let service = service.as_ref().map(|service| &*service.name);
        put(service.is_some(), format!("service={}", service.unwrap_or_default()));
        put(*backup, "backup".to_owned());
        put(parameters.down, "down".to_owned());
        put(parameters.drain, "drain".to_owned());
        text.push_str(";\n");
    }
    text
}

fn time(time: Duration) -> String {
    if time.subsec_millis() == 0 { format!("{}s", time.as_secs()) } else { format!("{}ms", time.as_millis()) }
}
