//! The workspace's files, as the checks see them: paths relative to its folder, sorted, without what is built or fetched.

use std::fs;
use std::path::{Path, PathBuf};

const SKIPPED: &[&str] = &["target", ".git", "node_modules", "venv", "corpus", "artifacts"];

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

pub(crate) struct File {
    /// Relative to the workspace, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// The crate's folder.
    pub(crate) fn top(&self) -> &str {
        self.path.split('/').next().unwrap_or_default()
    }

    pub(crate) fn is_test(&self) -> bool {
        self.top() == "tests"
            || self.path.ends_with("/tests.rs")
            || self.path.split('/').any(|part| part == "tests" || part == "testing")
    }
}

/// All text files, by extension.
pub(crate) fn files() -> Vec<File> {
    let mut found = Vec::new();
    collect(&root(), "", &mut found);
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<File>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if !SKIPPED.contains(&name.as_str()) {
                collect(&entry.path(), &format!("{path}/"), found);
            }
        } else if is_text(&path)
            && let Ok(text) = fs::read_to_string(entry.path())
        {
            found.push(File { path, text });
        }
    }
}

fn is_text(path: &str) -> bool {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    matches!(
        extension,
        "rs" | "md" | "toml" | "conf" | "cfg" | "vcl" | "py" | "sh" | "txt" | "html" | "js" | "css" | "yml"
    ) || path == ".ci/run"
}
