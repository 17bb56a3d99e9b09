//! Writes an entry's file: under a temporary name, then renamed, so that nobody ever reads half of one.
//!
//! A small answer is written when it is whole; a large one goes to its temporary file while it arrives. A write that
//! fails removes what it made, is counted, and costs the answer nothing. Next: `store`, which decides what is written.

use super::place::Name;
use super::{Disk, Identity, private, second};
use crate::body::FileBody;
use crate::file_format::{BlockChecksums, FIXED, FileHeader};
use crate::now::Now;
use bytes::Bytes;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A file being written; removed unless it is committed.
#[derive(Debug)]
pub(crate) struct Spool {
    pub(crate) file: Arc<File>,
    path: Option<PathBuf>,
    header: FileHeader,
    sums: BlockChecksums,
    /// Written after everything else.
    coded: Vec<u8>,
}

impl Spool {
    pub(crate) fn body_offset(&self) -> u64 {
        self.header.body_offset()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.header.epoch
    }

    pub(crate) fn length(&self) -> u64 {
        self.header.body_length
    }

    /// Blocks.
    pub(crate) fn write(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        for piece in pieces {
            self.file.write_all_at(piece, self.header.body_offset() + self.header.body_length)?;
            self.sums.update(piece);
            self.header.body_length += piece.len() as u64;
        }
        Ok(())
    }

    /// The coded bodies of the plain one, see `file_format`.
    pub(crate) fn set_coded(&mut self, coded: Vec<u8>) {
        // They are made of bodies in memory, which are far below 4 GiB; too much of it is left out.
        self.header.coded_length = u32::try_from(coded.len()).unwrap_or(0);
        self.header.coded_checksum = crc32fast::hash(&coded);
        self.coded = coded;
    }

    /// Writes table, coded bodies and header, which completes the file.
    fn seal(&mut self) -> io::Result<()> {
        let (table, checksum) = std::mem::take(&mut self.sums).finish();
        self.header.table_checksum = checksum;
        self.file.write_all_at(&table, self.header.body_offset() + self.header.body_length)?;
        if let Some(at) = self.header.coded_offset().filter(|_| self.header.coded_length > 0) {
            self.file.write_all_at(&self.coded, at)?;
        }
        self.file.write_all_at(&self.header.encode(), 0)
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            // One that cannot be removed now is removed at the next start.
            let _ = fs::remove_file(path);
        }
    }
}

impl Disk {
    /// `expected` is the length of the body if known. Blocks.
    pub(crate) fn begin(&self, head: &[u8], identity: Identity, expected: u64) -> Option<Spool> {
        if !self.kept.make_room(expected) {
            return None;
        }
        match self.try_begin(head, identity) {
            Ok(spool) => Some(spool),
            Err(error) => {
                self.write_failed(&error);
                None
            }
        }
    }

    fn try_begin(&self, head: &[u8], identity: Identity) -> io::Result<Spool> {
        let path = self.temporary_name(&self.temporary);
        let file = private::file(&path).or_else(|error| {
            // The directory may have been removed beneath us.
            if error.kind() != io::ErrorKind::NotFound {
                return Err(error);
            }
            private::directory(&self.temporary)?;
            private::file(&path)
        })?;
        let spool = Spool {
            file: Arc::new(file),
            path: Some(path),
            header: FileHeader {
                id: identity.id,
                epoch: identity.epoch,
                born: identity.born,
                head_length: u32::try_from(head.len())
                    .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?,
                head_checksum: crc32fast::hash(head),
                body_length: 0,
                table_checksum: 0,
                coded_length: 0,
                coded_checksum: 0,
            },
            sums: BlockChecksums::default(),
            coded: Vec::new(),
        };
        spool.file.write_all_at(head, FIXED as u64)?;
        Ok(spool)
    }

    /// False, and the failure counted, if the disk refuses. Blocks.
    pub(crate) fn append(&self, spool: &mut Spool, pieces: &[Bytes]) -> bool {
        let written = spool.write(pieces);
        if let Err(error) = &written {
            self.write_failed(error);
        }
        written.is_ok()
    }

    /// Names a file, unless a newer one has the name or `is_current` is false. `order` is the entry's, `key`
    /// the hash of its key. Blocks.
    pub(crate) fn commit(
        &self,
        mut spool: Spool,
        name: &Name,
        (order, key): (u64, u64),
        now: Now,
        is_current: impl FnOnce() -> bool,
    ) -> Option<FileBody> {
        let size = spool.header.file_length().unwrap_or(u64::MAX);
        if !self.kept.make_room(size) {
            return None;
        }
        let path = self.path(name);
        let _stripe = self.kept.hold(name);
        if !is_current() || self.kept.index.order(name).is_some_and(|newest| newest > order) {
            return None;
        }
        let named = spool.seal().and_then(|()| {
            let temporary = spool.path.as_ref().ok_or(io::ErrorKind::NotFound)?;
            self.rename(temporary, name, &path)
        });
        if let Err(error) = named {
            self.write_failed(&error);
            return None;
        }
        spool.path = None;
        self.failing.store(false, Ordering::Relaxed);
        self.kept.index.insert(*name, size, second(now), order, key);
        Some(FileBody::new(path.into(), spool.header.id, spool.header.body_length))
    }

    fn write_failed(&self, error: &io::Error) {
        self.failing.store(true, Ordering::Relaxed);
        self.kept.fail("cannot write a file", error);
    }

    /// For an entry whose head has changed. Blocks.
    pub(crate) fn copy_body(&self, spool: &mut Spool, from: &FileBody) -> bool {
        let copied = crate::body::copy(from, |piece| spool.write(&[piece]));
        if let Err(error) = &copied {
            self.write_failed(error);
        }
        copied.is_ok()
    }

    /// Makes missing directory levels: they are created when first needed, and may have been removed since.
    /// Watched before the file exists, so that its removal is noticed.
    fn rename(&self, temporary: &Path, name: &Name, path: &Path) -> io::Result<()> {
        self.kept.watch(name);
        fs::rename(temporary, path).or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(error);
            }
            if let Some(directory) = path.parent() {
                private::directory(directory)?;
            }
            self.kept.watch_anew(name);
            fs::rename(temporary, path)
        })
    }
}
