//! Which configuration is meant: `-c` and `-p` as nginx reads them, and where packages put the file.
//!
//! Looks at which files exist and opens none. Next: `cli`, whose commands have these options.

use millstream_conf::load::Options;
use std::path::{Path, PathBuf};

/// The configuration below the prefix without `-c`: nginx's place, then that of packages.
pub(super) const DEFAULT_FILES: [&str; 2] = ["conf/nginx.conf", "nginx.conf"];

/// The prefix without `-p`.
pub(super) const DEFAULT_PREFIX: &str = "/etc/millstream/";

pub(super) fn options(prefix: &Path, configuration: PathBuf, globals: Option<String>) -> Options {
    let working = std::env::current_dir().unwrap_or_default();
    let prefix = working.join(prefix);
    let main_file = main_file(&prefix, &working, configuration);
    Options { main_file, prefix, globals, error_log: None, lenient: false }
}

/// A relative path starts at the prefix.
fn main_file(prefix: &Path, working: &Path, configuration: PathBuf) -> PathBuf {
    if prefix.join(&configuration).exists() {
        return configuration;
    }
    let [default, packaged] = DEFAULT_FILES;
    if configuration == Path::new(default) && prefix.join(packaged).exists() {
        return packaged.into();
    }
    // nginx takes -c from the working directory's point of view only through the prefix; so do we, but for a name
    // that exists here and not there, which is what a person at a terminal means.
    let given_here = working.join(&configuration);
    if given_here.exists() { given_here } else { configuration }
}
