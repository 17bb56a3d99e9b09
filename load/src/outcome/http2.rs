//! What a run over HTTP/2 has to say besides what every run has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A run over HTTP/2.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Http2Outcome {
    /// Streams of one connection that the server allows at once (SETTINGS_MAX_CONCURRENT_STREAMS), the least that was said;
    /// `null`: as many as were asked for, or more.
    pub allowed: Option<u32>,
    /// Connections that the server wanted to end (GOAWAY).
    pub going_away: u64,
    /// Streams that the server ended (RST_STREAM), by the name of its reason.
    pub resets: BTreeMap<String, u64>,
    /// The first rule that the server broke, to stand behind "the server sent "; `null`: none.
    pub broken: Option<String>,
}

impl Http2Outcome {
    /// What several threads have to say.
    pub fn together<'a>(parts: impl Iterator<Item = &'a Http2Outcome>) -> Http2Outcome {
        let mut all = Http2Outcome::default();
        for part in parts {
            all.allowed = all.allowed.into_iter().chain(part.allowed).min();
            all.going_away += part.going_away;
            for (name, count) in &part.resets {
                *all.resets.entry(name.clone()).or_default() += count;
            }
            all.broken = all.broken.or_else(|| part.broken.clone());
        }
        all
    }
}
