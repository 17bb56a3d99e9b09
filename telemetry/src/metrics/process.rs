//! The process as a whole: what the kernel reports of it, the tiers of its caches, and when its certificates end.
//!
//! No thread counts any of this. Whoever takes a snapshot puts it in. Next: `figures/families`, which names the metrics.

/// Figures from the kernel; unavailable ones are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessSnapshot {
    /// All threads, user and system, in microseconds.
    pub cpu: u64,
    /// In bytes.
    pub resident: u64,
    /// In bytes.
    pub virtual_memory: u64,
    pub open_files: u64,
    pub most_files: u64,
    /// In microseconds since 1970.
    pub started: u64,
    pub version: &'static str,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheTier {
    pub zone: String,
    /// `memory` or `disk`.
    pub tier: &'static str,
    pub entries: u64,
    pub bytes: u64,
    pub max_bytes: Option<u64>,
    pub evictions: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateEnd {
    pub server: String,
    /// The file it was read from, or the issuer's name for it.
    pub certificate: String,
    /// In seconds since 1970.
    pub not_after: u64,
}
