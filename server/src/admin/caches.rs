//! Numbers of the cache zones, in NGINX Plus's words (`size`, `max_size`, `cold`) and our own.

use super::ApiRefusal;
use crate::generation::Shared;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// Bytes that are held: on disk, or in memory where there is no disk.
    pub size: u64,
    /// The bound on these; absent where only the disk bounds them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u64>,
    /// Whether the files that were there at start are still being listed.
    pub cold: bool,
    /// The memory tier.
    pub memory: MemoryTier,
    /// The disk tier; absent for a zone in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskTier>,
}

/// The memory tier of a zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryTier {
    /// Entries, variants and remembered misses.
    pub entries: u64,
    /// Bytes, index included.
    pub bytes: u64,
    /// The bound on these.
    pub max_bytes: u64,
    /// What had to make room since the start.
    pub evictions: u64,
}

/// The disk tier of a zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskTier {
    /// The directory.
    pub path: String,
    /// Files.
    pub files: u64,
    /// Bytes of these, in whole pages.
    pub bytes: u64,
    /// Files removed since the start.
    pub removed: u64,
    /// Memory that the index of the files takes.
    pub index_bytes: u64,
    /// Damaged files found, and removed, since the start.
    pub corrupt: u64,
    /// Reads and writes that failed since the start.
    pub errors: u64,
    /// Times that writing an entry was put off because too much waited to be written.
    pub unwritten: u64,
}

/// All zones by name.
pub fn all(shared: &Shared) -> BTreeMap<String, Zone> {
    let zones = 0..shared.stores.len();
    zones.map(|index| (shared.stores[index].name().to_owned(), one(shared, index))).collect()
}

/// The number of the zone with a name.
pub(crate) fn index(shared: &Shared, name: &str) -> Result<usize, ApiRefusal> {
    shared.stores.iter().position(|store| store.name() == name).ok_or_else(|| {
        let known: Vec<&str> = shared.stores.iter().map(|store| store.name()).collect();
        let text = format!("there is no cache zone \"{name}\", only: {}", known.join(", "));
        ApiRefusal::new(404, "CacheNotFound", text)
    })
}

/// One zone by its number.
pub fn one(shared: &Shared, index: usize) -> Zone {
    let store = &shared.stores[index];
    let (stats, conf) = (store.stats(), &shared.configuration.http.cache_zones[index]);
    let disk = store.path().map(|path| DiskTier {
        path: path.display().to_string(),
        files: stats.files,
        bytes: stats.disk_bytes,
        removed: stats.files_removed,
        index_bytes: stats.index_bytes,
        corrupt: stats.corrupt,
        errors: stats.disk_errors,
        unwritten: stats.unwritten,
    });
    Zone {
        size: if disk.is_some() { stats.disk_bytes } else { stats.memory_bytes },
        max_size: if disk.is_some() { conf.max_size } else { Some(stats.memory_limit) },
        cold: !stats.index_loaded,
        memory: MemoryTier {
            entries: stats.keys,
            bytes: stats.memory_bytes,
            max_bytes: stats.memory_limit,
            evictions: stats.evictions,
        },
        disk,
    }
}
