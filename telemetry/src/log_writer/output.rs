//! One log file as the writer thread sees it: what is to be written is one vectored write, or one gzip member per block.
//!
//! To a log service each line is a datagram (`datagrams`). It never waits for a reader: what a full pipe or terminal does not take stays here until that can take more. A write
//! that fails drops what waits, counts it and complains at most once a minute; it never stops the thread.
//! Next: nothing below; `thread` calls this.

use crate::about::About;
use crate::error_line::{SystemError, Telling};
use crate::local_time;
use crate::log_writer::datagrams::Datagrams;
use crate::syslog::LogService;
use flate2::Compression;
use flate2::write::GzEncoder;
use millstream_conf::files::{self, Access};
use millstream_conf::model::Level;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

const COMPLAINT_SECONDS: i64 = 60;

/// Of one `writev`; Linux accepts 1,024.
const SLICES: usize = 1024;

/// Bytes that a writable pipe accepts without blocking (`PIPE_BUF`, pipe(7)).
const PIPE_BYTES: usize = 4096;

const MODE: u32 = 0o644;

pub(super) struct Output {
    target: Target,
    /// In order.
    waiting: VecDeque<Piece>,
    is_full: bool,
    /// The file ends within a line, because the disk filled up there.
    is_torn: bool,
    /// Last complaint, in wall seconds.
    complained: Option<i64>,
}

enum Target {
    Stderr,
    File { path: PathBuf, file: File },
    Service(Datagrams),
}

struct Piece {
    bytes: Vec<u8>,
    done: usize,
    /// Bytes of lines before compression.
    charge: usize,
}

#[derive(Default)]
pub(super) struct Outcome {
    pub(super) bytes_written: u64,
    pub(super) bytes_dropped: u64,
    pub(super) errors: u64,
    pub(super) complaints: Vec<(usize, Telling)>,
    pub(super) emptied: Vec<Vec<u8>>,
}

impl Output {
    pub(super) fn stderr() -> Self {
        Output::new(Target::Stderr)
    }

    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = files::append(path, MODE)?;
        Ok(Output::new(Target::File { path: path.to_owned(), file }))
    }

    pub(super) fn service(service: &LogService) -> io::Result<Self> {
        Ok(Output::new(Target::Service(Datagrams::open(service)?)))
    }

    fn new(target: Target) -> Self {
        Output { target, waiting: VecDeque::new(), is_full: false, is_torn: false, complained: None }
    }

    /// Queues blocks of whole lines, and writes as much as the file accepts now. Returns the bytes of lines
    /// that need no more room: written, or dropped.
    pub(super) fn write(
        &mut self,
        slot: usize,
        blocks: Vec<Vec<u8>>,
        gzip: Option<u32>,
        outcome: &mut Outcome,
    ) -> usize {
        if self.is_torn && gzip.is_none() && self.waiting.is_empty() {
            // The rest of a torn line must not swallow the next one.
            self.waiting.push_back(Piece { bytes: b"\n".to_vec(), done: 0, charge: 0 });
        }
        let mut released = 0;
        for block in blocks {
            let charge = block.len();
            let bytes = match gzip.map(|level| compress(&block, level)) {
                None => Ok(block),
                Some(compressed) => {
                    outcome.emptied.push(block);
                    compressed
                }
            };
            match bytes {
                Ok(bytes) => self.waiting.push_back(Piece { bytes, done: 0, charge }),
                Err(error) => {
                    released += charge;
                    outcome.bytes_dropped += charge as u64;
                    self.complain_of(slot, &error, outcome);
                }
            }
        }
        self.is_full = false;
        while !self.waiting.is_empty() {
            match write_some(&self.target, &self.waiting) {
                Ok(0) => return released + self.fail(slot, &ErrorKind::WriteZero.into(), outcome),
                Ok(written) => {
                    self.is_torn = false;
                    released += self.advance(written, outcome);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_full = true;
                    break;
                }
                Err(error) => return released + self.fail(slot, &error, outcome),
            }
        }
        released
    }

    pub(super) fn give_up(&mut self, outcome: &mut Outcome) -> usize {
        let mut released = 0;
        self.is_torn |= self.waiting.front().is_some_and(|piece| piece.done > 0);
        for piece in self.waiting.drain(..) {
            released += piece.charge;
            outcome.bytes_dropped += (piece.charge - piece.done.min(piece.charge)) as u64;
            outcome.emptied.push(piece.bytes);
        }
        self.is_full = false;
        released
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn descriptor<'a>(&'a self, stderr: &'a io::Stderr) -> BorrowedFd<'a> {
        match &self.target {
            Target::Stderr => stderr.as_fd(),
            Target::File { file, .. } => file.as_fd(),
            Target::Service(service) => service.as_fd(),
        }
    }

    /// Continues with the reopened file, or with the old one if that failed. Returns the bytes of lines that
    /// go with a partial line in the old one.
    pub(super) fn change_over(
        &mut self,
        slot: usize,
        next: io::Result<File>,
        outcome: &mut Outcome,
    ) -> usize {
        let Target::File { path, file } = &mut self.target else { return 0 };
        match next {
            Ok(next) => {
                *file = next;
                self.is_torn = false;
            }
            Err(error) => {
                let message = format_args!("open() \"{}\" failed {}", path.display(), SystemError(&error));
                outcome.complaints.push((slot, Telling::new(Level::Emerg, message, About::default())));
                outcome.errors += 1;
                return 0;
            }
        }
        let Some(piece) = self.waiting.pop_front_if(|piece| piece.done > 0) else { return 0 };
        outcome.bytes_dropped += (piece.charge - piece.done.min(piece.charge)) as u64;
        outcome.emptied.push(piece.bytes);
        piece.charge
    }

    fn advance(&mut self, mut written: usize, outcome: &mut Outcome) -> usize {
        let mut released = 0;
        while let Some(piece) = self.waiting.front_mut() {
            let left = piece.bytes.len() - piece.done;
            if written < left {
                piece.done += written;
                break;
            }
            written -= left;
            released += piece.charge;
            outcome.bytes_written += piece.charge as u64;
            outcome.emptied.extend(self.waiting.pop_front().map(|piece| piece.bytes));
        }
        released
    }

    fn fail(&mut self, slot: usize, error: &io::Error, outcome: &mut Outcome) -> usize {
        self.complain_of(slot, error, outcome);
        self.give_up(outcome)
    }

    fn complain_of(&mut self, slot: usize, error: &io::Error, outcome: &mut Outcome) {
        outcome.errors += 1;
        let name = self.name();
        let message = format_args!("write() to \"{name}\" failed {}", SystemError(error));
        if let Some(complaint) = self.complaint(message) {
            outcome.complaints.push((slot, complaint));
        }
    }

    fn name(&self) -> String {
        match &self.target {
            Target::Stderr => "stderr".to_owned(),
            Target::File { path, .. } => path.display().to_string(),
            Target::Service(service) => service.name(),
        }
    }

    /// At most one per minute.
    fn complaint(&mut self, message: fmt::Arguments<'_>) -> Option<Telling> {
        let now = local_time::now().seconds;
        let is_due = self.complained.is_none_or(|then| (now - then).abs() >= COMPLAINT_SECONDS);
        if !is_due {
            return None;
        }
        self.complained = Some(now);
        Some(Telling::new(Level::Alert, message, About::default()))
    }
}

/// After a rotation this is a new file. Runs on the caller's thread: it may have to wait for an opener.
pub(super) fn open_anew(path: &Path) -> io::Result<File> {
    files::append(path, MODE)
}

/// With the rights of this process alone, created with mode 0644. Never waits.
fn open_file(path: &Path) -> io::Result<File> {
    files::open_here(path, Access::Append(MODE))
}

/// The same; without `follows_links`, no link on the way is followed (`disable_symlinks`).
pub(super) fn open_with(path: &Path, follows_links: bool) -> io::Result<File> {
    if follows_links {
        return open_file(path);
    }
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o644);
    Ok(openat2(CWD, path, flags, mode, ResolveFlags::NO_SYMLINKS)?.into())
}

/// One gzip member (RFC 1952 §2.2 allows several), so that a file is complete after each.
fn compress(block: &[u8], level: u32) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level.clamp(1, 9)));
    encoder.write_all(block)?;
    encoder.finish()
}

/// `WouldBlock` if a pipe is full.
fn write_some(target: &Target, waiting: &VecDeque<Piece>) -> io::Result<usize> {
    match target {
        Target::Stderr => {
            // Others may write through the same open file, so it stays as it is: asked first, then little enough.
            let stderr = io::stderr();
            if !is_writable(stderr.as_fd()) {
                return Err(ErrorKind::WouldBlock.into());
            }
            let first = waiting.front().map_or(&[][..], |piece| &piece.bytes[piece.done..]);
            Ok(rustix::io::write(stderr.as_fd(), &first[..first.len().min(PIPE_BYTES)])?)
        }
        Target::File { file, .. } => {
            let pieces = waiting.iter().take(SLICES);
            let slices: Vec<IoSlice<'_>> =
                pieces.map(|piece| IoSlice::new(&piece.bytes[piece.done..])).collect();
            (&*file).write_vectored(&slices)
        }
        Target::Service(service) => {
            service.send_one(waiting.front().map_or(&[][..], |piece| &piece.bytes[piece.done..]))
        }
    }
}

fn is_writable(descriptor: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::new(&descriptor, PollFlags::OUT)];
    !matches!(poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
}
