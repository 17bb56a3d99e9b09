//! What the opener does when it is asked.
//!
//! A question comes from a process that may be taken over by now: it names no path that the configuration does not, and asks for nothing that no signal
//! asked for. Before: `asked`.

use super::asked::{Ask, END, Reply, SentError, WORDS};
use super::{Opener, Served, folders, line, pipe};
use crate::office;
use millstream_conf::files::{self, Access};
use millstream_conf::include::pattern;
use millstream_net::channel::{LONGEST, MOST_FILES};
use millstream_net::file_watch::Watched;
use millstream_net::listener::OpenError;
use millstream_net::systemd::{self, Word};
use millstream_net::{Address, guarded_path};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

impl Opener {
    /// `false` if the connection has ended.
    pub(super) fn answer_one(&mut self, served: &Served) -> bool {
        let Ok(Some((bytes, _))) = served.channel.receive() else { return false };
        let Ok(question) = serde_json::from_slice(&bytes) else { return false };
        let mut passed = Vec::new();
        if !matches!(question, Ask::Rest) {
            let answered = self.answer(question, &mut passed).and_then(|reply| message(&reply));
            let failed = |error| message(&Reply::Failed(SentError::from(&error)));
            let Ok(bytes) = answered.or_else(failed) else { return false };
            self.unsent = bytes;
        }
        let passed: Vec<_> = passed.iter().map(AsFd::as_fd).collect();
        let later = self.unsent.split_off(self.unsent.len().min(LONGEST));
        let now = std::mem::replace(&mut self.unsent, later);
        served.channel.send_at_once(&now, &passed).is_ok()
    }

    pub(super) fn answer(&mut self, question: Ask, passed: &mut Vec<OwnedFd>) -> io::Result<Reply> {
        match question {
            Ask::Open(path, None) => {
                self.check(&path, Access::Read)?;
                passed.push(guarded_path::open(&path, Some(self.owner()))?.into());
            }
            Ask::Open(path, Some(mode)) => {
                self.check(&path, Access::Append(mode))?;
                passed.push(guarded_path::append(&path, mode & 0o666, Some(self.owner()))?.into());
            }
            Ask::Matches(wanted) => {
                if !self.lists().any(|named| named.has_pattern(&wanted)) {
                    return Err(unnamed());
                }
                return Ok(Reply::Paths(pattern::matches_through(&wanted, guarded_path::names)));
            }
            // It is no question of its own.
            Ask::Rest => return Err(io::ErrorKind::InvalidData.into()),
            Ask::Load => self.load()?,
            Ask::Listen => return self.listen(),
            Ask::Sockets(number, from) => {
                let listening = self.office.listenings().get(number).ok_or(io::ErrorKind::NotFound)?;
                for socket in listening.descriptors().skip(from).take(MOST_FILES) {
                    passed.push(socket.try_clone_to_owned()?);
                }
            }
            Ask::Enter => self.enter()?,
            Ask::Upgrade => {
                if !std::mem::take(&mut self.due.upgrade) {
                    return Err(unasked());
                }
                return self.office.upgrade().map(Reply::Process);
            }
            Ask::Reap => return Ok(Reply::Text(self.due.end.take())),
            Ask::Leave => {
                if !self.is_stopping {
                    return Err(unasked());
                }
                self.office.leave();
            }
            Ask::Say(number) => match WORDS.get(number) {
                Some(Word::Stopping) if self.office.has_next() || !self.is_stopping => {}
                Some(word) => systemd::say(*word),
                None => return Err(io::ErrorKind::InvalidData.into()),
            },
            Ask::Watch => {
                let (reader, writer) = pipe()?;
                self.watched = Some((Watched::nothing()?, writer));
                passed.push(reader);
            }
            Ask::Follow(files, is_last) => return self.follow(files, is_last),
        }
        Ok(Reply::Done)
    }

    /// What may be opened: what the configurations in force and last read name.
    fn lists(&self) -> impl Iterator<Item = &files::Named> {
        std::iter::once(&self.named).chain(self.read.as_ref().map(|(_, named)| named))
    }

    fn check(&self, path: &Path, access: Access) -> io::Result<()> {
        if self.lists().any(|named| named.has(path, access)) { Ok(()) } else { Err(unnamed()) }
    }

    /// Errors are left to the other process, which reads it too.
    fn load(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.due.reload) {
            return Err(unasked());
        }
        let mut configuration = self.office.load().configuration;
        if let Some(configuration) = &mut configuration {
            folders::prepare(configuration, self.owner());
        }
        self.read = Some((configuration, files::named()));
        Ok(())
    }

    fn listen(&mut self) -> io::Result<Reply> {
        let Some((Some(configuration), named)) = self.read.take() else { return Err(unasked()) };
        let failures =
            |errors: Vec<OpenError>| line::failures(errors.into_iter().map(|one| (one.index, one.error)));
        match self.office.listen(&configuration) {
            Ok(listened) => {
                let text = |listening: &std::sync::Arc<millstream_net::listener::Listening>| {
                    Address::from(listening.address()).to_string()
                };
                let addresses = listened.listenings.iter().map(text).collect();
                let (missing, has_left) = (failures(listened.missing), listened.has_left);
                (self.configuration, self.named) = (configuration, named);
                Ok(Reply::Listened { addresses, missing, has_left })
            }
            Err(errors) => {
                self.read = Some((Some(configuration), named));
                Ok(Reply::Refused(failures(errors)))
            }
        }
    }

    fn enter(&mut self) -> io::Result<()> {
        let main = &self.configuration.main;
        self.office.enter(&main.pid)?;
        if self.is_daemon && !self.has_begun {
            let owner = Some(self.owner());
            if office::take_stderr(main, |path| guarded_path::append(path, 0o644, owner)).is_err() {
                // Whoever started us may wait for the end of it.
                let null = OpenOptions::new().write(true).open("/dev/null");
                _ = null.and_then(millstream_net::daemon::redirect_stderr);
            }
        }
        self.has_begun = true;
        Ok(())
    }

    /// Adds files to watch; no more than the configuration names.
    fn follow(&mut self, files: Vec<PathBuf>, is_last: bool) -> io::Result<Reply> {
        let mut all = std::mem::take(&mut self.to_follow);
        files.iter().try_for_each(|path| self.check(path, Access::Read))?;
        all.extend(files);
        if !is_last {
            self.to_follow = all;
            return Ok(Reply::Done);
        }
        let Some((watched, _)) = &mut self.watched else { return Err(unasked()) };
        match watched.follow(all.iter().map(PathBuf::as_path)) {
            Ok(()) => Ok(Reply::Done),
            Err((directory, error)) => Ok(Reply::Unwatched(directory, SentError::from(&error))),
        }
    }
}

fn message(reply: &Reply) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(reply)?;
    bytes.push(END);
    Ok(bytes)
}

fn unnamed() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "the configuration that was read as root does not name it",
    )
}

fn unasked() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "the process in the pid file received no signal for this")
}
