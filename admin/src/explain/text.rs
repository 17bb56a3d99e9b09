//! An explanation for people at a terminal: one fact a line, what decides first.

use super::Explanation;
use super::origin::on_node;
use super::stored::Stored;
use std::fmt::{self, Display, Formatter};

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let status = self.now.status.as_deref().unwrap_or("?");
        writeln!(f, "{} {}", self.method, self.url)?;
        writeln!(f, "  now       {status}: {}", self.now.why)?;
        writeln!(f, "  listener  {}", self.listener)?;
        let named = if self.server.name.is_empty() { "(unnamed)" } else { &self.server.name };
        writeln!(f, "  server    {named} ({})", self.server.at)?;
        if let Some(note) = &self.server_note {
            writeln!(f, "            {note}")?;
        }
        writeln!(f, "  location  {} ({})", self.location.name, self.location.at)?;
        if let Some(zone) = &self.zone {
            writeln!(f, "  zone      {zone}")?;
        }
        if let Some(key) = &self.key {
            writeln!(f, "  key       {}", key.text)?;
            let place = key.at.as_deref().map_or_else(|| "default".to_owned(), str::to_owned);
            writeln!(f, "    made by   proxy_cache_key {} ({place})", key.template)?;
            let width = key.parts.iter().map(|part| part.variable.len()).max().unwrap_or(0).max(9);
            for part in &key.parts {
                writeln!(f, "    {:<width$} {}", part.variable, part.value)?;
            }
            writeln!(f, "    file      {}", key.file)?;
        }
        if let Some(slice) = &self.slice {
            writeln!(f, "  slice     {slice}")?;
        }
        for stored in &self.stored {
            stored.write(f)?;
        }
        if let Some(refusal) = &self.last_refusal {
            writeln!(f, "  last response not stored, {} ago", ago(refusal.milliseconds_ago))?;
            writeln!(f, "    because   {}", refusal.text)?;
            writeln!(f, "    help      {}", refusal.help)?;
        }
        if let Some(purge) = &self.last_purge {
            let how = match (purge.before_stored, purge.soft) {
                (true, _) => "before the stored response arrived",
                (false, true) => "made the stored responses stale",
                (false, false) => "removed what was stored",
            };
            let by = match &purge.prefix {
                Some(prefix) => format!("prefix {prefix}"),
                None => purge.by.clone(),
            };
            let node = on_node(purge.node.clone());
            writeln!(f, "  last purge, {} ago, by {by}{node}, {how}", ago(purge.milliseconds_ago))?;
        }
        Ok(())
    }
}

impl Stored {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let state = if self.fresh { "fresh" } else { "stale" };
        let chosen = if self.chosen { ", selected for this request" } else { "" };
        writeln!(
            f,
            "  stored    {} with {} bytes, {state}, {}{chosen}",
            self.status,
            self.length,
            if self.tier == "disk" { "on disk" } else { "in memory" }
        )?;
        if let Some(part) = &self.part {
            writeln!(f, "    part      {part}")?;
        }
        for coded in &self.codings {
            writeln!(f, "    coded     {} with {} bytes", coded.coding, coded.length)?;
        }
        for field in &self.varies_by {
            writeln!(f, "    for       {field}")?;
        }
        let place = self.at.as_ref().map(|place| format!(" ({})", place.at)).unwrap_or_default();
        writeln!(f, "    because   {}{place}", self.because)?;
        for step in &self.arithmetic {
            writeln!(f, "    freshness {step}")?;
        }
        writeln!(f, "    age       {} s, {} tags", self.age, self.tags)
    }
}

pub(super) fn ago(milliseconds: i64) -> String {
    let seconds = milliseconds.max(0) / 1000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}
