//! The pid file: written after the listeners are open, renamed during an upgrade, removed at the end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The pid file of this process; removed when dropped.
pub struct PidFile {
    path: PathBuf,
    replaced: bool,
}

impl PidFile {
    /// Writes this process's id, and a newline, to a file. An empty path writes none.
    ///
    /// # Errors
    /// Those of creating the file and its directory.
    pub fn write(path: &Path) -> io::Result<Self> {
        if !path.as_os_str().is_empty() {
            if let Some(directory) = path.parent() {
                fs::create_dir_all(directory)?;
            }
            fs::write(path, format!("{}\n", std::process::id()))?;
        }
        Ok(PidFile { path: path.to_path_buf(), replaced: false })
    }

    /// The file's present name.
    pub fn path(&self) -> PathBuf {
        if self.replaced { old(&self.path) } else { self.path.clone() }
    }

    /// Makes room for the next process's file: ours becomes `….oldbin`.
    pub fn step_aside(&mut self) -> io::Result<()> {
        fs::rename(&self.path, old(&self.path))?;
        self.replaced = true;
        Ok(())
    }

    /// The next process is gone: ours gets its name back.
    pub fn step_back(&mut self) -> io::Result<()> {
        fs::rename(old(&self.path), &self.path)?;
        self.replaced = false;
        Ok(())
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let path = self.path();
        let ours = fs::read_to_string(&path).is_ok_and(|text| text.trim() == std::process::id().to_string());
        if ours {
            // Nothing can be done about a file that will not go.
            _ = fs::remove_file(path);
        }
    }
}

fn old(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".oldbin");
    PathBuf::from(name)
}

/// Reads the id in a pid file.
pub fn read(path: &Path) -> io::Result<i32> {
    let text = fs::read_to_string(path)?;
    text.trim().parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it holds no process id"))
}
