//! The harness of the scenario tests: it starts the real binary in a directory of its own, plays the client and the
//! API behind, and ends every process it started, by its id.
//!
//! It knows nothing of the product's crates but how frames of HTTP/2 are written: what is tested is what a user can see (bytes, files,
//! exit statuses, signals).
//! `MILLSTREAM_BINARY=/usr/sbin/nginx` runs a scenario against another server with nginx's command line.
//! Read `server` for how a scenario begins; the scenarios are in `tests/scenarios/`. `bench/` uses the same pieces.

pub mod wait;
pub mod ports;
pub mod prefix;
pub mod relay;
pub mod pod;
pub mod process;
pub mod client;
pub mod visitor;
pub mod frames;
pub mod gate;
pub mod name_server;
pub mod origin;
pub mod application;
pub mod collector;
pub mod doctor;
pub mod endless;
pub mod made;
pub mod gunicorn;
pub mod go;
pub mod nginx_clients;
pub mod responder;
pub mod authority;
pub mod signed;
pub mod host;
pub mod http2_clients;
pub mod judges;
pub mod load;
pub mod engine;
pub mod server;
pub mod stampede;
pub mod browser;
pub mod webdriver;
pub mod terminal;
pub mod replay;

use std::path::PathBuf;

/// Contains the seed configurations, the examples and `target`.
pub fn workspace() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("the workspace folder is there")
}

/// Derived from the running test's own path, so that `CARGO_TARGET_DIR` is honoured.
pub fn target_directory() -> PathBuf {
    profile_directory().parent().map_or_else(|| workspace().join("target"), PathBuf::from)
}

/// `target/debug` or `target/release`, whichever the running program was built into.
pub fn profile_directory() -> PathBuf {
    let program = std::env::current_exe().expect("a running program has a path");
    let mut folder = program.parent().map(PathBuf::from).unwrap_or_default();
    if folder.ends_with("deps") {
        folder.pop();
    }
    folder
}
