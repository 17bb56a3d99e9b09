//! What a connection has read and not handed out yet, with the head that was read last.
//!
//! Nothing that was handed out and is still valid moves before the next read. While nothing is in it, it has no memory.
//! Before: `reading`.

use millstream_net::buffers;

const MIN_READ: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct ReadBuffer {
    /// Those before `start` are used up.
    bytes: Vec<u8>,
    start: usize,
    /// Start and length of the head that was read last.
    head: (usize, usize),
}

impl ReadBuffer {
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub(super) fn unread_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.start == self.bytes.len()
    }

    /// Returns where what is used up begins.
    pub(super) fn use_up(&mut self, count: usize) -> usize {
        let from = self.start;
        self.start += count;
        from
    }

    pub(super) fn use_up_head(&mut self, length: usize) {
        self.head = (self.use_up(length), length);
    }

    pub(super) fn head(&self) -> &[u8] {
        &self.bytes[self.head.0..self.head.0 + self.head.1]
    }

    pub(super) fn part(&self, from: usize, to: usize) -> &[u8] {
        &self.bytes[from..to]
    }

    /// For a head that has not come as bytes; `write` replaces what is there.
    pub(super) fn put_head(&mut self, write: impl FnOnce(&mut Vec<u8>) -> usize) {
        if !self.has_memory() {
            self.bytes = buffers::take();
        }
        self.start = 0;
        let length = write(&mut self.bytes);
        self.use_up_head(length);
    }

    /// To read into, behind what is there.
    pub(super) fn room(&mut self) -> &mut Vec<u8> {
        if !self.has_memory() {
            self.bytes = buffers::take();
        }
        if self.is_used_up() {
            self.bytes.clear();
            self.start = 0;
        } else if self.bytes.capacity() - self.bytes.len() < MIN_READ && self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        if self.bytes.capacity() - self.bytes.len() < MIN_READ {
            self.bytes.reserve(MIN_READ);
        }
        &mut self.bytes
    }

    /// Without the memory, if nothing came into the room.
    pub(super) fn rest_if_empty(&mut self) {
        if self.bytes.is_empty() {
            self.release();
        }
    }

    pub(super) fn rest(&mut self) {
        (self.start, self.head) = (0, (0, 0));
        self.release();
    }

    pub(super) fn take_unread(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.drain(..self.start);
        (self.start, self.head) = (0, (0, 0));
        bytes
    }

    pub(super) fn has_memory(&self) -> bool {
        self.bytes.capacity() > 0
    }

    fn release(&mut self) {
        if self.has_memory() {
            buffers::give(std::mem::take(&mut self.bytes));
        }
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        self.release();
    }
}
