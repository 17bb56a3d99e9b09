//! The bytes of a cache file: a fixed header, the stored head, the body, a checksum for every block of the body, and what was
//! made of the body in other codings.
//!
//! ```text
//! 0          72            72+head          …+body                           …+4 for each block
//! | fixed    | head (CRC)  | body           | CRC of each 64 KiB of the body | coded bodies (CRC) |
//! ```
//! The fixed header is written last and carries a checksum of itself, the head and the table, so a file that was cut
//! at any byte does not open, and a block that rotted is noticed before a byte of it is sent. It does no I/O: slices
//! in, values out, and no slice can make it panic. Next: `body` and `disk`, which read and write.

use crate::head::{Head, Part, StoredHead};
use crate::policy::{Lifetime, Revalidation, VaryRule};
use crate::tags::{self, Tag, Tags};
use crate::vary::{FIELDS, VaryFields};
use bytes::Bytes;
use millstream_wire::{Coding, Headers};
use std::time::Duration;

#[cfg(test)]
mod tests;

pub(crate) const FIXED: usize = 72;
/// Bytes of the body under one checksum.
pub(crate) const BLOCK: usize = 64 * 1024;
/// Longest head that is read; written ones are far shorter, because heads are bounded when they are parsed.
pub(crate) const LONGEST_HEAD: u32 = 1024 * 1024;

const MAGIC: &[u8; 8] = b"MILLCACH";
const VERSION: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// Tells apart the files that have this name over time.
    pub(crate) id: u64,
    /// Ties the variants of a key to the file under the key's own name: they count only if it has the same
    /// epoch.
    pub(crate) epoch: u64,
    /// Where its fill stands among the purges, see `purges`.
    pub(crate) born: u64,
    pub(crate) head_length: u32,
    pub(crate) head_checksum: u32,
    pub(crate) body_length: u64,
    pub(crate) table_checksum: u32,
    pub(crate) coded_length: u32,
    pub(crate) coded_checksum: u32,
}

impl FileHeader {
    pub(crate) fn encode(&self) -> [u8; FIXED] {
        let mut out = [0; FIXED];
        out[0..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[12..16].copy_from_slice(&self.head_length.to_le_bytes());
        out[16..24].copy_from_slice(&self.id.to_le_bytes());
        out[24..32].copy_from_slice(&self.epoch.to_le_bytes());
        out[32..40].copy_from_slice(&self.body_length.to_le_bytes());
        out[40..44].copy_from_slice(&self.head_checksum.to_le_bytes());
        out[44..48].copy_from_slice(&self.table_checksum.to_le_bytes());
        out[48..56].copy_from_slice(&self.born.to_le_bytes());
        out[56..60].copy_from_slice(&self.coded_length.to_le_bytes());
        out[60..64].copy_from_slice(&self.coded_checksum.to_le_bytes());
        let checksum = crc32fast::hash(&out[..68]);
        out[68..72].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// `None` unless these are the first bytes of a whole file of ours.
    pub(crate) fn decode(bytes: &[u8]) -> Option<FileHeader> {
        let bytes: &[u8; FIXED] = bytes.get(..FIXED)?.try_into().ok()?;
        let mut read = Reader { bytes: &bytes[8..] };
        let header = || -> Option<FileHeader> {
            let version = read.u32()?;
            let head_length = read.u32()?;
            let header = FileHeader {
                id: read.u64()?,
                epoch: read.u64()?,
                body_length: read.u64()?,
                head_checksum: read.u32()?,
                table_checksum: read.u32()?,
                born: read.u64()?,
                coded_length: read.u32()?,
                coded_checksum: read.u32()?,
                head_length,
            };
            (version == VERSION).then_some(header)
        }()?;
        let whole = bytes.starts_with(MAGIC) && bytes[68..] == crc32fast::hash(&bytes[..68]).to_le_bytes();
        (whole && header.head_length <= LONGEST_HEAD).then_some(header)
    }

    pub(crate) fn body_offset(&self) -> u64 {
        FIXED as u64 + u64::from(self.head_length)
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.body_length.div_ceil(BLOCK as u64)
    }

    /// `None` if the header states a length no file can have.
    pub(crate) fn coded_offset(&self) -> Option<u64> {
        self.body_offset().checked_add(self.body_length)?.checked_add(self.blocks().checked_mul(4)?)
    }

    /// `None` if the header states a length no file can have.
    pub(crate) fn file_length(&self) -> Option<u64> {
        self.coded_offset()?.checked_add(u64::from(self.coded_length))
    }
}

/// Whether these are the first bytes of an intact file that is not ours: of an earlier version of this
/// format, or of nginx, whose cache directory this may have been. Damaged bytes do not look so.
pub(crate) fn is_foreign(fixed: &[u8; FIXED]) -> bool {
    let begin = |number: u64| fixed[..8] == number.to_le_bytes();
    // Each version of ours had its own checksum at the end of its fixed header.
    let earlier = |(version, end): (u32, usize)| {
        fixed.starts_with(MAGIC)
            && fixed[8..12] == version.to_le_bytes()
            && fixed[end..end + 4] == crc32fast::hash(&fixed[..end]).to_le_bytes()
    };
    // nginx: a version of 64 bits, 3 to 5 since its cache knows Vary.
    [(1, 60), (2, 68)].into_iter().any(earlier) || (3..=5).any(begin)
}

#[derive(Debug, Default)]
pub(crate) struct BlockChecksums {
    open: crc32fast::Hasher,
    filled: usize,
    table: Vec<u8>,
}

impl BlockChecksums {
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - self.filled));
            self.open.update(now);
            self.filled += now.len();
            bytes = later;
            if self.filled == BLOCK {
                self.close();
            }
        }
    }

    /// The table, and its own checksum.
    pub(crate) fn finish(mut self) -> (Vec<u8>, u32) {
        if self.filled > 0 {
            self.close();
        }
        let checksum = crc32fast::hash(&self.table);
        (self.table, checksum)
    }

    fn close(&mut self) {
        let checksum = std::mem::take(&mut self.open).finalize();
        self.table.extend_from_slice(&checksum.to_le_bytes());
        self.filled = 0;
    }
}

pub(crate) fn body_matches(body: &[u8], table: &[u8]) -> bool {
    let mut sums = BlockChecksums::default();
    sums.update(body);
    sums.finish().0 == table
}

#[derive(Debug)]
pub(crate) struct FileHead {
    pub(crate) key: Vec<u8>,
    pub(crate) vary: Option<(VaryFields, Box<[u8]>)>,
    pub(crate) head: StoredHead,
}

pub(crate) fn encode_head(key: &[u8], vary: Option<(&VaryFields, &[u8])>, head: Head<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + key.len() + head.fields().bytes().len());
    put(&mut out, key);
    match vary {
        None => out.push(0),
        Some((fields, variant)) => {
            out.push(1);
            out.extend_from_slice(&(fields.names().count() as u32).to_le_bytes());
            fields.names().for_each(|name| put(&mut out, name));
            put(&mut out, variant);
        }
    }
    let lifetime = &head.lifetime;
    out.extend_from_slice(&head.status.to_le_bytes());
    out.extend_from_slice(&head.stored_at.to_le_bytes());
    out.extend_from_slice(&lifetime.fresh_until.to_le_bytes());
    out.extend_from_slice(&lifetime.initial_age.as_secs().to_le_bytes());
    for window in [lifetime.stale_while_revalidate, lifetime.stale_if_error] {
        out.extend_from_slice(&window.map_or(u64::MAX, |window| window.as_secs()).to_le_bytes());
    }
    out.push(match lifetime.revalidation {
        Revalidation::Free => 0,
        Revalidation::Implied => 1,
        Revalidation::Required => 2,
    });
    out.push(
        u8::from(lifetime.vary.ignored)
            | u8::from(lifetime.always_validate) << 1
            | u8::from(head.part.is_some()) << 2
            | u8::from(lifetime.public) << 3
            | u8::from(lifetime.vary.origin) << 4
            | u8::from(lifetime.vary.unlisted) << 5
            | u8::from(lifetime.vary.address) << 6,
    );
    if let Some(part) = head.part {
        for number in [part.first, part.last, part.complete.unwrap_or(u64::MAX)] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
    out.extend_from_slice(&(head.tags.len() as u32).to_le_bytes());
    head.tags.iter().for_each(|tag| out.extend_from_slice(&tag.0.to_le_bytes()));
    out.extend_from_slice(&(head.fields().len() as u32).to_le_bytes());
    for (_, name, value) in head.fields().iter() {
        put(&mut out, name);
        put(&mut out, value);
    }
    out
}

/// `None` unless [`encode_head`] wrote it. `body_length` is the file's.
pub(crate) fn decode_head(bytes: &[u8], body_length: u64) -> Option<FileHead> {
    let mut read = Reader { bytes };
    let key = read.text()?.to_vec();
    let vary = match read.u8()? {
        0 => None,
        1 => {
            let count = usize::try_from(read.u32()?).ok().filter(|count| (1..=FIELDS).contains(count))?;
            let names = (0..count).map(|_| Some(Box::from(read.text()?))).collect::<Option<Vec<_>>>()?;
            Some((VaryFields::new(names), Box::from(read.text()?)))
        }
        _ => return None,
    };
    let status = read.u16()?;
    let stored_at = read.u64()? as i64;
    let fresh_until = read.u64()? as i64;
    let initial_age = Duration::from_secs(read.u64()?);
    let stale_while_revalidate = read.window()?;
    let stale_if_error = read.window()?;
    let revalidation = match read.u8()? {
        0 => Revalidation::Free,
        1 => Revalidation::Implied,
        2 => Revalidation::Required,
        _ => return None,
    };
    let flags = read.u8()?;
    let part = if flags & 4 == 0 {
        None
    } else {
        let (first, last, complete) = (read.u64()?, read.u64()?, read.u64()?);
        Some(Part { first, last, complete: Some(complete).filter(|&length| length != u64::MAX) })
    };
    let count = usize::try_from(read.u32()?).ok().filter(|&count| count <= tags::MOST)?;
    let tags = (0..count).map(|_| read.u64().map(Tag)).collect::<Option<Vec<_>>>()?;
    let lifetime = Lifetime {
        fresh_until,
        initial_age,
        stale_while_revalidate,
        stale_if_error,
        revalidation,
        vary: VaryRule {
            ignored: flags & 1 != 0,
            origin: flags & 16 != 0,
            unlisted: flags & 32 != 0,
            address: flags & 64 != 0,
        },
        public: flags & 8 != 0,
        always_validate: flags & 2 != 0,
    };
    let mut headers = Headers::new();
    for _ in 0..read.u32()? {
        let (name, value) = (read.text()?, read.text()?);
        headers.push(name, value);
    }
    headers.compact();
    let mut head = StoredHead::from_stored(status, headers, Some(body_length), lifetime, stored_at);
    (head.tags, head.part) = (Tags::from(tags), part);
    read.bytes.is_empty().then_some(FileHead { key, vary, head })
}

pub(crate) fn encode_coded<'a>(bodies: impl Iterator<Item = (Coding, &'a [u8])>) -> Vec<u8> {
    let mut out = Vec::new();
    for (coding, body) in bodies {
        out.push(coding.number());
        put(&mut out, body);
    }
    out
}

/// Unknown codings are skipped. Each body has its own memory, since it is held as long as it is read.
pub(crate) fn decode_coded(bytes: &[u8]) -> Option<Vec<(Coding, Bytes)>> {
    let (mut read, mut bodies) = (Reader { bytes }, Vec::new());
    while !read.bytes.is_empty() {
        let (number, body) = (read.u8()?, read.text()?);
        bodies.extend(Coding::numbered(number).map(|coding| (coding, Bytes::copy_from_slice(body))));
    }
    Some(bodies)
}

fn put(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text);
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*taken)
    }
    fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }
    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
    fn window(&mut self) -> Option<Option<Duration>> {
        Some(Some(self.u64()?).filter(|&seconds| seconds != u64::MAX).map(Duration::from_secs))
    }
    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        let (text, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(text)
    }
}
