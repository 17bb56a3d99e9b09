//! Numbers of the cache zones, in NGINX Plus's words (`size`, `max_size`, `cold`) and our own.

use crate::refusal::ApiRefusal;
use millstream_server::generation::Shared;
use millstream_telemetry::metrics::{CacheSnapshot, CacheStatus};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// Bytes on disk, or in memory if there is no disk tier.
    pub size: u64,
    /// Absent if only the disk's size bounds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u64>,
    pub cold: bool,
    /// By cache status in lower case.
    #[serde(flatten)]
    pub served: BTreeMap<String, ServedCount>,
    pub memory: MemoryTier,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskTier>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedCount {
    pub responses: u64,
    /// As sent to clients, heads included.
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryTier {
    /// Entries, variants and remembered misses.
    pub entries: u64,
    pub bytes: u64,
    pub max_bytes: u64,
    /// Since the start.
    pub evictions: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskTier {
    pub path: String,
    pub files: u64,
    /// In whole pages.
    pub bytes: u64,
    pub removed: u64,
    pub index_bytes: u64,
    pub corrupt: u64,
    pub errors: u64,
    /// Times that an entry was not written because too much was waiting.
    pub unwritten: u64,
}

pub fn all(shared: &Shared) -> BTreeMap<String, Zone> {
    let counted = shared.registry.snapshot().caches;
    let zone = |index: usize| (shared.zones.stores[index].name().to_owned(), zone(shared, &counted, index));
    (0..shared.zones.stores.len()).map(zone).collect()
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

pub(crate) fn index(shared: &Shared, name: &str) -> Result<usize, ApiRefusal> {
    shared.zones.stores.iter().position(|store| store.name() == name).ok_or_else(|| {
        let known: Vec<&str> = shared.zones.stores.iter().map(|store| store.name()).collect();
        let text = format!("cache zone \"{name}\" not found; existing zones: {}", known.join(", "));
        ApiRefusal::new(404, "CacheNotFound", text)
    })
}

fn zone(shared: &Shared, counted: &[(String, CacheSnapshot)], index: usize) -> Zone {
    let store = &shared.zones.stores[index];
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
