//! A directory of its own for each server, and configuration templates filled in for it.
//!
//! The directory goes away with the value. Workers may run as another user, so everybody may enter it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server's own directory: the `-p` prefix, and the value of `@DIR@`.
pub struct Prefix {
    directory: tempfile::TempDir,
}

impl Prefix {
    /// With `logs/`, nginx's default place.
    pub fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    pub fn within(parent: &Path) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("millstream-")
            .tempdir_in(parent)
            .expect("a temporary directory can be made");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("own directory");
        fs::create_dir(directory.path().join("logs")).expect("own directory");
        Prefix { directory }
    }

    /// With a self-signed certificate of OpenSSL: `server.pem` and `server.key`.
    pub fn with_certificate(name: &str) -> Self {
        let prefix = Self::new();
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
            .args(["-subj", &format!("/CN={name}")])
            .arg("-keyout")
            .arg(prefix.join("server.key"))
            .arg("-out")
            .arg(prefix.join("server.pem"))
            .stderr(Stdio::null())
            .status();
        assert!(made.is_ok_and(|status| status.success()), "openssl makes a certificate");
        prefix
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// In folders that are made where they are missing.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        fs::create_dir_all(path.parent().unwrap_or(self.path())).expect("own directory is writable");
        fs::write(&path, text).expect("own directory is writable");
        path
    }

    /// Empty if it does not exist (yet).
    pub fn read(&self, name: &str) -> String {
        fs::read(self.join(name))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// At any depth.
    pub fn count_files(&self, name: &str) -> usize {
        fn count(folder: &Path) -> usize {
            let Ok(entries) = fs::read_dir(folder) else { return 0 };
            entries
                .flatten()
                .map(|entry| match entry.file_type() {
                    Ok(kind) if kind.is_dir() => count(&entry.path()),
                    Ok(kind) if kind.is_file() => 1,
                    _ => 0,
                })
                .sum()
        }
        count(&self.join(name))
    }
}

impl Default for Prefix {
    fn default() -> Self {
        Self::new()
    }
}

/// Replaces `@NAME@` markers; panics for one without a value.
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = template.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("@{name}@"), value);
    }
    let left = text.split('@').skip(1).step_by(2).find(|word| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    });
    assert!(left.is_none(), "the template's @{}@ was given no value", left.unwrap_or_default());
    text
}

/// For example `api-1-default`.
pub fn seed(name: &str) -> String {
    let path = crate::workspace().join("tests/seed-configs").join(format!("{name}.conf"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
