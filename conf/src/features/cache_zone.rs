//! `proxy_cache_path` and its kind: the zones that answers are kept in.
//!
//! A zone is declared before any location is read, so that order in the file does not matter. Next: `pass/cache`, whose
//! directives use zones; `millstream-cache`'s `store`, which opens them.

use crate::declared::Kind;
use crate::declared::cache_zone::CacheZone;
use crate::parts::PathUse;
use crate::reading::{Reading, parameter};
use crate::suggest;
use crate::tree::{Directive, Word};

macro_rules! rows {
    ($prefix:literal) => {
        [
            often(concat!($prefix, "_cache_path"), HTTP, (2, MANY),
                "path | memory keys_zone=name:size [levels=levels] [inactive=time] [max_size=size] [min_free=size] \
                [use_temp_path=on|off] [memory=size] [cluster=name] [purger=on|off] [purger_files=number] [purger_threshold=time] \
                [purger_sleep=time] [manager_files=number] [manager_threshold=time] [manager_sleep=time] \
                [loader_files=number] [loader_threshold=time] [loader_sleep=time]", "",
                "Defines a cache zone. `path` is a directory, or the word `memory` for a zone without files. `keys_zone` limits the number of \
                entries, 8,000 per megabyte. Entries not used for `inactive` (10m) are removed. `max_size` limits the size of the files, and \
                `memory` (64m; not in nginx) the memory for hot entries. With `cluster=name` (not in nginx), purges and invalidations take effect in the \
                zone of the same name on every node of that cluster. With `purger=on`, the files of purged entries are removed in the \
                background; otherwise, each is removed when it is next found. The loader lists the files at start; the manager removes unused and \
                excess files. Each works in steps of at most `…_files` (100; for the purger, 10) and `…_threshold` (200ms), with a pause of \
                `…_sleep` (50ms) after each.",
                Apply::Declare(cache_zone::declare)),
        ]
    };
}
pub(super) use rows;

/// Other than [`PACES`].
const PARAMETERS: [&str; 9] = [
    "keys_zone",
    "levels",
    "inactive",
    "max_size",
    "min_free",
    "use_temp_path",
    "memory",
    "purger",
    "cluster",
];

const PACES: [&str; 9] = [
    "purger_files",
    "purger_threshold",
    "purger_sleep",
    "manager_files",
    "manager_threshold",
    "manager_sleep",
    "loader_files",
    "loader_threshold",
    "loader_sleep",
];

pub(super) fn declare(directive: &Directive, reading: &mut Reading<'_>) {
    let path = &directive.args[0];
    if !reading.without_variables(path, &directive.name.text) {
        return;
    }
    let mut zone = CacheZone {
        span: directive.span,
        path: (path.text != "memory")
            .then(|| reading.named_path(path, path.text.trim_end_matches('/'), PathUse::Cache)),
        ..CacheZone::default()
    };
    for word in &directive.args[1..] {
        zone_parameter(&mut zone, word, reading);
        if zone.path.is_none() && ["max_size=", "min_free="].iter().any(|name| word.text.starts_with(name)) {
            reading
                .diagnostics
                .warning(word.span, "this limits files, but the zone has none")
                .help("write memory=64m to limit its memory, or a directory instead of the word memory");
        }
    }
    if zone.name.is_empty() {
        // A misspelt or wrong keys_zone has its own error already.
        if !directive.args[1..].iter().any(|word| word.text.starts_with("keys_zone")) {
            reading
                .error(
                    directive.span,
                    format!("\"{}\" must have \"keys_zone\" parameter", directive.name.text),
                )
                .help("add keys_zone=name:10m");
        }
        return;
    }
    add_zone(zone, reading);
}

fn add_zone(zone: CacheZone, reading: &mut Reading<'_>) {
    let (name, span) = (&zone.name, zone.span);
    if !reading.declare(Kind::CacheZone, name, span, format!("duplicate zone \"{name}\"")) {
        return;
    }
    if let Some(path) = &zone.path {
        let path = path.to_string_lossy();
        if !reading.declare(Kind::CacheDirectory, &path, span, "two cache zones have the same directory") {
            return;
        }
    }
    reading.declared.cache_zones.push(zone);
    reading.used_zones.push(false);
}

fn zone_parameter(zone: &mut CacheZone, word: &Word, reading: &mut Reading<'_>) {
    match parameter(word) {
        Some(("keys_zone", value)) => keys_zone(zone, &value, reading),
        Some(("levels", value)) => levels(zone, &value, reading),
        Some(("inactive", value)) => zone.inactive = reading.duration(&value).unwrap_or(zone.inactive),
        Some(("max_size", value)) => zone.max_size = reading.offset(&value),
        Some(("min_free", value)) => zone.min_free = reading.offset(&value).unwrap_or(0),
        Some(("use_temp_path", value)) => zone.use_temp_path = reading.flag(&value).unwrap_or(true),
        Some(("memory", value)) => zone.memory = reading.offset(&value).unwrap_or(zone.memory),
        Some(("cluster", value)) => zone.cluster = Some((value.text.clone(), value.span)),
        Some(("purger", value)) => zone.purger = reading.flag(&value).unwrap_or(false),
        Some((name, value)) if PACES.contains(&name) => {
            let (who, part) = name.split_once('_').expect("each has two parts");
            pace(zone, (who, part), &value, reading);
        }
        other => {
            let name = other.map_or(word.text.as_str(), |(name, _)| name);
            let known = PARAMETERS.into_iter().chain(PACES);
            let help = suggest::did_you_mean(name, known).unwrap_or_else(|| {
                let names = PARAMETERS.map(|known| format!("{known}=")).join(", ");
                format!("the parameters are {names}, and those of the purger, the manager and the loader")
            });
            reading.error(word.span, format!("invalid parameter \"{}\"", word.text)).help(help);
        }
    }
}

fn pace(zone: &mut CacheZone, (who, part): (&str, &str), value: &Word, reading: &mut Reading<'_>) {
    let pace = match who {
        "purger" => &mut zone.purger_pace,
        "manager" => &mut zone.manager_pace,
        _ => &mut zone.loader_pace,
    };
    match part {
        // nginx takes 0 too, and then works on one file at a time.
        "files" => {
            let files = reading.number(value, 0, u64::from(u32::MAX));
            pace.files = files.map_or(pace.files, |files| (files as u32).max(1));
        }
        "threshold" => pace.threshold = reading.duration(value).unwrap_or(pace.threshold),
        _ => pace.sleep = reading.duration(value).unwrap_or(pace.sleep),
    }
}

fn keys_zone(zone: &mut CacheZone, value: &Word, reading: &mut Reading<'_>) {
    let Some((name, size)) = value.text.split_once(':').filter(|(name, _)| !name.is_empty()) else {
        reading
            .error(value.span, format!("invalid keys zone \"{}\"", value.text))
            .help("write a name and a size, as in keys_zone=api:10m");
        return;
    };
    let Some(bytes) = reading.size(&Reading::part(value, size)) else { return };
    if bytes < 8192 {
        reading
            .error(value.span, format!("zone \"{name}\" is too small"))
            .help("write at least 8k; a megabyte holds 8,000 entries");
        return;
    }
    zone.name = name.to_owned();
    zone.keys_size = bytes;
}

fn levels(zone: &mut CacheZone, value: &Word, reading: &mut Reading<'_>) {
    let levels: Option<Vec<u8>> = value
        .text
        .split(':')
        .map(|level| match level {
            "1" => Some(1),
            "2" => Some(2),
            _ => None,
        })
        .collect();
    if value.text.is_empty() {
        return;
    }
    match levels.filter(|levels| levels.len() <= 3) {
        Some(levels) => zone.levels = levels,
        None => {
            reading
                .error(value.span, format!("invalid \"levels\" \"{}\"", value.text))
                .help("write one to three widths of 1 or 2, as in levels=1:2");
        }
    }
}
