//! What a check makes on its way, and takes away again: `-t` opens log files and makes directories of caches to see that
//! a start can.
//!
//! Root checks the configuration of a service that runs as another user; a log file of root's that the check left behind
//! would keep that service from its next reload. Only what was not there before goes, and of that nothing that has content.

use std::fs;
use std::path::{Path, PathBuf};

/// Paths that did not exist, nested ones first.
pub struct Traces(Vec<PathBuf>);

impl Traces {
    /// Also looks at the directories above.
    pub fn before<'p>(paths: impl Iterator<Item = &'p Path>) -> Traces {
        let is_missing = |path: &&Path| fs::symlink_metadata(path).is_err();
        let missing = paths.flat_map(|path| path.ancestors().take_while(is_missing));
        let mut missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
        missing.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
        missing.dedup();
        Traces(missing)
    }

    pub fn remove(self) {
        for path in self.0 {
            // What cannot be removed is in use, or was never made.
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => _ = fs::remove_dir(&path),
                Ok(found) if found.is_file() && found.len() == 0 => _ = fs::remove_file(&path),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_made_since_and_is_empty_goes() {
        let folder = tempfile::tempdir().expect("a directory");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old.log"), "").expect("written");
        fs::create_dir(at("old")).expect("made");
        let names = ["old.log", "old/new/deep", "old/new.log", "old/used.log", "never"].map(at);
        let traces = Traces::before(names.iter().map(PathBuf::as_path));
        fs::create_dir_all(at("old/new/deep")).expect("made");
        fs::write(at("old/new.log"), "").expect("written");
        fs::write(at("old/used.log"), "a line\n").expect("written");
        traces.remove();
        assert!(at("old.log").exists() && at("old").exists() && at("old/used.log").exists());
        assert!(!at("old/new").exists() && !at("old/new.log").exists());
    }
}
