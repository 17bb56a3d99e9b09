//! Control sockets of `serve`: where they are, what they are called, which of them are alive.
//!
//! Before: `serve_url`, one of which has one; next: `control`, which talks through them.

use super::plain;
use millstream_net::{clock, listener};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The system's limit for a socket's path is 108 bytes.
const LONGEST: usize = 100;

/// Seconds after which a socket without a listener counts as left behind.
const YOUNG: i64 = 60;

/// The control sockets of this user's running `serve`s by name; for root also those of other users, after its
/// own.
pub fn running() -> Vec<PathBuf> {
    let own = directory_of_own(false).ok();
    let others = if rustix::process::geteuid().is_root() { directories_of_others() } else { Vec::new() };
    let mut running = Vec::new();
    for directory in own.into_iter().chain(others) {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        // One that was killed leaves its socket behind, at which nobody listens.
        let mut found: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| UnixStream::connect(path).is_ok()).collect();
        found.sort();
        found.retain(|path| !running.contains(path));
        running.append(&mut found);
    }
    running
}

/// Directories with control sockets of users other than root, under their runtime directories and that for
/// temporary files. One that others can enter does not count.
fn directories_of_others() -> Vec<PathBuf> {
    let inside = |directory: &Path| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let of_sessions = inside(Path::new("/run/user")).into_iter().map(|user| user.join("millstream"));
    let is_named_so = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.starts_with("millstream-"))
    };
    let temporary = inside(&std::env::temp_dir()).into_iter().filter(is_named_so);
    let mut found: Vec<PathBuf> = of_sessions
        .chain(temporary)
        .filter(|path| {
            std::fs::symlink_metadata(path)
                .is_ok_and(|found| found.is_dir() && found.uid() != 0 && found.mode() & 0o077 == 0)
        })
        .collect();
    found.sort();
    found
}

pub fn name_of(port: u16) -> String {
    format!("serve-{port}.sock")
}

pub fn is_of(name: &str, port: u16) -> bool {
    within_name(name).is_some_and(|rest| rest.split('-').next() == Some(&*port.to_string()))
}

/// The part that tells the sockets of several `serve`s apart; `None` for other names.
fn within_name(name: &str) -> Option<&str> {
    name.strip_prefix("serve-")?.strip_suffix(".sock")
}

/// This process's control socket; creates its directory. On error `serve` runs without one.
pub fn own(listen: &str) -> Result<PathBuf, String> {
    let directory = directory_of_own(true)?;
    remove_dead(&directory);
    let port = listen.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    let id = std::process::id();
    let path = match port.filter(|&port| port != 0) {
        Some(port) => match handed_over(&directory, port) {
            Some(path) => path,
            None => {
                let plain = directory.join(name_of(port));
                // Another process may serve this port at another address.
                let is_taken = UnixStream::connect(&plain).is_ok();
                if is_taken { directory.join(format!("serve-{port}-{id}.sock")) } else { plain }
            }
        },
        None => directory.join(format!("serve-pid-{id}.sock")),
    };
    let length = path.as_os_str().len();
    if length > LONGEST {
        return Err(format!("the path {} is too long for a socket", path.display()));
    }
    Ok(path)
}

/// Removes sockets left by killed processes. A young one may be bound but not listened on yet.
fn remove_dead(directory: &Path) {
    let now = clock::wall().seconds;
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_named_so = name.to_str().and_then(within_name).is_some();
        let is_old = |found: std::fs::Metadata| {
            found.file_type().is_socket() && found.mtime() < now.saturating_sub(YOUNG)
        };
        if is_named_so
            && entry.metadata().is_ok_and(is_old)
            && UnixStream::connect(&path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        {
            _ = std::fs::remove_file(path);
        }
    }
}

/// The control socket for a port handed over by the previous process.
fn handed_over(directory: &Path, port: u16) -> Option<PathBuf> {
    let sockets = std::env::var(listener::ENVIRONMENT).ok()?;
    let paths = sockets.split(';').filter_map(|socket| socket.split_once(":unix:"));
    let mut own = paths.map(|(_, path)| PathBuf::from(path)).filter(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        path.parent() == Some(directory) && name.is_some_and(|name| is_of(&name, port))
    });
    own.next()
}

pub fn why_none() -> Option<String> {
    std::fs::symlink_metadata(directory_path()).ok().and_then(|_| directory_of_own(false).err())
}

pub fn directory_path() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(runtime) if Path::new(&runtime).is_absolute() => PathBuf::from(runtime).join("millstream"),
        _ => std::env::temp_dir().join(format!("millstream-{}", rustix::process::geteuid().as_raw())),
    }
}

/// A directory that no other user can enter.
fn directory_of_own(make: bool) -> Result<PathBuf, String> {
    let (user, directory) = (rustix::process::geteuid(), directory_path());
    if make {
        // Where it is there already, what follows says whether it may be used.
        _ = std::fs::DirBuilder::new().mode(0o700).create(&directory);
    }
    // In a directory that everybody may write to, somebody else may have made it first.
    let shown = directory.display();
    let found = std::fs::symlink_metadata(&directory).map_err(|error| format!("{shown}: {error}"))?;
    if !found.is_dir() {
        return Err(format!("{shown} is not a directory"));
    }
    if found.uid() != user.as_raw() {
        return Err(format!("{shown} belongs to another user"));
    }
    if found.mode() & 0o077 != 0 {
        return Err(format!("{shown} is accessible to other users"));
    }
    plain(&directory.to_string_lossy()).map_err(|error| format!("{shown}: {error}"))?;
    Ok(directory)
}
