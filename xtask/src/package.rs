//! `cargo xtask package`: the Debian package, in `target/debian`.
//!
//! What goes in, and where, stands in `app/Cargo.toml` (`package.metadata.deb`) and `packaging/`. Here is made what is made of the
//! binary: manual pages and completions, which it prints itself, and what it is made of (`bill`). cargo-deb does the rest; it is looked for and never installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{bill, tools, tree};

const PAGES: &[&str] = &[
    "",
    "serve",
    "shadow",
    "import",
    "purge",
    "explain",
    "top",
    "bench",
    "bench compare",
    "ladder",
    "demo",
    "capacity",
];
const SHELLS: &[&str] = &["bash", "zsh", "fish"];

const USAGE: &str = "cargo xtask package [--profile NAME] [OPTIONS OF CARGO-DEB]
cargo xtask package --static [--profile NAME]

Without --profile it packages what `cargo xtask dist` left in target/trained. With --static it makes no Debian
package but an archive of a program that needs no library.";

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let (profile, rest) = match arguments {
        [help, ..] if help == "--help" => return Err(USAGE.into()),
        [option, name, rest @ ..] if option == "--profile" => (Some(name.as_str()), rest),
        rest => (None, rest),
    };
    if !tools::is_there(cargo_deb().arg("--version")) {
        return Err("cargo-deb is not installed: cargo install --locked cargo-deb".into());
    }
    let binary = match profile {
        Some(name) => built(name)?,
        None => trained()?,
    };
    stage(&binary)?;
    let mut package = cargo_deb();
    package.args(["--quiet", "--no-build", "--no-strip", "--package", "millstream"]);
    if !rest.iter().any(|argument| argument == "--output") {
        package.arg("--output").arg(tree::root().join("target/debian/"));
    }
    package.args(rest).current_dir(tree::root());
    tools::succeed(&mut package, "cargo deb")
}

fn cargo_deb() -> Command {
    let mut command = tools::with_tools("cargo");
    command.arg("deb");
    command
}

/// The binary of a profile, built now. That of `dev` is the tests' own.
fn built(profile: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--profile", profile, "--workspace", "--bin", "millstream"])
        .current_dir(tree::root());
    tools::succeed(&mut cargo, "cargo build")?;
    Ok(millstream_tests::target_directory().join(folder_of(profile)).join("millstream"))
}

pub(crate) fn folder_of(profile: &str) -> &str {
    if profile == "dev" { "debug" } else { profile }
}

/// The binary of `cargo xtask dist`, if no source has changed since.
fn trained() -> Result<PathBuf, String> {
    let binary = millstream_bench::trained_binary();
    let made = |path: &Path| fs::metadata(path).and_then(|found| found.modified());
    let Ok(moment) = made(&binary) else {
        return Err(format!("{} is not there: cargo xtask dist, or --profile NAME", binary.display()));
    };
    let is_source = |file: &&tree::File| file.path.contains("/src/") && file.path.ends_with(".rs");
    let is_newer = |file: &&tree::File| made(&tree::root().join(&file.path)).is_ok_and(|at| at > moment);
    let products = [
        "app",
        "admin",
        "server",
        "load",
        "cache",
        "upstream",
        "traces",
        "acme",
        "shadow",
        "origin",
        "net",
        "telemetry",
        "conf",
        "wire",
    ];
    let files = tree::files();
    let mut sources = files.iter().filter(|file| products.contains(&file.top())).filter(is_source);
    match sources.find(is_newer) {
        None => Ok(binary),
        Some(file) => Err(format!("{} is older than {}: cargo xtask dist", binary.display(), file.path)),
    }
}

/// Puts the binary and its generated files where `app/Cargo.toml` names them.
pub(crate) fn stage(binary: &Path) -> Result<(), String> {
    let folder = tree::root().join("target/package");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    for inner in ["man", "completions"] {
        fs::create_dir_all(folder.join(inner)).map_err(failed)?;
    }
    fs::copy(binary, folder.join("millstream")).map_err(failed)?;
    for words in PAGES {
        let name = format!("millstream {words}").trim_end().replace(' ', "-");
        let page = printed(binary, &format!("man {words}"))?;
        fs::write(folder.join("man").join(format!("{name}.8")), page).map_err(failed)?;
    }
    for shell in SHELLS {
        let script = printed(binary, &format!("completions {shell}"))?;
        fs::write(folder.join("completions").join(format!("millstream.{shell}")), script).map_err(failed)?;
    }
    let parts = bill::parts()?;
    fs::write(folder.join("third-party.txt"), bill::notices(&parts)).map_err(failed)?;
    let version = env!("CARGO_PKG_VERSION");
    fs::write(folder.join("millstream.cdx.json"), bill::cyclonedx(&parts, version)).map_err(failed)
}

fn printed(binary: &Path, line: &str) -> Result<Vec<u8>, String> {
    let output = Command::new(binary).args(line.split_whitespace()).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {error}", binary.display()))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("millstream {line}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}
