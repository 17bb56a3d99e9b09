//! Bytes in a file that lives in memory only, so that the kernel can send its pages without copying them.
//!
//! For answers that are sent over and over. Made once, never changed: pages that are on their way in a socket are these
//! very pages. Next: `stream`, which sends one.

use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};

/// A file without a name, written once.
#[derive(Debug)]
pub struct MemoryFile {
    file: File,
    length: usize,
}

impl MemoryFile {
    pub fn holding(bytes: &[u8]) -> io::Result<Self> {
        let mut file = File::from(memfd_create("answer", MemfdFlags::CLOEXEC)?);
        file.write_all(bytes)?;
        Ok(MemoryFile { file, length: bytes.len() })
    }

    pub fn length(&self) -> usize {
        self.length
    }
}

impl AsFd for MemoryFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn it_holds_what_it_was_given() {
        let made = MemoryFile::holding(b"an answer").expect("memory");
        let mut copy = made.file.try_clone().expect("a descriptor");
        copy.rewind().expect("a file");
        let mut text = Vec::new();
        copy.read_to_end(&mut text).expect("memory");
        assert_eq!((text.as_slice(), made.length()), (&b"an answer"[..], 9));
    }
}
