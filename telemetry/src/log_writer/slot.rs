//! One file as the queue sees it: what waits for it, in order and within its bound, and how its writer stands with it.
//!
//! Before: `named`, lines whose files requests name; next: `queue`, which has all of them behind the lock.

use super::Handle;
use super::named::{Named, NamedLine, Open};
use super::{FILE_BYTES, QUEUE_BYTES};
use crate::syslog::LogService;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Weak;

/// Size in bytes of a block of lines, the unit that is recycled.
const BLOCK: usize = 32 << 10;

/// Larger buffers are freed instead of reused.
const SPARE_CAPACITY: usize = 256 << 10;

const SPARE_BUFFERS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Stderr,
    File(PathBuf),
    Service(LogService),
    Group,
}

/// One file, or a group of files named by their lines.
pub(super) struct Slot {
    pub(super) place: Place,
    pub(super) gzip: Option<u32>,
    pub(super) queue: Queue,
    /// Queued or being written.
    pub(super) bytes: usize,
    /// Lines dropped since the complaint, while there is no room.
    pub(super) dropping: Option<u64>,
    pub(super) opened: Option<Open>,
    /// The files of the group must be reopened.
    pub(super) renews: bool,
    pub(super) next: Option<io::Result<File>>,
    pub(super) flow: Flow,
    pub(super) handle: Weak<Handle>,
    pub(super) is_closing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Open,
    /// A pipe or terminal that accepts no more at present; its last batch waits with the writer.
    Full,
    /// It was full and accepts more now.
    Again,
}

#[derive(Default)]
pub(super) struct Queue {
    pub(super) blocks: Vec<Vec<u8>>,
    pub(super) named: Vec<Named>,
}

#[derive(Default)]
pub(super) struct Spare(Vec<Vec<u8>>);

pub(super) enum Sent<'a> {
    Block(Vec<u8>),
    Line(&'a [u8]),
    Named(NamedLine<'a>),
}

impl Sent<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Sent::Block(block) => block,
            Sent::Line(line) | Sent::Named(NamedLine { line, .. }) => line,
        }
    }

    pub(super) fn charge(&self) -> usize {
        let names = match self {
            Sent::Named(NamedLine { path, root, .. }) => path.as_os_str().len() + root.as_os_str().len(),
            _ => 0,
        };
        self.bytes().len() + names
    }
}

impl Queue {
    pub(super) fn put(&mut self, sent: Sent<'_>, spare: &mut Spare) {
        let charge = sent.charge();
        match sent {
            Sent::Named(line) => self.append_named(line, charge),
            Sent::Line(line) => self.append(line, spare),
            Sent::Block(block) if block.is_empty() => spare.give(block),
            Sent::Block(block) => self.blocks.push(block),
        }
    }

    fn append_named(&mut self, NamedLine { path, root, follows_links, line }: NamedLine<'_>, charge: usize) {
        match self.named.last_mut() {
            Some(last) if last.path == path && last.root == root && last.follows_links == follows_links => {
                last.lines.extend_from_slice(line);
                last.charge += charge;
            }
            _ => {
                let (path, root, lines) = (path.to_owned(), root.to_owned(), line.to_vec());
                self.named.push(Named { path, root, follows_links, lines, charge });
            }
        }
    }

    /// Appends to the last block while it has room, so that many lines become one write.
    pub(super) fn append(&mut self, line: &[u8], spare: &mut Spare) {
        match self.blocks.last_mut() {
            Some(last) if last.len() + line.len() <= BLOCK => last.extend_from_slice(line),
            _ => {
                let mut block = spare.take();
                block.extend_from_slice(line);
                self.blocks.push(block);
            }
        }
    }
}

impl Spare {
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    pub(super) fn give(&mut self, mut buffer: Vec<u8>) {
        if self.0.len() < SPARE_BUFFERS && (1..=SPARE_CAPACITY).contains(&buffer.capacity()) {
            buffer.clear();
            self.0.push(buffer);
        }
    }
}

impl Slot {
    pub(super) fn new(place: Place, gzip: Option<u32>, open: Open, handle: Weak<Handle>) -> Slot {
        Slot {
            place,
            gzip,
            queue: Queue::default(),
            bytes: 0,
            dropping: None,
            opened: Some(open),
            renews: false,
            next: None,
            flow: Flow::Open,
            handle,
            is_closing: false,
        }
    }

    pub(super) fn has_work(&self) -> bool {
        let has_lines = match self.flow {
            Flow::Open => !self.queue.blocks.is_empty() || !self.queue.named.is_empty(),
            Flow::Full => false,
            Flow::Again => true,
        };
        has_lines || self.is_closing || self.is_reopening()
    }

    pub(super) fn is_reopening(&self) -> bool {
        self.next.is_some() || self.renews
    }

    pub(super) fn has_room(&self, length: usize, total: usize) -> bool {
        self.bytes == 0 || (self.bytes + length <= FILE_BYTES && total + length <= QUEUE_BYTES)
    }

    pub(super) fn name(&self) -> String {
        match &self.place {
            Place::Stderr => "stderr".to_owned(),
            Place::File(path) => path.display().to_string(),
            Place::Service(LogService::Udp(address)) => address.to_string(),
            Place::Service(LogService::Unix(path)) => path.display().to_string(),
            Place::Group => "access_log with variables".to_owned(),
        }
    }
}
