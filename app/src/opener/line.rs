//! The serving process's end: what it may not do itself it asks for.
//!
//! Questions are put by the main thread and by that which follows certificates; no request waits for one. Before: `asked`; next: `keeper`.

use super::asked::{Ask, Reply, SentError, WORDS};
use millstream_conf::files::{Access, Opener};
use millstream_net::channel::Channel;
use millstream_net::file_watch::{FileWatch, Unwatched, Watcher};
use millstream_net::systemd::Word;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The way to the opener.
#[derive(Debug, Clone)]
pub struct OpenerLine(Arc<Mutex<Channel>>);

/// That of this process, where it has an opener.
static LINE: OnceLock<OpenerLine> = OnceLock::new();

impl OpenerLine {
    /// It, for this whole process from now on.
    pub fn open(channel: Channel) -> OpenerLine {
        let line = OpenerLine(Arc::new(Mutex::new(channel)));
        _ = LINE.set(line.clone());
        line
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// What the opener says; it is gone.
    pub fn ask(&self, question: &Ask) -> io::Result<(Reply, Vec<OwnedFd>)> {
        let bytes = serde_json::to_vec(question)?;
        let channel = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        channel.send(&bytes)?;
        let Some((bytes, files)) = channel.receive()? else {
            return Err(io::Error::other("the opener has ended"));
        };
        drop(channel);
        match serde_json::from_slice(&bytes)? {
            Reply::Failed(failure) => Err(failure.into()),
            reply => Ok((reply, files)),
        }
    }

    /// Tells the service manager.
    pub fn say(&self, word: Word) {
        let number = WORDS.iter().position(|known| *known == word);
        // Where the opener is gone nobody is left to hear it.
        _ = number.map(|number| self.ask(&Ask::Say(number)));
    }
}

impl Opener for OpenerLine {
    fn open(&self, path: &Path, access: Access) -> io::Result<File> {
        let mode = match access {
            Access::Read => None,
            Access::Append(mode) => Some(mode),
        };
        let (_, files) = self.ask(&Ask::Open(path.to_path_buf(), mode))?;
        let file = files.into_iter().next().ok_or(io::ErrorKind::InvalidData)?;
        Ok(file.into())
    }

    fn matches(&self, pattern: &str) -> Vec<PathBuf> {
        match self.ask(&Ask::Matches(pattern.to_owned())) {
            Ok((Reply::Paths(paths), _)) => paths,
            _ => Vec::new(),
        }
    }
}

impl Watcher for OpenerLine {
    fn follow(&mut self, files: &[PathBuf]) -> Result<(), Unwatched> {
        match self.ask(&Ask::Follow(files.to_vec())) {
            Ok((Reply::Unwatched(directory, failure), _)) => Err((directory, failure.into())),
            Ok(_) => Ok(()),
            Err(error) => Err((files.first().cloned().unwrap_or_default(), error)),
        }
    }
}

/// A watch on files that the configuration names, by who may look at them.
///
/// # Errors
/// The system gives none.
pub fn file_watch() -> io::Result<FileWatch> {
    let Some(line) = LINE.get() else { return FileWatch::new() };
    let (_, files) = line.ask(&Ask::Watch)?;
    let pipe = files.into_iter().next().ok_or(io::ErrorKind::InvalidData)?;
    FileWatch::through(pipe, Box::new(line.clone()))
}

/// What failed, for a message.
pub fn failures<T>(list: impl IntoIterator<Item = (T, io::Error)>) -> Vec<(T, SentError)> {
    list.into_iter().map(|(what, error)| (what, SentError::from(&error))).collect()
}
