//! The body of an entry: in memory, or in its file on disk and read block by block.
//!
//! A reader of a file holds it open, so a purge or a replacement does not cut an answer that has begun; a name that
//! meanwhile belongs to another file is noticed when it is opened. Every block is checked before it is handed out:
//! a rotten one ends the answer, it is never sent. All reads run on `net::blocking`. Next: `body/checked`, for bodies
//! that the kernel sends; `entry`.

mod checked;

use crate::file_format::{BLOCK, FIXED, FileHeader};
use crate::loan::{Held, Loan};
use bytes::Bytes;
use checked::{Blocks, Checked};
use millstream_net::blocking;
use millstream_net::read_file::ReadFile;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Most blocks of a span: two megabytes, as nginx sends at a time.
const SPAN: u64 = 32;
/// Blocks that are read and checked before the first of them is sent: half a megabyte.
const CHECKED_AT_A_TIME: u64 = 8;

/// Where the body of an entry is.
#[derive(Debug, Clone)]
pub enum Body {
    Memory(Held),
    File(FileBody),
}

#[derive(Debug, Clone)]
pub struct FileBody {
    pub path: Arc<Path>,
    /// Tells apart the files that have this name over time.
    pub(crate) id: u64,
    pub length: u64,
    checked: Arc<Checked>,
}

impl FileBody {
    pub(crate) fn new(path: Arc<Path>, id: u64, length: u64) -> FileBody {
        FileBody { path, id, length, checked: Arc::default() }
    }
}

impl Body {
    pub fn len(&self) -> u64 {
        match self {
            Body::Memory(held) => held.len() as u64,
            Body::File(file) => file.length,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub fn memory(&self) -> Option<&Held> {
        match self {
            Body::Memory(held) => Some(held),
            Body::File(_) => None,
        }
    }

    /// Starts to read a part, limited to the body. Call it before the head is sent: an error means that the
    /// file is gone or broken, and the entry with it.
    pub async fn open(&self, range: Range<u64>) -> io::Result<BodyReader> {
        let range = range.start.min(self.len())..range.end.min(self.len());
        match self {
            Body::Memory(held) => Ok(BodyReader(match held.lend() {
                Some(loan) => BodySource::Loan { loan, range },
                None => BodySource::Memory { bytes: (**held).clone(), range },
            })),
            Body::File(body) => {
                let open = match OpenFile::open_at_once(body) {
                    Some(open) => open?,
                    None => {
                        let body = body.clone();
                        blocking::run(move || OpenFile::open(&body)).await?
                    }
                };
                Ok(BodyReader(BodySource::File { open: Arc::new(open), range }))
            }
        }
    }
}

/// Reads a part of a body.
#[derive(Debug)]
pub struct BodyReader(BodySource);

#[derive(Debug)]
enum BodySource {
    Memory { bytes: Bytes, range: Range<u64> },
    Loan { loan: Loan, range: Range<u64> },
    File { open: Arc<OpenFile>, range: Range<u64> },
}

impl BodyReader {
    pub fn again(&self) -> BodyReader {
        self.part(0..u64::MAX)
    }

    pub fn part(&self, range: Range<u64>) -> BodyReader {
        let within =
            |length: u64| range.start.min(length)..range.end.min(length).max(range.start.min(length));
        BodyReader(match &self.0 {
            BodySource::Memory { bytes, .. } => {
                BodySource::Memory { bytes: bytes.clone(), range: within(bytes.len() as u64) }
            }
            BodySource::Loan { loan, .. } => {
                BodySource::Loan { loan: loan.clone(), range: within(loan.length()) }
            }
            BodySource::File { open, .. } => {
                BodySource::File { open: open.clone(), range: within(open.length) }
            }
        })
    }

    /// At most 64 KiB; `None` after the last. After an error the response must be cut.
    pub async fn next(&mut self) -> Option<io::Result<Bytes>> {
        match &mut self.0 {
            BodySource::File { range, .. }
            | BodySource::Loan { range, .. }
            | BodySource::Memory { range, .. }
                if range.is_empty() =>
            {
                None
            }
            BodySource::Memory { bytes, range } => {
                let part = std::mem::take(range);
                Some(Ok(bytes.slice(part.start as usize..part.end as usize)))
            }
            BodySource::Loan { loan, range } => {
                let piece = loan.read(range.clone()).await;
                match &piece {
                    Ok(bytes) => range.start += bytes.len() as u64,
                    Err(_) => range.start = range.end,
                }
                Some(piece)
            }
            BodySource::File { open, range } => {
                let (open, wanted) = (open.clone(), range.clone());
                let piece = blocking::run(move || open.read(wanted)).await;
                match &piece {
                    Ok(bytes) => range.start += bytes.len() as u64,
                    Err(_) => range.start = range.end,
                }
                Some(piece)
            }
        }
    }

    /// As [`BodyReader::next`], for a connection that can send files: what is in a file stays there, at most
    /// two megabytes at a time.
    pub async fn next_to_send(&mut self) -> Option<io::Result<Piece>> {
        let BodySource::File { open, range } = &mut self.0 else {
            return self.next().await.map(|bytes| bytes.map(Piece::Bytes));
        };
        if range.is_empty() {
            return None;
        }
        let block = range.start / BLOCK as u64;
        let up_to = |blocks: u64| range.start..range.end.min((block + blocks) * BLOCK as u64);
        let mut part = up_to(SPAN);
        if !open.is_ready(&part) {
            part = up_to(CHECKED_AT_A_TIME);
            let (open, unread) = (open.clone(), part.clone());
            if !open.is_ready(&part)
                && let Err(error) = blocking::run(move || open.check(&unread)).await
            {
                range.start = range.end;
                return Some(Err(error));
            }
        }
        range.start = part.end;
        Some(Ok(Piece::Span(Span { open: open.clone(), part })))
    }
}

/// A piece of a body.
#[derive(Debug)]
pub enum Piece {
    Bytes(Bytes),
    Span(Span),
}

/// Bytes of a file that were checked and are in the page cache, for the kernel to send.
#[derive(Debug)]
pub struct Span {
    open: Arc<OpenFile>,
    part: Range<u64>,
}

impl Span {
    pub fn part(&self) -> Range<u64> {
        self.part.start + self.open.body_offset..self.part.end + self.open.body_offset
    }
}

impl AsFd for Span {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.open.file.as_fd()
    }
}

/// A file that was found to be the right one. Its checksums stay in it: those of a large body are large
/// themselves.
#[derive(Debug)]
struct OpenFile {
    file: ReadFile,
    body_offset: u64,
    length: u64,
    checked: Arc<Blocks>,
}

impl OpenFile {
    /// Opens a file that was read before, if that needs no disk access.
    fn open_at_once(body: &FileBody) -> Option<io::Result<OpenFile>> {
        let file = match ReadFile::open_at_once(&body.path)? {
            Ok(file) => file,
            Err(error) => return Some(Err(error)),
        };
        let mut fixed = [0; FIXED];
        match file.read_at_once(&mut fixed, 0)? {
            Ok(FIXED) => {}
            // Whether that is a file's end or the end of what is at hand, another read will tell.
            Ok(_) => return None,
            Err(error) => return Some(Err(error)),
        }
        OpenFile::of(body, file, &fixed, |_, _| None).transpose()
    }

    /// Blocks.
    fn open(body: &FileBody) -> io::Result<OpenFile> {
        let file = ReadFile::open_waiting(&body.path)?;
        let mut fixed = [0; FIXED];
        file.file().read_exact_at(&mut fixed, 0)?;
        let opened = OpenFile::of(body, file, &fixed, |file, header| Some(check_table(file, header)))?;
        opened.ok_or_else(corrupt)
    }

    /// Opens `file` if it is the body's. `check` checks its table of checksums, once as long as the file is
    /// unchanged: after that each block's own sum is read with the block. `None` if it cannot be checked now.
    fn of(
        body: &FileBody,
        file: ReadFile,
        fixed: &[u8; FIXED],
        check: impl Fn(&File, &FileHeader) -> Option<io::Result<()>>,
    ) -> io::Result<Option<OpenFile>> {
        let header = FileHeader::decode(fixed)
            .filter(|header| header.id == body.id && header.body_length == body.length)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the cache file has been replaced"))?;
        let found = file.metadata()?;
        let checked = body.checked.of(&found, header.blocks());
        if header.file_length() != Some(found.len()) {
            return Err(corrupt());
        }
        if !checked.has_table() {
            let Some(outcome) = check(file.file(), &header) else { return Ok(None) };
            outcome?;
            checked.add_table();
        }
        Ok(Some(OpenFile { file, body_offset: header.body_offset(), length: body.length, checked }))
    }

    /// Whether a part was checked before and is in the page cache, as far as a look at each block tells.
    fn is_ready(&self, part: &Range<u64>) -> bool {
        blocks(part).all(|block| self.checked.has(block))
            && self.file.is_at_hand(&(part.start + self.body_offset..part.end + self.body_offset))
    }

    fn check(&self, part: &Range<u64>) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(BLOCK);
        blocks(part).try_for_each(|block| self.read_block(block, &mut bytes))
    }

    fn read_block(&self, block: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
        let start = block * BLOCK as u64;
        let length = (self.length - start).min(BLOCK as u64);
        bytes.resize(length as usize, 0);
        self.file.file().read_exact_at(bytes, self.body_offset + start)?;
        let mut stated = [0; 4];
        self.file.file().read_exact_at(&mut stated, self.body_offset + self.length + block * 4)?;
        if stated != crc32fast::hash(bytes).to_le_bytes() {
            return Err(corrupt());
        }
        self.checked.add(block);
        Ok(())
    }

    fn read(&self, wanted: Range<u64>) -> io::Result<Bytes> {
        let block = wanted.start / BLOCK as u64;
        let start = block * BLOCK as u64;
        let end = (start + BLOCK as u64).min(self.length);
        let mut bytes = Vec::new();
        self.read_block(block, &mut bytes)?;
        let (from, to) = (wanted.start - start, wanted.end.min(end) - start);
        Ok(Bytes::from(bytes).slice(from as usize..to as usize))
    }
}

fn blocks(part: &Range<u64>) -> Range<u64> {
    part.start / BLOCK as u64..part.end.div_ceil(BLOCK as u64)
}

/// Reads a whole body in order, checked. Blocks.
pub(crate) fn copy(body: &FileBody, mut take: impl FnMut(Bytes) -> io::Result<()>) -> io::Result<()> {
    let open = OpenFile::open(body)?;
    let mut start = 0;
    while start < body.length {
        let piece = open.read(start..body.length)?;
        start += piece.len() as u64;
        take(piece)?;
    }
    Ok(())
}

/// The file must be exactly as long as its header says.
pub(crate) fn read_table(file: &File, header: &FileHeader) -> io::Result<Vec<u8>> {
    if header.file_length() != Some(file.metadata()?.len()) {
        return Err(corrupt());
    }
    // Bounded by the length of the file, which was just compared.
    let mut table = vec![0; header.blocks() as usize * 4];
    file.read_exact_at(&mut table, header.body_offset() + header.body_length)?;
    if crc32fast::hash(&table) != header.table_checksum {
        return Err(corrupt());
    }
    Ok(table)
}

/// The file must have the right length; checks a piece at a time.
fn check_table(file: &File, header: &FileHeader) -> io::Result<()> {
    let (mut sum, mut piece) = (crc32fast::Hasher::new(), vec![0; BLOCK]);
    let (mut at, mut left) = (header.body_offset() + header.body_length, header.blocks() * 4);
    while left > 0 {
        piece.truncate(left.min(BLOCK as u64) as usize);
        file.read_exact_at(&mut piece, at)?;
        sum.update(&piece);
        at += piece.len() as u64;
        left -= piece.len() as u64;
    }
    if sum.finalize() == header.table_checksum { Ok(()) } else { Err(corrupt()) }
}

pub(crate) fn corrupt() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the cache file is damaged")
}
