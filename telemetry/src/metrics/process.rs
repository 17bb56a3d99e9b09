//! The process as a whole: what the kernel reports of it, the tiers of its caches, and when its certificates end.
//!
//! No thread counts any of this. Whoever takes a snapshot puts it in. Next: `figures/families`, which names the metrics.

/// What the kernel reports of the process. Values that it does not give are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessSnapshot {
    /// CPU time of all threads, user and system, in microseconds.
    pub cpu: u64,
    /// Resident memory in bytes.
    pub resident: u64,
    /// Virtual memory in bytes.
    pub virtual_memory: u64,
    /// Open file descriptors.
    pub open_files: u64,
    /// The limit on these.
    pub most_files: u64,
    /// When the process started, in microseconds since 1970.
    pub started: u64,
    /// Millstream's version.
    pub version: &'static str,
}

/// One tier of a cache zone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheTier {
    /// The zone.
    pub zone: String,
    /// `memory` or `disk`.
    pub tier: &'static str,
    /// Entries in it.
    pub entries: u64,
    /// Bytes that these take.
    pub bytes: u64,
    /// The bound on these bytes, if there is one.
    pub max_bytes: Option<u64>,
    /// Entries removed to make room.
    pub evictions: u64,
}

/// The end of a certificate that a server uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateEnd {
    /// The server's first name.
    pub server: String,
    /// The file it was read from, or the issuer's name for it.
    pub certificate: String,
    /// When it ends, in seconds since 1970.
    pub not_after: u64,
}
