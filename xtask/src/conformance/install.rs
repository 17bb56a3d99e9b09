//! What the judge needs beside this tree: node, npm, and the tests themselves.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Pinned: another version has other tests, and the score is of these.
const PACKAGE: &str = "http-cache-tests";
const VERSION: &str = "0.4.5";

pub(super) fn tools() -> Result<(), String> {
    for tool in ["node", "npm"] {
        let there = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !there.is_ok_and(|status| status.success()) {
            return Err(format!("{tool} is not there (Debian: apt-get install nodejs npm)"));
        }
    }
    Ok(())
}

pub(super) fn clone(folder: &Path) -> Result<PathBuf, String> {
    let folder = folder.canonicalize().map_err(|error| super::told_of(folder, &error))?;
    for part in ["test-engine/cli.mjs", "tests/index.mjs", "node_modules/undici"] {
        if !folder.join(part).exists() {
            let shown = folder.display();
            return Err(format!(
                "{shown} has no {part}: is it a clone of http-tests/cache-tests after npm install?"
            ));
        }
    }
    Ok(folder)
}

/// The npm package, installed into `target/` if missing.
pub(super) fn package() -> Result<PathBuf, String> {
    let home = millstream_tests::target_directory().join("conformance");
    let folder = home.join("node_modules").join(PACKAGE);
    if !folder.join("cli.mjs").exists() {
        std::fs::create_dir_all(&home).map_err(|error| super::told_of(&home, &error))?;
        let status = Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--loglevel=error"])
            .arg("--prefix")
            .arg(&home)
            .arg(format!("{PACKAGE}@{VERSION}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .map_err(|error| format!("npm: {error}"))?;
        if !status.success() {
            return Err(format!("npm install {PACKAGE}@{VERSION}: {status}"));
        }
    }
    Ok(folder)
}
