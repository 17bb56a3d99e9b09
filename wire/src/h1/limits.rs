//! How much of a head is read, and whether it has all come.
//!
//! Shared by everything that reads lines; nothing here reads.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// Longest line in bytes, its end included; a longer request line gets 414, a field line 431.
    pub line: usize,
    /// Bytes of the head, including skipped empty lines and the last empty line (431).
    pub total: usize,
    /// Field lines (400).
    pub fields: usize,
}

impl Default for HeadLimits {
    /// nginx's `large_client_header_buffers 4 8k`, and nginx's limit of a thousand `max_headers`.
    fn default() -> HeadLimits {
        HeadLimits { line: 8 * 1024, total: 32 * 1024, fields: 1000 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed; call again with the same bytes and those after them.
    Partial,
    Complete,
}
