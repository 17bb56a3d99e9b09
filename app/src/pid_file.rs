//! The pid file: written after the listeners are open, renamed during an upgrade, removed at the end.

use rustix::process::{Pid, test_kill_process};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// The pid file of this process; removed when dropped.
#[derive(Debug)]
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

    /// The file's present name; empty where there is none.
    pub fn path(&self) -> PathBuf {
        if self.replaced { old(&self.path) } else { self.path.clone() }
    }

    /// Makes room for the next process's file: ours becomes `….oldbin`.
    ///
    /// # Errors
    /// Those of renaming, and where the process that this one took over from still has that name.
    pub fn step_aside(&mut self) -> io::Result<()> {
        if self.path.as_os_str().is_empty() {
            return Ok(());
        }
        let aside = old(&self.path);
        if read(&aside).is_ok_and(|pid| pid != own_id() && is_running(pid)) {
            return Err(io::Error::other("the process before this one has not quit yet"));
        }
        fs::rename(&self.path, aside)?;
        self.replaced = true;
        Ok(())
    }

    /// The next process is gone: ours gets its name back. Does nothing where it has it.
    ///
    /// # Errors
    /// Those of renaming.
    pub fn step_back(&mut self) -> io::Result<()> {
        if self.replaced {
            fs::rename(old(&self.path), &self.path)?;
            self.replaced = false;
        }
        Ok(())
    }

    /// A reload names another file: that one is written, then the old one removed.
    ///
    /// # Errors
    /// Those of [`PidFile::write`]; the old file then stays.
    pub fn move_to(&mut self, path: &Path) -> io::Result<()> {
        if path != self.path {
            *self = PidFile::write(path)?;
        }
        Ok(())
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let path = self.path();
        if read(&path).is_ok_and(|pid| pid == own_id()) {
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

fn own_id() -> i32 {
    std::process::id().cast_signed()
}

fn is_running(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Reads the id in a pid file.
///
/// # Errors
/// Those of reading, and where it does not hold one positive number.
pub fn read(path: &Path) -> io::Result<i32> {
    let text = fs::read_to_string(path)?;
    let pid = text.trim().parse().ok().filter(|&pid| pid > 0);
    pid.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it holds no process id"))
}
