//! Reads an entry's file whole, or its head alone where the body is large.
//!
//! Every byte is checked before anybody sees it. A file that is not whole, not ours or damaged is a miss: it is removed
//! and counted. A file of another key that shares the name is left alone. Next: `write`.

use super::place::Name;
use super::{Disk, second};
use crate::body::{self, Body, FileBody};
use crate::file_format::{self, FIXED, FileHead, FileHeader};
use crate::key::Key;
use crate::now::Now;
use bytes::Bytes;
use millstream_wire::Coding;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) epoch: u64,
    pub(crate) born: u64,
    pub(crate) head: FileHead,
    pub(crate) body: Body,
    /// Bodies in other codings, if in memory.
    pub(crate) coded: Vec<(Coding, Bytes)>,
    pub(crate) file: FileBody,
    size: u64,
}

impl Disk {
    /// If the file holds this key. Bodies up to `in_memory` bytes are read too. Blocks.
    pub(crate) fn read(&self, name: &Name, key: &Key, in_memory: u64, now: Now) -> Option<Loaded> {
        if self.doomed.has(name) {
            return None;
        }
        self.kept.watch(name);
        match self.try_read(name, in_memory) {
            Ok(loaded) if loaded.head.key == key.bytes() => {
                self.kept.index.was_read(*name, loaded.size, second(now), key.hash());
                Some(loaded)
            }
            // Of another key with this MD5: a miss, and whoever fills it takes the name over.
            Ok(_) => None,
            // Of an earlier version, or nginx's: nobody can read it, and nothing is wrong with it.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                let _stripe = self.kept.hold(name);
                self.kept.remove(name);
                None
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.kept.index.remove(name);
                None
            }
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
            {
                self.kept.discard(name);
                None
            }
            Err(error) => {
                self.kept.fail("cannot read a file", &error);
                None
            }
        }
    }

    /// If the file holds this key; the body stays in it, and no use is counted. Blocks.
    pub(crate) fn peek(&self, name: &Name, key: &[u8]) -> Option<Loaded> {
        self.try_read(name, 0).ok().filter(|loaded| loaded.head.key == key)
    }

    fn try_read(&self, name: &Name, in_memory: u64) -> io::Result<Loaded> {
        let path = self.path(name);
        let file = File::open(&path)?;
        let header = read_header(&file)?;
        let table = body::read_table(&file, &header)?;
        let head = head_of(&file, &header)?;
        let in_file = FileBody::new(path.into(), header.id, header.body_length);
        let mut coded = Vec::new();
        let body = if header.body_length <= in_memory {
            let mut bytes = vec![0; header.body_length as usize];
            file.read_exact_at(&mut bytes, header.body_offset())?;
            if !file_format::body_matches(&bytes, &table) {
                return Err(body::corrupt());
            }
            coded = read_coded(&file, &header)?;
            Body::Memory(Bytes::from(bytes).into())
        } else {
            Body::File(in_file.clone())
        };
        Ok(Loaded {
            epoch: header.epoch,
            born: header.born,
            head,
            body,
            coded,
            file: in_file,
            size: header.file_length().unwrap_or(0),
        })
    }
}

pub(super) fn read_header(file: &File) -> io::Result<FileHeader> {
    let mut fixed = [0; FIXED];
    file.read_exact_at(&mut fixed, 0)?;
    FileHeader::decode(&fixed).ok_or_else(|| match file_format::is_foreign(&fixed) {
        true => io::ErrorKind::Unsupported.into(),
        false => body::corrupt(),
    })
}

fn read_coded(file: &File, header: &FileHeader) -> io::Result<Vec<(Coding, Bytes)>> {
    if header.coded_length == 0 {
        return Ok(Vec::new());
    }
    // The length of the file has been compared with what the header says.
    let mut bytes = vec![0; header.coded_length as usize];
    file.read_exact_at(&mut bytes, header.coded_offset().ok_or_else(body::corrupt)?)?;
    if crc32fast::hash(&bytes) != header.coded_checksum {
        return Err(body::corrupt());
    }
    file_format::decode_coded(&bytes).ok_or_else(body::corrupt)
}

pub(super) fn head_of(file: &File, header: &FileHeader) -> io::Result<FileHead> {
    // A length that passes for one, see `FileHeader::decode`; a file that is shorter ends the reading.
    let mut head = vec![0; header.head_length as usize];
    file.read_exact_at(&mut head, FIXED as u64)?;
    if crc32fast::hash(&head) != header.head_checksum {
        return Err(body::corrupt());
    }
    file_format::decode_head(&head, header.body_length).ok_or_else(body::corrupt)
}
