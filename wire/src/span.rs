//! A piece of a head, kept as offsets so that it outlives a move of the buffer it was read into.
//!
//! Offsets are 32 bits because a head is bounded far below 4 GiB. A span knows nothing of what it covers; reading
//! one with the wrong bytes yields an empty slice or other bytes of those, never a panic.

/// A half-open range of offsets into the bytes of one head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Span {
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Offsets past 4 GiB are truncated, which the head limits rule out long before.
    #[inline]
    pub fn new(start: usize, end: usize) -> Span {
        debug_assert!(start <= end);
        Span { start: start as u32, end: end as u32 }
    }

    /// Empty if the span does not lie within `bytes`.
    #[inline]
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    #[inline]
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }
}
