//! `cargo xtask dist`: the binary that packages carry, built with a profile of its own work (PGO).
//!
//! It is built with counters, trained by `millstream_bench::training`, and built again by what was counted. Both builds have the `dist` profile, because counts find their functions by names that the profile is part of.
//! The result is `target/trained/millstream`; everything else that is made on the way is removed.
//! Without `llvm-profdata` there is nothing to merge the counts with: then the plain `dist` build is the result.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tree;

pub(crate) fn run() -> Result<(), String> {
    let result = millstream_bench::trained_binary();
    let folder = result.parent().unwrap_or(Path::new("."));
    // A folder of its own: what is built with other flags is of no use to any later build.
    let work = fs::create_dir_all(folder).and_then(|()| tempfile::tempdir_in(folder));
    let work = work.map_err(|error| format!("{}: {error}", folder.display()))?;
    let builder = Builder { host: host()?, target: work.path().join("target") };
    let Some(profdata) = profdata(&builder.host) else {
        eprintln!("rustup has no component llvm-tools for this toolchain: built without a profile");
        return keep(&builder.build(None)?, &result);
    };
    let counts = work.path().join("counts");
    fs::create_dir(&counts).map_err(|error| format!("{}: {error}", counts.display()))?;
    let instrumented = builder.build(Some(flag("-Cprofile-generate=", &counts)))?;
    millstream_bench::training::train(&instrumented)?;
    let profile = merge(&profdata, &counts)?;
    keep(&builder.build(Some(flag("-Cprofile-use=", &profile)))?, &result)
}

struct Builder {
    host: String,
    target: PathBuf,
}

impl Builder {
    /// The flag applies to the program and not to build scripts and macros, because the target is named.
    fn build(&self, flag: Option<OsString>) -> Result<PathBuf, String> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--profile", "dist", "-p", "millstream", "--target", &self.host]);
        cargo.env("CARGO_TARGET_DIR", &self.target).current_dir(tree::root());
        if let Some(flag) = flag {
            eprintln!("building with {}", flag.display());
            // Unlike RUSTFLAGS, which it takes the place of, this variable can hold a path with blanks.
            let usual = std::env::var("RUSTFLAGS").unwrap_or_default();
            let mut flags: Vec<OsString> = usual.split_whitespace().map(OsString::from).collect();
            flags.push(flag);
            cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join(OsStr::new("\x1f")));
        }
        let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
        if !status.success() {
            return Err("the build failed".into());
        }
        Ok(self.target.join(&self.host).join("dist/millstream"))
    }
}

fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(path);
    flag
}

/// Merges what every process counted into one profile.
fn merge(profdata: &Path, counts: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(counts).map_err(|error| error.to_string())?;
    let files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "profraw"))
        .collect();
    if files.is_empty() {
        return Err("the instrumented program counted nothing".into());
    }
    let profile = counts.join("millstream.profdata");
    let mut command = Command::new(profdata);
    command.arg("merge").arg("-o").arg(&profile).args(files);
    let status = command.status().map_err(|error| format!("llvm-profdata: {error}"))?;
    if status.success() { Ok(profile) } else { Err("llvm-profdata merged nothing".into()) }
}

/// The toolchain's own `llvm-profdata`, whose version reads what its compiler writes; installed if missing.
fn profdata(host: &str) -> Option<PathBuf> {
    let root = said(Command::new("rustc").args(["--print", "sysroot"]))?;
    let program = Path::new(root.trim()).join("lib/rustlib").join(host).join("bin/llvm-profdata");
    if !program.is_file() {
        let _ = Command::new("rustup")
            .args(["component", "add", "llvm-tools"])
            .current_dir(tree::root())
            .status();
    }
    program.is_file().then_some(program)
}

/// The compiler's default target.
pub(crate) fn host() -> Result<String, String> {
    let text = said(Command::new("rustc").arg("-vV")).ok_or("rustc says no version")?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc names no host".to_owned())
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.current_dir(tree::root()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Replaces the program at once, never in part.
fn keep(built: &Path, result: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", result.display());
    let unfinished = result.with_extension("unfinished");
    fs::create_dir_all(result.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    fs::copy(built, &unfinished).map_err(failed)?;
    fs::rename(&unfinished, result).map_err(failed)?;
    println!("{}", result.display());
    Ok(())
}
