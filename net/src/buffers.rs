//! Reading buffers, pooled per thread: taken when bytes are there, given back while a connection idles.
//!
//! Ten thousand idle connections hold no buffer at all; a busy thread reuses a few warm ones. Never shared
//! between threads, so that taking one is no atomic write.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Bytes of a fresh buffer: enough for a request head of nginx's default size and most small bodies.
pub const SIZE: usize = 16 * 1024;
/// Larger buffers are freed, so that one large request does not leave its size behind.
const LARGEST_KEPT: usize = 4 * SIZE;
/// Buffers kept by a thread: 1 MiB at 16 KiB each.
const KEPT: usize = 64;

thread_local! {
    static POOL: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Empty, with room for at least [`SIZE`] bytes.
pub fn take() -> Vec<u8> {
    // A buffer that is dropped while its thread ends finds no pool; it is then simply made and freed.
    POOL.try_with(|pool| pool.borrow_mut().pop()).ok().flatten().unwrap_or_else(|| Vec::with_capacity(SIZE))
}

/// Its bytes are discarded. A buffer too small or too large to be useful is freed.
pub fn give(mut buffer: Vec<u8>) {
    if !(SIZE..=LARGEST_KEPT).contains(&buffer.capacity()) {
        return;
    }
    buffer.clear();
    let _ = POOL.try_with(|pool| {
        let mut pool = pool.borrow_mut();
        if pool.len() < KEPT {
            pool.push(buffer);
        }
    });
}

/// One that goes back when it is dropped.
#[derive(Debug)]
pub struct Pooled(Vec<u8>);

impl Pooled {
    /// An empty one.
    pub fn take() -> Pooled {
        Pooled(take())
    }
}

impl Deref for Pooled {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        give(std::mem::take(&mut self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_given_back_is_taken_again_empty() {
        let mut buffer = take();
        buffer.extend_from_slice(b"secret");
        let place = buffer.as_ptr();
        give(buffer);
        let again = take();
        assert_eq!(again.as_ptr(), place);
        assert!(again.is_empty());
        assert!(again.capacity() >= SIZE);
    }

    #[test]
    fn odd_sizes_are_not_kept_and_the_pool_is_bounded() {
        give(Vec::new());
        give(Vec::with_capacity(LARGEST_KEPT + 1));
        for _ in 0..2 * KEPT {
            give(Vec::with_capacity(SIZE));
        }
        POOL.with(|pool| {
            let pool = pool.borrow();
            assert_eq!(pool.len(), KEPT);
            assert!(pool.iter().all(|buffer| buffer.capacity() == SIZE));
        });
    }
}
