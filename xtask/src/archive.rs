//! `cargo xtask package --static`: the program without any library of the system, for Linux of every distribution, and an archive of it.
//!
//! It is linked with musl, whose look-ups of names and users read `/etc/resolv.conf`, `/etc/hosts`, `/etc/passwd` and `/etc/group`, and nothing else: a
//! static glibc would load the modules of nsswitch.conf at run time, and so want the libraries of the very version that it was built with.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::tools::{self, Ended};
use crate::{dist, package, tree};

const USAGE: &str = "cargo xtask package --static [--profile NAME]

The profile is dist. It wants musl-gcc (apt-get install musl-tools) and the target of musl, which rustup adds.";

/// Files of `packaging/` that the archive carries, besides what the binary prints.
const BESIDE: [&str; 4] = ["nginx.conf", "site.conf", "millstream.service", "millstream.logrotate"];

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let profile = match arguments {
        [] => "dist",
        [option, name] if option == "--profile" => name.as_str(),
        _ => return Err(USAGE.into()),
    };
    let target = target()?;
    let folder = make(profile, &target)?;
    let (version, machine) = (env!("CARGO_PKG_VERSION"), target.split('-').next().unwrap_or("unknown"));
    let archive = folder.join(format!("millstream-{version}-{machine}-linux.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip", "--owner=0", "--group=0", "--numeric-owner", "--file"]).arg(&archive);
    tar.arg(format!("--transform=s,^package,millstream-{version},"))
        .arg("-C")
        .arg(tree::root().join("target"));
    tools::succeed(tar.arg("package"), "tar")?;
    println!("{}\n{}", folder.join("millstream").display(), archive.display());
    Ok(())
}

/// Builds the program with the `soon` profile and tries it in an empty root.
pub(crate) fn check() -> Result<Ended, String> {
    let target = match target() {
        Ok(target) => target,
        Err(why) => return Ok(Ended::Skipped(why)),
    };
    let program = make("soon", &target)?.join("millstream");
    let words = ["test", "--workspace", "--test", "scenarios", "--", "static_program::"];
    tools::cargo(&words, &[("MILLSTREAM_STATIC", &program.to_string_lossy())])?;
    Ok(Ended::Passed)
}

fn target() -> Result<String, String> {
    if !tools::is_there(Command::new("musl-gcc").arg("--version")) {
        return Err("musl-gcc is not installed: apt-get install musl-tools".into());
    }
    let target = dist::host()?.replace("-gnu", "-musl");
    add(&target)?;
    Ok(target)
}

/// Returns the folder of the program and of the other files of the archive.
fn make(profile: &str, target: &str) -> Result<PathBuf, String> {
    let binary = build(profile, target)?;
    package::stage(&binary)?;
    let folder = tree::root().join("target/static");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    let staged = tree::root().join("target/package");
    for name in BESIDE {
        fs::copy(tree::root().join("packaging").join(name), staged.join(name)).map_err(failed)?;
    }
    fs::copy(tree::root().join("LICENSE"), staged.join("LICENSE")).map_err(failed)?;
    fs::copy(&binary, folder.join("millstream")).map_err(failed)?;
    Ok(folder)
}

fn add(target: &str) -> Result<(), String> {
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", target]).current_dir(tree::root());
    tools::succeed(&mut rustup, "rustup target add")
}

fn build(profile: &str, target: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--profile", profile, "-p", "millstream", "--target", target]);
    cargo.env(format!("CC_{}", target.replace('-', "_")), "musl-gcc").current_dir(tree::root());
    tools::succeed(&mut cargo, "cargo build")?;
    let folder = millstream_tests::target_directory().join(target);
    Ok(folder.join(package::folder_of(profile)).join("millstream"))
}
