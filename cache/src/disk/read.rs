//! Reads an entry's file whole, or its head alone where the body is large.
//!
//! Every byte is checked before anybody sees it. A file that is not whole, not ours or damaged is a miss: it is removed
//! and counted. A file of another key that shares the name is left alone. Next: `write`.

use super::index::Name;
use super::{Disk, lock, second};
use crate::body::{self, Body, FileBody};
use crate::file_format::{self, FIXED, FileHead, FileHeader};
use crate::now::Now;
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

/// What was in a file.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) epoch: u64,
    pub(crate) born: u64,
    pub(crate) head: FileHead,
    pub(crate) body: Body,
    size: u64,
}

impl Disk {
    /// Reads the file of a name, if it holds this key. Bodies up to `in_memory` bytes are read too. Blocks.
    pub(crate) fn read(&self, name: &Name, key: &[u8], in_memory: u64, now: Now) -> Option<Loaded> {
        match self.try_read(name, in_memory) {
            Ok(loaded) if loaded.head.key == key => {
                let mut index = lock(&self.index);
                // The index may not have come to it yet.
                index.note(*name, loaded.size, second(now));
                index.touch(name, second(now));
                Some(loaded)
            }
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                lock(&self.index).remove(name);
                None
            }
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
            {
                self.discard(name);
                None
            }
            Err(error) => {
                self.fail("cannot read a file of it", &error);
                None
            }
        }
    }

    /// What the file of a name says, if it holds this key; the body is left in it, and nothing is noted. Blocks.
    pub(crate) fn peek(&self, name: &Name, key: &[u8]) -> Option<Loaded> {
        self.try_read(name, 0).ok().filter(|loaded| loaded.head.key == key)
    }

    /// Removes a file that is damaged.
    pub(crate) fn discard(&self, name: &Name) {
        self.counters.corrupt.fetch_add(1, Ordering::Relaxed);
        self.report(format_args!("a damaged file was removed: {}", self.path(name).display()));
        let _stripe = lock(self.stripe(name));
        self.remove(name);
    }

    fn try_read(&self, name: &Name, in_memory: u64) -> io::Result<Loaded> {
        let path = self.path(name);
        let file = File::open(&path)?;
        let mut fixed = [0; FIXED];
        file.read_exact_at(&mut fixed, 0)?;
        let header = FileHeader::decode(&fixed).ok_or_else(body::corrupt)?;
        let table = body::read_table(&file, &header)?;
        let mut head = vec![0; header.head_length as usize];
        file.read_exact_at(&mut head, FIXED as u64)?;
        if crc32fast::hash(&head) != header.head_checksum {
            return Err(body::corrupt());
        }
        let head = file_format::decode_head(&head, header.body_length).ok_or_else(body::corrupt)?;
        let body = if header.body_length <= in_memory {
            let mut bytes = vec![0; header.body_length as usize];
            file.read_exact_at(&mut bytes, header.body_offset())?;
            if !file_format::body_matches(&bytes, &table) {
                return Err(body::corrupt());
            }
            Body::Memory(Bytes::from(bytes))
        } else {
            Body::File(FileBody { path: path.into(), id: header.id, length: header.body_length })
        };
        Ok(Loaded {
            epoch: header.epoch,
            born: header.born,
            head,
            body,
            size: header.file_length().unwrap_or(0),
        })
    }
}
