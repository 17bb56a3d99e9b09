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
    /// Adds what another thread has to say.
    pub fn add(&mut self, other: &Http2Outcome) {
        self.allowed = self.allowed.into_iter().chain(other.allowed).min();
        self.going_away += other.going_away;
        for (name, count) in &other.resets {
            *self.resets.entry(name.clone()).or_default() += count;
        }
        self.broken = self.broken.take().or_else(|| other.broken.clone());
    }
}
