//! The serving process's end: what it may not do itself it asks for.
//!
//! Questions are put by the main thread and by that which follows certificates; no request waits for one. Before: `asked`; next: `keeper`.

use super::asked::{Ask, END, Reply, SentError, WORDS};
use millstream_conf::files::{Access, Opener};
use millstream_net::channel::{Channel, LONGEST};
use millstream_net::file_watch::{FileWatch, Unwatched, Watcher};
use millstream_net::systemd::Word;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

#[derive(Debug, Clone)]
pub struct OpenerLine(Arc<Mutex<Channel>>);

/// Set if this process has an opener.
static LINE: OnceLock<OpenerLine> = OnceLock::new();

impl OpenerLine {
    pub fn open(channel: Channel) -> OpenerLine {
        let line = OpenerLine(Arc::new(Mutex::new(channel)));
        _ = LINE.set(line.clone());
        line
    }

    pub fn ask(&self, question: &Ask) -> io::Result<(Reply, Vec<OwnedFd>)> {
        let channel = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let put = |question: &Ask| {
            channel.send(&serde_json::to_vec(question)?)?;
            channel.receive()?.ok_or_else(|| io::Error::other("the opener process has exited"))
        };
        let (mut bytes, files) = put(question)?;
        while bytes.last() != Some(&END) {
            bytes.extend(put(&Ask::Rest)?.0);
        }
        drop(channel);
        match serde_json::from_slice(&bytes)? {
            Reply::Failed(failure) => Err(failure.into()),
            reply => Ok((reply, files)),
        }
    }

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

    fn matches(&self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        match self.ask(&Ask::Matches(pattern.to_owned()))?.0 {
            Reply::Paths(paths) => Ok(paths),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

impl Watcher for OpenerLine {
    fn follow(&mut self, files: &[PathBuf]) -> Result<(), Unwatched> {
        let mut rest = files;
        loop {
            let (now, later) = rest.split_at(fitting(rest));
            match self.ask(&Ask::Follow(now.to_vec(), later.is_empty())) {
                Ok((Reply::Unwatched(directory, failure), _)) => return Err((directory, failure.into())),
                Ok(_) if later.is_empty() => return Ok(()),
                Ok(_) => rest = later,
                Err(error) => return Err((now.first().cloned().unwrap_or_default(), error)),
            }
        }
    }
}

fn fitting(paths: &[PathBuf]) -> usize {
    // JSON makes six bytes of a control character at most; quotes and a comma are around each path.
    let longest = |path: &PathBuf| 6 * path.as_os_str().len() + 3;
    let room = LONGEST - 64;
    let fits = paths.iter().scan(0, |sum, path| {
        *sum += longest(path);
        Some(*sum)
    });
    fits.take_while(|sum| *sum <= room).count().max(1).min(paths.len())
}

pub fn file_watch() -> io::Result<FileWatch> {
    let Some(line) = LINE.get() else { return FileWatch::new() };
    let (_, files) = line.ask(&Ask::Watch)?;
    let pipe = files.into_iter().next().ok_or(io::ErrorKind::InvalidData)?;
    FileWatch::through(pipe, Box::new(line.clone()))
}

pub fn failures<T>(list: impl IntoIterator<Item = (T, io::Error)>) -> Vec<(T, SentError)> {
    list.into_iter().map(|(what, error)| (what, SentError::from(&error))).collect()
}
