//! Numbers of the cache zones, in NGINX Plus's words (`size`, `max_size`, `cold`) and our own.

use super::ApiRefusal;
use crate::generation::Shared;
use millstream_telemetry::metrics::{CacheSnapshot, CacheStatus};
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
    /// What it did for requests, by cache status in lower case.
    #[serde(flatten)]
    pub served: BTreeMap<String, ServedCount>,
    /// The memory tier.
    pub memory: MemoryTier,
    /// The disk tier; absent for a zone in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskTier>,
}

/// Answers with one cache status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedCount {
    /// How many.
    pub responses: u64,
    /// Their bytes, heads included, as they were sent to clients.
    pub bytes: u64,
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
    let counted = shared.registry.snapshot().caches;
    let zone = |index: usize| (shared.stores[index].name().to_owned(), zone(shared, &counted, index));
    (0..shared.stores.len()).map(zone).collect()
}

fn served(counted: &[(String, CacheSnapshot)], name: &str) -> BTreeMap<String, ServedCount> {
    let counts = counted.iter().find(|(known, _)| known == name).map(|(_, counts)| counts.clone());
    let counts = counts.unwrap_or_default();
    let of = |status: CacheStatus| {
        let number = usize::from(status.number());
        let count = ServedCount { responses: counts.responses[number], bytes: counts.bytes[number] };
        (status.name().to_ascii_lowercase(), count)
    };
    CacheStatus::ALL.into_iter().map(of).collect()
}

/// The number of the zone with a name.
pub(crate) fn index(shared: &Shared, name: &str) -> Result<usize, ApiRefusal> {
    shared.stores.iter().position(|store| store.name() == name).ok_or_else(|| {
        let known: Vec<&str> = shared.stores.iter().map(|store| store.name()).collect();
        let text = format!("there is no cache zone \"{name}\", only: {}", known.join(", "));
        ApiRefusal::new(404, "CacheNotFound", text)
    })
}

fn zone(shared: &Shared, counted: &[(String, CacheSnapshot)], index: usize) -> Zone {
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
        served: served(counted, store.name()),
        memory: MemoryTier {
            entries: stats.keys,
            bytes: stats.memory_bytes,
            max_bytes: stats.memory_limit,
            evictions: stats.evictions,
        },
        disk,
    }
}
