//! One log file as the writer thread sees it: a batch becomes one vectored write, or one gzip member per block.
//!
//! A write that fails drops its batch, counts it and complains at most once a minute; it never stops the thread.
//! Next: nothing below; `queue` calls this.

use crate::error_line::{self, SystemError};
use crate::local_time;
use flate2::Compression;
use flate2::write::GzEncoder;
use millstream_conf::model::Level;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Seconds between two complaints about one file.
const COMPLAINT_SECONDS: i64 = 60;

/// The longest wait for a full pipe or terminal that somebody set to non-blocking.
const FULL_PIPE_WAIT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Slices handed to one `writev`; Linux takes 1,024.
const SLICES: usize = 1024;

/// User and group id that reopened files are given to, where one is named.
pub(super) type Owner = Option<(u32, u32)>;

/// An open log.
pub(super) struct Output {
    target: Target,
    /// The file ends within a line, because the disk filled up there.
    is_torn: bool,
    /// When the last complaint was made, in wall seconds.
    complained: Option<i64>,
    /// The path opened anew, until what is queued for the old file is written.
    next: Option<io::Result<File>>,
}

enum Target {
    Stderr,
    File { path: PathBuf, file: File },
}

/// What became of a round over all files.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) bytes_written: u64,
    pub(super) bytes_dropped: u64,
    pub(super) errors: u64,
    /// Lines for the error log, with the slot that they are about.
    pub(super) complaints: Vec<(usize, Vec<u8>)>,
}

impl Output {
    pub(super) fn stderr() -> Self {
        Output { target: Target::Stderr, is_torn: false, complained: None, next: None }
    }

    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = open_file(path)?;
        Ok(Output {
            target: Target::File { path: path.to_owned(), file },
            is_torn: false,
            complained: None,
            next: None,
        })
    }

    /// Writes blocks of whole lines.
    pub(super) fn write(
        &mut self,
        slot: usize,
        blocks: &[Vec<u8>],
        gzip: Option<u32>,
        outcome: &mut Outcome,
    ) {
        let bytes = blocks.iter().map(|block| block.len() as u64).sum::<u64>();
        let result = match gzip {
            Some(level) => compress(blocks, level).map_or_else(
                |error| Err((0, error)),
                |members| write_all(&self.target, [IoSlice::new(&members)].into_iter()),
            ),
            None => {
                // The rest of a torn line must not swallow the next one.
                let newline: &[u8] = if self.is_torn { b"\n" } else { b"" };
                let slices = blocks.iter().map(|block| IoSlice::new(block));
                write_all(&self.target, std::iter::once(IoSlice::new(newline)).chain(slices))
            }
        };
        match result {
            Ok(()) => {
                self.is_torn = false;
                outcome.bytes_written += bytes;
            }
            Err((written, error)) => {
                self.is_torn |= written > 0;
                outcome.bytes_dropped += bytes.saturating_sub(written as u64);
                let path = self.path().to_owned();
                let message =
                    format_args!("write() to \"{}\" failed {}", path.display(), SystemError(&error));
                if let Some(line) = self.complaint(message) {
                    outcome.complaints.push((slot, line));
                }
                outcome.errors += 1;
            }
        }
    }

    /// Opens the path again, which after a rotation is a new file. The caller does that, not the writer: its thread
    /// may have kept the right to make files in a directory of root's.
    pub(super) fn open_anew(&mut self, owner: Owner) {
        let Target::File { path, .. } = &self.target else { return };
        self.next = Some(open_file(path).and_then(|file| give(&file, owner).map(|()| file)));
    }

    /// Goes on with the file that was opened anew. Where that failed the old one stays in use.
    pub(super) fn change_over(&mut self, slot: usize, outcome: &mut Outcome) {
        let Target::File { path, file } = &mut self.target else { return };
        match self.next.take() {
            None => {}
            Some(Ok(next)) => {
                *file = next;
                self.is_torn = false;
            }
            Some(Err(error)) => {
                let message = format_args!("open() \"{}\" failed {}", path.display(), SystemError(&error));
                outcome.complaints.push((slot, error_line::line(Level::Emerg, message)));
                outcome.errors += 1;
            }
        }
    }

    fn path(&self) -> &Path {
        match &self.target {
            Target::Stderr => Path::new("stderr"),
            Target::File { path, .. } => path,
        }
    }

    /// The line to complain with, unless one was made within the minute.
    fn complaint(&mut self, message: fmt::Arguments<'_>) -> Option<Vec<u8>> {
        let now = local_time::now().seconds;
        let is_due = self.complained.is_none_or(|then| (now - then).abs() >= COMPLAINT_SECONDS);
        if !is_due {
            return None;
        }
        self.complained = Some(now);
        Some(error_line::line(Level::Alert, message))
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o644).open(path)
}

/// Hands a regular file to another user, so that a process that gave up root can open it again.
fn give(file: &File, owner: Owner) -> io::Result<()> {
    let Some((user, group)) = owner else { return Ok(()) };
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    std::os::unix::fs::fchown(file, Some(user), Some(group))
}

/// One gzip member per block (RFC 1952 §2.2 lets members follow each other), so that a file is whole after each.
fn compress(blocks: &[Vec<u8>], level: u32) -> io::Result<Vec<u8>> {
    let mut members = Vec::new();
    for block in blocks {
        let mut encoder = GzEncoder::new(members, Compression::new(level.clamp(1, 9)));
        encoder.write_all(block)?;
        members = encoder.finish()?;
    }
    Ok(members)
}

/// Writes everything, in one call where the system takes it. On an error says how many bytes went before.
fn write_all<'a>(
    target: &Target,
    slices: impl Iterator<Item = IoSlice<'a>>,
) -> Result<(), (usize, io::Error)> {
    let mut slices: Vec<IoSlice<'_>> = slices.filter(|slice| !slice.is_empty()).collect();
    let mut slices = slices.as_mut_slice();
    let mut total = 0;
    while !slices.is_empty() {
        match write_some(target, &slices[..slices.len().min(SLICES)]) {
            Ok(0) => return Err((total, ErrorKind::WriteZero.into())),
            Ok(written) => {
                total += written;
                IoSlice::advance_slices(&mut slices, written);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if !wait_writable(target) {
                    return Err((total, error));
                }
            }
            Err(error) => return Err((total, error)),
        }
    }
    Ok(())
}

fn write_some(target: &Target, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    match target {
        Target::Stderr => io::stderr().write_vectored(slices),
        Target::File { file, .. } => (&*file).write_vectored(slices),
    }
}

/// Waits for a pipe's reader; false where it does not come.
fn wait_writable(target: &Target) -> bool {
    let stderr = io::stderr();
    let descriptor = match target {
        Target::Stderr => stderr.as_fd(),
        Target::File { file, .. } => file.as_fd(),
    };
    let mut polled = [PollFd::new(&descriptor, PollFlags::OUT)];
    !matches!(poll(&mut polled, Some(&FULL_PIPE_WAIT)), Ok(0))
}
