//! How much of a head is read, and whether it has all come.
//!
//! Shared by everything that reads lines; nothing here reads.

/// How large a head may be, in bytes and in lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// Longest line, its end included; past it a request line is answered 414, a field line 431.
    pub line: usize,
    /// All bytes of the head, skipped empty lines and the last empty line included (431).
    pub total: usize,
    /// Number of field lines (400).
    pub fields: usize,
}

impl Default for HeadLimits {
    /// nginx's `large_client_header_buffers 4 8k`, and nginx's bound of a thousand `max_headers`.
    fn default() -> HeadLimits {
        HeadLimits { line: 8 * 1024, total: 32 * 1024, fields: 1000 }
    }
}

/// Whether a head is there as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed; call again with the same bytes and those behind them.
    Partial,
    /// The head is whole.
    Complete,
}
